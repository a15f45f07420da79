"""Envelopes and params: every member of the wrong shape is refused, the others are ignored."""

from __future__ import annotations

import pytest

from runner.mcp import eras
from runner.mcp.messages import (
    ListTools,
)
from tests.runner.mcp.schema_check import (
    ALL,
    Client,
    envelope,
    request,
)

# ---- the modern envelope


@pytest.mark.parametrize(
    "meta",
    [
        {eras.VERSION_KEY: eras.MODERN},
        {eras.VERSION_KEY: 1, eras.CAPABILITIES_KEY: {}},
        {eras.VERSION_KEY: None, eras.CAPABILITIES_KEY: {}},
        envelope() | {eras.CAPABILITIES_KEY: []},
        envelope("2030-01-01") | {eras.CAPABILITIES_KEY: None},
        envelope() | {eras.LOG_LEVEL_KEY: "loud"},
        envelope() | {eras.LOG_LEVEL_KEY: []},
        envelope() | {"progressToken": None},
        envelope() | {"progressToken": True},
        envelope() | {"progressToken": 1.5},
    ],
)
def test_bad_envelopes(meta: object) -> None:
    assert Client(eras.MODERN).error(request("tools/list", 1, {"_meta": meta})) == (-32602, 1)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {eras.LOG_LEVEL_KEY: "debug"},
        {"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"}},
        {"io.modelcontextprotocol/clientInfo": 5, "claudecode/toolUseId": [None], "traceparent": "00-"},
    ],
)
def test_good_envelopes(more: dict[str, object]) -> None:
    message = request("tools/list", 1, {"_meta": envelope() | more})
    assert isinstance(Client(eras.MODERN).event(message), ListTools)


@pytest.mark.parametrize("version", ["2025-11-25", "2030-01-01", ""])
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "initialize", "nonsense"])
def test_a_version_that_is_not_served_in_an_envelope(version: str, method: str) -> None:
    answer = Client(eras.MODERN).reply(request(method, 1, {"_meta": envelope(version)}))
    assert answer["error"]["code"] == -32022
    assert answer["error"]["data"] == {"supported": list(ALL), "requested": version}


def test_the_requested_version_comes_back_capped_and_safe() -> None:
    answer = Client(eras.MODERN).reply(
        request("tools/list", 1, {"_meta": envelope("\x1b[31m" + "9" * 10_000)})
    )
    assert answer["error"]["data"]["requested"] == "\ufffd[31m" + "9" * 75 + "\u2026"


# ---- params


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/list", {"cursor": "x"}),
        ("tools/list", {"cursor": ""}),
        ("resources/list", {"cursor": "x"}),
        ("resources/templates/list", {"cursor": None}),
        ("tools/call", {}),
        ("tools/call", {"name": None}),
        ("tools/call", {"name": ["t"]}),
        ("tools/call", {"name": "t", "arguments": None}),
        ("tools/call", {"name": "t", "arguments": "{}"}),
        ("tools/call", {"name": "t", "arguments": []}),
        ("resources/read", {}),
        ("resources/read", {"uri": 1}),
    ],
)
def test_malformed_params(revision: str, method: str, params: dict[str, object]) -> None:
    client = Client(revision)
    assert client.error(client.ask(method, 1, **params)) == (-32602, 1)


@pytest.mark.parametrize("params", [None, [], 5, "x", {"_meta": None}, {"_meta": []}])
@pytest.mark.parametrize("method", ["ping", "tools/list", "initialize"])
def test_params_and_meta_must_be_objects(params: object, method: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    assert Client("2025-11-25").error(message) == (-32602, 1)


def test_absent_arguments_are_none() -> None:
    assert Client("2025-11-25").event(request("tools/call", 1, {"name": ""})).arguments is None
