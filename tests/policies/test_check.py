"""policies.check: no value of a parameter can become a flag, a program or go unnoticed."""

from __future__ import annotations

import msgspec
import pytest

from policies import check
from policies.errors import BadKeyError
from policies.model import ToolTable


def tool(command: list[str], params: dict[str, object], **more: object) -> None:
    table = msgspec.convert({"description": "d", "command": command, "params": params, **more}, ToolTable)
    check.tool("name", table, "tools.name")


TEXT = {"type": "string"}
PATH = {"type": "path"}

GOOD: list[tuple[list[str], dict[str, object]]] = [
    (["p", "--", "{x}"], {"x": TEXT}),
    (["p", "--end-of-options", "{x}", "--"], {"x": TEXT}),
    (["p", "--flag={x}"], {"x": TEXT}),
    (["p", "--flag=+{x}"], {"x": {"type": "integer"}}),
    (["p", "-L{x}"], {"x": TEXT}),
    (["p", "{x}"], {"x": {"type": "integer", "min": 0}}),
    (["p", "{x}"], {"x": {"type": "enum", "values": ["a", "b"]}}),
    (["p", "{x}"], {"x": {"type": "boolean", "flag": "--stat"}}),
    (["p", "{x}"], {"x": {"type": "string", "pattern": "[a-z][a-z-]*"}}),
    (["p", "{{x}}", "a{b"], {}),
    (["p", "--", "{x}"], {"x": {"type": "list", "items": PATH}}),
    (["p", "--", "{x}"], {"x": {"type": "path", "default": "."}}),
    (["env", "--chdir=/", "prog", "{x}"], {"x": {"type": "integer", "min": 0}}),
    (["python3", "-I", "tool.py", "--", "{x}"], {"x": PATH}),
    (["bash", "script.sh", "--name={x}"], {"x": TEXT}),
    (["p", "--", "{x}", "{y}"], {"x": {"type": "path", "required": True}, "y": PATH}),
    (["p", "--", "{x}", "{y}"], {"x": {"type": "path", "default": "."}, "y": PATH}),
]

BAD: list[tuple[list[str], dict[str, object], str]] = [
    (["p", "{x}"], {"x": TEXT}, "read as a flag"),
    (["p", "{x}"], {"x": PATH}, "read as a flag"),
    (["p", "{x}"], {"x": {"type": "list", "items": TEXT}}, "read as a flag"),
    (["p", "{x}"], {"x": {"type": "integer"}}, "negative"),
    (["p", "{x}"], {"x": {"type": "number", "max": 3}}, "negative"),
    (["p", "{x}"], {"x": {"type": "enum", "values": ["a", "-b"]}}, "would be a flag"),
    (["p", "{x}"], {"x": {"type": "string", "pattern": "[a-z-]+"}}, "read as a flag"),
    (["p", "{x}"], {"x": {"type": "string", "pattern": "[a-z]*-x"}}, "read as a flag"),
    (["p", "{x}"], {"x": {"type": "string", "pattern": "[a-z]|-x"}}, "read as a flag"),
    (["p", "{x}"], {"x": {"type": "string", "pattern": "[!-/]x"}}, "read as a flag"),
    (["p", "{x}"], {"x": {"type": "string", "pattern": "[^a-z]x"}}, "read as a flag"),
    (["p", "{x}"], {"x": {"type": "string", "pattern": "[a-z]?-x"}}, "read as a flag"),
    (["p", "{x}"], {"x": {"type": "string", "pattern": "[a-z]{0}-x"}}, "read as a flag"),
    (["p", "{x}"], {"x": {"type": "string", "pattern": "[+-/]x"}}, "read as a flag"),
    (["p", "--", "{x}"], {"x": {"type": "boolean", "flag": "--stat"}}, "operand"),
    (["p", "--f={x}"], {"x": {"type": "boolean", "flag": "--stat"}}, "its own flag"),
    (["p", "--", "a{x}"], {"x": TEXT}, "whole word"),
    (["p", "--", "{x}{x}"], {"x": TEXT}, "whole word"),
    (["p", "--", "{y}"], {"x": TEXT}, 'no parameter "y"'),
    (["p"], {"x": TEXT}, "no word of the command"),
    (["{x}"], {"x": TEXT}, "program itself"),
    (["xargs", "--", "{x}"], {"x": TEXT}, "choose a program"),
    (["/usr/bin/env", "--", "{x}"], {"x": PATH}, "choose a program"),
    (["env", "--split-string={x}"], {"x": TEXT}, "choose a program"),
    (["env", "-S{x}"], {"x": TEXT}, "choose a program"),
    (["bash", "-c", "--", "{x}"], {"x": TEXT}, "runs the script"),
    (["python3.11", "-c{x}"], {"x": TEXT}, "runs the script"),
    (["awk", "--", "{x}"], {"x": TEXT}, "runs the script"),
    (["/bin/sed", "-n", "-e{x}"], {"x": TEXT}, "runs the script"),
    (["p", "--", "{x}", "{y}"], {"x": PATH, "y": PATH}, "stand in its place"),
    (["p", "--f={x}"], {"x": {"type": "number", "min": float("nan")}}, "finite"),
    (["p", "--f={x}"], {"x": {"type": "enum", "values": [1.0, float("inf")]}}, "finite"),
    (["p", "--f={x}"], {"x": {"type": "string", "pattern": "("}}, "regular expression"),
    (["p", "--f={x}"], {"x": {"type": "string", "pattern": "(a+)+"}}, "exponential"),
    (["p", "--f={x}"], {"x": {"type": "integer", "min": 3, "max": 2}}, "larger than max"),
    (["p", "--f={x}"], {"x": {"type": "enum", "values": ["a", 1]}}, "mixes"),
    (["p", "--f={x}"], {"x": {"type": "enum", "values": ["a", "a"]}}, "twice"),
    (["p", "--f={x}"], {"x": {"type": "enum", "values": ["a\nb"]}}, "one line"),
    (["p", "--f={x}"], {"x": {"type": "enum", "values": ["a"], "default": "b"}}, "one of"),
    (["p", "--f={x}"], {"x": {"type": "integer", "max": 3, "default": 4}}, "between"),
    (["p", "--f={x}"], {"x": {"type": "list", "items": {"type": "path", "default": "."}}}, "an item has no"),
    (["p", "--f={x}"], {"x": {"type": "string", "required": True, "default": "x"}}, "no use"),
]


@pytest.mark.parametrize(("command", "params"), GOOD)
def test_good_commands(command: list[str], params: dict[str, object]) -> None:
    tool(command, params)


@pytest.mark.parametrize(("command", "params", "problem"), BAD)
def test_bad_commands(command: list[str], params: dict[str, object], problem: str) -> None:
    with pytest.raises(BadKeyError, match=problem) as caught:
        tool(command, params)
    assert caught.value.key.startswith("tools.name")


def test_groups_hold_parameters_that_can_be_left_out() -> None:
    words = ["p", "--a={a}", "--b={b}"]
    tool(words, {"a": TEXT, "b": TEXT}, groups=[{"params": ["a", "b"]}])
    cases: list[tuple[dict[str, object], list[str]]] = [
        ({"a": {"type": "string", "required": True}, "b": TEXT}, ["a", "b"]),
        ({"a": TEXT, "b": {"type": "string", "default": "x"}}, ["a", "b"]),
        ({"a": TEXT, "b": TEXT}, ["a", "c"]),
    ]
    for params, names in cases:
        with pytest.raises(BadKeyError, match=r"no parameter|required or"):
            tool(words, params, groups=[{"params": names}])
