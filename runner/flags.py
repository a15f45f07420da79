"""What the command line may say about a policy. Apart from `config`, so that the verbs load without the policy code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line may say about a policy; None means that the policy decides."""

    policy: str
    root: str | None = None
    max_output_bytes: int | None = None
    max_calls_per_minute: int | None = None
    log_json: str | None = None
