"""The cgroups of the calls: a place for them is found once, each call gets a leaf, and all is undone at the end.

Runs in the launcher. Whether a place is good is found out by doing: the launcher goes into a leaf itself and comes back;
what fails half-way is undone and the next place is tried. In each hierarchy:

    base                          a cgroup that is ours to divide (sandbox.division)
    ├─ toolcage-front-PID         v2: front and launcher, when they had to leave the base
    └─ toolcage-PID               of one launcher, locked while it lives, no swap
       └─ toolcage-call-NUMBER    the processes of one tool, with its limits

Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst, cgroup-v1/pids.rst.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from contextlib import ExitStack

from sandbox import cgroupfs, division
from sandbox.division import CALL, Hierarchy
from sandbox.steps.cgroup import SPARE_PROCESSES, Cgroup, Counters, Leaf, Version

# Written into every leaf before a process enters: (file, what, whether it must exist).
_LIMITS = {
    "v2": (("memory.max", "memory", True), ("memory.oom.group", "1", False), ("pids.max", "pids", True)),
    # memory.memsw bounds memory and swap together, and may not be lower than memory: it comes second
    "v1": (
        ("memory.limit_in_bytes", "memory", True),
        ("memory.memsw.limit_in_bytes", "memory", False),
        ("pids.max", "pids", True),
    ),
}
# Written once above the leaves, which inherit it: no swap, and a tool over its limit is killed instead of stopped.
_ABOVE = {
    "v2": (("memory.swap.max", "0"),),
    "v1": (("memory.swappiness", "0"), ("memory.oom_control", "0")),
}
# The fields of Counters.
_COUNTERS = {
    "v2": {
        "out_of_memory": "memory.events",
        "processes_refused": "pids.events",
        "memory_peak": "memory.peak",
        "processes_peak": "pids.peak",
        "cpu": "cpu.stat",
    },
    "v1": {
        "out_of_memory": "memory.oom_control",
        "processes_refused": "pids.events",
        "memory_peak": "memory.max_usage_in_bytes",
        "processes_peak": "pids.peak",
        "cpu": "cpuacct.usage",
    },
}
# (version, way, whether its failure is worth telling: the others are for special cases)
_WAYS: tuple[tuple[Version, Callable[[int, ExitStack], tuple[Hierarchy, ...]], bool], ...] = (
    ("v2", division.v2_beside, False),
    ("v2", division.v2_own, True),
    ("v2", division.v2_parent, False),
    ("v1", division.v1, True),
)


_TROUBLE = frozenset(
    (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EIO, errno.EINTR, errno.ENOSPC)
)


class Groups:
    """`kind`: which version is used. `why`: what stands against the better ones, empty for v2."""

    def __init__(self, kind: Version, why: str, hierarchies: tuple[Hierarchy, ...] = ()) -> None:
        self.kind: Version = kind
        self.why = why
        self.undo = ExitStack()
        self._hierarchies = hierarchies
        self._left: list[str] = []

    def leaf(self, number: int, wanted: Cgroup) -> Leaf | None:
        """Make the cgroup of one call, its limits set; None when there are no cgroups and none are planned. The caller
        closes its descriptors once the worker has them. OSError when a limit cannot be set: then there is no leaf.
        """
        if wanted.version != self.kind:
            raise PermissionError(1, f"planned is cgroup {wanted.version}, this host gives {self.kind}")
        if self.kind == "none":
            return None
        name, found, so_far = f"{CALL}{number}", dict[str, int](), ExitStack()
        with so_far:
            procs = tuple(self._make(one, name, wanted, found, so_far) for one in self._hierarchies)
            limits = (found.pop(_LIMITS[self.kind][0][0]), found.pop("pids.max"))
            counters = {field: found.get(file, -1) for field, file in _COUNTERS[self.kind].items()}
            so_far.pop_all()
            self._left = [left for left in self._left if left != name]
            return Leaf(number, procs, limits, Counters(**counters))

    def remove(self, leaf: Leaf | None) -> None:
        """Remove a call's cgroup, when all its processes are dead; what the kernel still holds is tried again later."""
        if leaf is not None:
            self._left.append(f"{CALL}{leaf.number}")
        self._left = [name for name in self._left if not self._gone(name)]

    def kill(self, leaf: Leaf) -> None:
        """Kill every process in a call's cgroup: in v2 at once, in v1 one by one."""
        for one in self._hierarchies:
            cgroupfs.end(one.top, f"{CALL}{leaf.number}")

    def close(self) -> None:
        """Kill what still runs, remove all cgroups, take everything back that was changed. The end of this object."""
        self.undo.close()

    def prepare(self) -> None:
        """What holds for all leaves; then the proof that a process can go in and is limited."""
        for one in self._hierarchies:
            for file, text in _ABOVE[self.kind]:
                if _is_of(file, one):
                    _set(one.top, file, text, needed=False)
        wanted = Cgroup(self.kind, 1 << 30, 1024)
        leaf = self.leaf(0, wanted)
        if leaf is None:
            raise AssertionError("only called when there are cgroups")
        try:
            wanted.enter(leaf.procs)
            wanted.prove(leaf, os.getpid())
            leaf.counters.read()
        finally:
            for one in self._hierarchies:
                os.write(one.home, b"0")
            leaf.close()
            self.remove(leaf)

    def _make(self, one: Hierarchy, name: str, wanted: Cgroup, found: dict[str, int], undo: ExitStack) -> int:
        """A leaf in one hierarchy. Adds the descriptors of its files to `found`; returns that of its cgroup.procs."""
        if not cgroupfs.gone(one.top, name):  # it counts since it was made, so an old one is not taken again
            raise BlockingIOError(errno.EBUSY, f"{name} is still in use")
        os.mkdir(name, 0o755, dir_fd=one.top)
        undo.callback(cgroupfs.gone, one.top, name)
        values = {"memory": str(wanted.memory_bytes), "pids": str(wanted.processes + SPARE_PROCESSES)}
        with ExitStack() as here:
            folder = cgroupfs.kept(cgroupfs.open_folder(name, inside=one.top), here)
            for file, what, needed in _LIMITS[self.kind]:
                if _is_of(file, one):
                    _set(folder, file, values.get(what, what), needed=needed)
            for file in (_LIMITS[self.kind][0][0], "pids.max", *_COUNTERS[self.kind].values()):
                if _is_of(file, one):
                    with contextlib.suppress(FileNotFoundError):
                        found[file] = cgroupfs.kept(cgroupfs.open_file(folder, file), undo)
            return cgroupfs.kept(cgroupfs.open_file(folder, "cgroup.procs", os.O_RDWR), undo)

    def _gone(self, name: str) -> bool:
        left = [one for one in self._hierarchies if not cgroupfs.gone(one.top, name)]
        for one in left:
            cgroupfs.end(one.top, name)
        return not left


