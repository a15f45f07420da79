"""Runs programs in real cages, and the same programs outside as a control."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.prepare import compiled_filters
from sandbox import host, planning, spawn
from sandbox.ladder import DEFAULT_FLOOR
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Limits, Outcome, Profile

# A Python that every user can read; the one that runs the tests may live in a private home folder.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or ""
ROOT = os.geteuid() == 0
LIMITS = Limits(wall_seconds=10, cpu_seconds=5, memory_mb=256, processes=32)


class Cage:
    """A launcher with some plans, and a loop to call them in."""

    def __init__(self, profiles: list[Profile], floor: str = DEFAULT_FLOOR) -> None:
        launcher = spawn.launcher()
        self.host, filters = host.probe(launcher), compiled_filters()
        self.plans = {profile.name: planning.make(profile, self.host, filters, floor) for profile in profiles}
        self.supervisor = Supervisor(launcher)
        self.supervisor.register(self.plans.values())
        self._runner = asyncio.Runner()
        self._runner.run(self._attach())

    def call(self, name: str = "python", *argv: str, stdin: bytes = b"", cwd: str = ".") -> Outcome:
        """One call, to its end."""
        return self._runner.run(self.supervisor.run(Call(name, argv, stdin, cwd)))

    def run(self, work: Callable[[Supervisor], Any]) -> Any:
        """`work(supervisor)` is a coroutine; runs it in the cage's loop."""
        return self._runner.run(work(self.supervisor))

    def close(self) -> None:
        """End the launcher and wait until it is gone."""
        self.supervisor.close()
        self._runner.close()
        os.waitpid(self.supervisor.launcher_pid, 0)

    async def _attach(self) -> None:
        self.supervisor.attach(asyncio.get_running_loop())


@contextmanager
def cage(
    root: Path,
    *profiles: Profile,
    limits: Limits = LIMITS,
    processes: str = "none",
    floor: str = DEFAULT_FLOOR,
) -> Iterator[Cage]:
    """A cage with the plan "python" (isolated system Python, `-c CODE` follows) and the given ones."""
    python = Profile("python", (PYTHON, "-I", "-S", "-c"), str(root), limits=limits, processes=processes)
    made = Cage([python, *profiles], floor)
    try:
        yield made
    finally:
        made.close()


PROBE = """\
import errno
try:
{body}
    print("WORKED")
except OSError as e:
    print("BLOCKED", errno.errorcode.get(e.errno, e.errno))
"""


def probe(body: str) -> str:
    """A program that says whether `body` worked, or which errno stopped it."""
    return PROBE.format(body="\n".join("    " + line for line in body.splitlines()))


def outside(code: str, *, env: dict[str, str] | None = None) -> str:
    """The control: the same program, same user, no cage."""
    done = subprocess.run(
        [PYTHON, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=30, check=False, env=env
    )
    assert not done.stderr, done.stderr
    return done.stdout.strip()


def said(outcome: Outcome) -> str:
    """What the program printed; fails with the whole outcome when it did not end by itself."""
    assert (outcome.kind, outcome.exit_code) == ("exited", 0), (outcome, outcome.stderr[-2000:])
    return outcome.stdout.decode().strip()
