"""Batches, through the protocol: one array when the last answer is there, and nothing that grows without bound."""

from __future__ import annotations

from typing import Any

import pytest

from runner.mcp import eras, inflight, jsonrpc
from runner.mcp.inflight import InFlight
from runner.mcp.messages import CallTool, Cancel, Reply, Request, ToolResult
from tests.runner.mcp.schema_check import Client, cancels, initialize, modern, replies, request

BATCHING = sorted(eras.BATCHING)
OK = ToolResult("done")


def call(id_: object) -> dict[str, Any]:
    return request("tools/call", id_, {"name": "t"})


@pytest.mark.parametrize("revision", BATCHING)
def test_the_array_comes_with_the_last_answer(revision: str) -> None:
    client = Client(revision)
    events = client.events(
        [request("ping", "p"), call(1), {"jsonrpc": "2.0", "method": "x"}, call(2), 5, {"id": 6}]
    )
    first, second = events
    assert isinstance(first, CallTool)
    assert isinstance(second, CallTool)
    assert client.protocol.result(second.request, OK) == b""
    assert client.error(request("ping", 2)) == (-32600, 2)  # its answer is held back
    answers = client.checked(client.protocol.result(first.request, OK))
    assert {answer["id"]: answer.get("error", {}).get("code") for answer in answers} == {
        "p": None,
        1: None,
        2: None,
        None: -32600,
        6: -32600,
    }
    assert len(answers) == 5


@pytest.mark.parametrize("revision", BATCHING)
def test_a_batch_that_needs_no_front_is_answered_at_once(revision: str) -> None:
    assert Client(revision).reply([request("ping", 1)]) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


@pytest.mark.parametrize("revision", BATCHING)
def test_only_notifications_or_responses_give_nothing(revision: str) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert Client(revision).events([message, message, {"jsonrpc": "2.0", "id": 1, "result": {}}]) == []


@pytest.mark.parametrize("revision", BATCHING)
@pytest.mark.parametrize("members", [0, 65])
def test_an_empty_or_too_long_array_is_one_error(revision: str, members: int) -> None:
    assert Client(revision).error([request("ping", id_) for id_ in range(members)]) == (-32600, None)


@pytest.mark.parametrize("revision", BATCHING)
def test_64_members_are_fine(revision: str) -> None:
    assert len(Client(revision).reply([request("ping", id_) for id_ in range(64)])) == 64


@pytest.mark.parametrize("revision", BATCHING)
def test_initialize_and_modern_messages_are_refused_inside(revision: str) -> None:
    client = Client(revision)
    answers = client.reply([initialize("2025-11-25", 1), modern("tools/list", 2), [request("ping", 3)]])
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [
        (1, -32600),
        (2, -32600),
        (None, -32600),
    ]
    assert client.event(request("tools/list", 1)).request.revision == revision


@pytest.mark.parametrize("revision", [None, *(set(eras.SUPPORTED) - eras.BATCHING)])
def test_no_batches_elsewhere(revision: str | None) -> None:
    client = Client(revision)
    if revision == eras.MODERN:
        client.reply(modern("server/discover"))
    absent = "absent" if revision in eras.ID_MAY_BE_ABSENT else None
    assert client.error([request("ping", 1)]) == (-32600, absent)


def test_cancelling_the_last_one_completes_the_batch() -> None:
    client = Client("2025-03-26")
    kept, given_up = client.events([call(1), call(2)])
    assert isinstance(kept, CallTool)
    assert isinstance(given_up, CallTool)
    assert client.protocol.result(kept.request, OK) == b""
    cancel, reply = client.cancel(2)
    assert cancel == Cancel(given_up.request)
    assert isinstance(reply, Reply)
    assert [answer["id"] for answer in client.checked(reply.data)] == [1]
    assert client.protocol.result(given_up.request, OK) == b""


def test_a_cancelled_id_of_a_batch_is_free_again() -> None:
    client = Client("2025-03-26")
    client.events([call(1), call(2)])
    client.cancel(2)
    assert client.reply(request("ping", 2))["result"] == {}
    assert client.error(request("ping", 1)) == (-32600, 1)


def test_a_batch_that_was_cancelled_whole_gives_nothing() -> None:
    client = Client("2025-03-26")
    client.events([call(1), call(2)])
    events = client.cancel(1) + client.cancel(2)
    assert len(cancels(events)) == 2
    assert replies(events) == []


def test_a_cancellation_inside_its_own_batch() -> None:
    client = Client("2025-03-26")
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    started, cancel, reply = client.events([call(1), message, request("ping", 2)])
    assert isinstance(started, CallTool)
    assert cancel == Cancel(started.request)
    assert isinstance(reply, Reply)
    assert [answer["id"] for answer in client.checked(reply.data)] == [2]


def test_ids_of_answers_held_back_are_in_use() -> None:
    client = Client("2025-03-26")
    [started] = client.events([request("ping", 1), call(2), request("ping", 2), request("ping", 1)])
    assert isinstance(started, CallTool)
    assert client.error(request("ping", 1)) == (-32600, 1)
    assert client.error(request("ping", 2)) == (-32600, 2)
    answers = client.checked(client.protocol.result(started.request, OK))
    assert sorted((answer["id"], "error" in answer) for answer in answers) == [
        (1, False),
        (1, True),
        (2, False),
        (2, True),
    ]
    assert client.reply(request("ping", 1))["result"] == {}


def test_progress_is_not_held_back() -> None:
    client = Client("2025-03-26")
    [started] = client.events([request("tools/call", 1, {"name": "t", "_meta": {"progressToken": 0}})])
    assert isinstance(started, CallTool)
    assert (
        client.checked(client.protocol.progress(started.request, 1, None, None))["params"]["progressToken"]
        == 0
    )


def test_batches_in_flight_are_bounded() -> None:
    client = Client("2025-03-26")
    started = [client.events([call(number)])[0] for number in range(1, inflight.MAX_BATCHES + 1)]
    assert client.error([call("more")]) == (-32603, None)
    assert isinstance(started[0], CallTool)
    client.protocol.result(started[0].request, OK)
    assert len(client.events([call("more")])) == 1


def test_a_renegotiation_does_not_change_what_is_in_flight() -> None:
    client = Client("2025-03-26")
    [started] = client.events([call(1)])
    assert isinstance(started, CallTool)
    client.reply(initialize("2025-11-25", 2))
    [answer] = client.checked(client.protocol.result(started.request, OK))
    assert "structuredContent" not in answer["result"]


def test_bytes_in_flight_are_bounded_and_given_back() -> None:
    flight = InFlight()
    half = inflight.MAX_BYTES_IN_FLIGHT // 2
    first, second, third = (Request(n, "2025-11-25", number=n) for n in (1, 2, 3))
    flight.admit(first, is_call=True, size=half)
    flight.admit(second, is_call=True, size=half)
    with pytest.raises(jsonrpc.RequestError, match="bytes in flight"):
        flight.admit(third, is_call=True, size=1)
    flight.settle(first, b"{}")
    flight.admit(third, is_call=True, size=half)
    flight.cancel(2)
    flight.cancel(3)
    flight.admit(Request(4, "2025-11-25", number=4), is_call=True, size=2 * half)
