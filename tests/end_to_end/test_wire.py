"""Raw JSON lines against the real server: every revision, both eras in one process, and everything that is no message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.mcp import eras
from tests.end_to_end import tools
from tests.end_to_end.policy_file import write_policy
from tests.end_to_end.server import Result, Server, cancel
from tests.runner.mcp.schema_check import envelope, initialize, modern, request

TOOLS = {
    "echo": tools.ECHO,
    "read": tools.READ,
    "facts": tools.FACTS,
    "sleep": tools.SLEEP,
    "hang": tools.HANGS,
}
CALL = {"name": "echo", "arguments": {"text": "hello"}}


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    with Server(write_policy(place, TOOLS, presets=["files"], server={"max_concurrent_calls": 2})) as made:
        yield made


# ---- revisions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", eras.LEGACY)
def test_legacy_revision(server: Server, revision: str) -> None:
    welcome = server.shake(revision)
    assert welcome["protocolVersion"] == revision
    assert welcome["serverInfo"]["name"] == "end-to-end"
    assert ("title" in welcome["serverInfo"]) == (revision >= "2025-06-18")
    listed = server.ask("tools/list")["tools"]
    assert listed == server.ask("tools/list")["tools"]
    assert ("annotations" in listed[0]) == (revision >= "2025-03-26")
    assert ("title" in listed[0]) == (revision >= "2025-06-18")
    assert server.call("echo", {"text": "x"}).body == "x"
    facts = server.call("facts")
    assert (facts.structured is None) == (revision < "2025-06-18")
    assert json.loads(facts.text)["result"]["answer"] == 42
    assert server.ask("resources/list") == {"resources": []}
    assert server.error("resources/read", {"uri": "toolcage://output/none"})["code"] == -32002
    assert server.error("prompts/list")["code"] == -32601
    assert server.error("tools/call", {"name": "nonsense"})["code"] == -32602
    assert server.ask("ping") == {}
    assert server.stop() == 0


def test_modern_revision(server: Server) -> None:
    server.revisions = (eras.MODERN,)
    server.send(modern("server/discover", 0))
    found = server.answer(0)["result"]
    assert found["supportedVersions"] == list(eras.SUPPORTED)
    server.send(modern("tools/list", "list"))
    listed = server.answer("list")["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    server.send(modern("tools/call", -1, **CALL))
    assert Result(server.answer(-1)["result"]).body == "hello"
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "nonsense"):
        server.send(modern(method, method))
        assert server.answer(method)["error"]["code"] == -32601
    server.send(request("tools/call", 7, CALL | {"_meta": envelope("2025-11-25")}))
    error = server.answer(7)["error"]
    assert (error["code"], error["data"]["requested"]) == (-32022, "2025-11-25")
    server.send(modern("resources/read", 8, uri="toolcage://output/none"))
    assert server.answer(8)["error"]["code"] == -32602


@pytest.mark.parametrize("version", ["2030-01-01", "2026-07-28", "1.0", ""])
def test_unknown_version_is_offered_the_newest_handshake(server: Server, version: str) -> None:
    assert server.shake(version)["protocolVersion"] == "2025-11-25"


def test_batch(server: Server) -> None:
    server.shake("2025-03-26")
    calls = [request("tools/call", n, CALL) for n in (1, "1", 2)]
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    server.send([*calls, note, request("ping", 3), 4])
    answer = server.receive()
    assert isinstance(answer, list)
    assert sorted(map(repr, (one.get("id") for one in answer))) == ["'1'", "1", "2", "3", "None"]
    server.send([note])
    server.send([])
    assert server.receive()["error"]["code"] == -32600
    server.send([request("tools/call", 5, {"name": "hang"}), request("ping", 6)])
    server.family(tools.HANGING)
    server.send(cancel(5))
    [answer] = server.receive()
    assert answer["id"] == 6


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_batches_are_refused_where_they_do_not_exist(server: Server, revision: str) -> None:
    server.shake(revision)
    server.send([request("ping", 1)])
    assert server.receive()["error"]["code"] == -32600
    server.ping()


# ---- both eras in one process ----------------------------------------------------------------------------------------


def test_discover_then_initialize_on_one_pipe(server: Server) -> None:
    server.send(modern("server/discover", "server-discover-probe-1"))
    assert "supportedVersions" in server.answer("server-discover-probe-1")["result"]
    server.send(initialize("2025-11-25", 0))
    assert server.answer(0)["result"]["protocolVersion"] == "2025-11-25"
    server.send(request("tools/list", 1), modern("tools/list", 2))
    bare, enveloped = server.answer(1)["result"], server.answer(2)["result"]
    assert bare["tools"] == enveloped["tools"]
    assert "resultType" not in bare
    assert enveloped["resultType"] == "complete"


def test_bare_and_enveloped_calls_mixed(server: Server) -> None:
    server.send(request("tools/list", "early"))
    assert server.answer("early")["error"]["code"] == -32602
    server.send(initialize("2024-11-05", "i"))
    server.answer("i")
    for n in range(10):
        server.send(request("tools/call", n, CALL), modern("tools/call", str(n), **CALL))
    for n in range(10):
        assert "resultType" not in server.answer(n)["result"]
        assert server.answer(str(n))["result"]["resultType"] == "complete"
    server.send(initialize("2025-06-18", "again"))
    assert server.answer("again")["result"]["protocolVersion"] == "2025-06-18"


# ---- ids -------------------------------------------------------------------------------------------------------------


def test_ids_in_flight_together(server: Server) -> None:
    server.shake()
    ids: tuple[object, ...] = (0, -1, "1", 1, "", "0", 2**63 - 1, "server-discover-probe-1", "ü")
    for id_ in ids:
        server.begin("echo", {"text": f"id {id_!r}"}, id_)
    for id_ in ids:
        assert server.result(id_).body == f"id {id_!r}"
    assert not server.aside


def test_an_id_in_flight_cannot_be_used_again(server: Server) -> None:
    server.shake()
    server.begin("hang", id_=7)
    server.family(tools.HANGING)
    server.send(request("ping", 7))
    assert server.answer(7)["error"]["code"] == -32600
    server.send(cancel("7"))  # another id: nothing happens
    server.ping()
    assert len(server.workers()) == tools.HANGING
    server.send(cancel(7))
    server.send(request("tools/call", 8, CALL))
    assert server.result(8).body == "hello"
    server.send(request("ping", 7))  # free again
    assert server.answer(7)["result"] == {}
    assert not server.aside


@pytest.mark.parametrize("token", [0, "", "0", -5, "7f7f-uuid"])
def test_progress_token(server: Server, token: object) -> None:
    server.shake()
    params = {"name": "sleep", "arguments": {"seconds": 1.3}, "_meta": {"progressToken": token}}
    server.send(request("tools/call", 0, params))
    note = server.receive()
    assert note["method"] == "notifications/progress"
    assert note["params"]["progressToken"] == token
    assert type(note["params"]["progressToken"]) is type(token)
    assert server.receive()["id"] == 0
    server.ping()
    assert not server.aside


def test_no_progress_unasked(server: Server) -> None:
    server.shake()
    server.send(request("tools/call", 0, {"name": "sleep", "arguments": {"seconds": 1.2}}))
    assert server.receive()["id"] == 0


# ---- what is no message ----------------------------------------------------------------------------------------------

BAD = {
    b"nonsense": -32700,
    b"{": -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping"': -32700,
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"\xff"}': -32700,
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}': -32700,
    b"[" * 100_000: -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 70 + b"]" * 70 + b"}}": -32700,
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000: -32700,
    b"7": -32600,
    b"null": -32600,
    b'"ping"': -32600,
    b"{}": -32600,
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":18446744073709551616,"method":"ping"}': -32600,
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":7}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}': -32602,
    b'{"jsonrpc":"2.0","id":1,"method":"no/such"}': -32601,
}


@pytest.mark.parametrize("shaken", [False, True])
def test_malformed_lines(server: Server, shaken: bool) -> None:
    if shaken:
        server.shake()
    for line, code in BAD.items():
        server.line(line)
        answer = server.receive()
        if code in (-32700, -32600) or shaken:
            assert answer["error"]["code"] == code, line[:100]
    server.ping()
    assert not server.aside
    assert not server.workers()


def test_lines_that_say_nothing(server: Server) -> None:
    server.shake()
    server.line(b"")
    server.line(b"  \t\r")
    server.send({"jsonrpc": "2.0", "method": "notifications/nonsense"})
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}})
    server.send(cancel(99), cancel("shake"))
    server.send({"jsonrpc": "2.0", "id": 5, "result": {}})
    server.ping()
    assert not server.aside


def test_oversized_line(server: Server) -> None:
    server.shake()
    fits = json.dumps(request("ping", 1, {"x": ""})).encode()
    room = (1 << 20) - len(fits)
    server.send(request("ping", 1, {"x": "y" * room}))
    assert server.answer(1)["result"] == {}
    server.send(request("ping", 2, {"x": "y" * (room + 1)}))
    assert server.receive()["error"]["code"] == -32600
    memory = server.me.memory_info().rss
    for _ in range(64):
        server.write(b"z" * (1 << 20))
    server.line(b"")
    assert server.receive()["error"]["code"] == -32600
    assert server.me.memory_info().rss - memory < 32 << 20
    server.ping()


def test_line_ends(server: Server) -> None:
    server.line(json.dumps(initialize("2025-11-25", 0)).encode() + b"\r")
    assert "result" in server.answer(0)
    server.revisions = ("2025-11-25",)
    text = "a\u2028b\u0085c\x0bd"
    message = request("tools/call", 1, {"name": "echo", "arguments": {"text": "a\u2028b"}})
    server.line(json.dumps(message, ensure_ascii=False).encode() + b"\r")
    assert server.result(1).body.startswith("a")
    for byte in json.dumps(request("ping", text), ensure_ascii=False).encode():  # one byte at a time
        server.write(bytes([byte]))
    server.write(b"\n")
    assert server.answer(text)["result"] == {}
    assert b"\r" not in server.received
