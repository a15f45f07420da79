"""A front that has been taken over can start nothing, reach nothing, and gets nothing out of the launcher."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from tests.end_to_end import compromised, tools
from tests.end_to_end.policy_file import write_policy
from tests.end_to_end.server import Server, answers
from tests.end_to_end.waiting import all_gone, until

TOOLS = {"echo": tools.ECHO, "hang": tools.HANGS}
NOT_ASKED_OF_THE_FILTER = {"thread": "worked", "clone3": "Function not implemented"}


def status(process: psutil.Process) -> dict[str, str]:
    text = Path(f"/proc/{process.pid}/status").read_text()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}


def test_the_kernel_says_that_the_front_is_locked(place: Path) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        server.shake()
        found = status(server.me)
        assert (found["Seccomp"], found["NoNewPrivs"]) == ("2", "1")
        assert found["Threads"] == "1"
        launcher = status(server.launcher)
        assert launcher["Seccomp"] != "2"  # the control: it must make namespaces
        assert launcher["Threads"] == "1"


def test_descriptors_of_the_front_are_closed_on_exec(place: Path) -> None:
    with Server(write_policy(place, TOOLS), "--log-json", str(place / "log")) as server:
        server.shake()
        server.begin("hang")
        server.family(tools.HANGING)
        found = {}
        for name in os.listdir(f"/proc/{server.me.pid}/fd"):
            info = Path(f"/proc/{server.me.pid}/fdinfo/{name}").read_text()
            [flags] = [line.split()[1] for line in info.splitlines() if line.startswith("flags:")]
            found[int(name)] = bool(int(flags, 8) & os.O_CLOEXEC)
        assert {number for number, closed in found.items() if not closed} == {0, 1, 2}
        assert len(found) > 8  # the log, the launcher, the pipes of the call
        assert os.readlink(f"/proc/{server.me.pid}/fd/0") == "/dev/null"
        outputs = [os.readlink(f"/proc/{server.me.pid}/fd/{number}") for number in (1, 2)]
        assert outputs[0] == outputs[1]  # nothing that prints can reach the client


def test_descriptors_of_the_launcher(place: Path) -> None:
    """It has none of the client's, and neither have the workers."""
    with Server(write_policy(place, TOOLS)) as server:
        server.shake()
        server.begin("hang")
        family = server.family(tools.HANGING)
        streams = {
            os.readlink(f"/proc/{os.getpid()}/fd/{end.fileno()}") for end in (server.input, server.output)
        }
        assert all(name.startswith("pipe:") for name in streams)
        mine = {os.readlink(f"/proc/{server.me.pid}/fd/{n}") for n in os.listdir(f"/proc/{server.me.pid}/fd")}
        assert streams <= mine
        seen = 0
        for process in family[1:]:
            try:
                numbers = os.listdir(f"/proc/{process.pid}/fd")
            except PermissionError:  # a worker is not dumpable for us; the launcher is
                assert process != family[1]
                continue
            seen += 1
            theirs = {os.readlink(f"/proc/{process.pid}/fd/{number}") for number in numbers}
            assert not theirs & streams
        assert seen >= 1


def test_a_locked_front_can_start_and_reach_nothing(place: Path) -> None:
    report = place / "report.json"
    policy = write_policy(place, TOOLS)
    with Server(policy, str(report), wrapper=compromised.attempts_on_a_call()) as server:
        server.shake()
        assert server.call("echo", {"text": "before"}).body == "before"
        launcher = server.launcher
        server.begin("attack")
        until(report.exists)
        found = compromised.found(report)
        refused = {name: what for name, what in found.items() if name not in NOT_ASKED_OF_THE_FILTER}
        assert set(refused.values()) == {"Operation not permitted"}, refused
        assert {name: found[name] for name in NOT_ASKED_OF_THE_FILTER} == NOT_ASKED_OF_THE_FILTER
        assert server.me.children() == [launcher]
        assert server.call("echo", {"text": "after"}).body == "after"


def test_control_the_same_attempts_work_before_the_lock(place: Path) -> None:
    report = place / "report.json"
    policy = write_policy(place, TOOLS)
    with Server(policy, str(report), wrapper=compromised.attempts_before()) as server:
        server.shake()
        found = compromised.found(report)
        worked = {name: what for name, what in found.items() if name != "clone3"}
        assert set(worked.values()) == {"worked"}, worked
        assert found["clone3"] == "Invalid argument"  # it was looked at
        assert server.call("echo", {"text": "after"}).body == "after"


PACKETS = (
    "plan that does not exist", "plan just beyond the last", "new plan", "new plan with descriptors",
    "call with one descriptor", "call with many descriptors", "call without descriptors", "launcher's own words",
    "garbage",
)  # fmt: skip


@pytest.mark.parametrize("packet", PACKETS)
def test_the_launcher_ends_instead_of_obeying(place: Path, packet: str) -> None:
    report = place / "report.json"
    policy = write_policy(place, TOOLS)
    wrapper = compromised.asks_the_launcher()
    with Server(policy, str(report), wrapper=wrapper, env={"ATTACK": packet}) as server:
        server.shake()
        assert server.call("echo", {"text": "before"}).body == "before"
        id_ = server.begin("hang")
        processes = server.family(tools.HANGING)
        server.begin("attack")
        all_gone(processes[1:])
        assert compromised.found(report) == "sent"
        assert server.wait() == 1
        [answer] = [message for message in server.rest() if answers(message, id_)]
        assert answer["result"]["isError"]
        assert answer["result"]["content"][0]["text"].startswith("unknown")
        assert "the launcher ended unexpectedly" in server.stderr()
        assert "Traceback" not in server.stderr()
