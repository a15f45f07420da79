"""Dividing a cgroup that is ours to divide: where the calls' cgroups may stand, prepared, with every change undone later.

Runs in the launcher, at its start and its end. Each way raises OSError with a plain reason when it cannot be gone; what
it has changed by then is in the caller's `undo`, last change first. Nothing here changes a cgroup that holds processes
of others, and no limit of a cgroup that we were given.
Documentation/admin-guide/cgroup-v2.rst ("Delegation", "No Internal Process Constraint"); systemd CGROUP_DELEGATION.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time
from contextlib import ExitStack
from dataclasses import dataclass

from sandbox import cgroupfs

PREFIX = "toolcage-"
FRONT, CALL = f"{PREFIX}front-", f"{PREFIX}call-"
NEEDED = ("memory", "pids")
_OURS = re.compile(rf"{PREFIX}(front-)?[0-9]+(-[0-9a-f]+)?")
_MARKS = ("user.delegate", "trusted.delegate")  # extended attributes that systemd sets (since version 251)
_ATTEMPTS = 5  # beside another launcher that starts or ends at the same moment
_CLOSE_SECONDS = 1.0  # for processes that are dead but not yet gone


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One hierarchy: `top` is the folder of this launcher, `home` the cgroup.procs of where the launcher lives."""

    top: int
    home: int
    controllers: frozenset[str]


def v2_beside(_front: int, undo: ExitStack, needed: tuple[str, ...] = NEEDED) -> tuple[Hierarchy, ...]:
    """Beside the leaf that another launcher of the same front has made: the base is divided already."""
    own, path = _own_v2(undo)
    name = os.path.basename(path)
    if not name.startswith(FRONT):
        raise FileNotFoundError(2, "no other launcher has divided this cgroup")
    base = _parent(own, undo)
    undo.callback(_unmake_front, base, name)  # whoever ends last does it; it fails while the other one lives
    undo.callback(_take_back, base, (*needed, "cpu"))
    return _v2_hierarchy(base, own, undo, needed)


def v2_own(front: int, undo: ExitStack, needed: tuple[str, ...] = NEEDED) -> tuple[Hierarchy, ...]:
    """Our own cgroup, when nobody else is in it: front and launcher move into a leaf, because a cgroup that hands
    controllers down may hold no process itself. The kernel's root cgroup is free of that rule, so nothing moves there.
    """
    own, _ = _own_v2(undo)
    _must_offer(own, needed)
    home = own
    if cgroupfs.read(own, "cgroup.type"):
        mine = {front, os.getpid()}
        others = [pid for pid in cgroupfs.members(own) if pid not in mine]
        if others:
            raise PermissionError(1, f"other processes live in this cgroup ({_described(others)})")
        home = _move_out(own, undo)
    return _v2_hierarchy(own, home, undo, needed)


def v2_parent(_front: int, undo: ExitStack, needed: tuple[str, ...] = NEEDED) -> tuple[Hierarchy, ...]:
    """The parent of our own cgroup, when systemd has marked it as given to us and it is empty (DelegateSubgroup=)."""
    own, _ = _own_v2(undo)
    base = _parent(own, undo)
    if not any(_marked(base, name) for name in _MARKS) or cgroupfs.members(base):
        raise PermissionError(1, "the parent of this cgroup is not ours to divide")
    _must_offer(base, needed)
    return _v2_hierarchy(base, own, undo, needed)


def v1(_front: int, undo: ExitStack) -> tuple[Hierarchy, ...]:
    """Our own cgroup in the hierarchies of memory, pids and, when there is one, cpuacct. Only as root."""
    if os.geteuid() != 0:
        raise PermissionError(1, "only root can use it")
    mounts, where = _here()
    found = []
    for one in where:
        controllers = one.controllers & {*NEEDED, "cpuacct"}
        if not controllers:
            continue
        try:
            base = cgroupfs.kept(cgroupfs.open_own(one, mounts), undo)
            home = cgroupfs.kept(cgroupfs.open_file(base, "cgroup.procs", os.O_WRONLY), undo)
            sweep(base)
            found.append(Hierarchy(_make_top(base, undo), home, controllers))
        except OSError as problem:
            if controllers != {"cpuacct"}:  # it only counts
                raise OSError(problem.errno, f"{', '.join(controllers)}: {problem.strerror}") from None
    missing = set(NEEDED).difference(*(part.controllers for part in found))
    if missing:
        raise FileNotFoundError(2, f"not there: {', '.join(sorted(missing))}")
    return tuple(found)


def sweep(base: int) -> None:
    """Remove what launchers have left beside us that ended without closing. A folder that is in use stays."""
    for name in os.listdir(base):
        if _OURS.fullmatch(name) is None:
            continue
        try:
            folder = _lock(base, name)
        except OSError:
            continue
        for child in _calls(folder):
            cgroupfs.gone(folder, child)
        cgroupfs.gone(base, name)
        os.close(folder)


def _here() -> tuple[tuple[cgroupfs.GroupMount, ...], tuple[cgroupfs.Membership, ...]]:
    with open("/proc/self/mountinfo", "rb") as mounts, open("/proc/self/cgroup", "rb") as groups:
        return cgroupfs.mounts(mounts.read()), cgroupfs.memberships(groups.read())


def _own_v2(undo: ExitStack) -> tuple[int, str]:
    mounts, where = _here()
    for one in where:
        if not one.controllers:
            return cgroupfs.kept(cgroupfs.open_own(one, mounts), undo), one.path
    raise FileNotFoundError(2, "this kernel does not have it")


