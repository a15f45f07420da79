"""The defects D1-D16 that were found in a server of this kind: one test each, so that they stay away from this one.

D5, the rename race, has a file of its own: test_race.py.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Server, cancel
from tests.end_to_end.waiting import all_gone, until
from tests.live.cage import outside, probe
from tests.runner.mcp.schema_check import request

QUICK = 0.2  # seconds in which a ping must be answered, whatever the workers do


def answers_quickly(server: Server) -> None:
    """Most of the time at once; the machine that runs the tests may be busy now and then."""
    times = sorted(server.ping() for _ in range(9))
    assert times[4] < QUICK
    assert times[8] < 10 * QUICK


def refused_start(policy: Path, env: dict[str, str] | None = None) -> str:
    with Server(policy, env=env) as server:
        assert server.wait() == 2
        assert server.rest() == []
        return server.stderr()


# ---- D1: whole server dies on a lone surrogate -----------------------------------------------------------------------


def test_d1_lone_surrogates(place: Path) -> None:
    with Server(write_policy(place, {"echo": tools.ECHO}, presets=["files"])) as server:
        server.shake()
        whole = json.dumps(request("tools/call", "ID", {"name": "NAME", "arguments": {"KEY": "VALUE"}}))
        for gap in ("ID", "NAME", "KEY", "VALUE", "tools/call", "params"):
            for half in (rb"\ud800", rb"a\udfffb", rb"\udc00\ud800", b"\xed\xa0\x80"):
                line = whole.encode().replace(b'"' + gap.encode() + b'"', b'"' + half + b'"')
                assert line != whole.encode()
                server.line(line)
                assert "error" in server.receive()
        assert server.call("echo", {"text": "paired 😀"}).body == "paired 😀"
        # The same halves from the other side: a file name that is not UTF-8, and a tool that prints one.
        (place / "root" / os.fsdecode(b"odd\xff\xed\xa0\x80name")).write_text("x")
        listed = server.call("list_folder")
        assert not listed.is_error
        assert "odd" in listed.text
        server.ping()
        assert not server.aside


# ---- D2: no time limit, a FIFO hangs everything ----------------------------------------------------------------------


@pytest.fixture
def impatient(place: Path) -> Iterator[Server]:
    """One call at a time, 1.5 s each."""
    named = {"read": tools.READ, "sleep": tools.SLEEP, "hang": tools.HANGS}
    policy = write_policy(
        place, named, presets=["files"], server={"max_concurrent_calls": 1}, limits={"wall_seconds": 1.5}
    )
    with Server(policy) as server:
        server.shake()
        yield server


def test_d2_what_is_no_file_is_refused(impatient: Server, place: Path) -> None:
    os.mkfifo(place / "root" / "fifo")
    (place / "root" / "link").symlink_to("fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(place / "root" / "socket"))
        for path in ("fifo", "link", "socket", "./fifo", str(place / "root" / "fifo")):
            for tool in ("read", "read_file"):
                refused = impatient.call(tool, {"path": path})
                assert refused.is_error
                assert "the path is a pipe, socket or device" in refused.text
    assert impatient.call("read", {"path": "inside.txt"}).body == "inside"  # the control
    assert "exited" not in impatient.stderr().partition("tool read exited")[0]


def test_d2_a_pipe_that_is_swapped_in_later_is_ended_by_the_wall_limit(
    impatient: Server, place: Path
) -> None:
    os.mkfifo(place / "fifo")
    running = impatient.begin("hang")
    impatient.family(tools.HANGING)
    waiting = impatient.begin("read", {"path": "inside.txt"})
    impatient.ping()
    impatient.ping()  # by now the path was looked at, and the call waits for its turn
    os.rename(place / "fifo", place / "root" / "inside.txt")
    impatient.send(cancel(running))
    until(lambda: "tool hang cancelled" in impatient.stderr())
    until(lambda: len(impatient.workers()) == 2)
    answers_quickly(impatient)
    result = impatient.result(waiting)
    assert result.is_error
    assert (result.meta["outcome"], result.meta["limit"]) == ("timed_out", "wall_seconds")
    assert not impatient.workers()
    answers_quickly(impatient)


def test_d2_end_of_input_ends_a_server_whose_worker_hangs(place: Path) -> None:
    stubborn = "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)"
    with Server(write_policy(place, {"stubborn": python(stubborn)})) as server:
        server.shake()
        server.begin("stubborn")
        processes = server.family(2)
        server.close_input()
        all_gone(processes)
        assert server.wait() == 0


# ---- D3: memory and processor ----------------------------------------------------------------------------------------


def test_d3_a_huge_file_is_one_calls_problem(place: Path) -> None:
    with open(place / "root" / "huge", "wb") as file:
        file.truncate(1 << 30)
    limits = {"memory_mb": 64, "wall_seconds": 20, "cpu_seconds": 2}
    whole = "import sys; data = open(sys.argv[2], 'rb').read(); print(len(data))"
    named = {
        "whole": python(whole, "{path}", params=tools.PATH),
        "spin": python("while True: pass"),
        "echo": tools.ECHO,
    }
    with Server(write_policy(place, named, presets=["files"], limits=limits)) as server:
        server.shake()
        memory = server.me.memory_info().rss
        assert server.call("whole", {"path": "inside.txt"}).body == "7"  # the control
        busy = [
            server.begin("spin"),
            server.begin("whole", {"path": "huge"}),
            server.begin("read_file", {"path": "huge"}),
        ]
        answers_quickly(server)
        assert server.call("echo", {"text": "served"}).body == "served"
        spun, read, printed = (server.result(id_) for id_ in busy)
        assert spun.meta["outcome"] == "out_of_cpu_time"
        assert read.meta["outcome"] == "out_of_memory", read
        assert read.is_error
        assert printed.meta["outcome"] == "too_much_output"
        assert server.call("echo", {"text": "next"}).body == "next"
        assert server.me.memory_info().rss - memory < 128 << 20


def test_d3_a_fork_bomb_is_one_calls_problem(place: Path) -> None:
    with Server(write_policy(place, {"bomb": tools.BOMB, "echo": tools.ECHO})) as server:
        server.shake()
        bombs = [server.begin("bomb") for _ in range(4)]
        answers_quickly(server)
        for bomb in bombs:
            assert server.result(bomb).meta["outcome"] == "too_many_processes"
        assert not server.workers()
        assert server.call("echo", {"text": "next"}).body == "next"


# ---- D4: roots that nobody meant -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "home", "said"),
    [
        ("/", "", 'is "/", the whole machine'),
        ("root/../../../../../../..", "", 'is "/", the whole machine'),
        ("root", "root", "is or holds a home folder"),
        (".", "root", "is or holds a home folder"),
        ("root", "link", "is or holds a home folder"),
        ("/root" if os.geteuid() == 0 else "~", "", "home folder" if os.geteuid() == 0 else "not expanded"),
        (None, "", "there is no root"),
    ],
)
def test_d4_a_dangerous_root_is_refused(place: Path, root: str | None, home: str, said: str) -> None:
    (place / "link").symlink_to("root")
    policy = write_policy(place, {"echo": tools.ECHO}, server={"root": root})
    text = refused_start(policy, {"HOME": str(place / home)} if home else None)
    assert said in text
    assert "server.root" in text
    assert "what to do: " in text


def test_d4_said_explicitly_it_is_served(place: Path) -> None:
    policy = write_policy(place, {"read": tools.READ}, server={"allow_home": True})
    with Server(policy, env={"HOME": str(place / "root")}) as server:
        server.shake()
        assert server.call("read", {"path": "inside.txt"}).body == "inside"


# ---- D6: hard links --------------------------------------------------------------------------------------------------


def test_d6_a_hard_link_is_a_file_of_the_root_but_stays_read_only(place: Path) -> None:
    os.link(place / "outside.txt", place / "root" / "linked.txt")
    write = python(probe("import sys\nopen(sys.argv[2], 'a').write('x')"), "{path}", params=tools.PATH)
    with Server(write_policy(place, {"read": tools.READ, "write": write})) as server:
        server.shake()
        assert (
            server.call("read", {"path": "linked.txt"}).body == "outside"
        )  # who could make the link could copy
        assert server.call("write", {"path": "linked.txt"}).body == "BLOCKED EROFS"
        (place / "root" / "soft.txt").symlink_to("../outside.txt")
        assert "leaves the root" in server.call("read", {"path": "soft.txt"}).text
    assert (place / "outside.txt").read_text() == "outside\n"


# ---- D7: a cap on what the tool prints is no cap on the wire ---------------------------------------------------------

CAP = 4096
META = 8192 + 2048  # facts about the call, and the frame of the message
UNITS = ['"', "\\", "\x00", "\x1b[31m", "é", "\u2028", "\U0001f600"]


@pytest.fixture
def capped(place: Path) -> Iterator[Server]:
    """Tools that print what grows when it is escaped."""
    head = f"import json, sys; t = {UNITS!r}[int(sys.argv[2])] * int(sys.argv[3])\n"
    numbers = {name: {"type": "integer", "required": True} for name in ("n", "size")}
    endings = {"text": "print(t)", "json": "print(json.dumps({'x': t}))", "error": "sys.exit(t)"}
    named = {
        name: python(
            head + ending, "{n}", "{size}", params=numbers, output="json" if name == "json" else "text"
        )
        for name, ending in endings.items()
    }
    policy = write_policy(place, named, presets=["files"], server={"max_output_bytes": CAP})
    with Server(policy) as server:
        server.shake()
        yield server


@pytest.mark.parametrize("n", range(len(UNITS)))
def test_d7_the_cap_holds_on_the_wire(capped: Server, n: int) -> None:
    for tool in ("text", "json", "error"):
        for size in (100, 1500, 100_000):
            before = capped.said_since(0)
            result = capped.call(tool, {"n": n, "size": size})
            assert capped.said_since(before) <= 3 * CAP + META, (tool, size)
            if tool == "json" and size == 100_000:
                assert result.structured["error"]["code"] == "result_too_large"
            if size == 100 and tool != "error":
                assert not result.is_error  # the control


def test_d7_errors_are_capped_too(capped: Server) -> None:
    much = "x" * 900_000
    requests: list[tuple[str, dict[str, object]]] = [
        ("tools/call", {"name": "read_file", "arguments": {much: 1}}),
        ("tools/call", {"name": "read_file", "arguments": {"path": much}}),
        ("tools/call", {"name": "text", "arguments": {"n": much, "size": 1}}),
        ("tools/call", {"name": "read_output", "arguments": {"handle": much}}),
        ("tools/call", {"name": "read_output", "arguments": {much: 1}}),
        ("tools/call", {"name": much}),
        ("resources/read", {"uri": much}),
        (much, {}),
    ]
    for method, params in requests:
        before = capped.said_since(0)
        answer = capped.answer(capped.start(method, params))
        assert "error" in answer or answer["result"]["isError"]
        assert capped.said_since(before) < 5000, method[:20]
    capped.send(request("ping", much))
    assert len(json.dumps(capped.receive())) < 5000
    capped.ping()


# ---- D8: the network -------------------------------------------------------------------------------------------------

NETWORK = {
    "connect": "import _socket\n_socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0).connect(('127.0.0.1', PORT))",
    "udp": "import _socket\n_socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM, 0).sendto(b'x', ('127.0.0.1', PORT))",
    "bind": "import _socket\n_socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0).bind(('127.0.0.1', 0))",
    "unix": "import _socket\n_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)",
    "names": "import _socket\n_socket.getaddrinfo('localhost', 80)",
    "program": "import os\nos.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
}


def test_d8_no_network(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        codes = {name: probe(body.replace("PORT", port)) for name, body in NETWORK.items()}
        with Server(write_policy(place, {name: python(code) for name, code in codes.items()})) as server:
            server.shake()
            for name, code in codes.items():
                if name != "names":  # resolved from files; what it would ask is a socket, see the others
                    assert server.call(name).body.startswith("BLOCKED E"), name
                assert outside(code) == "WORKED", name
            assert "WORKED" not in server.call("program").text