def find(front: int) -> Groups:
    """Find a place and prepare it: v2 in a cgroup that was given to us, else v1 as root, else none, with the reasons.

    `front` is the pid of the process that started the launcher. Takes milliseconds: the kernel waits when a process
    moves. Both processes may be in other cgroups afterwards, until `close`. Raises OSError for trouble of the moment,
    which must not make a weaker host of this one.
    """
    reasons: list[str] = []
    for version, way, told in _WAYS:
        with ExitStack() as undo:
            try:
                hierarchies = way(front, undo)
                found = Groups(version, "" if version == "v2" else "; ".join(reasons), hierarchies)
                found.prepare()
            except OSError as problem:
                if problem.errno in _TROUBLE:
                    raise
                if told:
                    reasons.append(f"cgroup {version}: {_reason(problem, version)}")
                continue
            found.undo = undo.pop_all()
            return found
    return Groups("none", "; ".join(reasons))


def _reason(problem: OSError, version: Version) -> str:
    if version != "v2" or problem.errno not in (errno.EPERM, errno.EACCES):
        return str(problem.strerror)
    user = "" if os.geteuid() == 0 else "--user "
    remedy = f"start Toolcage in a cgroup of its own, with systemd-run {user}--scope -p Delegate=yes COMMAND"
    return f"{problem.strerror}; {remedy}"


def _is_of(file: str, one: Hierarchy) -> bool:
    """The name of a cgroup file begins with its controller."""
    return file.partition(".")[0] in one.controllers


def _set(folder: int, file: str, text: str, *, needed: bool) -> None:
    try:
        cgroupfs.write(folder, file, text.encode())
    except FileNotFoundError:  # this kernel, or its configuration, does not have it
        if needed:
            raise
