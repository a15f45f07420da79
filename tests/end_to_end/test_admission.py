"""Several servers of one user on one machine: one bound for all their calls, kept by the kernel whoever dies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from runner.places import Places, open_shared
from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Server, answers, cancel
from tests.end_to_end.test_lockdown import status
from tests.end_to_end.waiting import until

SMALL = python("print('small')", limits={"memory_mb": 100, "tmp_mb": 20})
TOOLS = {"echo": tools.ECHO, "hang": tools.HANGS, "small": SMALL}
NEED = 1024 + 64  # MiB of a call without limits of its own
WAIT = 5.0


class Machine:
    """Servers that share a folder, and nobody else's."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self._place, self._stack = place, stack
        self.folder = place / "shared"
        self.folder.mkdir(mode=0o700)

    def server(self, **settings: object) -> Server:
        """One more server, with its handshake done."""
        policy = write_policy(self._place, TOOLS, server=settings)
        made = self._stack.enter_context(Server(policy, env={"TOOLCAGE_RUNTIME_DIR": str(self.folder)}))
        made.shake()
        return made

    def look(self) -> Places:
        """What the kernel knows of calls that run and wait."""
        made = Places(open_shared((str(self.folder / "toolcage"),)))
        self._stack.callback(made.close)
        return made


@pytest.fixture
def machine(place: Path) -> Iterator[Machine]:
    with ExitStack() as stack:
        yield Machine(place, stack)


def hangs(server: Server, count: int) -> list[object]:
    """Calls that run until they are cancelled."""
    ids = [server.begin("hang") for _ in range(count)]
    server.family(count * tools.HANGING)
    return ids


def test_one_bound_for_all_servers(machine: Machine) -> None:
    """Refused while the others run, with the count; let in when there is room. The fronts are locked down meanwhile."""
    first, second = machine.server(max_machine_calls=2), machine.server(max_machine_calls=2)
    running = hangs(first, 2)
    assert status(second.me)["Seccomp"] == "2"
    refused = second.call("echo", {"text": "x"})
    assert refused.is_error
    assert refused.text.startswith("refused · machine_busy\n2 calls of this user's Toolcage servers run")
    assert refused.meta == {
        "outcome": "refused", "code": "machine_busy", "class": "capacity", "scope": "machine", "retryable": True,
        "limit": "max_machine_calls", "limit_value": 2, "current": 2,
    }  # fmt: skip
    until(lambda: "tool echo machine_busy" in second.stderr())  # written after the answer
    assert second.ping() < 1
    first.send(cancel(running[0]))
    assert second.call("echo", {"text": "let in"}).body == "let in"
    first.send(cancel(running[1]))
    first.ping()


def test_a_call_that_waits_runs_when_there_is_room(machine: Machine) -> None:
    first, second, look = (
        machine.server(max_machine_calls=1),
        machine.server(max_machine_calls=1),
        machine.look(),
    )
    [running] = hangs(first, 1)
    waiting = second.begin("echo", {"text": "let in"})
    until(lambda: look.waiting(WAIT) == (NEED,))
    assert tuple(look.running().values()) == (NEED,)
    first.send(cancel(running))
    assert second.result(waiting, WAIT).body == "let in"
    until(lambda: not look.running())
    first.ping()


def test_a_killed_server_gives_its_places_back(machine: Machine) -> None:
    first, second, look = (
        machine.server(max_machine_calls=2),
        machine.server(max_machine_calls=2),
        machine.look(),
    )
    hangs(first, 2)
    waiting = second.begin("echo", {"text": "let in"})
    until(lambda: look.waiting(WAIT))
    first.me.send_signal(signal.SIGKILL)
    assert second.result(waiting, WAIT).body == "let in"


def test_memory_is_summed_over_all_servers(machine: Machine) -> None:
    limit = NEED + 200
    first, second = (machine.server(max_machine_memory_mb=limit) for _ in range(2))
    [running] = hangs(first, 1)
    assert second.call("small").body == "small"  # 120 MiB fit beside it
    refused = second.call("echo", {"text": "x"})
    assert refused.text.startswith(
        "refused · machine_busy\nThe calls that run on this machine may use 1,088 MiB"
    )
    facts = [refused.meta[key] for key in ("limit", "limit_value", "current", "needed", "retryable")]
    assert facts == ["max_machine_memory_mb", limit, NEED, NEED, True]
    first.send(cancel(running))
    assert second.call("echo", {"text": "let in"}).body == "let in"
    first.ping()


