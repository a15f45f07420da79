"""Many calls at once over raw lines: bounds, order, refusals, and clients that give up or do not read."""

from __future__ import annotations

import json
import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end import tools
from tests.end_to_end.policy_file import write_policy
from tests.end_to_end.server import Server, answers, cancel
from tests.runner.mcp.schema_check import request

TOOLS = {"echo": tools.ECHO, "sleep": tools.SLEEP, "hang": tools.HANGS}


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    """Two calls at a time."""
    with Server(write_policy(place, TOOLS, server={"max_concurrent_calls": 2})) as made:
        yield made


def test_calls_beyond_the_bound_wait_and_are_served_in_order(server: Server) -> None:
    server.shake()
    first, second = server.begin("hang"), server.begin("hang")
    server.family(2 * tools.HANGING)
    waiting = [server.begin("echo", {"text": str(n)}) for n in range(6)]
    assert server.ping() < 1
    assert len(server.workers()) == 2 * tools.HANGING  # none of them was started
    server.send(cancel(first))  # one place becomes free: strictly one after the other
    order = [server.receive()["id"] for _ in waiting]
    assert order == waiting
    server.send(cancel(second))
    server.ping()


def test_a_waiting_call_that_is_cancelled_never_runs(server: Server) -> None:
    server.shake()
    running = [server.begin("hang"), server.begin("hang")]
    server.family(2 * tools.HANGING)
    given_up, kept = server.begin("echo", {"text": "no"}), server.begin("echo", {"text": "yes"})
    server.send(cancel(given_up), cancel(running[0]))
    assert server.result(kept).body == "yes"
    server.send(cancel(running[1]))
    server.ping()
    assert not any(answers(message, given_up) for message in server.aside)
    assert server.stderr().count("tool echo exited") == 1


def test_calls_that_are_given_up_at_once_leave_nothing(server: Server) -> None:
    server.shake()
    params = {"name": "echo", "arguments": {"no": "such argument"}}
    lines = b"".join(
        json.dumps(message).encode() + b"\n" for message in (request("tools/call", 5, params), cancel(5))
    )
    server.write(lines * 100)
    server.ping()
    memory = server.me.memory_info().rss
    for _ in range(100):
        server.write(lines * 200)
        server.ping()
    assert server.me.memory_info().rss - memory < 4 << 20
    assert "never awaited" not in server.stderr()


def test_more_than_64_waiting_calls_are_refused(server: Server) -> None:
    server.shake()
    running = [server.begin("hang"), server.begin("hang")]
    server.family(2 * tools.HANGING)
    waiting = [server.begin("sleep", {"seconds": 60}) for _ in range(64)]
    more = [server.begin("echo", {"text": str(n)}) for n in range(3)]  # three alike would be told shortly
    for id_ in more:
        refused = server.result(id_)
        assert refused.is_error
        assert (refused.meta["code"], refused.meta["limit_value"]) == ("too_many_calls", 64)
        assert "Wait for answers" in refused.text
    server.send(*(cancel(id_) for id_ in waiting))
    server.send(cancel(running[0]))
    assert server.call("echo", {"text": "free"}).body == "free"
    server.send(cancel(running[1]))
    server.ping()
    assert not server.aside


def test_rate_limit(place: Path) -> None:
    policy = write_policy(place, TOOLS, server={"max_calls_per_minute": 3})
    with Server(policy) as server:
        server.shake()
        assert [server.call("echo", {"text": str(n)}).body for n in range(3)] == ["0", "1", "2"]
        refused = server.call("echo", {"text": "3"})
        assert refused.is_error
        assert refused.text.startswith("refused · rate_limited")
        assert (refused.meta["limit"], refused.meta["limit_value"]) == ("max_calls_per_minute", 3)
        assert 55 <= refused.meta["retry_after_seconds"] <= 60
        server.ping()
        assert server.ask("tools/list")["tools"]
        assert server.stderr().count("exited exit 0") == 3


def test_rate_limit_by_flag(place: Path) -> None:
    with Server(write_policy(place, TOOLS), "--max-calls-per-minute", "1") as server:
        server.shake()
        assert not server.call("echo", {"text": "one"}).is_error
        assert server.call("echo", {"text": "two"}).is_error


def test_a_client_that_does_not_read_is_not_read_from(place: Path) -> None:
    """Answers pile up to a bound; then the server stops reading, and goes on when the client does."""
    with Server(write_policy(place, TOOLS, presets=["files"])) as server:
        server.shake()
        line = json.dumps(request("tools/list", "id")).encode() + b"\n"
        memory, sent = server.me.memory_info().rss, 0
        os.set_blocking(server.input.fileno(), False)
        while select.select([], [server.input], [], 0.3)[1]:
            sent += server.input.write((line * 50)[sent % len(line) :]) or 0
        assert server.me.memory_info().rss - memory < 64 << 20
        os.set_blocking(server.input.fileno(), True)
        writer = threading.Thread(target=server.write, args=(line[sent % len(line) :],), daemon=True)
        writer.start()
        asked, answered = sent // len(line) + 1, 0
        while answered < asked:
            data = os.read(server.output.fileno(), 1 << 20)
            assert data
            answered += data.count(b"\n")
        writer.join()
        assert answered == asked
        server.ping()
