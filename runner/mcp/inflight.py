"""The requests that wait for an answer, and the batches that collect answers. Bounded; front process; no I/O.

The invariant: a request is in `InFlight` from the event that announced it until its one answer or its cancellation.
Whatever comes after that finds nothing here, and so nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runner.mcp import jsonrpc
from runner.mcp.messages import Id, Request

# Clients send a handful at once; the front runs far fewer. Beyond the cap a request gets -32603 "too many requests in
# flight" and nothing about it is kept.
MAX_IN_FLIGHT = 1_000
# Lines of requests in flight, in bytes: parsed JSON takes up to 25 times the memory of its text.
MAX_BYTES_IN_FLIGHT = 4 * 1_048_576

MAX_BATCH_MEMBERS = 64
MAX_BATCHES = 16  # each may hold 63 finished answers while it waits for the 64th


@dataclass(slots=True)
class _Waiting:
    request: Request
    is_call: bool
    size: int = 0
    progress: float | None = None  # the last value sent


@dataclass(slots=True)
class _Batch:
    ids: set[Id] = field(default_factory=set)
    answers: list[bytes] = field(default_factory=list)
    waiting: int = 0
    is_read: bool = False  # all members were looked at


class InFlight:
    """What is in flight on one connection."""

    def __init__(self) -> None:
        self._waiting: dict[Id, _Waiting] = {}
        self._batches: dict[int, _Batch] = {}
        self._numbers = 0
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def next_number(self) -> int:
        """A number never given before."""
        self._numbers += 1
        return self._numbers

    def uses(self, id_: Id) -> bool:
        """Whether the client still expects an answer with this id, be it one held back by an unfinished batch."""
        return id_ in self._waiting or any(id_ in batch.ids for batch in self._batches.values())

    def admit(self, request: Request, *, is_call: bool, size: int = 0) -> None:
        """From now on the request waits. `size`: bytes of its line. Raises jsonrpc.RequestError (-32603): too many do."""
        if len(self._waiting) >= MAX_IN_FLIGHT:
            raise jsonrpc.RequestError(
                jsonrpc.INTERNAL_ERROR, f"too many requests in flight (at most {MAX_IN_FLIGHT})"
            )
        if self._bytes + size > MAX_BYTES_IN_FLIGHT and self._waiting:
            raise jsonrpc.RequestError(
                jsonrpc.INTERNAL_ERROR, f"too many bytes in flight (at most {MAX_BYTES_IN_FLIGHT})"
            )
        self._bytes += size
        self._waiting[request.id] = _Waiting(request, is_call, size)
        if request.batch is not None:
            batch = self._batches[request.batch]
            batch.waiting += 1
            batch.ids.add(request.id)

    def holds(self, request: Request) -> bool:
        """Whether this very request waits (not a later one with the same id)."""
        waiting = self._waiting.get(request.id)
        return waiting is not None and waiting.request == request

    def rises(self, request: Request, progress: float) -> bool:
        """Notes the progress of a waiting request; False when it does not wait or the value does not rise."""
        waiting = self._waiting.get(request.id)
        if waiting is None or waiting.request != request:
            return False
        if waiting.progress is not None and progress <= waiting.progress:
            return False
        waiting.progress = progress
        return True

    def settle(self, request: Request, answer: bytes) -> bytes:
        """Ends a waiting request. Returns what to write: the line, the whole batch, or b"" when that is not due."""
        self._bytes -= self._waiting.pop(request.id).size
        if request.batch is None:
            return answer + b"\n"
        batch = self._batches[request.batch]
        batch.answers.append(answer)
        batch.waiting -= 1
        return self._flush(request.batch)

    def cancel(self, id_: Id) -> tuple[Request, bool, bytes] | None:
        """Forgets a waiting request: (it, whether it is a tools/call, the batch that this completes or b"")."""
        waiting = self._waiting.pop(id_, None)
        if waiting is None:
            return None
        self._bytes -= waiting.size
        number = waiting.request.batch
        if number is None:
            return waiting.request, waiting.is_call, b""
        batch = self._batches[number]
        batch.ids.discard(id_)
        batch.waiting -= 1
        return waiting.request, waiting.is_call, self._flush(number)

    def open_batch(self) -> int:
        """Starts a batch. Raises jsonrpc.RequestError (-32603) when too many are unfinished."""
        if len(self._batches) >= MAX_BATCHES:
            raise jsonrpc.RequestError(
                jsonrpc.INTERNAL_ERROR, f"too many batches in flight (at most {MAX_BATCHES})"
            )
        number = self.next_number()
        self._batches[number] = _Batch()
        return number

    def add(self, number: int, id_: Id | None, answer: bytes) -> None:
        """An answer that a member of the batch got at once."""
        batch = self._batches[number]
        batch.answers.append(answer)
        if id_ is not None:
            batch.ids.add(id_)

    def close_batch(self, number: int) -> bytes:
        """All members were read. Returns the array if every answer is there already, else b""."""
        self._batches[number].is_read = True
        return self._flush(number)

    def _flush(self, number: int) -> bytes:
        batch = self._batches[number]
        if not batch.is_read or batch.waiting:
            return b""
        del self._batches[number]
        # Only notifications (or everything cancelled): nothing at all, not an empty array.
        return b"[" + b",".join(batch.answers) + b"]\n" if batch.answers else b""
