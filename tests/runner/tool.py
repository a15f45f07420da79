"""Stands in for a tool where results are made: the facts that they look at (runner.case.ToolFacts)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tool:
    output: str = "json"
    name: str = "t"
    ok_exit_codes: tuple[int, ...] = (0,)
    findings_exit_codes: tuple[int, ...] = (1,)
    redact_exempt: frozenset[str] = frozenset()
    params: Mapping[str, object] = field(default_factory=lambda: {"path": None, "count": None})
