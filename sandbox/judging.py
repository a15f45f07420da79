"""What will become of a tool's use of a file, told beforehand and for a report only: the kernel decides, whatever is said here.

Runs in the keeper, which has the tool's own file system and user. It looks with lstat, readlink, access and statfs, within
bounds; it opens nothing and changes nothing. A path is text of the tool, which may name something else a moment later.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from sandbox import abi
from sandbox.filecalls import CALLS
from sandbox.plan import Plan

_MAX_LOOKS = 256  # names and links of one path; no honest one has so many
_SELF = ("/proc/self", "/proc/thread-self")


class Asking(Protocol):
    """The process that makes the call."""

    @property
    def pid(self) -> int: ...
    def text(self, address: int) -> str | None: ...
    def number(self, address: int) -> int: ...
    def folder(self, descriptor: int) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Found:
    """Where a path leads. `state` is None where the look at `path` ended with errno `code`.

    last   only the last name is missing.
    magic  it goes on through a link of /proc that is no path.
    """

    path: str
    state: os.stat_result | None
    code: int = 0
    last: bool = False
    magic: bool = False


class Lent:
    """What a plan lends, as prefixes of resolved paths; `scratch` as in sandbox.worker.Place. Made before the keeper's filter."""

    def __init__(self, plan: Plan, scratch: str) -> None:
        rules = plan.landlock.moved(scratch) if scratch else plan.landlock
        self._bounded = rules.version > 0
        self._write = _prefixes((*rules.write, *rules.devices))
        self._execute = _prefixes(rules.execute)
        self._read = _prefixes((*rules.read, *rules.write, *rules.devices, *rules.execute))
        # What is missing in a lent folder is missing on the host as well: nothing was refused.
        trees = [mount.target for mount in plan.mounts.mounts if mount.kind == "tree"]
        self._whole = _prefixes(trees if plan.in_namespaces else ("/",))

    def refused(self, name: str, arguments: tuple[int, ...], asking: Asking) -> tuple[str, str, str] | None:
        """(path, operation, why) of the first use in the call `name` that will not be had, or None."""
        shape = CALLS[name]
        flags = 0 if shape.flags is None else arguments[shape.flags]
        for kind, folder, at in shape.uses:
            if arguments[at] == 0:  # utimensat of an open file
                continue
            operation = "look" if kind == "look itself" else _OPERATIONS.get(kind, kind)
            text = asking.text(arguments[at])
            if text is None:
                return "", operation, "unreadable"
            path = _absolute(text, folder, arguments, asking)
            if path:
                found = self._use(kind, path, flags, asking)
                if found:
                    shown = found[0].replace(f"/proc/{asking.pid}/", "/proc/self/", 1)
                    return shown, *found[1:]
        return None

    def _use(self, kind: str, path: str, flags: int, asking: Asking) -> tuple[str, str, str] | None:
        if kind in ("open", "open2", "creat"):
            if kind == "open2":
                flags = asking.number(flags)
            elif kind == "creat":
                flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
            found = find(path, asking.pid, follow=not flags & os.O_NOFOLLOW)
            operation, why = self._open(found, flags)
        else:
            itself = kind in ("look itself", "create", "remove", "replace")
            if kind in ("look", "change"):
                itself = bool(flags & abi.AT_SYMLINK_NOFOLLOW)
            found = find(path, asking.pid, follow=not itself)
            operation, why = _OPERATIONS.get(kind, "look"), self._other(kind, found, flags)
        return (found.path, operation, why) if why and not found.magic else None

    def _open(self, found: Found, flags: int) -> tuple[str, str]:
        if flags & os.O_PATH:
            return "look", self._missing(found)
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC))
        if found.state is None:
            if flags & os.O_CREAT and found.last:
                return "create", self._placed(found)
            return "write" if writes else "read", self._missing(found)
        if stat.S_ISLNK(found.state.st_mode):  # with O_NOFOLLOW
            return "read", ""
        if not writes:
            return "read", self._read_it(found)
        exists = flags & os.O_CREAT and flags & os.O_EXCL
        folder = stat.S_ISDIR(found.state.st_mode) and flags & os.O_TMPFILE != os.O_TMPFILE
        return "write", "" if exists or folder else self._written(found.path)

    def _other(self, kind: str, found: Found, flags: int) -> str:
        match kind:
            case "access":
                return _asked(found, flags) if found.state else self._missing(found)
            case "start":
                return self._missing(found) or self._started(found)
            case "write":
                return self._written(found.path) if found.state else self._missing(found)
            case "change":
                return self._changeable(found.path) if found.state else self._missing(found)
            case "remove":
                return self._placed(found) if found.state else self._removed_none(found)
            case "create":
                return "" if found.state else self._placed(found) if found.last else self._missing(found)
            case "replace":
                return self._placed(found) if found.state or found.last else self._missing(found)
            case _:
                return self._missing(found)

    def _missing(self, found: Found) -> str:
        if found.state is not None:
            return ""
        if found.code == errno.EACCES:
            return "permission"
        absent = found.code in (errno.ENOENT, errno.ENOTDIR) and not _beneath(found.path, self._whole)
        return "missing" if absent else ""

    def _read_it(self, found: Found) -> str:
        if self._bounded and not _beneath(found.path, self._read):
            return "not-lent"
        return "" if os.access(found.path, os.R_OK) else "permission"

    def _changeable(self, path: str) -> str:
        """Landlock's list and the mount have to agree: a read-only tree may be mounted in a folder that may be written."""
        free = _beneath(path, self._write) and not _mount_flags(path) & os.ST_RDONLY
        return "" if free else "read-only"

    def _written(self, path: str) -> str:
        return self._changeable(path) or ("" if os.access(path, os.W_OK) else "permission")

    def _placed(self, found: Found) -> str:
        return self._written(os.path.dirname(found.path)) if found.path != "/" else "read-only"

    def _removed_none(self, found: Found) -> str:
        """A read-only mount refuses before the kernel looks for the name, a rule of Landlock after it."""
        if not found.last:
            return self._missing(found)
        return "read-only" if _mount_flags(os.path.dirname(found.path)) & os.ST_RDONLY else ""

    def _started(self, found: Found) -> str:
        if found.state is None or stat.S_ISDIR(found.state.st_mode):
            return ""
        if self._bounded and not _beneath(found.path, self._execute):
            return "not-a-program"
        if _mount_flags(found.path) & os.ST_NOEXEC:
            return "not-a-program"
        return "" if os.access(found.path, os.X_OK) else "permission"


