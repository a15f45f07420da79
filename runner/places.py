"""Places of running calls: locks on one file that all servers of a user share. Runs in the front; decides nothing.

A running call holds one place, a waiting call one number of the queue, and each says with the length of its lock how
many MiB it may use. The kernel frees both when the descriptor is closed or its process dies, however it dies, so there
is no state to go stale and nothing to clean up. The file is empty and stays so: only its locks mean something.

Open file description locks, fcntl(2), Linux 3.15. Each call opens the file anew, because the locks belong to the
description: two calls of one process exclude each other like those of two.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Container

MAX_PLACES = 1024
STALE_SECONDS = 1.0  # a waiting call that is this late to give up does not run at all (stopped, frozen)
_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, pid
_STRIDE = 1 << 20  # bytes from one number to the next: more than a call can have MiB
_QUEUE = 1 << 20  # the first number of the queue; those below are places
_LAST = 1 << 42
_FILE = "running"
# Nobody may read it, its owner neither: a tool that runs under the same user sees the host read-only, so it can open
# the file in no way, and who cannot open it cannot lock it. The sticky bit tells tmpfiles cleaners to leave it alone,
# tmpfiles.d(5) and the XDG base directory specification.
_MODE = stat.S_ISVTX | stat.S_IWUSR


def folders(chosen: str | None, user: int) -> tuple[str, ...]:
    """Where the file may lie, best first. The folder's path follows from the user id alone, unless one is `chosen`.

    Not from XDG_RUNTIME_DIR: most clients start servers with a handful of variables, others pass all of them on, and
    both kinds have to meet. The name in /tmp is hidden because the folder stays there.
    """
    if chosen is not None:
        return (f"{chosen}/toolcage",)
    root = ("/run/toolcage",) if user == 0 else ()
    return (f"/run/user/{user}/toolcage", *root, f"/tmp/.toolcage-{user}")  # noqa: S108 - owner and mode are verified


def open_shared(candidates: tuple[str, ...]) -> int:
    """A descriptor of the file in the first folder that is ours alone; made if need be. Raises OSError."""
    problem: OSError = FileNotFoundError(errno.ENOENT, "no folder to try")
    for path in candidates:
        try:
            folder = _folder(path)
        except OSError as error:
            problem = error
            continue
        try:
            return os.open(
                _FILE, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE, dir_fd=folder
            )
        except OSError as error:
            problem = error
        finally:
            os.close(folder)
    raise problem


def _folder(path: str) -> int:
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        # not in a folder of somebody else, e.g. that of the user from whom sudo -E took its variables
        if os.stat(os.path.dirname(path)).st_uid not in (0, os.geteuid()):
            raise PermissionError(errno.EPERM, "the folder around it belongs to another user") from None
        with contextlib.suppress(FileExistsError):  # another server was faster
            os.mkdir(path, 0o700)
        descriptor = os.open(path, flags)
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "it belongs to, or is open to, another user")
    return descriptor


class Places:
    """One call's view of the file. `descriptor` is its own and closed with it. All methods raise OSError (ENOLCK)."""

    def __init__(self, descriptor: int) -> None:
        self._fd = descriptor
        self._place = -1
        self._number = -1

    def running(self) -> dict[int, int]:
        """The places that other calls hold: number -> MiB."""
        return self._held(0, MAX_PLACES)

    def waiting(self, longest: float) -> tuple[int, ...]:
        """MiB of every other call that waits, and came before this one if this one is in the queue.

        longest: seconds that anybody waits. Who has not given up by then does not run and is passed over.
        """
        oldest = _now() - int(1000 * (longest + STALE_SECONDS))
        last = self._number if self._number >= 0 else _LAST
        return tuple(self._held(max(oldest, _QUEUE), last).values())

    def take(self, memory_mb: int, running: Container[int]) -> bool:
        """Take a place that is not among the `running`; False when there is none.

        Whether there are too many now is the caller's to look at afterwards.
        """
        for place in range(MAX_PLACES):
            if place not in running and self._lock(place, memory_mb):
                self._place = place
                return True
        return False

    def give_back(self) -> None:
        """Free the place."""
        self._unlock(self._place)
        self._place = -1

    def queue(self, memory_mb: int) -> None:
        """Draw a number: the clock, which all processes of a machine share, in ms. clock_gettime(2), CLOCK_MONOTONIC."""
        number = _now()
        while not self._lock(number, memory_mb):
            number += 1  # drawn by another in the same millisecond
        self._number = number

    def leave_queue(self) -> None:
        """Give the number back."""
        self._unlock(self._number)
        self._number = -1

    def close(self) -> None:
        """The kernel frees what is still held."""
        os.close(self._fd)

    def _held(self, first: int, last: int) -> dict[int, int]:
        """What others hold from `first` to before `last`: number -> MiB. One question for each, and one for each gap.

        The answer is not of one moment. That is enough: who has locked before asking is seen by whoever asks later.
        """
        found: dict[int, int] = {}
        open_ends = [(first, last)]
        while open_ends:
            low, high = open_ends.pop()
            if low >= high:
                continue
            question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, low * _STRIDE, (high - low) * _STRIDE, 0)
            kind, _, start, length, _ = _FLOCK.unpack(fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, question))
            if kind != fcntl.F_UNLCK:
                number = start // _STRIDE
                found[number] = length
                open_ends += [(low, number), (number + 1, high)]
        return found

    def _lock(self, number: int, memory_mb: int) -> bool:
        try:
            self._set(fcntl.F_WRLCK, number, min(memory_mb, _STRIDE))
        except BlockingIOError:
            return False
        return True

    def _unlock(self, number: int) -> None:
        self._set(fcntl.F_UNLCK, number, _STRIDE)

    def _set(self, kind: int, number: int, length: int) -> None:
        fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, number * _STRIDE, length, 0))


def _now() -> int:
    return _QUEUE + time.monotonic_ns() // 1_000_000
