"""Deadlines nest: tool < keeper < front < client. Each inner one is made to win; where it cannot, the next one answers.

One number, `wall_seconds` of the tool, sets all of them: the keeper ends the tool then, the front gives the keeper
GRACE_SECONDS more, and the launcher KILL_SECONDS after that. A client needs no more than the sum.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runner.admission import WAIT_SECONDS
from sandbox.flight import GRACE_SECONDS, KILL_SECONDS
from sandbox.types import Limits
from tests.end_to_end import tools
from tests.end_to_end.policy_file import write_policy
from tests.end_to_end.server import Server, cancel
from tests.end_to_end.waiting import PATIENCE, all_gone, until

WALL = 1.0
CLIENT = 60.0  # after which some clients give up
TOOLS = {"sleep": tools.SLEEP | {"limits": {"wall_seconds": WALL}}, "hang": tools.HANGS | {"limits": {"wall_seconds": WALL}},
         "echo": tools.ECHO}  # fmt: skip
SLACK = 4.0  # a loaded machine


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    with Server(write_policy(place, TOOLS)) as made:
        made.shake()
        assert made.call("echo", {"text": "warm"}).body == "warm"
        yield made


def test_the_numbers_nest_below_the_clients() -> None:
    wall = Limits().wall_seconds
    assert wall < wall + GRACE_SECONDS < wall + GRACE_SECONDS + KILL_SECONDS < CLIENT
    assert (
        WAIT_SECONDS + wall + GRACE_SECONDS + KILL_SECONDS <= CLIENT
    )  # also after the longest wait for room


def test_the_tool_wins_when_it_ends_in_time(server: Server) -> None:
    result = server.call("sleep", {"seconds": WALL / 10})
    assert (result.body, result.meta["outcome"]) == ("slept", "ok")


def test_the_keeper_wins_over_the_front(server: Server) -> None:
    begun = time.monotonic()
    result = server.call("hang")
    assert result.meta["outcome"] == "timed_out"
    assert (result.meta["limit"], result.meta["limit_value"]) == ("wall_seconds", WALL)
    assert WALL <= result.meta["current"] < WALL + GRACE_SECONDS
    assert time.monotonic() - begun < WALL + GRACE_SECONDS


def started(server: Server) -> list[psutil.Process]:
    """Begun and running: its keeper first, then the tool and what that has started."""
    until(lambda: len(server.workers()) == tools.HANGING)
    return server.workers()


def test_the_front_wins_over_the_client_when_the_keeper_does_not_answer(server: Server) -> None:
    begun, call = time.monotonic(), server.begin("hang")
    workers = started(server)
    workers[0].suspend()
    result = server.result(call, WALL + GRACE_SECONDS + KILL_SECONDS + SLACK)
    took = time.monotonic() - begun
    assert result.meta["outcome"] == "unknown"
    assert "may have run" in result.text
    assert "Do not repeat it blindly" in result.text
    assert WALL + GRACE_SECONDS <= took < WALL + GRACE_SECONDS + SLACK
    all_gone(workers, PATIENCE)
    assert server.call("echo", {"text": "next"}).body == "next"


def test_the_front_answers_alone_when_the_launcher_does_not_either(server: Server) -> None:
    begun, call = time.monotonic(), server.begin("hang")
    workers, launcher = started(server), server.launcher
    workers[0].suspend()
    launcher.suspend()
    try:
        result = server.result(call, WALL + GRACE_SECONDS + KILL_SECONDS + SLACK)
        took = time.monotonic() - begun
    finally:
        launcher.resume()
    assert result.meta["outcome"] == "unknown"
    assert WALL + GRACE_SECONDS + KILL_SECONDS <= took < WALL + GRACE_SECONDS + KILL_SECONDS + SLACK
    all_gone(workers, PATIENCE)
    assert server.call("echo", {"text": "next"}).body == "next"


def test_a_client_that_gives_up_first_gets_nothing_and_leaves_nothing(server: Server) -> None:
    """The one order that the server cannot enforce: then the call is gone, and no late answer confuses anyone."""
    call = server.begin("hang")
    workers = started(server)
    server.send(cancel(call))
    all_gone(workers, PATIENCE)
    assert server.call("echo", {"text": "next"}).body == "next"
    assert not server.aside
    until(lambda: "tool hang cancelled" in server.stderr())
