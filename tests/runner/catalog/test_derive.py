"""runner.catalog.derive: a command is a tool only when document and policy leave no doubt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policies.policy import CagePolicy, CatalogPolicy
from runner.catalog import derive
from runner.catalog.arguments import ArgumentRefused
from runner.catalog.catalog import CatalogRefused
from runner.catalog.tools import Tool
from sandbox.root import open_root

JSON = {"name": "--json", "type": "flag"}


def policy(**changes: Any) -> CatalogPolicy:
    values: dict[str, Any] = {
        "name": "demo", "describe": ("/x",), "command": ("/x",), "withhold": frozenset(), "withhold_flags": frozenset(),
        "path_flags": frozenset(), "never": frozenset(), "findings_exit_codes": (1,), "cage": CagePolicy(),
    }  # fmt: skip
    return CatalogPolicy(**values | {key: frozenset(value) for key, value in changes.items()})


def command(name: str = "show", **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "help": "Shows.",
        "tags": ["read_only"],
        "json": "--json",
        "flags": [JSON],
        **changes,
    }


def derived(
    *commands: dict[str, Any], owner_only: list[str] | None = None, **changes: Any
) -> dict[str, Tool]:
    document: dict[str, Any] = {"catalog": "demo", "schema_version": 1, "commands": list(commands)}
    if owner_only:
        document["owner_only"] = {"note": "n", "commands": owner_only}
    return {tool.name: tool for tool in derive.tools(json.dumps(document).encode(), policy(**changes))}


def test_a_read_only_command_is_a_tool() -> None:
    tool = derived(command("show-all", note="n"))["show_all"]
    assert (tool.title, tool.plan, tool.output) == ("demo show-all", "catalog:demo", "json")
    assert tool.description == "Shows. Note: n."
    assert (tool.ok_exit_codes, tool.findings_exit_codes) == ((0,), (1,))


@pytest.mark.parametrize(
    "changes",
    [
        {"tags": []},
        {"tags": ["writes"]},
        {"tags": ["read_only", "writes"]},
        {"tags": ["read_only", "network"]},
        {"tags": ["read_only", "interactive"]},
        {"tags": ["read_only", "owner_only"]},
        {"tags": ["read_only", "something_new"]},
        {"owner_only_flags": ["--live"]},
        {"json": None},
    ],
)
def test_a_command_with_any_doubt_is_none(changes: dict[str, Any]) -> None:
    assert list(derived(command("good"), command("doubt", **changes))) == ["good"]


def test_withheld_commands_and_flags_are_absent() -> None:
    flags = [JSON, {"name": "--out", "type": "path"}, {"name": "--all", "type": "flag"}]
    found = derived(command("aa", flags=flags), command("bb", flags=flags), command("cc"),
                    withhold=["cc"], withhold_flags=["--out", "bb --all"])  # fmt: skip
    assert {name: list(tool.params) for name, tool in found.items()} == {"aa": ["all"], "bb": []}


def test_a_misspelt_name_is_refused_not_ignored() -> None:
    for changes in (
        {"withhold": ["shw"]}, {"withhold_flags": ["--jsn"]}, {"withhold_flags": ["shw --json"]},
        {"path_flags": ["show --jsn"]},
    ):  # fmt: skip
        with pytest.raises(CatalogRefused, match="the catalog has no") as caught:
            derived(command(), **changes)
        assert "did you mean" in caught.value.remedy


def test_the_backstops_stop_the_server() -> None:
    assert derived(command("publish"))
    with pytest.raises(CatalogRefused, match="publish would become a tool"):
        derived(command("publish"), never=["publish"])
    with pytest.raises(CatalogRefused, match="publish would become a tool"):
        derived(command("publish"), owner_only=["publish"])
    with pytest.raises(CatalogRefused, match="publish would become a tool"):
        derived(command("publish"), owner_only=["publish --live"])
    assert derived(command("publish"), owner_only=["show --live"])
    assert not derived(command("publish", tags=["writes"]), never=["publish"])


def test_a_required_flag_that_cannot_be_offered_stops_the_server() -> None:
    required = {"name": "--to", "type": "string", "required": True}
    assert derived(command(flags=[JSON, required]))["show"].params["to"].required
    with pytest.raises(CatalogRefused, match="--to is withheld"):
        derived(command(flags=[JSON, required]), withhold_flags=["--to"])
    with pytest.raises(CatalogRefused, match="not supported"):
        derived(command(flags=[JSON, {**required, "type": "callable"}]))
    assert not derived(command(flags=[JSON, {"name": "--to", "type": "count"}]))["show"].params
    assert not derived(command(flags=[JSON, {"name": "-t", "type": "string"}]))["show"].params


def test_the_command_line_has_one_form(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    root = open_root(str(tmp_path))
    flags = [
        {"name": "FILE", "type": "path", "positional": True, "required": True},
        {"name": "--text", "type": "string"}, {"name": "--days", "type": "int", "default": 7},
        {"name": "--rate", "type": "float"}, {"name": "--all", "type": "flag"}, {"name": "--media", "type": "path"},
        {"name": "--kind", "type": "string", "choices": ["a", "b"], "default": "a"}, {"name": "--level", "type": "int", "choices": [1, 2]},
        {"name": "--tag", "type": "string", "repeatable": True},
        {"name": "--format", "type": "string", "choices": ["json", "text"]},
    ]  # fmt: skip
    tool = derived(command(json="--format json", flags=flags))["show"]
    assert "format" not in tool.params
    assert tool.call({"file": "f"}, root).argv == ("show", "--format", "json", "./f")
    arguments: dict[str, object] = {
        "file": "f", "text": "-x\n@y", "days": -3, "rate": 2, "all": True, "media": "f", "kind": "b", "level": 2,
        "tag": ["t", "-u"],
    }  # fmt: skip
    assert tool.call(arguments, root).argv == (
        "show", "--text=-x\n@y", "--days=-3", "--rate=2.0", "--all", "--media=./f", "--kind=b", "--level=2", "--tag=t",
        "--tag=-u", "--format", "json", "./f",
    )  # fmt: skip
    schema: Any = tool.definition()["inputSchema"]
    assert schema["properties"]["days"]["default"] == 7
    for wrong in (
        {"file": "f", "text": "x" * 20001},
        {"file": "f", "tag": ["x"] * 51},
        {"file": "-f"},
        {"file": "../x"},
    ):
        with pytest.raises(ArgumentRefused):
            tool.call(wrong, root)


def test_exclusive_groups(tmp_path: Path) -> None:
    root = open_root(str(tmp_path))
    flags = [
        JSON,
        {"name": "--text", "type": "string"},
        {"name": "--id", "type": "string"},
        {"name": "--md", "type": "flag"},
    ]
    groups = [
        {"required": True, "flags": ["--text", "--id"]},
        {"required": False, "flags": ["--json", "--md"]},
    ]
    tool = derived(command(flags=flags, exclusive_groups=groups))["show"]
    assert list(tool.params) == ["text", "id"]  # --md excludes --json, which is always given
    assert "exactly one of: text, id" in str(tool.definition()["description"])
    assert tool.call({"id": "1"}, root).argv == ("show", "--id=1", "--json")
    for wrong in ({}, {"id": "1", "text": "x"}):
        with pytest.raises(ArgumentRefused):
            tool.call(wrong, root)
    one = derived(command(flags=flags, exclusive_groups=groups), withhold_flags=["--id"])["show"]
    with pytest.raises(ArgumentRefused):
        one.call({}, root)
    with pytest.raises(CatalogRefused, match="one is needed"):
        derived(command(flags=flags, exclusive_groups=groups), withhold_flags=["--id", "--text"])


def test_two_flags_of_one_name_stop_the_server() -> None:
    flags = [JSON, {"name": "--file", "type": "path"}, {"name": "FILE", "type": "path", "positional": True}]
    with pytest.raises(CatalogRefused, match="same parameter name"):
        derived(command(flags=flags))


def test_names_that_clients_refuse_stop_the_server() -> None:
    for name in ("x", "Show", "a" * 41, "1a"):
        with pytest.raises(CatalogRefused, match="does not fit"):
            derived(command(name))


def test_foreign_text_is_one_plain_line() -> None:
    tool = derived(command(help="a\n\x1b[31mb\u202ec\u200bd" + "x" * 2000))["show"]
    assert tool.description.startswith("a [31mb c d")
    assert tool.description.isprintable()
    assert len(tool.description) <= derive.MAX_DESCRIPTION


def test_types_told_by_the_policy(tmp_path: Path) -> None:
    flags = [JSON, {"name": "--log", "type": "string", "repeatable": True}]
    root = open_root(str(tmp_path))
    assert derived(command(flags=flags))["show"].call({"log": ["/etc/passwd"]}, root).argv
    tool = derived(command(flags=flags), path_flags=["show --log"])["show"]
    with pytest.raises(ArgumentRefused, match="outside the root"):
        tool.call({"log": ["/etc/passwd"]}, root)
