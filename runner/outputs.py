"""Stored outputs: the whole of what was shortened, in memory, for a while, behind handles that cannot be guessed.

Runs in the front. Holds redacted text only; never touches the disk. A handle is a right to read: 144 random bits.
"""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from runner import visible
from sandbox.errors import Refused

URI_PREFIX = "toolcage://output/"
_REMEMBERED = 256  # handles that are gone, kept to say why
_WHOLE_CHARS = 200_000  # of one resources/read answer; at most 800 kB of UTF-8, below every client's ceiling


class HandleRefused(Refused):
    """A handle that opens nothing: expired, dropped to make room, or never issued by this process."""

    code = "handle_refused"


@dataclass(frozen=True, slots=True)
class Page:
    """Part of an output. Offsets and total in characters of what was asked for (after grep and tail).

    next_offset is None at the end.
    """

    handle: str
    text: str
    offset: int
    total: int
    next_offset: int | None

    @property
    def end(self) -> bool:
        """Whether nothing follows."""
        return self.next_offset is None

    def shown(self) -> str:
        """The page as one text block, position in the first line."""
        stop = self.offset + len(self.text)
        more = "end" if self.next_offset is None else f"next offset {self.next_offset}"
        return f"{self.handle} · characters {self.offset}-{stop} of {self.total} · {more}\n{self.text}"


@dataclass(frozen=True, slots=True)
class _Stored:
    text: str
    tool: str
    born: float
    size: int  # UTF-8 bytes, as clients see it
    cost: int  # bytes of memory


class Outputs:
    """The store. max_bytes: UTF-8 bytes of all texts; max_items: texts; ttl_seconds: life of a handle.

    The oldest output makes room. `clock` gives monotonic seconds.
    """

    def __init__(
        self,
        max_bytes: int = 32 * 1024 * 1024,
        max_items: int = 64,
        ttl_seconds: float = 900.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_bytes, self._max_items = max_bytes, max_items
        self._ttl, self._clock = ttl_seconds, clock
        self._kept: OrderedDict[str, _Stored] = OrderedDict()
        self._gone: OrderedDict[str, str] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()  # large outputs are prepared on a thread

    def keep(self, text: str, tool: str) -> str:
        """Store redacted text; returns its handle. Of a text beyond the whole store only the first part is kept."""
        data = text.encode("utf-8", "replace")
        if len(data) > self._max_bytes:
            text = (
                data[: self._max_bytes].decode("utf-8", "ignore")
                + f"\n[{len(data) - self._max_bytes} bytes not kept]"
            )
        with self._lock:
            return self._store(text, tool, min(len(data), self._max_bytes))

    def _store(self, text: str, tool: str, size: int) -> str:
        cost = max(
            size, sys.getsizeof(text) - sys.getsizeof("")
        )  # one emoji makes every character four bytes here
        self._expire()
        while self._kept and (len(self._kept) >= self._max_items or self._bytes + cost > self._max_bytes):
            self._drop(next(iter(self._kept)), "dropped")
        handle = "out_" + secrets.token_urlsafe(18)
        self._kept[handle] = _Stored(text, tool, self._clock(), size, cost)
        self._bytes += cost
        return handle

    def read(
        self,
        handle: str,
        offset: int = 0,
        limit: int = 8000,
        grep: str | None = None,
        tail: int | None = None,
    ) -> Page:
        """Characters [offset, offset + limit) of the output, of its lines that contain `grep`, of its last `tail` lines.

        Raises HandleRefused. A page never ends inside a placeholder.
        """
        text = self._find(handle).text
        if grep:
            text = "\n".join(line for line in text.split("\n") if grep in line)
        if tail is not None:
            text = "\n".join(text.rstrip("\n").split("\n")[-max(tail, 0) :]) if tail > 0 else ""
        start = min(max(offset, 0), len(text))
        stop = min(start + max(limit, 1), len(text))
        if stop < len(text):
            whole = visible.outside(text, stop)
            stop = whole if whole > start else stop
        return Page(handle, text[start:stop], start, len(text), None if stop >= len(text) else stop)

    def whole(self, handle: str) -> str:
        """The output for resources/read: all of it, or its first 200,000 characters and a line that says so.

        Raises HandleRefused.
        """
        text = self._find(handle).text
        if len(text) <= _WHOLE_CHARS:
            return text
        stop = visible.outside(text, _WHOLE_CHARS)
        return f"{text[:stop]}\n[{len(text) - stop} more characters: read_output(handle, offset={stop})]"

    def listing(self) -> list[dict[str, object]]:
        """Entries of resources/list, newest first: {uri, name, mimeType, size in bytes}."""
        with self._lock:
            self._expire()
            kept_now = list(reversed(self._kept.items()))
        return [
            {
                "uri": URI_PREFIX + handle,
                "name": f"{kept.tool} output",
                "mimeType": "text/plain",
                "size": kept.size,
            }
            for handle, kept in kept_now
        ]

    def _find(self, handle: str) -> _Stored:
        with self._lock:
            self._expire()
            kept = self._kept.get(handle)
        if kept is not None:
            return kept
        again = "Call the tool again (narrowed, if you can) and read the new handle."
        match self._gone.get(handle):
            case "expired":
                raise HandleRefused(
                    f"This handle has expired: outputs are kept for {self._ttl:.0f} seconds.", again
                )
            case "dropped":
                raise HandleRefused("This output was dropped to make room for newer ones.", again)
            case _:
                raise HandleRefused(
                    "This handle is unknown: it was not issued by this server process, or it is long gone.",
                    "Use a handle exactly as it stands in a result's first line (out_...), or call the tool again.",
                )

    def _expire(self) -> None:
        oldest = self._clock() - self._ttl
        while self._kept and next(iter(self._kept.values())).born <= oldest:
            self._drop(next(iter(self._kept)), "expired")

    def _drop(self, handle: str, reason: str) -> None:
        self._bytes -= self._kept.pop(handle).cost
        self._gone[handle] = reason
        while len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)
