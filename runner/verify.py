"""Runs the escape battery against cages: attempts in workers, controls outside, verdicts. Used by `toolcage verify`.

Front side. Attempts run in workers made by the same path as a call. Nothing outside the site's own folder is changed,
listeners are on loopback, and no signal but the harmless 0 is sent to a process that is not the battery's own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import platform
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from runner import verify_looks as looks
from runner.verify_site import Site, is_lent, lent, loader, of_home, python
from sandbox import abi, ladder, syscalls
from sandbox.battery import case as verdicts
from sandbox.battery import changed, program
from sandbox.battery.case import ABSENT, LENT, NOT_APPLICABLE, OF_THE_POLICY, Case, Verdict
from sandbox.errors import HostRefused
from sandbox.plan import Plan
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Profile

_AT_ONCE = 3
_SLEEPERS = 8  # attempts that only wait cost nothing
_WHILE_IT_RUNS = ("tool", "keeper", "cgroup")  # looks at a process that is there
_NET_SINCE, _IOCTL_SINCE = 4, 5  # versions of the Landlock ABI
NEWER_CALLS = {
    "file_setattr": 469, "listmount": 458, "memfd_secret": 447, "process_madvise": 440, "process_mrelease": 448,
    "quotactl_fd": 443, "setxattrat": 463, "statmount": 457,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cage:
    """A distinct cage and the plans that it stands for.

    profile, honest: what the policy asks for, and the plan that planning makes of it; they say what is expected.
    plan: the one that is attacked, which is `honest` unless a test has made it weaker.
    """

    name: str
    stands_for: tuple[str, ...]
    profile: Profile
    honest: Plan
    plan: Plan

    @property
    def rung(self) -> str:
        """The rung of the ladder on which it stands."""
        return self.honest.rung

    @property
    def absent(self) -> tuple[str, ...]:
        """Rungs whose layer it lacks, as far as cases expect something else there, the weakest first."""
        plan = self.honest
        lacks = {
            ladder.NO_NAMESPACES: not plan.in_namespaces,
            ladder.NO_LANDLOCK: plan.landlock.version == 0,
            ladder.NO_PROC: not plan.has_proc,
            ladder.ROOT_NAMESPACES: plan.identity.namespaces == "root",
        }
        return tuple(rung.name for rung, lacking in lacks.items() if lacking)


def planned(name: str, stands_for: tuple[str, ...], profile: Profile, plan: Plan) -> Cage:
    """A cage under its own name, with the probing Python as its program."""
    named = dataclasses.replace(plan, name=name, command=profile.command)
    return Cage(name, stands_for, profile, named, named)


def group(profiles: Iterable[Profile]) -> list[tuple[Profile, tuple[str, ...]]]:
    """Profiles with the probing Python as their program; those that differ only in name and program are one."""
    command = (python(), "-I", "-S", "-c")
    found: dict[Profile, list[str]] = {}
    for profile in profiles:
        same = dataclasses.replace(profile, name="", command=command)
        found.setdefault(same, []).append(profile.name)
    return [(dataclasses.replace(profile, name=names[0]), tuple(names)) for profile, names in found.items()]


class Battery:
    """Cases against cages on one site. `tell` hears of each verdict as it is found."""

    def __init__(self, site: Site, tell: Callable[[Cage, Verdict], None]) -> None:
        self._site, self._tell = site, tell
        self._controls: dict[tuple[str, str], asyncio.Future[str]] = {}
        self._met: dict[str, frozenset[str]] = {}
        self._known: dict[tuple[str, bool], dict[str, object]] = {}
        self._free, self._asleep = asyncio.Semaphore(_AT_ONCE), asyncio.Semaphore(_SLEEPERS)

    def share(self, cases: Iterable[Case], cages: Iterable[Cage]) -> list[tuple[Cage, tuple[Case, ...]]]:
        """Which cases attack which cage. One that a policy's choice excludes is left out where another cage meets it."""
        cases, cages = tuple(cases), tuple(cages)

        def lacks(cage: Cage, case: Case) -> bool:
            return not OF_THE_POLICY & set(case.needs) <= self._have(cage)

        anywhere = {case.id for case in cases if not all(lacks(cage, case) for cage in cages)}
        return [
            (cage, tuple(case for case in cases if not (lacks(cage, case) and case.id in anywhere)))
            for cage in cages
        ]

    def plans(self, cage: Cage, cases: Iterable[Case]) -> list[Plan]:
        """The plans that attacking a cage with these cases needs."""
        kinds = dict.fromkeys(("", *(case.cage for case in cases)))
        return [changed.change(cage.plan, kind, self._site.programs) for kind in kinds]

    async def try_out(self, supervisor: Supervisor, cage: Cage) -> None:
        """Raises HostRefused when not even a program that does nothing reaches its end in the cage."""
        found = looks.answer(await supervisor.run(Call(cage.plan.name, (program.framed("pass"),))))
        if found != "WORKED":
            raise HostRefused(
                f"{cage.name} (stands for {', '.join(cage.stands_for)}): no program runs in it: {found}",
                "run toolcage doctor, and see with `toolcage call` whether the policy's own tools run",
            )

    async def run(self, supervisor: Supervisor, cage: Cage, cases: Iterable[Case]) -> list[Verdict]:
        """All verdicts, in the order of the cases."""
        return list(await asyncio.gather(*(self._one(supervisor, cage, case) for case in cases)))

    async def _one(self, supervisor: Supervisor, cage: Cage, case: Case) -> Verdict:
        have = self._have(cage) | ({"call"} if all(number(name) >= 0 for name in case.calls) else set())
        verdict = verdicts.missing(case, have, cage.absent) or self._aim(cage, case)
        if verdict is None:
            async with self._asleep if case.cage == changed.BRIEF else self._free:
                verdict = await self._attempt(supervisor, cage, case)
        self._tell(cage, verdict)
        return verdict

    def _aim(self, cage: Cage, case: Case) -> Verdict | None:
        facts = self._facts(cage, case, inside=True)
        paths = [str(facts[aim[1:-1]]) if aim.startswith("{") else aim for aim in case.aims]
        if shown := [path for path in paths if is_lent(path, lent(cage.honest))]:
            return Verdict(case, NOT_APPLICABLE, f"{LENT}: {shown[0]}")
        if paths and not any(os.path.lexists(path) for path in paths):
            return Verdict(case, NOT_APPLICABLE, f"{ABSENT}: {', '.join(paths)}")
        return None

    async def _attempt(self, supervisor: Supervisor, cage: Cage, case: Case) -> Verdict:
        facts = self._facts(cage, case, inside=True)
        if case.earlier:
            await supervisor.run(Call(changed.name_of(cage.plan, case.cage), (case.before(facts),)))
        inside = await self._inside(supervisor, cage, case, case.inside(facts))
        touched = ", ".join(str(facts[name]) for name in case.untouched if os.path.lexists(str(facts[name])))
        outside = await self._control(case, case.outside(self._facts(cage, case, inside=False)))
        expected = case.expects(cage.absent)
        assert isinstance(expected, tuple), "what does not apply was sorted out before"  # noqa: S101
        return verdicts.judge(case, expected, inside, outside, touched)

    async def _inside(self, supervisor: Supervisor, cage: Cage, case: Case, text: str) -> str:
        """The answer of the attempt in a worker, and of the look at it from outside."""
        plan = changed.name_of(cage.plan, case.cage)
        word = f"toolcage-verify-{os.getpid()}-{plan.replace(' ', '-')}-{case.id};"
        call = Call(plan, (looks.marked(text, word),))
        if case.look in _WHILE_IT_RUNS:
            running = asyncio.ensure_future(supervisor.run(call))
            found = await looks.seen(word, case.look, running, bounding=cage.honest.privileges.bounding)
            running.cancel()
            await asyncio.wait((running,))
            return found
        before = looks.peak_mb()
        found = looks.answer(await supervisor.run(call))
        if case.look == "flat":
            return looks.flat(before, found)
        return looks.left(word) if case.look == "gone" and not found.startswith("BLOCKED") else found

    async def _control(self, case: Case, text: str) -> str:
        """The same program's answer outside, found once."""
        key = (text, case.look)
        if key not in self._controls:
            self._controls[key] = asyncio.ensure_future(self._run_control(case, text))
        return await self._controls[key]

    async def _run_control(self, case: Case, text: str) -> str:
        temp = str(self._site.folder / "scratch")
        if case.look not in ("gone", *_WHILE_IT_RUNS):
            return await looks.control(text, temp)
        word = f"toolcage-verify-{os.getpid()}-outside-{case.id};"
        text = looks.marked(text, word)
        if case.look == "gone":
            return await looks.control(text, temp, word=word)
        running = asyncio.ensure_future(looks.control(text, temp))
        found = await looks.seen(word, case.look, running, bounding=True)
        looks.left(word)
        await running
        return found

    def _have(self, cage: Cage) -> frozenset[str]:
        if cage.name not in self._met:
            self._met[cage.name] = has(cage, self._site)
        return self._met[cage.name]

    def _facts(self, cage: Cage, case: Case, *, inside: bool) -> dict[str, object]:
        key = (cage.name, inside)
        if key not in self._known:
            self._known[key] = self._site.facts(cage.profile, cage.honest, inside=inside)
        return {**self._known[key], **{f"sys_{name}": number(name) for name in case.calls}}


