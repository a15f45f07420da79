"""Where this process stands in the host's cgroups, and one file of a cgroup at a time.

Runs in the launcher. Decides nothing: sandbox.division and sandbox.groups do. Everything goes by descriptors of folders,
so that a path that changes meanwhile changes nothing. proc_pid_mountinfo(5), cgroups(7).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

_ESCAPE = re.compile(rb"\\([0-7]{3})")
_LIMIT = 1 << 20  # bytes read of a file at most
_BEFORE_OPTIONAL = 6  # fields of mountinfo before the optional ones, which a lone "-" ends


@dataclass(frozen=True, slots=True)
class GroupMount:
    """One mount of a cgroup file system: `root` is the cgroup that is seen at the folder `point`. `controllers` holds
    the mount's options too, and is empty for v2.
    """

    root: str
    point: str
    controllers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Membership:
    """The cgroup of a process in one hierarchy; no controllers: the hierarchy of v2."""

    path: str
    controllers: frozenset[str] = frozenset()


def mounts(mountinfo: bytes) -> tuple[GroupMount, ...]:
    """The cgroup mounts among the lines of /proc/PID/mountinfo; lines that do not fit are left out."""
    found = []
    for line in mountinfo.split(b"\n"):
        fields = line.split(b" ")
        try:
            end = fields.index(b"-", _BEFORE_OPTIONAL)
            kind, _source, options = fields[end + 1 : end + 4]
        except ValueError:
            continue
        root, point = _unescaped(fields[3]), _unescaped(fields[4])
        if kind == b"cgroup2":
            found.append(GroupMount(root, point))
        elif kind == b"cgroup":
            found.append(GroupMount(root, point, _names(options)))
    return tuple(found)


def memberships(cgroup: bytes) -> tuple[Membership, ...]:
    """The lines "id:controllers:path" of /proc/PID/cgroup; lines that do not fit are left out."""
    found = []
    for line in cgroup.split(b"\n"):
        fields = line.split(b":", 2)
        if len(fields) == 3 and fields[2].startswith(b"/"):
            found.append(Membership(os.fsdecode(fields[2]), _names(fields[1])))
    return tuple(found)


def folder_of(mount: GroupMount, path: str) -> str | None:
    """Where the cgroup `path` is seen below the mount; None when it is not. Both are as one process sees them."""
    root, parts = (re.findall(r"[^/]+", text) for text in (mount.root, path))
    if ".." in root or ".." in parts or parts[: len(root)] != root:
        return None  # ".." is a cgroup above the reader's cgroup namespace, whose names cannot be known
    return os.path.join(mount.point, *parts[len(root) :])


def open_own(where: Membership, among: Iterable[GroupMount]) -> int:
    """A descriptor of the folder of our own cgroup, proven by our pid in it. FileNotFoundError when there is none."""
    for mount in among:
        same = bool(mount.controllers) == bool(where.controllers) and where.controllers <= mount.controllers
        path = folder_of(mount, where.path) if same else None
        if path is None:
            continue
        try:
            folder = open_folder(path)
        except OSError:  # another mount hides this one, or the cgroup has been removed
            continue
        if os.getpid() in members(folder):
            return folder
        os.close(folder)
    raise FileNotFoundError(2, "it is not mounted here, or our own cgroup is not to be seen")


def open_folder(path: str, *, inside: int | None = None) -> int:
    """A descriptor of a folder, below the folder `inside` when given."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, dir_fd=inside)


def open_file(folder: int, name: str, flags: int = os.O_RDONLY) -> int:
    """A descriptor of one file of the cgroup. OSError names the file."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as problem:
        raise OSError(problem.errno, f"{name}: {problem.strerror}") from None


def read(folder: int, name: str) -> bytes:
    """The content of one file of the cgroup, up to 1 MiB; b"" when there is no such file."""
    try:
        descriptor = open_file(folder, name)
    except FileNotFoundError:
        return b""
    try:
        return read_all(descriptor)
    finally:
        os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """What is left in a descriptor, up to 1 MiB."""
    data = bytearray()
    while len(data) < _LIMIT and (chunk := os.read(descriptor, 1 << 16)):
        data += chunk
    return bytes(data)


def write(folder: int, name: str, text: bytes) -> None:
    """Write one file of the cgroup, in one write(2). OSError names the file."""
    descriptor = open_file(folder, name, os.O_WRONLY)
    try:
        os.write(descriptor, text)
    except OSError as problem:
        words = text.decode("ascii", "replace")
        raise OSError(problem.errno, f"{name}: {words} was refused: {problem.strerror}") from None
    finally:
        os.close(descriptor)


def members(folder: int) -> list[int]:
    """Processes in a cgroup, as numbered in our pid namespace; 0 for one that lives outside of it."""
    return [int(word) for word in read(folder, "cgroup.procs").split()]


def kept(descriptor: int, undo: ExitStack) -> int:
    """The descriptor, which `undo` closes."""
    undo.callback(os.close, descriptor)
    return descriptor


def gone(folder: int, name: str) -> bool:
    """Remove one cgroup; False when the kernel still finds something in it."""
    try:
        os.rmdir(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def end(folder: int, name: str) -> None:
    """Kill all processes of one cgroup: cgroup.kill (v2, Linux 5.14), else one by one. Never ourselves."""
    with contextlib.suppress(OSError), ExitStack() as held:
        group = kept(open_folder(name, inside=folder), held)
        found = members(group)
        if os.getpid() in found:
            return
        try:
            write(group, "cgroup.kill", b"1")
        except FileNotFoundError:
            for pid in found:
                _kill(pid, group)


def _kill(pid: int, group: int) -> None:
    with contextlib.suppress(OSError), ExitStack() as held:
        pidfd = kept(os.pidfd_open(pid), held)
        if pid in members(group):  # else its number belongs to somebody else by now
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def _names(text: bytes) -> frozenset[str]:
    return frozenset(os.fsdecode(text).split(",")) - {""}


def _unescaped(text: bytes) -> str:
    return os.fsdecode(_ESCAPE.sub(lambda found: bytes([int(found[1], 8) & 0xFF]), text))
