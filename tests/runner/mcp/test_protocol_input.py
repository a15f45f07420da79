"""Lines that are no request: errors without an id, notifications, responses, and whatever else may come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.mcp import eras
from runner.mcp.messages import (
    CallTool,
    Reply,
    ToolResult,
)
from runner.mcp.protocol import Protocol
from tests.runner.mcp.schema_check import (
    ALL,
    INSTRUCTIONS,
    SERVER,
    Client,
    cancels,
    envelope,
    initialize,
    line,
    modern,
    read,
    replies,
    request,
)

OK = ToolResult("done")


def raw(client: Client, data: bytes) -> Any:
    [event] = client.protocol.receive(data)
    assert isinstance(event, Reply)
    return client.checked(event.data)


# ---- messages that are none


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"{", -32700),
        (b"\xef\xbb\xbf{}", -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700),
        (b"[" * 65 + b"]" * 65, -32700),
        (b"5", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":18446744073709551616,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","method":5}', -32600),
        (b'{"jsonrpc":"1.0","method":"ping"}', -32600),
    ],
)
def test_errors_without_an_id(revision: str, message: bytes, code: int) -> None:
    client = Client(revision)
    if revision == eras.MODERN:
        client.reply(modern("server/discover"))
    answer = raw(client, message)
    assert answer["error"]["code"] == code
    if revision in eras.ID_MAY_BE_ABSENT:
        assert "id" not in answer
    else:
        assert answer["id"] is None


def test_before_any_era_is_known_the_id_is_null() -> None:
    client = Client(None)
    assert raw(client, b"{")["id"] is None
    client.reply(request("ping", 1))  # says nothing about the era
    assert raw(client, b"{")["id"] is None
    assert "id" not in client.reply(modern("tools/list", None))  # it says itself that it is modern
    client.reply(initialize("2025-03-26"))
    assert raw(client, b"{")["id"] is None
    client.reply(modern("server/discover"))
    assert "id" not in raw(client, b"{")


@pytest.mark.parametrize(
    "message", [{"id": 7}, {"id": 7, "method": "ping"}, {"id": 7, "method": 1, "jsonrpc": "2.0"}]
)
def test_an_id_that_could_be_read_comes_back(message: object) -> None:
    assert Client("2025-11-25").error(message) == (-32600, 7)


def test_an_oversized_line() -> None:
    client = Client("2025-03-26")
    [event] = client.protocol.oversized()
    assert isinstance(event, Reply)
    answer = client.checked(event.data)
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize("data", [b"", b" ", b"\r", b"\t \r"])
def test_empty_lines_mean_nothing(data: bytes) -> None:
    assert Client("2025-11-25").protocol.receive(data) == []


def test_a_carriage_return_is_tolerated() -> None:
    assert raw(Client("2025-11-25"), line(request("ping")) + b"\r")["result"] == {}


@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/initialized"},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 2}},
        {"method": "notifications/roots/list_changed"},
        {"method": "notifications/cancelled"},
        {"method": "notifications/cancelled", "params": []},
        {"method": "notifications/cancelled", "params": {"requestId": None}},
        {"method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"method": "notifications/cancelled", "params": {"requestId": 99}},
        {"method": "tools/list"},
        {"method": "nonsense", "params": 5},
        {"id": 5, "result": {}},
        {"id": None, "error": {"code": -32600, "message": "x"}},
        {"result": 5},
    ],
)
@pytest.mark.parametrize("revision", [None, *ALL])
def test_notifications_and_responses_are_never_answered(
    message: dict[str, object], revision: str | None
) -> None:
    assert Client(revision).events({"jsonrpc": "2.0"} | message) == []


# ---- whatever comes


@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([line(initialize()), line(modern("server/discover"))]))
)
def test_no_bytes_raise_and_every_reply_is_one_line_of_json(lines: list[bytes]) -> None:
    protocol = Protocol(SERVER, INSTRUCTIONS)
    for data in lines:
        for reply in replies(protocol.receive(data)):
            assert read(reply)["jsonrpc"] == "2.0"


members = st.sampled_from(["jsonrpc", "id", "method", "params", "_meta", "name", "cursor", "uri", "arguments",
                           "requestId", eras.VERSION_KEY, eras.CAPABILITIES_KEY, "progressToken"])  # fmt: skip
words = st.sampled_from(["2.0", *ALL, *eras.LEGACY_METHODS, *eras.MODERN_METHODS, "notifications/cancelled"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(members, inner, max_size=6),
    max_leaves=15,
)
wellformed = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": words},
    optional={
        "id": st.integers(0, 2) | st.sampled_from(["", "1"]),
        "params": st.dictionaries(members, anything, max_size=4) | st.just({"_meta": envelope()}),
    },
)


@given(
    st.sampled_from([None, *ALL]),
    st.lists(anything | wellformed | st.lists(wellformed, max_size=4), max_size=8),
)
def test_no_json_raises(revision: str | None, messages: list[object]) -> None:
    client = Client(revision)
    client.revision = None  # an initialize among the messages may change it
    for message in messages:
        for event in client.events(message):
            if isinstance(event, CallTool):
                assert client.protocol.result(event.request, OK) or event.request.batch is not None
        assert cancels(client.events({"jsonrpc": "2.0", "method": "notifications/cancelled"})) == []


def test_requests_are_keys() -> None:
    client = Client("2025-11-25")
    table = {client.call(1): "a", client.call("1"): "b"}
    assert [(request.id, word) for request, word in table.items()] == [(1, "a"), ("1", "b")]
