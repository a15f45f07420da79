"""Temporary folders on the host's disk, for hosts where a call cannot have a file system of its own. Runs in the launcher.

One folder per launcher, held by a lock: the next launcher removes what one that was killed has left. Removal
follows no link and needs no recursion, whatever a tool has built there. flock(2), unlinkat(2).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat

_PLACE = "/tmp"  # noqa: S108 - folders in it are new, private and of unguessable name
_PREFIX = "toolcage-scratch-"
_ATTEMPTS = 5
_DEPTH = 64  # deeper folders are moved up before they are emptied


class Scratch:
    """Folders `BASE/N`, one per worker. `base` is made when the first one is asked for."""

    def __init__(self) -> None:
        self._base = ""
        self._lock = -1

    def make(self, number: int, uid: int, gid: int) -> str:
        """A new empty folder with a home in it, for the worker's user alone. Raises OSError."""
        if not self._base:
            self._start()
        path = f"{self._base}/{number}"
        os.mkdir(path, 0o700)
        os.mkdir(f"{path}/home", 0o700)
        if uid != os.geteuid():
            for folder in (f"{path}/home", path):  # the outer one last: nobody else is in it before
                os.chown(folder, uid, gid)
        return path

    def remove(self, path: str) -> None:
        """Remove a worker's folder with all that is in it; its processes are gone."""
        with contextlib.suppress(OSError):
            remove_tree(path)

    def close(self) -> None:
        """Remove everything."""
        if self._base:
            self.remove(self._base)
            os.close(self._lock)
            self._base = ""

    def _start(self) -> None:
        sweep()
        for _ in range(_ATTEMPTS):
            base = f"{_PLACE}/{_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
            os.mkdir(base, 0o700)
            lock = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with contextlib.suppress(OSError):  # another launcher may sweep it before it is locked
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.fchmod(lock, 0o711)  # whatever the umask is: workers of other users pass through
                if os.path.samestat(os.fstat(lock), os.lstat(base)):
                    self._base, self._lock = base, lock
                    return
            os.close(lock)
        raise BlockingIOError(errno.EAGAIN, f"{_PLACE}: the folder is removed again and again")


def sweep() -> None:
    """Remove folders of this user whose launcher is gone: nobody holds their lock."""
    for name in os.listdir(_PLACE):
        if not name.startswith(_PREFIX):
            continue
        with contextlib.suppress(OSError):
            if os.lstat(f"{_PLACE}/{name}").st_uid != os.geteuid():
                continue  # not even opened: it may be a file system of somebody else
            folder = os.open(f"{_PLACE}/{name}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(folder).st_uid == os.geteuid():
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_tree(f"{_PLACE}/{name}")
            finally:
                os.close(folder)


def remove_tree(path: str) -> None:
    """Remove `path` and everything below. Raises OSError for what cannot be removed."""
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while _empty(top, top, 0):
            pass  # something deep was moved up and is emptied now
    finally:
        os.close(top)
    os.rmdir(path)


def _empty(folder: int, top: int, depth: int) -> bool:
    """Empty one folder. Returns True when a folder below was moved to the top instead of being emptied."""
    moved = False
    for name in os.listdir(folder):
        found = os.lstat(name, dir_fd=folder)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=folder)
            continue
        below = _open_up(folder, name)
        try:
            if depth >= _DEPTH:  # its own permission to write is needed, because ".." changes
                os.rename(name, f"moved-{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=top)
                moved = True
                continue
            moved |= _empty(below, top, depth + 1)
        finally:
            os.close(below)
        os.rmdir(name, dir_fd=folder)
    return moved


def _open_up(folder: int, name: str) -> int:
    """A descriptor of a folder that its owner may have closed. The mode is changed by descriptor: no link is followed."""
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    spot = os.open(name, os.O_PATH | flags, dir_fd=folder)
    try:
        if os.fstat(spot).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{spot}", 0o700)
        return os.open(".", os.O_RDONLY | flags, dir_fd=spot)
    finally:
        os.close(spot)