def test_a_waiting_call_that_is_cancelled_never_runs(machine: Machine) -> None:
    first, second, look = (
        machine.server(max_machine_calls=1),
        machine.server(max_machine_calls=1),
        machine.look(),
    )
    [running] = hangs(first, 1)
    given_up = second.begin("echo", {"text": "no"})
    until(lambda: look.waiting(WAIT))
    second.send(cancel(given_up))
    until(lambda: not look.waiting(WAIT))
    first.send(cancel(running))
    assert second.call("echo", {"text": "yes"}).body == "yes"
    assert not any(answers(message, given_up) for message in second.aside)
    until(lambda: second.stderr().count("tool echo exited") == 1)
    assert second.stderr().count("tool echo cancelled") == 1
    first.ping()


def test_workers_that_only_wait_for_a_call_are_not_counted(machine: Machine) -> None:
    first, second, look = (
        machine.server(max_machine_calls=1),
        machine.server(max_machine_calls=1),
        machine.look(),
    )
    for tool in ("echo", "small"):  # each leaves a worker behind that is ready for the next call
        assert not first.call(tool, {"text": "x"} if tool == "echo" else {}).is_error
    until(lambda: len(first.launcher.children()) >= 2)
    assert look.running() == {}
    assert second.call("echo", {"text": "let in"}).body == "let in"


def test_a_tool_that_could_never_run_is_named_at_the_start(machine: Machine) -> None:
    server = machine.server(max_machine_memory_mb=NEED - 1)
    refused = server.call("echo", {"text": "x"})
    assert refused.text.startswith("refused · machine_too_small\nA call of this tool may use 1,088 MiB")
    assert "lower memory_mb or tmp_mb under [limits]" in refused.text
    assert refused.meta["retryable"] is False
    assert server.call("small").body == "small"
    [line] = [line for line in server.stderr().splitlines() if "max_machine_memory_mb" in line]
    assert line.startswith("toolcage: calls of echo, hang are refused on this machine")


def test_without_a_folder_a_server_bounds_its_own_calls(machine: Machine) -> None:
    (machine.folder / "toolcage").touch()
    first, second = machine.server(max_machine_calls=1), machine.server(max_machine_calls=1)
    [running] = hangs(first, 1)
    assert second.call("echo", {"text": "not counted"}).body == "not counted"
    assert first.call("echo", {"text": "x"}).meta["code"] == "machine_busy"
    first.send(cancel(running))
    assert first.call("echo", {"text": "let in"}).body == "let in"
    for server in (first, second):
        [line] = [line for line in server.stderr().splitlines() if "cannot be used" in line]
        assert line == (
            f"toolcage: {machine.folder}/toolcage cannot be used (Not a directory): calls of other servers are not "
            "counted, the bounds of this machine hold for this server alone"
        )


def test_a_relative_folder_is_refused(place: Path) -> None:
    with Server(write_policy(place, TOOLS), env={"TOOLCAGE_RUNTIME_DIR": "here"}) as server:
        assert server.wait() == 2
        assert "TOOLCAGE_RUNTIME_DIR 'here' is relative" in server.stderr()


LOCK = """\
import fcntl, os, sys
for how, kind in ((os.O_RDONLY, fcntl.LOCK_SH), (os.O_WRONLY, fcntl.LOCK_EX)):
    try:
        fcntl.lockf(os.open(sys.argv[2], how), kind | fcntl.LOCK_NB)
        print("locked")
    except OSError as problem:
        print(problem.strerror)
"""


def test_a_tool_cannot_lock_the_file(place: Path) -> None:
    """Even where its folder lies in the root of the tools. Who could lock it could keep every call waiting."""
    shared = place / "root" / "shared"
    shared.mkdir(mode=0o755)
    (shared / "other").write_text("x")
    path = {"path": {"type": "string", "required": True}}
    with Server(
        write_policy(place, {"lock": python(LOCK, "{path}", params=path)}),
        env={"TOOLCAGE_RUNTIME_DIR": str(shared)},
    ) as server:
        server.shake()
        control = server.call("lock", {"path": f"{shared}/other"}).body.splitlines()
        tried = server.call("lock", {"path": f"{shared}/toolcage/running"}).body.splitlines()
    assert control[0] == "locked"
    assert tried[0] == "Permission denied"
    assert control[1] == tried[1] != "locked"  # nothing in the root can be opened for writing
