"""100,000 mutated lines through the protocol core, with a front that answers late, twice, wrongly or never.

What must hold: nothing raises; every reply is one line of JSON that the schema of some revision in play accepts; every
request is answered at most once, and not after it was cancelled. Seeded, so that a failure can be repeated.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import jsonschema
import orjson

from runner.mcp import eras, inflight
from runner.mcp.messages import (
    CallTool,
    Cancel,
    Event,
    ListResources,
    ListResourceTemplates,
    ListTools,
    ReadResource,
    Reply,
    Request,
    ToolResult,
)
from runner.mcp.protocol import Protocol
from tests.runner.mcp.schema_check import (
    ALL,
    SERVER,
    check,
    envelope,
    initialize,
    line,
    modern,
    read,
    request,
)

LINES = 100_000
SEED = 20_260_728
TOOL: dict[str, object] = {
    "name": "t",
    "title": "T",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
RESULTS = (
    ToolResult("plain"),
    ToolResult("\ud800", {"a": [1]}, True, {"layers": []}),
    ToolResult("x", {"n": 2**80}),
)


def corpus() -> list[bytes]:
    """Good messages of every kind; the mutations start from these."""
    bare = [
        request(method, 1, {"name": "t", "uri": "u:1"})
        for method in {**eras.LEGACY_METHODS, "nonsense": None}
    ]
    enveloped = [modern(method, "m", name="t", uri="u:1") for method in {**eras.MODERN_METHODS, "ping": None}]
    calls = [
        request("tools/call", n, {"name": "t", "_meta": {"progressToken": n}})
        for n in (0, 1, 2, "", "0", "1")
    ]
    cancels = [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}}
        for n in (0, 1, "1", None)
    ]
    handshakes = [initialize(version, version) for version in (*ALL, "9")]
    odd: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        request("tools/list", 3, {"cursor": ""}),
        request("tools/list", 3, {"_meta": envelope("2030-01-01")}),
        [],
        [request("ping", 5), calls[1], cancels[1], 7, handshakes[2]],
        [calls[0], calls[3]],
        [cancels[0]],
        None,
        "\u2028",
    ]
    return [line(message) for message in [*bare, *enveloped, *calls, *cancels, *handshakes * 3, *odd]]


def flip(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def cut(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    return data[rng.randrange(3) : rng.randrange(len(data) + 1)]


def swap(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    """Another value in place of one: keeps it JSON, so that it gets past the parser."""
    values = (b"null", b"true", b"-1", b"1.5", b"{}", b"[]", b'""', b'"1"', b"18446744073709551616", b"NaN")
    pieces = data.split(b":")
    at = rng.randrange(len(pieces))
    head, comma, tail = pieces[at].partition(b",")
    pieces[at] = rng.choice(values) + (comma + tail if tail else b"}" * head.count(b"}"))
    return b":".join(pieces)


def word(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    words = (
        b"jsonrpc",
        b"id",
        b"method",
        b"params",
        b"_meta",
        b"name",
        b"2.0",
        b"tools/call",
        b"2026-07-28",
        b"t",
    )
    return data.replace(rng.choice(words), rng.choice(words), 1)


def batch(rng: random.Random, data: bytes, seeds: list[bytes]) -> bytes:
    return b"[" + b",".join([data, *rng.choices(seeds, k=rng.randrange(4))]) + b"]"


def deep(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    levels = rng.choice((10, 63, 64, 65, 2_000))
    return data[:-1] + b',"x":' + b"[" * levels + b"]" * levels + b"}"


def same(_: random.Random, data: bytes, __: list[bytes]) -> bytes:
    return data


MUTATIONS: list[Callable[[random.Random, bytes, list[bytes]], bytes]] = [
    flip, cut, swap, swap, word, batch, deep, same, same, same, same, same,
]  # fmt: skip


class Judge:
    """Checks messages against the schemas, each distinct shape once: shapes are few, messages are many."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()
        self.messages = 0
        self.codes: set[int] = set()

    def __call__(self, data: bytes, revisions: set[str]) -> Any:
        self.messages += 1
        message = read(data)
        self.codes |= {item["error"]["code"] for item in as_list(message) if "error" in item}
        shape = shape_of(message)
        if not any((shape, revision) in self.seen for revision in revisions):
            self.seen.add((shape, accepting(message, revisions)))
        return message


def as_list(message: Any) -> list[Any]:
    return message if isinstance(message, list) else [message]


