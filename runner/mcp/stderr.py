"""Log lines to stderr that can never hold the server up. Front process; never writes to any other descriptor.

Many clients do not drain stderr: a full pipe (64 KiB) has stopped whole servers. So a line is written at once or dropped.
"""

from __future__ import annotations

import contextlib
import os
import select
from typing import Final

from runner.mcp.stdio import reopen_nonblocking

MAX_LINE_BYTES: Final = (
    select.PIPE_BUF
)  # 4,096 on Linux: a write of this size to a pipe is whole or not at all, pipe(7)


class QuietStderr:
    """One-line messages to a descriptor (2 unless told). `dropped` counts the lines that were lost."""

    def __init__(self, fd: int = 2) -> None:
        self.dropped = 0
        self._fd = fd
        self._own: int | None = None
        with contextlib.suppress(OSError):  # closed: every line is dropped
            self._own = reopen_nonblocking(fd, os.O_WRONLY)

    def line(self, text: str) -> bool:
        """Writes text and a newline, at most 4,096 bytes in all; whatever could break or forge a line becomes "?".

        False when the line was dropped: the reader is slow or gone.
        """
        safe = "".join(char if char.isprintable() else "?" for char in text)
        data = safe.encode(errors="replace")[: MAX_LINE_BYTES - 1]
        data = data.decode(errors="ignore").encode() + b"\n"  # not in the middle of a character
        try:
            is_written = self._write(data)
        except OSError:  # EAGAIN: full; EPIPE, EBADF, EIO: gone
            is_written = False
        self.dropped += not is_written
        return is_written

    def close(self) -> None:
        """Closes our own description; the descriptor given stays open. Lines after this are written the slow way."""
        if self._own is not None:
            os.close(self._own)
            self._own = None

    def _write(self, data: bytes) -> bool:
        if self._own is not None:
            os.write(self._own, data)
            return True
        # The description is shared, so its flags are not ours to change: ask first. A pipe or socket that is ready has
        # room for PIPE_BUF bytes; a regular file is always ready.
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        if not any(events & select.POLLOUT for _, events in poll.poll(0)):
            return False
        os.write(self._fd, data)
        return True
