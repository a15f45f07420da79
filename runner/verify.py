"""Runs the escape battery against cages: the site outside, the controls, the attempts. Used by `toolcage verify`.

Front side. Attempts run in workers made by the same path as a call. Nothing outside the site's own folder is changed,
listeners are on loopback, and no signal but the harmless 0 is sent.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sandbox.battery import case as verdicts
from sandbox.battery.case import Case, Verdict
from sandbox.plan import SYSTEM, Plan
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Kind, Outcome, Profile

_AT_ONCE = 3
_CONTROL_SECONDS = 60.0
_MEMORY_MB = 2048
_OUTPUT = 200
FIXED_VARIABLES = ("HOME", "LANG", "NO_COLOR", "PAGER", "PATH", "TERM", "TMPDIR", "TZ")


def python() -> str:
    """A Python for the attempts: one of the system where there is one, since every user can read it."""
    return os.path.abspath(shutil.which("python3", path="/usr/bin:/bin") or sys.executable)


@dataclass(frozen=True, slots=True)
class Cage:
    """A distinct cage and the plans that it stands for. The profile, not the plan, says what is expected of it."""

    name: str
    stands_for: tuple[str, ...]
    profile: Profile
    plan: Plan


def group(profiles: Iterable[Profile]) -> list[tuple[Profile, tuple[str, ...]]]:
    """Profiles with the probing Python as their program; those that differ only in name and program are one."""
    command = (python(), "-I", "-S", "-c")
    found: dict[Profile, list[str]] = {}
    for profile in profiles:
        same = dataclasses.replace(profile, name="", command=command)
        found.setdefault(same, []).append(profile.name)
    return [(dataclasses.replace(profile, name=names[0]), tuple(names)) for profile, names in found.items()]


class Site(ExitStack):
    """What the attempts aim at: a folder with a root, files outside it, a TCP port and an abstract socket."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.root = folder / "root"
        folder.chmod(0o755)
        for name in ("root", "scratch"):
            (folder / name).mkdir(exist_ok=True)
        (folder / "outside.txt").write_text("outside\n", "utf-8")
        self._port = self.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        self._abstract = f"\0toolcage-verify-{os.getpid()}-{self._port}"
        listener = self.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(self._abstract)
        listener.listen(64)

    def facts(self, profile: Profile, *, inside: bool) -> dict[str, object]:
        """Values for the names in attempts. Outside, the root folder is the site's own."""
        limits = profile.limits
        return {
            "outside": str(self.folder / "outside.txt"),
            "mark": str(self.folder / "mark"),
            "scratch": str(self.folder / "scratch"),
            "temp": "/tmp" if inside else str(self.folder / "scratch"),  # noqa: S108
            "root": (profile.root_at or profile.root) if inside else str(self.root),
            "home": _of_home(profile),
            "source": os.path.abspath(__file__),
            "port": self._port,
            "abstract": self._abstract,
            "front": os.getpid(),
            "hostname": socket.gethostname(),
            "variables": (*FIXED_VARIABLES, *(name for name, _ in profile.environment)),
            "memory_mb": limits.memory_mb,
            "file_mb": limits.file_mb,
            "open_files": limits.open_files,
            "output_mb": limits.output_mb,
        }


class Battery:
    """Cases against cages on one site. `tell` hears of each verdict as it is found."""

    def __init__(self, site: Site, tell: Callable[[Cage, Verdict], None]) -> None:
        self._site, self._tell = site, tell
        self._controls: dict[str, asyncio.Future[str]] = {}
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def run(self, supervisor: Supervisor, cage: Cage, cases: Iterable[Case]) -> list[Verdict]:
        """All verdicts, in the order of the cases."""
        return list(await asyncio.gather(*(self._one(supervisor, cage, case) for case in cases)))

    async def _one(self, supervisor: Supervisor, cage: Cage, case: Case) -> Verdict:
        verdict = verdicts.missing(case, has(cage.profile, self._site.folder))
        if verdict is None:
            async with self._free:
                verdict = await self._attempt(supervisor, cage, case)
        self._tell(cage, verdict)
        return verdict

    async def _attempt(self, supervisor: Supervisor, cage: Cage, case: Case) -> Verdict:
        facts = self._site.facts(cage.profile, inside=True)
        inside = answer(await supervisor.run(Call(cage.plan.name, (case.program(facts),))))
        touched = ", ".join(str(facts[name]) for name in case.untouched if os.path.lexists(str(facts[name])))
        outside = await self._control(case.outside(self._site.facts(cage.profile, inside=False)))
        return verdicts.judge(case, inside, outside, root=os.geteuid() == 0, touched=touched)

    async def _control(self, program: str) -> str:
        """The same program's answer outside, found once."""
        if program not in self._controls:
            self._controls[program] = asyncio.ensure_future(control(program))
        return await self._controls[program]


async def control(program: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a program as a plain child of this process and read its answer."""
    process = await asyncio.create_subprocess_exec(
        python(), "-I", "-S", "-c", program,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env=dict(environment or {"TOOLCAGE_CANARY": "1"}),
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _CONTROL_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return "no answer in time"
    if process.returncode and process.returncode < 0:
        return f"KILLED {-process.returncode}"
    return _last(output) or f"no answer, exit code {process.returncode}"


def answer(outcome: Outcome) -> str:
    """What an attempt in a worker came to, in one line."""
    if outcome.kind is Kind.SIGNALLED:
        return f"KILLED {outcome.signal}"
    if outcome.kind is Kind.EXITED and outcome.exit_code == 0:
        return _last(outcome.stdout) or "no answer"
    if outcome.kind is Kind.EXITED:
        return f"exit code {outcome.exit_code}: {_last(outcome.stderr)}"
    return f"ENDED {outcome.kind}" + (f": {outcome.detail}" if outcome.detail else "")


def has(profile: Profile, folder: Path) -> frozenset[str]:
    """Which of the needs of cases this cage and machine meet."""
    met = {
        "x86": platform.machine() == "x86_64",
        "alone": profile.processes == "none",
        "no_pairs": not profile.socket_pairs,
        "apart": not _lent(str(folder), profile),
        "home": bool(_of_home(profile)),
        "source": not _lent(__file__, profile, *SYSTEM, sys.prefix if python() == sys.executable else "/usr"),
        "small": profile.limits.memory_mb <= _MEMORY_MB,
    }
    return frozenset(need for need, is_met in met.items() if is_met)


def _lent(path: str, profile: Profile, *more: str) -> bool:
    """Whether the profile's folders hold `path`."""
    real = os.path.realpath(path)
    places = (profile.root, profile.root_at or profile.root, *profile.read_only, *more)
    return any(os.path.commonpath((real, place)) == place for place in places)


def _of_home(profile: Profile) -> tuple[str, ...]:
    """Paths in the home folder that no folder of the profile lies in, and none holds."""
    home = os.path.realpath(os.path.expanduser("~"))
    try:
        paths = [os.path.join(home, name) for name in os.listdir(home)]
    except OSError:
        return ()
    lent = (
        profile.root,
        profile.root_at or profile.root,
        *profile.read_only,
        python(),
        os.path.realpath(sys.prefix),
    )
    return tuple(
        path
        for path in sorted(paths)[:64]
        if not _lent(path, profile) and not any(os.path.commonpath((path, place)) == path for place in lent)
    )


def _last(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_OUTPUT] if lines else ""
