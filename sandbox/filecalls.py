"""The system calls that name a file: where the path stands among the arguments, and what is wanted of it.

Data only; for plans that report (front) and for the keeper of such a plan. From the manual pages of section 2.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """How a system call names files. `uses`: (kind, argument of the folder or None, argument of the path)."""

    uses: tuple[tuple[str, int | None, int], ...]
    flags: int | None = None


def _one(kind: str, flags: int | None = None) -> Shape:
    return Shape(((kind, None, 0),), flags)


def _at(kind: str, flags: int | None = None) -> Shape:
    return Shape(((kind, 0, 1),), flags)


CALLS = {
    "open": _one("open", 1),
    "openat": _at("open", 2),
    "openat2": _at("open2", 2),
    "creat": _one("creat"),
    "stat": _one("look"),
    "lstat": _one("look itself"),
    "newfstatat": _at("look", 3),
    "statx": _at("look", 2),
    "statfs": _one("look"),
    "access": _one("access", 1),
    "faccessat": _at("access", 2),
    "faccessat2": _at("access", 2),
    "readlink": _one("look itself"),
    "readlinkat": _at("look itself"),
    "chdir": _one("look"),
    "execve": _one("start"),
    "mkdir": _one("create"),
    "mkdirat": _at("create"),
    "symlink": Shape((("create", None, 1),)),
    "symlinkat": Shape((("create", 1, 2),)),
    "link": Shape((("look itself", None, 0), ("create", None, 1))),
    "linkat": Shape((("look itself", 0, 1), ("create", 2, 3))),
    "rename": Shape((("remove", None, 0), ("replace", None, 1))),
    "renameat": Shape((("remove", 0, 1), ("replace", 2, 3))),
    "renameat2": Shape((("remove", 0, 1), ("replace", 2, 3))),
    "rmdir": _one("remove"),
    "unlink": _one("remove"),
    "unlinkat": _at("remove"),
    "truncate": _one("write"),
    "chmod": _one("change"),
    "fchmodat": _at("change"),
    "utime": _one("change"),
    "utimes": _one("change"),
    "utimensat": _at("change", 3),
}
# The argument that may hold AT_EMPTY_PATH: a libc asks about open files in this way, very often, and names none.
MAY_BE_EMPTY = {"newfstatat": 3, "statx": 2}
