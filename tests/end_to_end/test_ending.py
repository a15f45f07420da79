"""Whoever ends, and however, in the middle of a call: within a second nothing is left. And every bad start says why."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.end_to_end import tools
from tests.end_to_end.policy_file import write_policy
from tests.end_to_end.server import REPO, SYSTEM_PATH, Server, answers
from tests.end_to_end.waiting import all_gone, until
from tests.runner.mcp.schema_check import initialize, request

TOOLS = {"hang": tools.HANGS, "echo": tools.ECHO, "sleep": tools.SLEEP}


def in_the_middle_of_a_call(server: Server) -> tuple[object, list[psutil.Process]]:
    """A call is in flight: (its id, the processes of all)."""
    server.shake()
    id_ = server.begin("hang")
    return id_, server.family(tools.HANGING)


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ENDS: dict[str, Callable[[Server], None]] = {
    "end of input": lambda server: server.close_input(),
    **{number.name: lambda server, number=number: server.process.send_signal(number) for number in SIGNALS},  # type: ignore[misc]
}


@pytest.mark.parametrize("end", ENDS)
def test_the_client_ends_the_server_during_a_call(place: Path, end: str) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        id_, processes = in_the_middle_of_a_call(server)
        ENDS[end](server)
        all_gone(processes)
        assert server.wait() == 0
        assert not any(answers(message, id_) and "result" in message for message in server.rest())
        assert "Traceback" not in server.stderr()


@pytest.mark.parametrize("end", ENDS)
def test_the_client_ends_an_idle_server(place: Path, end: str) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        server.shake()
        processes = [server.me, server.launcher]
        ENDS[end](server)
        all_gone(processes)
        assert server.wait() == 0
        assert server.rest() == []
        assert server.stderr() == ""


def test_a_call_that_is_nearly_done_is_still_answered_after_the_end_of_input(place: Path) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        server.shake()
        id_ = server.begin("echo", {"text": "last words"})
        server.close_input()
        assert server.result(id_).body == "last words"
        assert server.wait() == 0


def test_signals_and_end_of_input_at_once(place: Path) -> None:
    """What Claude Code and Codex do: SIGINT, SIGTERM and the end of the pipe, one right after the other."""
    with Server(write_policy(place, TOOLS)) as server:
        _, processes = in_the_middle_of_a_call(server)
        server.process.send_signal(signal.SIGINT)
        server.process.send_signal(signal.SIGTERM)
        server.close_input()
        all_gone(processes)
        assert server.wait() in (0, -signal.SIGTERM)


def test_closed_output(place: Path) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        _, processes = in_the_middle_of_a_call(server)
        server.output.close()
        server.send(request("ping", 1))  # it finds out when it writes
        all_gone(processes)
        assert server.wait() == 0
        assert "Traceback" not in server.stderr()


def test_killed_server(place: Path) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        _, processes = in_the_middle_of_a_call(server)
        server.process.kill()
        all_gone(processes)


def test_killed_launcher(place: Path) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        id_, processes = in_the_middle_of_a_call(server)
        server.launcher.kill()
        all_gone(processes)
        messages = server.rest()
        [answer] = [message for message in messages if answers(message, id_)]
        assert answer["result"]["isError"]
        text = answer["result"]["content"][0]["text"]
        assert text.startswith("unknown · error")
        assert "Do not repeat it blindly" in text
        assert server.wait() == 1
        lines = server.stderr().splitlines()
        assert "toolcage: the launcher ended unexpectedly; calls in flight were answered as unknown" in lines
        assert len(lines) == 2  # and the call's own
        assert lines[0].startswith("tool hang unknown")


def test_killed_launcher_of_an_idle_server(place: Path) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        server.shake()
        launcher = server.launcher
        launcher.kill()
        all_gone([server.me, launcher])
        assert server.wait() == 1
        assert len(server.stderr().splitlines()) == 1


def test_killed_keeper_is_unknown_and_the_server_goes_on(place: Path) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        id_, processes = in_the_middle_of_a_call(server)
        [keeper] = server.launcher.children()
        keeper.kill()
        result = server.result(id_)
        assert result.is_error
        assert result.meta["outcome"] == "unknown"
        all_gone(processes[2:])
        assert server.call("echo", {"text": "next"}).body == "next"


MIDDLE = """\
import subprocess, sys, time
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(sys.argv[1].encode())
server.stdin.flush()
print(server.pid, flush=True)
time.sleep(600)
"""


def test_killed_client(place: Path) -> None:
    """The client dies without a word: its ends of the pipes close, and that is all the server ever hears."""
    policy = write_policy(place, TOOLS)
    messages = [initialize(), request("tools/call", 1, {"name": "hang"})]
    words = "".join(json.dumps(message) + "\n" for message in messages)
    command = [
        sys.executable, "-c", MIDDLE, words, sys.executable, "-m", "runner", "serve", str(policy),
    ]  # fmt: skip
    client = subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=REPO, env={"PATH": SYSTEM_PATH}, stderr=subprocess.DEVNULL
    )
    with client:
        assert client.stdout is not None
        server = psutil.Process(int(client.stdout.readline()))
        until(lambda: len(server.children(recursive=True)) == 1 + tools.HANGING)
        processes = [server, *server.children(recursive=True)]
        client.kill()
        all_gone(processes)


def test_nobody_reads_stderr(place: Path) -> None:
    """A full stderr pipe loses log lines, never answers."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    with Server(write_policy(place, TOOLS), stderr=writer) as server:
        os.close(writer)
        server.shake()
        for n in range(20):
            assert server.call("echo", {"text": f"answer {n}"}).body == f"answer {n}"
        assert server.ping() < 1
        assert server.stop() == 0
    os.close(reader)


def test_stderr_that_is_closed(place: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with Server(write_policy(place, TOOLS), stderr=writer) as server:
        os.close(writer)
        server.shake()
        assert server.call("echo", {"text": "fine"}).body == "fine"
        assert server.stop() == 0
