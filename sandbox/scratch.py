"""Temporary folders on the host's disk, for hosts where a call cannot have a file system of its own. Runs in the launcher.

One folder per launcher, held by a lock: the next launcher removes what one that was killed has left. Removal
follows no link and needs no recursion, whatever a tool has built there. flock(2), unlinkat(2).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat

_PLACE = "/tmp"  # noqa: S108 - folders in it are new, private and of unguessable name
_PREFIX = "toolcage-scratch-"
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
        for folder in (path, f"{path}/home"):
            os.mkdir(folder, 0o700)
            if uid != os.geteuid():
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
        base = f"{_PLACE}/{_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
        os.mkdir(base, 0o711)
        self._lock = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._base = base


def sweep() -> None:
    """Remove folders of this user whose launcher is gone: nobody holds their lock."""
    for name in os.listdir(_PLACE):
        if not name.startswith(_PREFIX):
            continue
        with contextlib.suppress(OSError):
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
        elif depth >= _DEPTH:
            os.rename(name, f"moved-{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=top)
            moved = True
        else:
            moved |= _empty_below(folder, name, found, top, depth)
    return moved


def _empty_below(folder: int, name: str, found: os.stat_result, top: int, depth: int) -> bool:
    if found.st_mode & 0o700 != 0o700 and found.st_uid == os.geteuid():
        os.chmod(name, 0o700, dir_fd=folder)
    below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        moved = _empty(below, top, depth + 1)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=folder)
    return moved
