"""The tools derived from ReachWeaver's catalog are those of its own MCP server, spawned for real."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from policies.policy import CagePolicy, CatalogPolicy
from runner.catalog import derive
from runner.catalog.catalog import Catalog
from sandbox.root import open_root

PROGRAM = Path(sys.executable).with_name("reachweaver")
PATH_NOTE = "A file path inside the server's root folder."

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="reachweaver is not installed")


def policy(**changes: Any) -> CatalogPolicy:
    """What ReachWeaver's own server withholds (its WITHHELD_COMMANDS, WITHHELD_FLAGS and NEVER_EXPOSED)."""
    from reachweaver import mcp_server  # type: ignore[import-not-found,import-untyped,unused-ignore]

    values: dict[str, Any] = {
        "name": "reachweaver", "describe": (str(PROGRAM), "describe", "--json"), "command": (str(PROGRAM), "--plain"),
        "withhold": frozenset(mcp_server.WITHHELD_COMMANDS), "withhold_flags": frozenset(mcp_server.WITHHELD_FLAGS),
        "path_flags": frozenset({"trace --log"}), "never": frozenset(mcp_server.NEVER_EXPOSED),
        "findings_exit_codes": (1,), "cage": CagePolicy(),
    }  # fmt: skip
    return CatalogPolicy(**values | changes)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("describe")
    return subprocess.run(
        [PROGRAM, "describe", "--json"], cwd=folder, check=True, capture_output=True, timeout=30
    ).stdout


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """tools/list of the real server after the handshake of 2025-11-25."""
    folder = tmp_path_factory.mktemp("real")
    client = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    lines: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    found = subprocess.run(
        [PROGRAM, "mcp-serve", "--root", str(folder)], cwd=folder, check=True, capture_output=True, timeout=30,
        input="".join(json.dumps(line) + "\n" for line in lines), text=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in found.stdout.splitlines()]
    tools = next(answer["result"]["tools"] for answer in answers if answer.get("id") == 2)
    return {tool["name"]: tool for tool in tools}


def essence(schema: dict[str, Any]) -> dict[str, Any]:
    """Type, choices and bounds of one property. Left out, with reasons:

    description   the catalog document of all commands has no help for flags
    default       the real server does not say it
    order         the real server prints the choices of a Python set in another order each time; ours are sorted
    maxLength     the real one also bounds choices and paths; choices have their own lengths, paths those of the kernel
    """
    kept = {
        key: value
        for key, value in schema.items()
        if key in ("type", "enum", "minimum", "maximum", "maxItems")
    }
    if "enum" in kept:
        kept["enum"] = sorted(kept["enum"])
    if "items" in schema:
        kept["items"] = essence(schema["items"])
    return kept


def test_the_tools_are_those_of_the_real_server(document: bytes, real: dict[str, dict[str, Any]]) -> None:
    ours = {tool.name: tool.definition() for tool in Catalog(derive.tools(document, policy()))}
    assert list(ours) == sorted(real)
    assert len(ours) == 39
    for name, theirs in real.items():
        mine: Any = ours[name]
        assert mine["title"].lower() == theirs["title"].lower()
        assert mine["annotations"] | {"title": ""} == theirs["annotations"] | {"title": ""}
        _compare(mine["inputSchema"], theirs["inputSchema"])


def _compare(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert sorted(mine.get("required", ())) == sorted(theirs.get("required", ()))
    assert mine["additionalProperties"] is theirs["additionalProperties"] is False
    assert list(mine["properties"]) == list(theirs["properties"])
    for key, schema in theirs["properties"].items():
        assert essence(mine["properties"][key]) == essence(schema), key


def test_the_paths_are_those_of_the_real_server(document: bytes, real: dict[str, dict[str, Any]]) -> None:
    """With one correction by the policy: `trace --log` is a path by its metavar, but "string" in the catalog."""
    for path_flags, missing in ((frozenset({"trace --log"}), []), (frozenset(), [("trace", "log")])):
        found = derive.tools(document, policy(path_flags=path_flags))
        ours: Any = {tool.name: tool.definition()["inputSchema"] for tool in found}
        wrong = [
            (name, key)
            for name, tool in real.items()
            for key, schema in tool["inputSchema"]["properties"].items()
            if (PATH_NOTE in schema.get("description", ""))
            != ("A path inside the root folder." in ours[name]["properties"][key].get("description", ""))
        ]
        assert wrong == missing


def test_withholding_by_command_keeps_a_flag_of_the_same_name(document: bytes) -> None:
    """`account-advisor --format` is content, not an output format; the real server loses it."""
    exact = (policy().withhold_flags - {"--format"}) | {"eu-review-evidence --format"}
    tools = {tool.name: tool for tool in derive.tools(document, policy(withhold_flags=exact))}
    assert "format" in tools["account_advisor"].params
    assert "format" not in tools["eu_review_evidence"].params
    assert len(tools) == 39


def test_a_derived_call_works(document: bytes, tmp_path: Path) -> None:
    tools = {tool.name: tool for tool in derive.tools(document, policy())}
    root = open_root(str(tmp_path))
    arguments: dict[str, object] = {"seed": 1, "pairs": 2, "lift": 0.1, "noise": 0.2, "trials": 5}
    for name, given in (
        ("version", {}),
        ("experiment_simulate", arguments),
        ("describe", {"command": "trace"}),
    ):
        call = tools[name].call(given, root)
        assert call.plan == "catalog:reachweaver"
        result = subprocess.run(
            [*policy().command, *call.argv], cwd=tmp_path, capture_output=True, timeout=30, check=False
        )
        assert result.returncode in (0, 1)
        assert json.loads(result.stdout)
