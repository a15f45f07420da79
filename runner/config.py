"""Flags, policy file and environment become one frozen Config. The only reader of os.environ; acts on nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from policies.load import load
from policies.policy import Policy
from runner.flags import Flags
from runner.redaction import values
from runner.redaction.values import SecretValue
from sandbox.errors import Refused

if TYPE_CHECKING:
    from runner.redaction.rule import Rule

_OUTPUT_BYTES = (1024, 8_388_608)
_CALLS = (1, 600)


class UsageRefused(Refused):
    """A flag with a value that is not allowed."""

    code = "usage"


@dataclass(frozen=True, slots=True)
class Secrets:
    """What redaction has to know. `unmasked`: names of secrets too short to be masked."""

    values: tuple[SecretValue, ...]
    unmasked: tuple[str, ...]
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that was decided before anything runs.

    runtime_dir  the value of TOOLCAGE_RUNTIME_DIR: a folder for what servers share while they run (runner.places).
    """

    policy: Policy
    secrets: Secrets
    log_json: str | None = None
    runtime_dir: str | None = None


def read(flags: Flags) -> Config:
    """Raises Refused (PolicyRefused, UsageRefused, SecretFileRefused), each with a remedy."""
    environment = dict(os.environ)
    policy = load(Path(flags.policy), root_override=flags.root, environment=environment)
    policy = replace(
        policy,
        max_output_bytes=_chosen(
            "--max-output-bytes", flags.max_output_bytes, policy.max_output_bytes, _OUTPUT_BYTES
        ),
        max_calls_per_minute=_chosen(
            "--max-calls-per-minute", flags.max_calls_per_minute, policy.max_calls_per_minute, _CALLS
        ),
    )
    runtime_dir = _folder(environment.get("TOOLCAGE_RUNTIME_DIR", ""))
    return Config(policy, _secrets(policy, environment), flags.log_json, runtime_dir)


def secrets(flags: Flags | None) -> Secrets:
    """What `toolcage redact` looks for: of a policy, or without one the environment's usual names. Raises Refused."""
    return _secrets(None, dict(os.environ)) if flags is None else read(flags).secrets


def _secrets(policy: Policy | None, environment: Mapping[str, str]) -> Secrets:
    found = values.from_environment(policy.redact_env if policy else (), environment)
    if policy is None:
        return Secrets(found, values.too_short(found))
    found += values.from_files(policy.redact_files)
    own: tuple[Rule, ...] = ()
    if policy.redact_rules:  # most policies have none, and a client waits for the start
        from runner.redaction import custom

        own = custom.rules(policy.redact_rules)
    return Secrets(found, values.too_short(found), own)


def _folder(value: str) -> str | None:
    """None where nothing is said."""
    if value and not os.path.isabs(value):
        raise UsageRefused(
            f"TOOLCAGE_RUNTIME_DIR {value!r} is relative", "give an absolute path, or unset it"
        )
    return value or None


def _chosen(flag: str, value: int | None, default: int, bounds: tuple[int, int]) -> int:
    if value is None:
        return default
    low, high = bounds
    if not low <= value <= high:
        raise UsageRefused(f"{flag} {value} is out of bounds", f"give a number from {low} to {high}")
    return value
