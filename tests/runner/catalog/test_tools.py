"""runner.catalog.tools: definitions that every client accepts, and calls in one canonical form."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from policies import preset, template
from policies.model import ToolTable
from runner.catalog.arguments import ArgumentRefused
from runner.catalog.tools import Tool
from sandbox.root import Root, open_root


def make(command: list[str], params: dict[str, Any], cwd: str = ".", **more: Any) -> Tool:
    table = msgspec.convert(
        {"description": "Does it.", "command": command, "params": params, **more}, ToolTable
    )
    return Tool(
        name="it", title="It", description=table.description, plan="it", params=table.params, groups=table.groups,
        template=template.fixed_part(table.command)[1], cwd=cwd,
    )  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "-x").write_text("dash")
    (tmp_path / "..b").write_text("dots")
    return open_root(str(tmp_path))


PARAMS: dict[str, Any] = {
    "path": {"type": "path", "default": "."},
    "count": {"type": "integer", "min": 0, "max": 9, "description": "How many"},
    "stat": {"type": "boolean", "flag": "--stat"},
    "kind": {"type": "enum", "values": ["a", "b"], "default": "a"},
    "globs": {"type": "list", "items": {"type": "string", "max_length": 9, "pattern": "[a-z*]+"}},
    "level": {"type": "number", "min": 0, "max": 1, "required": True},
}
COMMAND = [
    "p",
    "fixed",
    "{stat}",
    "--count={count}",
    "{kind}",
    "--glob={globs}",
    "--level={level}",
    "--",
    "{path}",
]


def test_the_definition_is_flat_and_complete() -> None:
    definition = make(COMMAND, PARAMS).definition()
    schema: Any = definition["inputSchema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["level"]
    assert schema["properties"]["count"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 9,
        "description": "How many",
    }
    assert schema["properties"]["kind"] == {"type": "string", "enum": ["a", "b"], "default": "a"}
    assert schema["properties"]["globs"]["items"]["pattern"] == "^(?:[a-z*]+)$"
    assert definition["annotations"] == {
        "title": "It", "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False,
    }  # fmt: skip
    assert "null" not in json.dumps(definition)


def test_a_tool_without_parameters_has_an_empty_object() -> None:
    assert make(["p"], {}).definition()["inputSchema"] == {
        "type": "object", "properties": {}, "additionalProperties": False,
    }  # fmt: skip


def test_the_words_stand_in_the_order_of_the_command(root: Root) -> None:
    tool = make(COMMAND, PARAMS)
    assert tool.call({"level": 0.5}, root).argv == ("a", "--level=0.5", "--", ".")
    call = tool.call(
        {"path": "a.txt", "globs": '["x", "y*"]', "stat": True, "count": 3, "kind": "b", "level": 1}, root
    )
    assert call.argv == ("--stat", "--count=3", "b", "--glob=x", "--glob=y*", "--level=1.0", "--", "./a.txt")
    assert (call.plan, call.cwd, call.stdin) == ("it", ".", b"")


def test_null_counts_as_not_given(root: Root) -> None:
    assert make(COMMAND, PARAMS).call({"level": 0.5, "count": None}, root).argv == (
        "a",
        "--level=0.5",
        "--",
        ".",
    )
    assert make(["p"], {}).call(None, root).argv == ()
    with pytest.raises(ArgumentRefused, match='"level" is missing'):
        make(COMMAND, PARAMS).call({"level": None}, root)


@pytest.mark.parametrize(
    ("given", "emitted"),
    [
        ("a.txt", "./a.txt"),
        ("./-x", "./-x"),
        ("..b", "..b"),
        ("sub/../a.txt", "./sub/../a.txt"),
        (".", "."),
        ("sub//deep/", "./sub/deep"),
    ],
)
def test_a_path_is_never_a_flag(root: Root, given: str, emitted: str) -> None:
    tool = make(["p", "--", "{x}"], {"x": {"type": "path"}})
    assert tool.call({"x": given}, root).argv == (emitted,)
    assert tool.call({"x": f"{root.path}/{given}"}, root).argv == (emitted,)


def test_a_path_is_relative_to_the_folder_of_the_tool(root: Root) -> None:
    tool = make(["p", "--", "{x}"], {"x": {"type": "path"}}, cwd="sub/deep")
    assert tool.call({"x": "a.txt"}, root) == tool.call({"x": "./a.txt"}, root)
    assert tool.call({"x": "a.txt"}, root).argv == ("../../a.txt",)
    assert tool.call({"x": "."}, root).argv == ("../..",)
    assert tool.call({"x": "a.txt"}, root).cwd == "sub/deep"


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        ({"level": 1, "cuont": 1}, "'cuont'", 'did you mean "count"'),
        ({"level": 1, "count": 10}, "between 0 and 9", "How many"),
        ({"level": 1, "path": "../x"}, "leaves the root", "inside the root"),
        ({"level": 1, "path": "none"}, "no such file", "inside the root"),
        ([], "must be an object", "path, count"),
        ("x", "must be an object", "path, count"),
    ],
)
def test_refusals_say_what_is_allowed(root: Root, arguments: Any, message: str, remedy: str) -> None:
    with pytest.raises(ArgumentRefused) as caught:
        make(COMMAND, PARAMS).call(arguments, root)
    assert caught.value.code == "argument_refused"
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_refusals_repeat_little_of_what_was_sent(root: Root) -> None:
    secret = "S" * 100_000
    tool = make(COMMAND, PARAMS)
    for arguments in (
        {secret: 1},
        {"level": secret},
        {"level": 1, "path": secret},
        {"level": 1, "kind": secret},
    ):
        with pytest.raises(ArgumentRefused) as caught:
            tool.call(arguments, root)
        assert "S" * 81 not in caught.value.message + caught.value.remedy
        assert len(caught.value.message) < 400
    with pytest.raises(ArgumentRefused) as caught:
        tool.call({"\ud800": 1}, root)
    assert caught.value.message.isascii()


def test_all_arguments_together_are_bounded(root: Root) -> None:
    item = {"type": "string", "max_length": 20000}
    tool = make(["p", "--x={x}"], {"x": {"type": "list", "items": item}})
    assert len(tool.call({"x": ["a" * 20000] * 6}, root).argv) == 6
    with pytest.raises(ArgumentRefused, match="together"):
        tool.call({"x": ["a" * 20000] * 7}, root)


def test_exclusive_groups(root: Root) -> None:
    params = {"a": {"type": "string"}, "b": {"type": "boolean", "flag": "-b"}}
    words = ["p", "{b}", "--a={a}"]
    at_most = make(words, params, groups=[{"params": ["a", "b"]}])
    exactly = make(words, params, groups=[{"params": ["a", "b"], "required": True}])
    assert at_most.call({}, root).argv == ()
    assert exactly.call({"a": "x", "b": False}, root).argv == ("--a=x",)
    assert "Give exactly one of: a, b." in str(exactly.definition()["description"])
    with pytest.raises(ArgumentRefused, match="exclude each other"):
        at_most.call({"a": "x", "b": True}, root)
    for nothing in ({}, {"b": False}):
        with pytest.raises(ArgumentRefused, match="is needed"):
            exactly.call(nothing, root)


def test_a_short_flag_takes_no_empty_value(root: Root) -> None:
    tool = make(["p", "-L{x}"], {"x": {"type": "string"}})
    assert tool.call({"x": "-1"}, root).argv == ("-L-1",)
    with pytest.raises(ArgumentRefused, match="empty"):
        tool.call({"x": ""}, root)


def test_special_files_are_refused(root: Root) -> None:
    tool = make(["p", "--", "{x}"], {"x": {"type": "path"}})
    os.mkfifo(os.path.join(root.path, "pipe"))
    os.symlink("/etc/passwd", os.path.join(root.path, "leak"))
    assert tool.call({"x": "a.txt"}, root).argv
    for name in ("pipe", "leak"):
        with pytest.raises(ArgumentRefused):
            tool.call({"x": name}, root)


def test_the_presets_cost_a_client_less_than_8_kb() -> None:
    size = 0
    for name in preset.names():
        for tool_name, table in preset.load(name).tools.items():
            tool = Tool(
                name=tool_name, title=tool_name.capitalize(), description=table.description, plan=tool_name,
                params=table.params, groups=table.groups,
            )  # fmt: skip
            size += len(json.dumps(tool.definition(), separators=(",", ":")))
    assert size < 8000
