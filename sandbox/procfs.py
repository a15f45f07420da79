"""One look into a /proc that is held by a descriptor: names, a small file, the pid inside. Runs in keeper and launcher.

Descriptors, because paths would lead to another /proc after pivot_root, and to none at all later.
"""

from __future__ import annotations

import os

_CHUNK = 8192  # more than any file that is read here, but for a list of children


def names(proc: int, path: str) -> list[str]:
    """The names in a folder. Raises OSError."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def read(proc: int, path: str) -> bytes:
    """The first 8 KiB of a file. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    try:
        return os.read(descriptor, _CHUNK)
    finally:
        os.close(descriptor)


def inner_pid(status: bytes) -> int:
    """A process in its own pid namespace, whichever proc this is: the last number of NSpid, 0 without one.

    proc_pid_status(5).
    """
    found = status.partition(b"\nNSpid:")[2].split(b"\n", 1)[0].split()
    return int(found[-1]) if found else 0
