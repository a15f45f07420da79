"""Runs cases of the battery against a cage that may have been made weaker, and says what was seen."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.cli.verify import _LIMITS
from runner.prepare import compiled_filters
from runner.verify import Battery, Cage, planned
from runner.verify_site import Site, folder, python
from sandbox import host, ladder, planning, spawn, syscalls
from sandbox.battery import registry
from sandbox.battery.case import ESCAPED, Case, Verdict
from sandbox.plan import Plan
from sandbox.planning import Filters
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Profile

ROOT = os.geteuid() == 0
Weaken = Callable[[Plan, Site], Plan]
_PATH = spawn._START.split("; from sandbox.launcher", 1)[0]
_START = (
    "{}; from tests.live.weakened import main; main(int(sys.argv[2]), {!r})  # stands in for sandbox.launcher"
)


@contextmanager
def made_site() -> Iterator[Site]:
    """A site of its own, where `verify` would make it."""
    with (
        tempfile.TemporaryDirectory(prefix=f"toolcage-verify-{os.getpid()}-", dir=folder(())) as name,
        Site(Path(name).resolve()) as made,
    ):
        yield made


@contextmanager
def weak_launcher(hole: str) -> Iterator[None]:
    """Launchers that start meanwhile have this hole of `weakened.HOLES`; "" for none."""
    with pytest.MonkeyPatch.context() as patch:
        if hole:
            patch.setattr(spawn, "_START", _START.format(_PATH, hole))
        yield


@dataclass(frozen=True, slots=True)
class Seen:
    """What a weak cage showed: the step that refused to build it, or the verdicts."""

    step: str
    detail: str
    verdicts: tuple[Verdict, ...]

    @property
    def escaped(self) -> set[str]:
        """Ids of the cases that saw something."""
        return {verdict.case.id for verdict in self.verdicts if verdict.result == ESCAPED}

    def why(self, number: str) -> str:
        """What the case with that id says."""
        return next(verdict.why for verdict in self.verdicts if verdict.case.id == number)


def attack(
    site: Site, only: str = "", *, hole: str = "", weaken: Weaken | None = None, filters: Filters | None = None,
    processes: str = "none",
) -> Seen:  # fmt: skip
    """Cases (ids and groups, with commas) against the default cage with one hole: in the launcher, in the plan, or in the
    filters that the plan is made of.
    """
    cases = registry.chosen([only])
    with _launched(hole) as (supervisor, here):
        cage = _cage(site, here, compiled_filters(), processes)
        weak = _cage(site, here, filters or compiled_filters(), processes).plan
        cage = dataclasses.replace(cage, plan=weaken(weak, site) if weaken else weak)
        return asyncio.run(_attack(supervisor, site, cage, cases))


def _cage(site: Site, here: host.Host, filters: Filters, processes: str) -> Cage:
    command = (python(), "-I", "-S", "-c")
    profile = Profile("battery", command, str(site.root), limits=_LIMITS, processes=processes)
    return planned("battery", ("battery",), profile, planning.make(profile, here, filters, ladder.NAMES[-1]))


@contextmanager
def _launched(hole: str) -> Iterator[tuple[Supervisor, host.Host]]:
    with suppress(OSError):  # as `verify` does
        syscalls.join_new_session_keyring()
    with weak_launcher(hole):
        launcher = spawn.launcher()
    supervisor = Supervisor(launcher)
    try:
        yield supervisor, host.probe(launcher)
    finally:
        supervisor.close()
        os.waitpid(supervisor.launcher_pid, 0)


async def _attack(supervisor: Supervisor, site: Site, cage: Cage, cases: tuple[Case, ...]) -> Seen:
    battery = Battery(site, lambda _cage, _verdict: None)
    supervisor.register(battery.plans(cage, cases))
    supervisor.attach(asyncio.get_running_loop())
    outcome = await supervisor.run(Call(cage.plan.name, ("print('ran')",)))
    if outcome.step:
        assert not outcome.stdout, outcome
        return Seen(outcome.step, outcome.detail, ())
    return Seen("", "", tuple(await battery.run(supervisor, cage, cases)))
