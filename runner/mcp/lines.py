"""Bytes as they come, cut into lines. Pure; front process; never keeps more than one line of the allowed length."""

from __future__ import annotations

import enum
from typing import Final

# One message. mcp SDKs cap at 4 MiB (Python, HTTP) and 10 MiB (TypeScript), Codex at 8 MiB; what a client sends us are
# arguments of a command, which the kernel itself caps far below this.
MAX_LINE_BYTES: Final = 1_048_576


class Oversized(enum.Enum):
    """Stands for a line that was longer than the cap and was dropped as it came."""

    OVERSIZED = "oversized"


OVERSIZED: Final = Oversized.OVERSIZED


class Lines:
    """Incremental splitter at b"\\n" only: U+2028 and a lone carriage return may stand inside a JSON text.

    cap: longest line in bytes, newline excluded (a carriage return counts).
    """

    def __init__(self, cap: int = MAX_LINE_BYTES) -> None:
        self._cap = cap
        self._partial = bytearray()
        self._is_skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """The lines that end in `data`, without newline, in order. The rest is kept for the next call.

        What is left when the stream ends was cut off by someone and is no message; there is no way to ask for it.
        """
        lines: list[bytes | Oversized] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._keep(data[start:end])
            lines.append(OVERSIZED if self._is_skipping else bytes(self._partial))
            self._partial = bytearray()
            self._is_skipping = False
            start = end + 1
        self._keep(data[start:])
        return lines

    @property
    def held(self) -> int:
        """Bytes of the unfinished line in memory, at most the cap."""
        return len(self._partial)

    def _keep(self, piece: bytes) -> None:
        if self._is_skipping:
            return
        if len(self._partial) + len(piece) > self._cap:
            self._partial = bytearray()
            self._is_skipping = True
            return
        self._partial += piece