_OPERATIONS = {
    "open": "read",
    "open2": "read",
    "creat": "create",
    "write": "write",
    "create": "create",
    "replace": "create",
    "remove": "remove",
    "change": "change",
    "start": "start",
    "look itself": "look",
    "access": "look",
}


def find(path: str, pid: int, *, follow: bool) -> Found:
    """Follow `path`, absolute, as the kernel does for process `pid`. ELOOP after too many names and links."""
    place, waiting = "", _names(path)
    state: os.stat_result | None = None
    for _ in range(_MAX_LOOKS):
        if not waiting:
            state, code = (state, 0) if state else _look(place or "/")
            return Found(place or "/", state, code)
        name = waiting.pop()
        if name == "..":
            place, state = place.rpartition("/")[0], None
            continue
        here = f"{place}/{name}" if f"{place}/{name}" not in _SELF else f"/proc/{pid}"
        state, code = _look(here)
        if state is None:
            last = not waiting and code == errno.ENOENT
            return Found("/".join([here, *waiting[::-1]]), None, code, last=last)
        if not stat.S_ISLNK(state.st_mode) or not (follow or waiting):
            place = here
        elif here.startswith("/proc/"):
            return Found(here, state, magic=True)
        else:
            target = os.readlink(here)
            place, state = "" if target.startswith("/") else place, None
            waiting += _names(target)
    return Found(path, None, errno.ELOOP)


def _names(path: str) -> list[str]:
    """The names of a path, the first at the end."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _look(path: str) -> tuple[os.stat_result | None, int]:
    try:
        return os.lstat(path), 0
    except OSError as problem:
        return None, problem.errno or errno.EIO
    except ValueError:  # a NUL, which no path of the tool has
        return None, errno.EINVAL


def _absolute(text: str, folder: int | None, arguments: tuple[int, ...], asking: Asking) -> str:
    """`text` below the folder that it is relative to; "" where nothing is named, or the folder is not known."""
    if not text or text.startswith("/"):
        return text
    base = asking.folder(abi.AT_FDCWD if folder is None else arguments[folder])
    return f"{base}/{text}" if base and base.startswith("/") else ""


def _asked(found: Found, mode: int) -> str:
    """access(2): Landlock has no part in it."""
    if os.access(found.path, mode & 7):
        return ""
    return "read-only" if mode & os.W_OK and _mount_flags(found.path) & os.ST_RDONLY else "permission"


def _mount_flags(path: str) -> int:
    """Of the mount that holds `path`. A device can be written to wherever its node lies."""
    try:
        flags = os.statvfs(path).f_flag
        return flags & ~os.ST_RDONLY if stat.S_ISCHR(os.stat(path).st_mode) else flags
    except OSError:
        return 0


def _prefixes(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple({os.path.realpath(path).rstrip("/") + "/" for path in paths})


def _beneath(path: str, prefixes: tuple[str, ...]) -> bool:
    return (path + "/").startswith(prefixes)