def number(name: str) -> int:
    """The number of a system call on this machine, negative when it has none."""
    import pyseccomp

    if name in NEWER_CALLS:
        return NEWER_CALLS[name]
    found: int = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    return abi.NUMBERS.get(name, abi.NEWER.get(name, -1)) if found < 0 else found


def has(cage: Cage, site: Site) -> frozenset[str]:
    """Which of the needs of cases this cage and machine meet, but for system calls, which are the case's own."""
    profile, version = cage.profile, _landlock()
    met = {
        "x86": platform.machine() == "x86_64",
        "alone": profile.processes == "none",
        "many": profile.processes != "none",
        "any": profile.processes == "any",
        "no_pairs": not profile.socket_pairs,
        "name": socket.gethostname() != cage.honest.mounts.hostname,
        "home": bool(of_home(lent(cage.honest))),
        "bounding": cage.honest.privileges.bounding,
        "own_count": not cage.honest.resources.shared,
        "five": profile.limits.processes >= 5,
        "cgroup": cage.honest.cgroup.version != "none",
        "own_root": Path(profile.root) == site.root,
        "root": os.geteuid() == 0,
        "user": os.geteuid() != 0,
        "starts": not os.statvfs(site.folder).f_flag & os.ST_NOEXEC,
        "bash": os.path.exists("/bin/bash"),
        "loader": bool(loader()),
        "landlock_net": version >= _NET_SINCE,
        "landlock_ioctl": version >= _IOCTL_SINCE,
        "landlock_scope": version >= abi.LANDLOCK_SCOPE_SINCE,
    }
    return frozenset(need for need, is_met in met.items() if is_met)


def _landlock() -> int:
    try:
        return syscalls.landlock_abi()
    except OSError:
        return 0
