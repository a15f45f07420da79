"""Invocations that ship with a preset, for the tests to execute: what must work, and what must come to nothing.

Read from policies/presets/examples, apart from the presets themselves: a server never needs them. Starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from policies import preset
from policies.params import Table


class _Entry(Table, frozen=True, kw_only=True):
    args: dict[str, object]
    expect: str = ""
    exit_code: int = 0


class _Tool(Table, frozen=True, kw_only=True):
    benign: tuple[_Entry, ...]
    hostile: tuple[_Entry, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """One invocation of a tool.

    hostile    must be refused, or run without reading, writing or starting anything outside its task.
    expect     text that the output of a benign one contains; exit_code is its exit code.
    """

    tool: str
    arguments: Mapping[str, object]
    hostile: bool
    expect: str = ""
    exit_code: int = 0


def examples(name: str) -> list[Example]:
    """The examples of one preset, in the order of its file."""
    data = (preset.FOLDER / "examples" / f"{name}.toml").read_bytes()
    tools = msgspec.convert(preset.toml(data, f"examples of {name}"), dict[str, _Tool])
    return [
        Example(tool, entry.args, hostile, entry.expect, entry.exit_code)
        for tool, table in tools.items()
        for hostile, entries in ((False, table.benign), (True, table.hostile))
        for entry in entries
    ]
