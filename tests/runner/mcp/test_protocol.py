"""Routing per message, the handshake and what each era serves; ids, cancellation, progress."""

from __future__ import annotations

from typing import Any

import pytest

from runner.mcp import eras
from runner.mcp.messages import (
    CallTool,
    Cancel,
    ListResources,
    ListResourceTemplates,
    ListTools,
    ReadResource,
    ToolResult,
)
from runner.mcp.protocol import Protocol
from tests.runner.mcp.schema_check import (
    ALL,
    INSTRUCTIONS,
    SERVER,
    Client,
    initialize,
    modern,
    request,
)

OK = ToolResult("done")


# ---- discovery and handshake


def test_discover() -> None:
    result = Client(eras.MODERN).reply(modern("server/discover"), "DiscoverResult")["result"]
    assert result == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
        "capabilities": {"tools": {}, "resources": {}},
        "instructions": INSTRUCTIONS,
        "ttlMs": 300_000,
        "cacheScope": "private",
        "_meta": {eras.SERVER_INFO_KEY: {"name": "toolcage", "version": "0.1.0", "title": "Toolcage"}},
    }


@pytest.mark.parametrize("revision", eras.LEGACY)
def test_initialize_echoes_each_legacy_revision(revision: str) -> None:
    client = Client(None)
    client.revision = revision
    result = client.reply(initialize(revision), "InitializeResult")["result"]
    title = {"title": "Toolcage"} if revision >= "2025-06-18" else {}
    assert result == {
        "protocolVersion": revision,
        "capabilities": {"tools": {}, "resources": {}},
        "instructions": INSTRUCTIONS,
        "serverInfo": {"name": "toolcage", "version": "0.1.0"} | title,
    }


