"""Policy file in, Policy out: read, decode, check, resolve. Runs in the front before a client connects.

Reads files and looks up programs; starts nothing. Every problem is a PolicyRefused that names file, key and fix.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from policies import check, locate, place, preset, programs, redact
from policies.errors import BadKeyError, PolicyRefused, did_you_mean, join
from policies.model import Cage, CatalogTable, Document, LimitsTable, ToolTable
from policies.policy import CagePolicy, CatalogPolicy, Policy, ToolPolicy
from sandbox.types import Limits

MIN_PATH = "/usr/local/bin:/usr/bin:/bin"  # where an operator without PATH finds programs


@dataclass(frozen=True, slots=True)
class _Setting:
    """What resolving needs besides the tables."""

    environment: Mapping[str, str]
    limits: Limits

    @property
    def path(self) -> str:
        return self.environment.get("PATH", MIN_PATH)


def load(path: Path, *, root_override: str | None, environment: Mapping[str, str]) -> Policy:
    """Read and resolve the policy at `path`.

    root_override  the value of --root (relative to the working folder), which replaces `server.root`.
    environment    the operator's: PATH, HOME and the variables that tools may be given.
    Raises PolicyRefused.
    """
    file = os.fspath(path)
    document = decode(place.read(file), file)
    try:
        return _resolve(document, file, root_override, environment)
    except BadKeyError as problem:
        raise problem.in_file(file) from None


def decode(data: bytes, file: str) -> Document:
    """Strictly decode a policy document. Raises PolicyRefused with the key, or the line of a TOML error."""
    raw = preset.toml(data, file)
    try:
        return msgspec.convert(raw, Document)
    except msgspec.ValidationError as error:
        try:
            locate.locate(raw, Document, "", Document.__struct_fields__)
        except BadKeyError as problem:
            raise problem.in_file(file) from None
        raise PolicyRefused(file, "", str(error), "see docs/policy.md") from None


def _resolve(document: Document, file: str, override: str | None, environment: Mapping[str, str]) -> Policy:
    server = document.server
    folder = os.path.dirname(os.path.realpath(file))
    root = place.root(server, folder, override, environment)
    place.outside(file, root, writable=False)  # the root is mounted read-only in every cage
    setting = _Setting(environment, replace(Limits(), **_given(document.limits)))
    loaded = [preset.load(name, f"presets[{i}]") for i, name in enumerate(document.presets)]
    tools = _tools(document, loaded, setting)
    catalogs = tuple(_catalog(name, table, setting) for name, table in document.catalogs.items())
    for tool in tools:
        if not os.path.isdir(os.path.join(root, tool.cwd)):
            raise BadKeyError(
                join(join("tools", tool.name), "cwd"), f"{tool.cwd} is not a folder beneath the root"
            )
    return Policy(
        file=file,
        root=root,
        root_at=place.root_at(server.root_at),
        limits=setting.limits,
        redact_env=document.redact.env,
        redact_files=place.secret_files(document.redact.files, folder, environment.get("HOME")),
        redact_rules=redact.rules(document.redact.rules),
        presets=document.presets,
        tools=tools,
        catalogs=catalogs,
        digest=_digest(document, loaded, root),
        name=server.name,
        floor=server.floor,
        max_output_bytes=server.max_output_bytes,
        max_calls_per_minute=server.max_calls_per_minute,
        max_concurrent_calls=server.max_concurrent_calls,
        max_machine_calls=server.max_machine_calls,
        max_machine_memory_mb=server.max_machine_memory_mb,
    )


def _tools(document: Document, loaded: list[preset.Preset], setting: _Setting) -> tuple[ToolPolicy, ...]:
    """The tools of the presets in their order, less the withheld, then the policy's own; one name, one tool."""
    tools: dict[str, ToolPolicy] = {}
    offered = [name for one in loaded for name in one.tools]
    for index, name in enumerate(document.withhold):
        if name not in offered:
            fix = f"name a tool of the presets{did_you_mean(name, offered)}"
            raise BadKeyError(f"withhold[{index}]", f'no preset has a tool "{name}"', fix)
    for one in loaded:
        for name, table in one.tools.items():
            if name in tools:
                raise BadKeyError("presets", f'the tool "{name}" comes twice', "remove one of the presets")
            if name not in document.withhold:
                tools[name] = _tool(
                    name, table, setting, f"preset {one.name}: tools.{name}", from_preset=True
                )
    for name, table in document.tools.items():
        if name in tools:
            raise BadKeyError(
                join("tools", name),
                "a preset has a tool of this name",
                f'rename it, or withhold = ["{name}"]',
            )
        tools[name] = _tool(name, table, setting, join("tools", name), from_preset=False)
    return tuple(tools.values())