def _parent(own: int, undo: ExitStack) -> int:
    parent = cgroupfs.kept(cgroupfs.open_folder("..", inside=own), undo)
    if os.fstat(parent).st_dev != os.fstat(own).st_dev:
        raise FileNotFoundError(2, "our own cgroup is the highest that is to be seen")
    return parent


def _v2_hierarchy(base: int, home: int, undo: ExitStack, needed: tuple[str, ...]) -> tuple[Hierarchy, ...]:
    back = cgroupfs.kept(cgroupfs.open_file(home, "cgroup.procs", os.O_WRONLY), undo)
    sweep(base)
    for attempt in range(_ATTEMPTS):
        with ExitStack() as so_far:
            _hand_down(base, needed, so_far)
            top = _make_top(base, so_far)
            try:
                _hand_down(top, needed, ExitStack())  # from now on nobody can take them from the base
            except FileNotFoundError:  # somebody who is ending has just done it
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            undo.push(so_far.pop_all())
            return (Hierarchy(top, back, frozenset({*needed, "cpu"})),)
    raise AssertionError("the last attempt returns or raises")


def _hand_down(folder: int, needed: tuple[str, ...], undo: ExitStack) -> None:
    """Enable controllers for the children; cpu too when that works (it does not beside real-time processes)."""
    enabled = cgroupfs.read(folder, "cgroup.subtree_control").split()
    for name in (*needed, "cpu"):
        if name.encode() in enabled:
            continue
        try:
            cgroupfs.write(folder, "cgroup.subtree_control", b"+" + name.encode())
        except OSError:
            if name in needed:
                raise
        else:
            undo.callback(_take_back, folder, (name,))


def _take_back(folder: int, names: tuple[str, ...]) -> None:
    for name in names:
        with contextlib.suppress(OSError):  # EBUSY: another launcher beside us still uses it
            cgroupfs.write(folder, "cgroup.subtree_control", b"-" + name.encode())


def _must_offer(folder: int, needed: tuple[str, ...]) -> None:
    offered = cgroupfs.read(folder, "cgroup.controllers").split()
    missing = [name for name in needed if name.encode() not in offered]
    if missing:
        code = (
            errno.EPERM if cgroupfs.read(folder, "cgroup.type") else errno.ENOENT
        )  # somebody, or nobody, has them
        raise OSError(code, f"controllers that this cgroup does not have: {', '.join(missing)}")


def _move_out(own: int, undo: ExitStack) -> int:
    """Put the processes of `own`, which are front and launcher, into a leaf of it. Returns the leaf's folder."""
    name = f"{FRONT}{os.getpid()}"
    cgroupfs.gone(own, name)  # of an earlier launcher with our number
    _make(own, name)
    undo.callback(_unmake_front, own, name)
    leaf = cgroupfs.kept(cgroupfs.open_folder(name, inside=own), undo)
    for pid in cgroupfs.members(own):
        cgroupfs.write(leaf, "cgroup.procs", str(pid).encode())
    return leaf


def _unmake_front(base: int, name: str) -> None:
    with contextlib.suppress(OSError), ExitStack() as held:
        for pid in cgroupfs.members(cgroupfs.kept(cgroupfs.open_folder(name, inside=base), held)):
            with contextlib.suppress(OSError):
                cgroupfs.write(base, "cgroup.procs", str(pid).encode())
    cgroupfs.gone(base, name)


def _make_top(base: int, undo: ExitStack) -> int:
    """The folder of this launcher, locked: another launcher that starts beside us sees that somebody lives here."""
    # not the pid alone: launchers of several pid namespaces (containers) may stand beside each other
    name = f"{PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
    for _ in range(_ATTEMPTS):
        _make(base, name)
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # it was swept before it was locked
            top = _lock(base, name)
            undo.callback(_unmake_top, base, name, top)
            os.stat(name, dir_fd=base)
            return top
        time.sleep(0.001)
    raise BlockingIOError(errno.EAGAIN, f"{name} is removed again and again")


def _unmake_top(base: int, name: str, top: int) -> None:
    """Until everything is gone, or the time is over: then the next launcher sweeps."""
    late = time.monotonic() + _CLOSE_SECONDS
    while True:
        for child in _calls(top):
            if not cgroupfs.gone(top, child):
                cgroupfs.end(top, child)
        if cgroupfs.gone(base, name) or time.monotonic() > late:
            break
        time.sleep(0.002)
    os.close(top)


def _lock(base: int, name: str) -> int:
    """The folder, locked until its descriptor is closed. BlockingIOError when somebody else has locked it."""
    with ExitStack() as undo:
        folder = cgroupfs.kept(cgroupfs.open_folder(name, inside=base), undo)
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        undo.pop_all()
        return folder


def _make(folder: int, name: str) -> None:
    try:
        os.mkdir(name, 0o755, dir_fd=folder)
    except OSError as problem:
        raise OSError(problem.errno, f"no cgroup can be made: {problem.strerror}") from None


def _calls(top: int) -> list[str]:
    try:
        return [name for name in os.listdir(top) if name.startswith(CALL)]
    except OSError:
        return []


def _marked(folder: int, name: str) -> bool:
    try:
        return os.getxattr(folder, name) == b"1"
    except OSError:
        return False


def _described(pids: list[int]) -> str:
    """The first few, by number and name."""
    words = []
    for pid in pids[:3]:
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file,
        ):
            words.append(f"{pid} {file.read().strip()}")
    return ", ".join(words) or f"{len(pids)} of another pid namespace"
