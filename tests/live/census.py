"""What a run of calls could leave behind, counted: processes, descriptors, mounts; and a mark that is seen outside."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import struct
import termios
from pathlib import Path
from typing import NamedTuple

import psutil

from sandbox.supervisor import Supervisor
from tests.live.test_death import until, workers

# Takes the byte out of the mark before it does anything else; then it is known outside that the program ran.
RAN = "read word < mark; echo ran"


class Mark:
    """A FIFO in the root folder. The cage may only read it, and reading is what is seen from outside."""

    def __init__(self, root: Path) -> None:
        path = root / "mark"
        if not path.exists():
            os.mkfifo(path, 0o644)
        self._fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def set(self) -> None:
        """One line in it."""
        while self.kept:
            os.read(self._fifo, 100)
        os.write(self._fifo, b"x\n")

    @property
    def kept(self) -> bool:
        """Whether nobody has read any of it."""
        (waiting,) = struct.unpack("i", fcntl.ioctl(self._fifo, termios.FIONREAD, b"\0" * 4))
        return bool(waiting == 2)

    def close(self) -> None:
        os.close(self._fifo)


class Census(NamedTuple):
    """Numbers of: descriptors of the front, of the launcher, processes below the launcher, mounts of the host."""

    front: int
    launcher: int
    workers: int
    mounts: int

    def over(self, before: Census) -> bool:
        """Whether there is more of anything, or not as many processes. Less is what another test gave back."""
        return self.workers != before.workers or any(now > was for now, was in zip(self, before, strict=True))


def census(launcher: int) -> Census:
    with open("/proc/self/mountinfo", "rb") as file:
        mounts = len(file.readlines())
    files = psutil.Process(launcher).num_fds()
    return Census(psutil.Process().num_fds(), files, len(workers(launcher)), mounts)


async def settled(launcher: int, wanted: Census) -> None:
    """Until there is no more than there was; what stays more than a moment is left behind."""
    try:
        await until(lambda: not census(launcher).over(wanted))
    except AssertionError:
        raise AssertionError(f"left behind: {census(launcher)}, it was {wanted}") from None


async def steady(supervisor: Supervisor, spare: int) -> Census:
    """The numbers when `spare` workers wait and nothing moves any more: twice the same."""
    pid = supervisor.launcher_pid
    gc.collect()  # what earlier tests have not given back yet
    await until(lambda: len(workers(pid)) == 2 * spare)
    await asyncio.gather(*(flight.proven for flight in supervisor._staged.values()))
    seen = [census(pid)]

    def again() -> bool:
        seen.append(census(pid))
        return seen[-1] == seen[-2]

    await until(again)
    return seen[-1]


def tagged(tag: str) -> list[int]:
    """Processes with `tag` among their words: a launcher that was started with it, its forks, and its tools."""
    found = []
    for name in os.listdir("/proc"):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b""
        except OSError:  # it has ended
            continue
        if tag.encode() in words:
            found.append(int(name))
    return found
