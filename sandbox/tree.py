"""The processes of a call: which they are, and how all of them are ended. Runs in the keeper; the launcher uses `end_orphans`.

In a pid namespace of its own the keeper is pid 1 and sees nothing else. Without one it is the reaper of everything
that its tool leaves behind (PR_SET_CHILD_SUBREAPER, prctl(2)), and its Landlock domain lets it signal nobody outside.
Either way kill(-1) reaches all of a call in one moment, which no list of processes does: whoever is listed may have
forked, and its number may be somebody else's by then. kill(2), landlock(7).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass

from sandbox import procfs

_ORPHAN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Tree:
    """Where to look, and how far a signal goes.

    proc     descriptor of a /proc.
    top      the keeper's name in it.
    own      that proc shows only the call.
    bounded  kill(-1) reaches only the call: the keeper is pid 1 of its namespace, or has proven its domain.
    """

    proc: int
    top: str
    own: bool
    bounded: bool

    def names(self) -> list[str]:
        """Names in `proc` of all processes of the call but the keeper."""
        if self.own:
            return [name for name in os.listdir(self.proc) if name.isdigit() and name != self.top]
        return descend(self.proc, self.top)

    def end(self) -> dict[int, int]:
        """Kill and reap until the keeper is alone. Returns the wait status of each child, by pid."""
        statuses: dict[int, int] = {}
        while True:
            if self.bounded:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
            else:  # a tool that is one process
                kill_below(self.proc, self.top)
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return statuses
            statuses[pid] = status
            statuses.update(_reaped())


def cannot_signal(pid: int) -> bool:
    """Whether this process may not signal `pid`: asked with signal 0, which does nothing."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    return False


def _reaped() -> dict[int, int]:
    found: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            found[pid] = status
    return found


def descend(proc: int, top: str) -> list[str]:
    """Names of all processes below `top`, parents first: proc_pid_task_children(5), CONFIG_PROC_CHILDREN."""
    found: list[str] = []
    waiting = [top]
    while waiting:
        name = waiting.pop()
        children = _children(proc, name)
        found += children
        waiting += children
    return found


def kill_below(proc: int, top: str, spare: frozenset[str] = frozenset()) -> None:
    """Kill what is seen below `top`, but a child in `spare` and what is below that."""
    now = [name for name in children_of(proc, top) if name not in spare]
    parents = {top, *now}
    for name in now:
        below = descend(proc, name)
        now += below
        parents.update(below)
    for name in now:
        _kill(proc, name, parents)


def end_orphans(workers: frozenset[str]) -> None:
    """Kill and reap every child of this process, with all below it, that is not one of `workers` (pids).

    For what a keeper has left that was killed itself. Bounded in time: processes that multiply faster than they are
    seen must not hold the launcher.
    """
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    late = time.monotonic() + _ORPHAN_SECONDS
    try:
        top = os.readlink("self", dir_fd=proc)
        while orphans := [name for name in children_of(proc, top) if name not in workers]:
            if time.monotonic() > late:
                return
            kill_below(proc, top, workers)
            for name in orphans:
                os.waitpid(int(name), os.WNOHANG)
    finally:
        os.close(proc)


def children_of(proc: int, name: str) -> list[str]:
    """Names of the direct children. Raises OSError when this kernel cannot say, or the process is gone."""
    found: list[str] = []
    for thread in procfs.names(proc, f"{name}/task"):
        descriptor = os.open(f"{name}/task/{thread}/children", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
        try:
            text = b"".join(iter(lambda: os.read(descriptor, 1 << 14), b""))  # noqa: B023 - read at once
        finally:
            os.close(descriptor)
        found += [os.fsdecode(word) for word in text.split()]
    return found


def _children(proc: int, name: str) -> list[str]:
    try:
        return children_of(proc, name)
    except OSError:
        return []


def _kill(proc: int, name: str, parents: set[str]) -> None:
    """Kill a process that is one of ours: its number may have become somebody else's since it was listed.

    The descriptor is taken first, then the parent is looked at: whoever has it is the one that is killed.
    """
    with contextlib.suppress(ProcessLookupError, FileNotFoundError, PermissionError):
        pidfd = os.pidfd_open(int(name))
        try:
            if _parent(proc, name) in parents:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)


def _parent(proc: int, name: str) -> str:
    line = procfs.read(proc, f"{name}/stat")
    return os.fsdecode(line[line.rindex(b")") + 2 :].split()[1])