@pytest.mark.parametrize("version", ["2026-07-28", "2030-01-01", "x"])
def test_initialize_with_another_version_gets_the_newest_legacy_one(version: str) -> None:
    assert Client(None).reply(initialize(version))["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("params", [{}, {"protocolVersion": None}, {"protocolVersion": 20251125}])
def test_initialize_without_a_version_is_refused(params: object) -> None:
    assert Client(None).error(request("initialize", 1, params)) == (-32602, 1)


def test_no_instructions_are_left_out() -> None:
    client = Client(None)
    client.protocol = Protocol(SERVER, "")
    for message in (modern("server/discover"), initialize()):
        assert "instructions" not in client.reply(message)["result"]


def test_no_era_lock() -> None:
    """Claude Code and Copilot CLI: discover, then initialize, then anything, all on one pipe."""
    client = Client(None)
    probe = client.reply(modern("server/discover", "server-discover-probe-1"))
    assert probe["id"] == "server-discover-probe-1"
    assert client.reply(initialize("2025-06-18"))["result"]["protocolVersion"] == "2025-06-18"
    assert client.event(request("tools/list", 2)).request.revision == "2025-06-18"
    assert client.event(modern("tools/list", 3)).request.revision == "2026-07-28"
    assert client.event(request("tools/call", 4, {"name": "t"})).request.revision == "2025-06-18"
    assert "supportedVersions" in client.reply(modern("server/discover", 5))["result"]
    assert client.reply(initialize("2024-11-05", 6))["result"]["protocolVersion"] == "2024-11-05"
    assert client.event(request("tools/list", 7)).request.revision == "2024-11-05"


def test_bare_requests_before_a_handshake_name_both_ways_in() -> None:
    client = Client(None)
    for method in ("tools/list", "server/discover", "prompts/list", "nonsense"):
        answer = client.reply(request(method, method))
        assert answer["id"] == method
        assert answer["error"]["code"] == -32602
        assert answer["error"]["data"] == {"supported": list(ALL)}
        assert all(word in answer["error"]["message"] for word in ("initialize", eras.VERSION_KEY, *ALL))
    assert client.reply(request("ping", 1)) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    client.reply(initialize())
    assert isinstance(client.event(request("tools/list", 2)), ListTools)


def test_a_modern_request_is_no_handshake() -> None:
    client = Client(eras.MODERN)
    client.reply(modern("server/discover"))
    assert client.error(request("tools/list", 1)) == (-32602, 1)


# ---- methods

NOT_SERVED = [
    "prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "subscriptions/listen",
    "resources/subscribe", "resources/unsubscribe", "tasks/get", "tasks/list", "tasks/result", "tasks/cancel",
    "tasks/update", "TOOLS/LIST", "", "tools/list ", "notifications/initialized",
]  # fmt: skip


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("method", NOT_SERVED)
def test_what_is_not_advertised_is_not_found(revision: str, method: str) -> None:
    client = Client(revision)
    assert client.error(client.ask(method, "a")) == (-32601, "a")


@pytest.mark.parametrize("method", ["initialize", "ping"])
def test_the_modern_era_has_no_initialize_and_no_ping(method: str) -> None:
    client = Client(eras.MODERN)
    assert client.error(modern(method, 1, protocolVersion="2025-11-25")) == (-32601, 1)
    assert client.error(request("tools/list", 2)) == (-32602, 2)  # and it was no handshake


@pytest.mark.parametrize("revision", eras.LEGACY)
def test_legacy_has_ping_and_no_bare_discover(revision: str) -> None:
    client = Client(revision)
    assert client.reply(client.ask("ping"), "EmptyResult")["result"] == {}
    assert client.error(client.ask("server/discover", 2)) == (-32601, 2)


@pytest.mark.parametrize("revision", ALL)
def test_what_the_front_answers(revision: str) -> None:
    client = Client(revision)
    expected: dict[str, tuple[type[Any], dict[str, object]]] = {
        "tools/list": (ListTools, {}),
        "tools/call": (CallTool, {"name": "t", "arguments": {"a": [1]}}),
        "resources/list": (ListResources, {}),
        "resources/templates/list": (ListResourceTemplates, {}),
        "resources/read": (ReadResource, {"uri": "u:1"}),
    }
    for number, (method, (event_type, params)) in enumerate(expected.items(), 10):
        event = client.event(client.ask(method, number, **params))
        assert isinstance(event, event_type)
        assert (event.request.id, event.request.revision) == (number, revision)
        assert {key: getattr(event, key) for key in params} == params


def test_method_not_found_shows_a_capped_safe_name() -> None:
    answer = Client("2025-11-25").reply(request("a\u202eb\n" + "x" * 500))
    assert answer["error"]["message"] == "method not found: a\ufffdb\ufffd" + "x" * 76 + "\u2026"


# ---- ids, cancellation, late answers


@pytest.mark.parametrize("revision", ALL)
def test_ids_come_back_with_their_type(revision: str) -> None:
    client = Client(revision)
    ids: list[object] = [0, -1, 1, "1", "", "0", 2**63, -(2**63), "x" * 1024]
    calls = [client.call(id_) for id_ in ids]
    for id_, call in reversed(list(zip(ids, calls, strict=True))):
        answer = client.checked(client.protocol.result(call, OK), "CallToolResult")
        assert (answer["id"], type(answer["id"])) == (id_, type(id_))


def test_an_id_in_flight_cannot_be_used_again_until_answered() -> None:
    client = Client("2025-11-25")
    first = client.call(1)
    for method in ("tools/call", "ping", "nonsense"):
        assert client.error(request(method, 1, {"name": "t"})) == (-32600, 1)
    client.call("1")
    assert client.protocol.result(first, OK)
    second = client.call(1)
    assert second != first
    assert client.protocol.result(first, OK) == b""
    assert client.protocol.result(second, OK)


@pytest.mark.parametrize("revision", ALL)
def test_cancel(revision: str) -> None:
    client = Client(revision)
    call = client.call("7", meta={"progressToken": 0})
    other = client.call(7)
    assert client.cancel("7") == [Cancel(call)]
    protocol = client.protocol
    assert protocol.result(call, OK) == b""
    assert protocol.refuse(call, -32603, "x") == b""
    assert protocol.unknown_tool(call, "x") == b""
    assert protocol.progress(call, 1, None, None) == b""
    assert client.cancel("7") == []
    assert protocol.result(other, OK) != b""
    assert client.cancel(7) == []


def test_cancelling_what_is_no_call_only_forgets_it() -> None:
    client = Client(eras.MODERN)
    listing = client.event(modern("resources/list")).request
    assert client.cancel(1) == []
    assert client.protocol.resources(listing, []) == b""


def test_one_answer_only() -> None:
    client = Client("2025-11-25")
    call = client.call()
    assert client.protocol.unknown_tool(call, "t")
    assert client.protocol.result(call, OK) == b""


def test_requests_in_flight_are_bounded() -> None:
    client = Client("2025-11-25")
    calls = [client.call(number) for number in range(1, 1001)]
    assert client.error(request("tools/list", "more")) == (-32603, "more")
    assert client.reply(request("ping", "ping"))["result"] == {}
    client.protocol.result(calls[500], OK)
    assert isinstance(client.event(request("tools/list", "more")), ListTools)


# ---- progress


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("token", [0, "", "0", 5, "uuid"])
def test_progress_echoes_the_token(revision: str, token: object) -> None:
    client = Client(revision)
    call = client.call(meta={"progressToken": token})
    assert call.progress_token == token
    message = client.checked(client.protocol.progress(call, 0.5, 2, "half \udcff"))
    params = message.pop("params")
    assert message == {"jsonrpc": "2.0", "method": "notifications/progress"}
    assert (params["progressToken"], type(params["progressToken"])) == (token, type(token))
    said = {} if revision == "2024-11-05" else {"message": "half ?"}
    assert params == {"progressToken": token, "progress": 0.5, "total": 2} | said


def test_progress_only_rises_and_ends_with_the_answer() -> None:
    client = Client("2025-11-25")
    call = client.call(meta={"progressToken": 1})
    progress = client.protocol.progress
    sent = [
        bool(progress(call, value, None, None))
        for value in (0, 0, -1, 1, 1, 0.5, float("nan"), float("inf"), 2)
    ]
    assert sent == [True, False, False, True, False, False, False, False, True]
    assert progress(call, 10**400, None, None) == b""
    assert b"total" not in progress(call, 3, float("inf"), None)
    client.protocol.result(call, OK)
    assert progress(call, 4, None, None) == b""


def test_no_progress_without_a_token() -> None:
    client = Client("2025-11-25")
    assert client.protocol.progress(client.call(), 1, None, None) == b""