def _tool(name: str, table: ToolTable, setting: _Setting, key: str, *, from_preset: bool) -> ToolPolicy:
    check.tool(name, table, key)
    program = programs.resolve(table.command[0], setting.path, f"{join(key, 'command')}[0]")
    return ToolPolicy(
        name=name,
        title=table.title or name.replace("_", " ").capitalize(),
        description=table.description,
        command=(program, *table.command[1:]),
        params=table.params,
        groups=table.groups,
        output=table.output,
        findings_exit_codes=table.findings_exit_codes,
        cwd=os.path.normpath(table.cwd),
        cage=_cage(table, setting, key, strict=not from_preset),
    )


def _catalog(name: str, table: CatalogTable, setting: _Setting) -> CatalogPolicy:
    key = join("catalogs", name)
    for index, pair in enumerate(table.path_flags):
        if len(pair.split(" ")) != 2:
            raise BadKeyError(
                f"{join(key, 'path_flags')}[{index}]", "is not a pair", 'write "command --flag"'
            )
    describe, command = (
        (programs.resolve(words[0], setting.path, f"{join(key, part)}[0]"), *words[1:])
        for part, words in (("describe", table.describe), ("command", table.command))
    )
    return CatalogPolicy(
        name=name,
        describe=describe,
        command=command,
        withhold=frozenset(table.withhold),
        withhold_flags=frozenset(table.withhold_flags),
        path_flags=frozenset(table.path_flags),
        never=frozenset(table.never),
        findings_exit_codes=table.findings_exit_codes,
        cage=_cage(table, setting, key, strict=True),
    )


def _cage(table: Cage, setting: _Setting, key: str, *, strict: bool) -> CagePolicy:
    unsafe = table.unsafe_env or not strict  # a preset's own variables shut doors
    return CagePolicy(
        processes=programs.resolve_all(table.processes, setting.path, join(key, "processes")),
        socket_pairs=table.socket_pairs,
        environment=programs.environment(
            table.env, table.set_env, setting.environment, unsafe=unsafe, key=key
        ),
        limits=_limits(table.limits, setting.limits, join(key, "limits"), strict=strict),
        read_only=place.existing(table.read_only_paths, join(key, "read_only_paths")),
        redact_exempt=frozenset(table.redact_exempt),
    )


def _given(table: LimitsTable) -> dict[str, Any]:
    return {name: value for name in table.__struct_fields__ if (value := getattr(table, name)) is not None}


def _limits(table: LimitsTable, outer: Limits, key: str, *, strict: bool) -> Limits:
    """`outer`, narrowed by the table. A wider value is refused if `strict`, else (in a preset) it has no effect."""
    given = _given(table)
    for name, value in given.items():
        if strict and value > getattr(outer, name):
            raise BadKeyError(
                join(key, name),
                f"is wider than {getattr(outer, name)}, the limit of the file",
                f"lower it, or raise limits.{name}",
            )
    return replace(outer, **{name: min(value, getattr(outer, name)) for name, value in given.items()})


def _digest(document: Document, loaded: list[preset.Preset], root: str) -> str:
    canonical = msgspec.json.encode(
        {"policy": document, "presets": {one.name: one.digest for one in loaded}, "root": root},
        order="deterministic",
    )
    return hashlib.sha256(canonical).hexdigest()
