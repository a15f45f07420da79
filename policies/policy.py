"""A policy that was read, checked and resolved: what the front works with. Frozen values, nothing left to look up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.model import RedactRule
from policies.params import AnyParam, GroupTable
from sandbox.types import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CagePolicy:
    """The cage's part of a tool or catalog. `processes` as in sandbox.types.Profile; paths absolute."""

    processes: str | tuple[str, ...] = "none"
    socket_pairs: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    limits: Limits = field(default_factory=Limits)
    read_only: tuple[str, ...] = ()
    redact_exempt: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """One tool. command[0] is an absolute path; later words may hold placeholders (policies.template)."""

    name: str
    title: str
    description: str
    command: tuple[str, ...]
    params: Mapping[str, AnyParam]
    groups: tuple[GroupTable, ...]
    output: str
    findings_exit_codes: tuple[int, ...]
    cwd: str
    cage: CagePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPolicy:
    """One catalog. describe[0] and command[0] are absolute paths. `withhold_flags`: "--flag" or "command --flag"."""

    name: str
    describe: tuple[str, ...]
    command: tuple[str, ...]
    withhold: frozenset[str]
    withhold_flags: frozenset[str]
    path_flags: frozenset[str]
    never: frozenset[str]
    findings_exit_codes: tuple[int, ...]
    cage: CagePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything the operator allows. `digest` is the SHA-256 of the policy, its presets and its root, in hex."""

    file: str
    name: str
    root: str
    root_at: str | None
    floor: str
    max_output_bytes: int
    max_calls_per_minute: int
    max_concurrent_calls: int
    max_machine_calls: int | None
    max_machine_memory_mb: int | None
    limits: Limits
    redact_env: tuple[str, ...]
    redact_files: tuple[str, ...]
    redact_rules: tuple[RedactRule, ...] = ()
    presets: tuple[str, ...]
    tools: tuple[ToolPolicy, ...]
    catalogs: tuple[CatalogPolicy, ...]
    digest: str
