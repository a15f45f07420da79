"""Whoever dies, nothing is left: the launcher, the front, the keeper. And what the client is told then."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sandbox.supervisor import Supervisor
from sandbox.types import Call, Outcome
from tests.live.cage import Cage, cage, said

SLEEPER = "import os, time\nif os.fork() == 0: os.setsid()\ntime.sleep(60)"
GONE_WITHIN = 1.0


def workers(launcher: int) -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process(launcher).children(recursive=True)
    return found


async def until(condition: object, seconds: float = 5.0) -> None:
    """Wait for a condition by asking often; no fixed sleeps."""
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)


def gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


async def running(supervisor: Supervisor) -> tuple[asyncio.Task[Outcome], list[psutil.Process]]:
    """A call in flight: keeper and two tool processes exist."""
    task = asyncio.ensure_future(supervisor.run(Call("python", (SLEEPER,))))
    await until(lambda: len(workers(supervisor.launcher_pid)) == 3)
    return task, workers(supervisor.launcher_pid)


def cancelling_kills_the_whole_tree(many: Cage) -> None:
    """In any cage whose tool may start processes."""

    async def work(supervisor: Supervisor) -> None:
        task, processes = await running(supervisor)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert gone(processes)

    many.run(work)
    assert said(many.call("python", "print('next')")) == "next"


def test_cancelling_kills_the_whole_tree(many: Cage) -> None:
    cancelling_kills_the_whole_tree(many)


def test_a_killed_keeper_is_unknown_and_takes_all_with_it(many: Cage) -> None:
    async def work(supervisor: Supervisor) -> Outcome:
        task, processes = await running(supervisor)
        next(p for p in processes if p.ppid() == supervisor.launcher_pid).kill()
        outcome = await task
        assert gone(processes)
        return outcome

    outcome = many.run(work)
    assert outcome.kind == "unknown"
    assert "before you repeat" in outcome.detail
    assert said(many.call("python", "print('next')")) == "next"


def test_a_killed_launcher_is_unknown_and_takes_all_with_it(place: Path) -> None:
    with cage(place / "root", processes="any") as made:

        async def work(supervisor: Supervisor) -> Outcome:
            task, processes = await running(supervisor)
            os.kill(supervisor.launcher_pid, signal.SIGKILL)
            outcome = await task
            await until(lambda: gone(processes), GONE_WITHIN)
            later = await supervisor.run(Call("python", ("pass",)))
            assert later.kind == "setup_failed"
            return outcome

        assert made.run(work).kind == "unknown"


FRONT = """\
import asyncio, sys
from pathlib import Path
from tests.live.cage import cage
from sandbox.types import Call
with cage(Path(sys.argv[1]), processes="any") as made:
    print(made.supervisor.launcher_pid, flush=True)
    made.call("python", sys.argv[2])
"""


def test_a_killed_front_takes_launcher_and_workers_with_it(place: Path) -> None:
    front = subprocess.Popen(
        [sys.executable, "-c", FRONT, str(place / "root"), SLEEPER], stdout=subprocess.PIPE, text=True
    )
    with front:
        assert front.stdout is not None
        launcher = psutil.Process(int(front.stdout.readline()))
        asyncio.run(until(lambda: len(launcher.children(recursive=True)) == 3))
        processes = [launcher, *launcher.children(recursive=True)]
        front.kill()
        asyncio.run(until(lambda: gone(processes), GONE_WITHIN))


def test_forty_calls_at_once(many: Cage) -> None:
    async def work(supervisor: Supervisor) -> list[Outcome]:
        calls = [supervisor.run(Call("python", (f"print({n})",))) for n in range(40)]
        return list(await asyncio.gather(*calls))

    outcomes = many.run(work)
    assert [said(outcome) for outcome in outcomes] == [str(n) for n in range(40)]


def test_descriptors_do_not_leak(many: Cage) -> None:
    front, launcher = psutil.Process(), psutil.Process(many.supervisor.launcher_pid)
    many.call("python", "pass")
    before = front.num_fds(), launcher.num_fds()
    for _ in range(20):
        many.call("python", "pass")
    many.call("python", "pass", cwd="nowhere")
    assert (front.num_fds(), launcher.num_fds()) == before