def shape_of(value: Any) -> str:
    """Keys and types, and the values of what the schemas look into."""
    if isinstance(value, dict):
        exact = ("jsonrpc", "method", "code", "resultType", "cacheScope", "type", "protocolVersion")
        members = (f"{key}:{value[key] if key in exact else shape_of(value[key])}" for key in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted({shape_of(item) for item in value})) + "]"
    return type(value).__name__


def accepting(message: Any, revisions: set[str]) -> str:
    """The revision among `revisions` whose schema accepts the message."""
    for revision in sorted(revisions):
        try:
            check(revision, message)
        except (AssertionError, jsonschema.ValidationError):
            continue
        return revision
    raise AssertionError(f"no schema of {sorted(revisions)} accepts {message}")


class Front:
    """Answers like a front under stress, and keeps the books."""

    def __init__(self, rng: random.Random, judge: Judge) -> None:
        self.protocol = Protocol(SERVER, "i")
        self.judge = judge
        self.open: list[Event] = []
        self.done: set[Request] = set()
        self.rng = rng

    def take(self, event: Event) -> None:
        if isinstance(event, Reply):
            self.judge(event.data, set(ALL))
        elif isinstance(event, Cancel):
            assert event.request not in self.done
            self.done.add(event.request)
            assert self.protocol.result(event.request, RESULTS[0]) == b""
        else:
            assert event.request.number not in {request.number for request in self.done}
            self.open.append(event)

    def work(self) -> None:
        """Answers some of what is open, in any order; about a tenth stays open until the next time."""
        self.rng.shuffle(self.open)
        keep = [event for event in self.open if self.rng.random() < 0.1]
        for event in self.open[len(keep) :]:
            self.answer(event)
        del self.open[len(keep) :]

    def answer(self, event: Event) -> None:
        assert not isinstance(event, Reply | Cancel)
        asked = event.request
        if self.rng.random() < 0.3:
            self.sent(asked, self.protocol.progress(asked, self.rng.random(), 1, "m"))
        data = self.bytes_for(event)
        if data:
            assert asked not in self.done
            self.sent(asked, data)
        self.done.add(asked)
        assert self.bytes_for(event) == b""
        assert self.protocol.progress(asked, 9, None, None) == b""

    def sent(self, asked: Request, data: bytes) -> None:
        if data:
            message = self.judge(data, {asked.revision})
            if "method" not in message:
                ids = [orjson.dumps(answer["id"]) for answer in as_list(message)]
                assert ids.count(orjson.dumps(asked.id)) >= 1

    def bytes_for(self, event: Event) -> bytes:
        protocol = self.protocol
        match event:
            case ListTools(request):
                return protocol.tools(request, [TOOL])
            case CallTool(request, name):
                if name != "t":
                    return protocol.unknown_tool(request, name)
                return protocol.result(request, self.rng.choice(RESULTS))
            case ListResources(request):
                return protocol.resources(request, [{"uri": "u:1", "name": "u", "title": None}])
            case ListResourceTemplates(request):
                return protocol.resource_templates(request, [])
            case ReadResource(request, uri):
                if uri == "u:1":
                    return protocol.resource(request, [{"uri": uri, "text": "\udcff"}])
                return protocol.resource_missing(request, uri)
            case _:
                raise AssertionError(event)


def test_mutated_lines() -> None:
    rng = random.Random(SEED)
    seeds = corpus()
    judge = Judge()
    began = time.perf_counter()
    front = Front(rng, judge)
    for number in range(LINES):
        if number % 500 == 0:  # a new connection now and then, so that all eras get their turn
            front = Front(rng, judge)
        data = rng.choice(seeds)
        data = rng.choice(MUTATIONS)(rng, data, seeds)
        if rng.random() < 0.2 and data:
            data = rng.choice(MUTATIONS)(rng, data, seeds)
        for event in front.protocol.receive(data):
            front.take(event)
        if number % 20 == 19:
            front.work()
    assert judge.messages > LINES // 2
    assert len(judge.seen) > 60, "the mutations no longer reach the protocol"
    assert judge.codes == {-32700, -32600, -32601, -32602, -32022, -32002}
    assert time.perf_counter() - began < 25


def test_state_stays_bounded() -> None:
    """A client that never stops asking and a front that never answers."""
    rng = random.Random(SEED)
    protocol = Protocol(SERVER, "i")
    protocol.receive(line(initialize("2025-03-26")))
    kept = 0
    for number in range(20_000):
        call = line(request("tools/call", number, {"name": "t"}))
        events = protocol.receive(b"[" + call + b"]" if rng.random() < 0.1 else call)
        kept += sum(isinstance(event, CallTool) for event in events)
    assert kept == inflight.MAX_IN_FLIGHT
