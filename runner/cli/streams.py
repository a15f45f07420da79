"""The three standard streams of a command: there when it begins, written out when it ends.

dup2(2), null(4). A stream that the caller has closed is opened for the other direction, so that its use fails as it would
have (EBADF) and no file or socket of ours gets its number; stderr leads nowhere then.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys

_NULL = "/dev/null"
# What writing to or reading from a standard stream may meet that is nobody's bug.
_OF_STREAMS = frozenset((errno.EBADF, errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EISDIR))


def complete() -> None:
    """Open what the caller has closed. To be called before anything else opens a descriptor."""
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(_NULL, flags)  # the lowest free number, which is this one
    sys.stdin = sys.stdin or open(0, closefd=False, encoding="utf-8")  # noqa: SIM115 - as long as the process
    sys.stdout = sys.stdout or open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False, encoding="utf-8")  # noqa: SIM115


def is_of_a_stream(problem: OSError) -> bool:
    """Whether a standard stream could not be used: no path is named, and the reason is one of the caller's."""
    return problem.filename is None and problem.errno in _OF_STREAMS


def abandon() -> None:
    """After a failed write: what is still in the buffer goes nowhere, and the interpreter's end says nothing of it."""
    nowhere = os.open(_NULL, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
