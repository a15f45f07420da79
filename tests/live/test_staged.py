"""Workers that wait, caged, for the next call: used once, replaced, given up when unused, harmless when they die."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runner.prepare import compiled_filters
from sandbox import host, planning, spawn
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Outcome, Profile
from tests.live.cage import LIMITS, PYTHON, said
from tests.live.test_death import until, workers

PLANS = ("one", "two", "three")


class Staged:
    """A supervisor that may keep two workers, with three plans."""

    def __init__(self, root: Path) -> None:
        self.runner = asyncio.Runner()
        launcher = spawn.launcher()
        self.supervisor = Supervisor(launcher, spare=2)
        profiles = [Profile(name, (PYTHON, "-I", "-S", "-c"), str(root), limits=LIMITS) for name in PLANS]
        found, filters = host.probe(launcher), compiled_filters()
        self.supervisor.register([planning.make(profile, found, filters) for profile in profiles])
        self.runner.run(self._attach())

    async def _attach(self) -> None:
        self.supervisor.attach(asyncio.get_running_loop())

    def call(self, plan: str, code: str) -> Outcome:
        return self.runner.run(self.supervisor.run(Call(plan, (code,))))

    @property
    def keepers(self) -> list[psutil.Process]:
        found: list[psutil.Process] = psutil.Process(self.supervisor.launcher_pid).children()
        return found

    def settle(self, count: int) -> None:
        """Until `count` workers wait, keeper and tool each."""
        self.runner.run(until(lambda: len(workers(self.supervisor.launcher_pid)) == 2 * count))


@pytest.fixture
def staged(place: Path) -> Iterator[Staged]:
    made = Staged(place / "root")
    yield made
    made.supervisor.close()
    made.runner.close()
    os.waitpid(made.supervisor.launcher_pid, 0)


def test_a_call_takes_the_waiting_worker_and_another_one_is_made(staged: Staged) -> None:
    staged.runner.run(staged.supervisor.prove())
    staged.settle(1)
    waiting = staged.keepers[0].pid
    assert said(staged.call("one", "print('a')")) == "a"
    staged.settle(1)
    assert staged.keepers[0].pid != waiting


def test_no_two_calls_share_a_worker(staged: Staged) -> None:
    code = "import os\nprint(os.path.exists('/tmp/mark'))\nopen('/tmp/mark', 'w')"
    assert [said(staged.call("one", code)) for _ in range(3)] == ["False"] * 3


def test_the_longest_unused_one_gives_way(staged: Staged) -> None:
    for plan in PLANS:
        staged.call(plan, "pass")
    staged.settle(2)
    for plan in PLANS:
        assert said(staged.call(plan, "print('still')")) == "still"


def test_a_waiting_worker_that_dies_is_replaced(staged: Staged) -> None:
    staged.call("one", "pass")
    staged.settle(1)
    staged.keepers[0].kill()
    staged.settle(0)
    assert said(staged.call("one", "print('again')")) == "again"


def test_waiting_costs_no_time_of_the_call(staged: Staged) -> None:
    staged.call("one", "pass")
    staged.settle(1)
    outcome = staged.call("one", "print('x')")
    assert outcome.usage.wall_seconds < 5


def test_waiting_workers_end_with_the_launcher(staged: Staged) -> None:
    staged.call("one", "pass")
    staged.settle(1)
    processes = workers(staged.supervisor.launcher_pid)
    staged.supervisor.close()
    staged.runner.run(until(lambda: not any(p.is_running() and p.status() != "zombie" for p in processes)))


def test_proving_without_spares_leaves_nothing(place: Path) -> None:
    made = Staged(place / "root")
    made.supervisor._spare = 0
    made.runner.run(made.supervisor.prove())
    made.settle(0)
    made.supervisor.close()
    made.runner.close()
    os.waitpid(made.supervisor.launcher_pid, 0)
