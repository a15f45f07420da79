"""The processes of a call: which they are, and how all of them are ended. Runs in the keeper; the launcher uses `end_orphans`.

In a pid namespace of its own the keeper is pid 1 and sees nothing else. Without one it is the reaper of everything
that its tool leaves behind (PR_SET_CHILD_SUBREAPER, prctl(2)), so that all of it stays below it in the host's /proc.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tree:
    """Where to look. `proc`: descriptor of a /proc; `top`: the keeper's name in it; `own`: that proc shows only the call."""

    proc: int
    top: str
    own: bool

    def names(self) -> list[str]:
        """Names in `proc` of all processes of the call but the keeper."""
        if self.own:
            return [name for name in os.listdir(self.proc) if name.isdigit() and name != self.top]
        return descend(self.proc, self.top)

    def end(self) -> dict[int, int]:
        """Kill and reap until the keeper is alone. Returns the wait status of each child, by pid."""
        statuses: dict[int, int] = {}
        if os.getpid() == 1:  # elsewhere -1 would be every process of this user
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        else:
            kill_below(self.proc, self.top)
        while True:
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return statuses
            statuses[pid] = status
            if os.getpid() != 1:  # a process that was forked meanwhile may have become ours
                kill_below(self.proc, self.top)


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
    """Stop, then kill, everything below `top` that is not below a child in `spare`.

    Stopped first, until nobody new is seen: whoever is stopped cannot fork.
    """
    seen: set[str] = set()
    while True:
        now = [name for name in children_of(proc, top) if name not in spare]
        now += [below for name in now for below in descend(proc, name)]
        fresh = set(now) - seen
        if not fresh:
            break
        for name in fresh:
            _signal(proc, name, {top, *now}, signal.SIGSTOP)
        seen |= fresh
    for name in seen:
        _signal(proc, name, {top, *seen}, signal.SIGKILL)


def end_orphans(workers: frozenset[str]) -> None:
    """Kill and reap every child of this process, with all below it, that is not one of `workers` (pids)."""
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        top = os.readlink("self", dir_fd=proc)
        while orphans := [name for name in children_of(proc, top) if name not in workers]:
            kill_below(proc, top, workers)
            for name in orphans:
                os.waitpid(int(name), 0)
    finally:
        os.close(proc)


def children_of(proc: int, name: str) -> list[str]:
    """Names of the direct children. Raises OSError when this kernel cannot say, or the process is gone."""
    found: list[str] = []
    for thread in _names(proc, f"{name}/task"):
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


def _names(proc: int, path: str) -> list[str]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def _signal(proc: int, name: str, parents: set[str], number: int) -> None:
    """Signal a process that is one of ours: its number may have become somebody else's since it was listed.

    The descriptor is taken first, then the parent is looked at: whoever has it is the one that gets the signal.
    """
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        pidfd = os.pidfd_open(int(name))
        try:
            if _parent(proc, name) in parents:
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)


def _parent(proc: int, name: str) -> str:
    descriptor = os.open(f"{name}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    try:
        line = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    return os.fsdecode(line[line.rindex(b")") + 2 :].split()[1])
