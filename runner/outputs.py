"""Stored outputs: the whole of what was shortened or refused, in memory, for a while, behind handles.

Runs in the front. Holds redacted text only; never touches the disk, so that a crash leaves nothing. A handle is a right
to read: whoever has not been given it would have to guess 88 bits.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from runner import json_path, strict_json, visible
from sandbox.errors import Refused

URI_PREFIX = "toolcage://output/"
TEXT, JSON = "text/plain", "application/json"
_REMEMBERED = 256  # handles that are gone, kept to say why
_WHOLE_CHARS = 200_000  # of one resources/read answer; at most 800 kB of UTF-8, below every client's ceiling
_HANDLE = re.compile(r"out_([A-Za-z0-9_-]{24})")
_SESSION, _NUMBER, _PROOF = 3, 4, 11  # bytes of a handle
_AGAIN = "Call the tool again (narrowed, if you can) and read the new handle."
_COPY = "Use a handle exactly as it stands in a result of this session (out_...), or call the tool again."


class HandleRefused(Refused):
    """A handle that opens nothing. reason: "expired", "dropped", "gone", "other session", "forged" or "no handle"."""

    code = "handle_refused"

    def __init__(self, reason: str, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.reason = reason


class NoJson(Refused):
    """A path into an output that is no JSON document."""

    code = "argument_refused"


@dataclass(frozen=True, slots=True)
class Cut:
    """What to take of an output: of the part at `path`, or of the lines that contain `grep`, of the last `tail` lines,
    the characters [offset, offset + limit), and of those as many as fit into `room` bytes of a JSON string.
    """

    offset: int = 0
    limit: int = 8000
    grep: str | None = None
    tail: int | None = None
    path: str | None = None
    room: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Page:
    """Part of an output. Offsets and total in characters of what was asked for (after path, grep and tail).

    next_offset is None at the end.
    """

    handle: str
    text: str
    offset: int
    total: int
    next_offset: int | None
    path: str | None = None

    @property
    def end(self) -> bool:
        """Whether nothing follows."""
        return self.next_offset is None

    def shown(self) -> str:
        """The page as one text block, position in the first line."""
        stop = self.offset + len(self.text)
        more = "end" if self.next_offset is None else f"next offset {self.next_offset}"
        what = [self.handle, f"characters {self.offset}-{stop} of {self.total}", more]
        if self.path is not None:
            what.insert(1, visible.visible(self.path).replace("\n", "␊"))
        return " · ".join(what) + "\n" + self.text


@dataclass(frozen=True, slots=True)
class _Stored:
    text: str
    tool: str
    mime: str
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
        self._issued = 0
        self._session, self._key = secrets.token_bytes(_SESSION), secrets.token_bytes(32)
        self._lock = threading.Lock()  # large outputs are prepared on a thread

    def keep(self, text: str, tool: str, mime: str = TEXT) -> str:
        """Store redacted text; returns its handle. Of a text beyond the whole store only the first part is kept."""
        data = text.encode("utf-8", "replace")
        if len(data) > self._max_bytes:
            text = (
                data[: self._max_bytes].decode("utf-8", "ignore")
                + f"\n[{len(data) - self._max_bytes} bytes not kept]"
            )
        with self._lock:
            return self._store(text, tool, mime, min(len(data), self._max_bytes))

    def _store(self, text: str, tool: str, mime: str, size: int) -> str:
        cost = max(
            size, sys.getsizeof(text) - sys.getsizeof("")
        )  # one emoji makes every character four bytes here
        self._expire()
        while self._kept and (len(self._kept) >= self._max_items or self._bytes + cost > self._max_bytes):
            self._drop(next(iter(self._kept)), "dropped")
        self._issued += 1
        handle = self._handle(self._issued.to_bytes(_NUMBER))
        self._kept[handle] = _Stored(text, tool, mime, self._clock(), size, cost)
        self._bytes += cost
        return handle

    def read(self, handle: str, cut: Cut | None = None) -> Page:
        """A page. It never ends inside a placeholder. Raises HandleRefused, NoJson, json_path.JsonPathRefused."""
        cut = cut or Cut()
        text = self._find(handle).text
        if cut.path is not None:
            text = _at(text, cut.path)
        if cut.grep:
            text = "\n".join(line for line in text.split("\n") if cut.grep in line)
        if cut.tail is not None:
            text = "\n".join(text.rstrip("\n").split("\n")[-max(cut.tail, 0) :]) if cut.tail > 0 else ""
        start = min(max(cut.offset, 0), len(text))
        stop = start + fitting(text[start : start + max(cut.limit, 1)], cut.room)
        if stop < len(text):
            whole = visible.outside(text, stop)
            stop = whole if whole > start else stop
        return Page(handle, text[start:stop], start, len(text), None if stop >= len(text) else stop, cut.path)

    def whole(self, handle: str, room: int = 1 << 20) -> tuple[str, str]:
        """(the output for resources/read, its media type): all of it, or as many characters as fit into `room` bytes of a
        JSON string (at most 200,000) and a line that says so; that is no JSON any more.

        Raises HandleRefused.
        """
        kept = self._find(handle)
        stop = fitting(kept.text[:_WHOLE_CHARS], room - 200)
        if stop >= len(kept.text):
            return kept.text, kept.mime
        stop = visible.outside(kept.text, stop)
        more = f"[{len(kept.text) - stop} more characters: read_output(handle, offset={stop})]"
        return f"{kept.text[:stop]}\n{more}", TEXT

    def is_large(self, handle: object, size: int) -> bool:
        """Whether reading it takes long enough to be noticed: more than `size` bytes."""
        with self._lock:
            kept = self._kept.get(handle) if isinstance(handle, str) else None
        return kept is not None and kept.cost > size

    def listing(self) -> list[dict[str, object]]:
        """Entries of resources/list, newest first: {uri, name, mimeType, size in bytes}."""
        with self._lock:
            self._expire()
            kept_now = list(reversed(self._kept.items()))
        return [
            {
                "uri": URI_PREFIX + handle,
                "name": f"{kept.tool} output",
                "mimeType": kept.mime,
                "size": kept.size,
            }
            for handle, kept in kept_now
        ]

    # ---- handles -----------------------------------------------------------------------------------------------------

    def _handle(self, number: bytes) -> str:
        """A handle says which session issued it and proves that it did, so that one that is gone is told from a forged."""
        body = self._session + number
        proof = hashlib.blake2b(body, key=self._key, digest_size=_PROOF).digest()
        return "out_" + base64.urlsafe_b64encode(body + proof).decode()

    def _find(self, handle: str) -> _Stored:
        with self._lock:
            self._expire()
            kept = self._kept.get(handle)
        if kept is None:
            raise self._refusal(handle)
        return kept

    def _refusal(self, handle: str) -> HandleRefused:
        hit = _HANDLE.fullmatch(handle)
        if hit is None:
            return HandleRefused("no handle", "This is no handle: one is out_ and 24 more characters.", _COPY)
        body = base64.urlsafe_b64decode(hit[1])[: _SESSION + _NUMBER]
        if body[:_SESSION] != self._session:
            return HandleRefused(
                "other session",
                "This handle is of another session (another server process), or made up. Outputs end with their session.",
                _COPY,
            )
        if not hmac.compare_digest(self._handle(body[_SESSION:]), handle):
            return HandleRefused(
                "forged", "This handle was never issued: it is forged, or copied wrongly.", _COPY
            )
        match self._gone.get(handle):
            case "expired":
                text = f"This handle has expired: outputs are kept for {self._ttl:.0f} seconds."
                return HandleRefused("expired", text, _AGAIN)
            case "dropped":
                return HandleRefused(
                    "dropped", "This output was dropped to make room for newer ones.", _AGAIN
                )
            case _:
                return HandleRefused(
                    "gone", "This output is long gone: it expired or made room for newer ones.", _AGAIN
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


def fitting(text: str, room: int) -> int:
    """How many of the first characters fit into `room` bytes as the inside of a JSON string."""
    count = len(text)
    while count and (size := len(orjson.dumps(text[:count].encode("utf-8", "replace").decode())) - 2) > room:
        count = min(count - 1, count * max(room, 0) // size)
    return count


def _at(text: str, path: str) -> str:
    """The part of a JSON text at `path`, as JSON."""
    steps = json_path.parse(path)
    try:
        document = strict_json.parse(text.encode("utf-8", "replace"))
    except strict_json.NotJson as problem:
        raise NoJson(
            f"json_path needs an output that is one JSON document. This is none: {problem}",
            "leave json_path out; read it with offset and limit, grep or tail",
        ) from None
    return visible.escaped(orjson.dumps(json_path.select(document, steps)).decode())
