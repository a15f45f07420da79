"""MCP over stdin and stdout without a thread and without a socket. Front process.

The descriptors that clients gave us are moved away at start, so that nothing else (a print, a child) can write into the
protocol or read from it. Neither class here knows what a message means.

Whose O_NONBLOCK? The flag belongs to the open file description, and on a terminal or an inherited pipe that is shared
with the parent. So input stays blocking and is read once per readiness, and output is re-opened through /proc when that
gives a description of our own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections import deque
from collections.abc import Callable
from typing import Final

from runner.mcp.lines import Lines, Oversized

READ_BYTES: Final = 65_536  # the capacity of a Linux pipe: one read can empty it
WRITE_BYTES: Final = 65_536

# A client that sends without reading makes answers pile up here. Above HIGH the reader is paused, below LOW it goes on.
HIGH_WATER_BYTES: Final = 4 * 1_048_576
LOW_WATER_BYTES: Final = 1_048_576


def reopen_nonblocking(fd: int, flags: int) -> int | None:
    """A description of our own for the same pipe or terminal, with O_NONBLOCK; None when that is not possible.

    Not for regular files: a new description would start at offset 0. Sockets cannot be opened (ENXIO, open(2)).
    """
    mode = os.fstat(fd).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        return None
    try:
        return os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return None


class Reader:
    """Calls `on_line` for each line read from `fd`, and `on_eof` once when the input has ended.

    Works with pipes, sockets and terminals (by readiness) and with regular files and /dev/null, which epoll refuses (in
    turns of the loop). A read error, such as EIO from a terminal that hung up, is an end of input. After `pause` no
    line is delivered any more, not even one that was read already. `fd` stays the caller's to close, after `close`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_line: Callable[[bytes | Oversized], None],
        on_eof: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._on_line = on_line
        self._on_eof = on_eof
        self._lines = Lines()
        self._ready: deque[bytes | Oversized] = deque()
        self._is_open = True
        self._is_paused = True
        self._turn: asyncio.Handle | None = None
        self.resume()

    def pause(self) -> None:
        """No more lines until `resume`."""
        if self._is_running():
            self._is_paused = True
            self._unwatch()

    def resume(self) -> None:
        """Goes on: first with lines already read, in a later turn of the loop."""
        if self._is_open and self._is_paused:
            self._is_paused = False
            self._turn = self._loop.call_soon(self._go_on)

    def close(self) -> None:
        """Stops for good; neither callback is called again."""
        self._is_open = False
        self._ready.clear()
        self._unwatch()

    def _go_on(self) -> None:
        self._turn = None
        self._deliver()
        if not self._is_running():
            return
        try:
            self._loop.add_reader(self._fd, self._read)
        except (
            OSError
        ):  # EPERM for files that are always ready, epoll_ctl(2); for any other fault read(2) says more
            self._read()
            if self._is_running():
                self._turn = self._loop.call_soon(self._go_on)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:  # the parent's flag, or another reader of a shared terminal was faster
            return
        except OSError:
            data = b""
        if data:
            self._ready.extend(self._lines.feed(data))
            self._deliver()
            return
        self.close()
        self._on_eof()

    def _deliver(self) -> None:
        while self._ready and self._is_running():
            self._on_line(self._ready.popleft())

    def _is_running(self) -> bool:
        return self._is_open and not self._is_paused

    def _unwatch(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        with contextlib.suppress(OSError):
            self._loop.remove_reader(self._fd)


class Writer:
    """Writes whole messages to `fd` in order, never waiting for the other end.

    `fd` becomes the writer's own. Callbacks: `on_full` when more than 4 MiB are queued, `on_drained` when that has
    fallen to 1 MiB again, `on_broken` once when the other end is gone (everything queued is dropped then, and all that
    follows). A pipe or socket is written without blocking; a regular file cannot block; a terminal that could not be
    re-opened is written blocking, because its flags are the parent's too.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        *,
        on_full: Callable[[], None] | None = None,
        on_drained: Callable[[], None] | None = None,
        on_broken: Callable[[OSError], None] | None = None,
    ) -> None:
        self._loop = loop
        self._fd = _own_output(fd)
        self._on_full = on_full
        self._on_drained = on_drained
        self._on_broken = on_broken
        self._queue: deque[memoryview] = deque()
        self._is_waiting = False  # for readiness
        self._is_full = False
        self._waiters: list[asyncio.Future[None]] = []
        self.queued = 0
        self.broken: OSError | None = None

    def watch(self, *, on_full: Callable[[], None], on_drained: Callable[[], None]) -> None:
        """Set the callbacks of a reader that was made later than this writer."""
        self._on_full, self._on_drained = on_full, on_drained

    def write(self, data: bytes) -> None:
        """Takes one or more whole messages. b"" means nothing. Dropped when the other end is gone."""
        if not data or self.broken is not None:
            return
        self._queue.append(memoryview(data))
        self.queued += len(data)
        if not self._is_waiting:
            self._pump()
        if self.queued > HIGH_WATER_BYTES and not self._is_full:
            self._is_full = True
            if self._on_full is not None:
                self._on_full()

    async def drained(self) -> None:
        """Returns when everything was written or can never be."""
        if self._queue:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def close(self) -> None:
        """Drops what is queued and closes the descriptor. Await `drained` before to keep it."""
        if self.broken is None:
            self._break(OSError("closed"), report=False)
        os.close(self._fd)

    def _pump(self) -> None:
        try:
            while self._queue:
                self._advance(os.write(self._fd, self._queue[0][:WRITE_BYTES]))
        except BlockingIOError:
            self._watch()
        except OSError as fault:  # EPIPE, ECONNRESET, EIO, ENOSPC: no later message can be whole either
            self._break(fault, report=True)
            return
        if not self._queue:
            self._unwatch()
            self._wake()
        if self._is_full and self.queued <= LOW_WATER_BYTES:
            self._is_full = False
            if self._on_drained is not None:
                self._on_drained()

    def _advance(self, written: int) -> None:
        self.queued -= written
        rest = self._queue.popleft()[written:]
        if rest:
            self._queue.appendleft(rest)

    def _break(self, fault: OSError, *, report: bool) -> None:
        self.broken = fault
        self._queue.clear()
        self.queued = 0
        self._unwatch()
        self._wake()
        if report and self._on_broken is not None:
            self._on_broken(fault)

    def _watch(self) -> None:
        if not self._is_waiting:
            self._loop.add_writer(self._fd, self._pump)
            self._is_waiting = True

    def _unwatch(self) -> None:
        if self._is_waiting:
            self._loop.remove_writer(self._fd)
            self._is_waiting = False

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _own_output(fd: int) -> int:
    """`fd` or its replacement, non-blocking where that disturbs nobody."""
    own = reopen_nonblocking(fd, os.O_WRONLY)
    if own is not None:
        os.close(fd)
        return own
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode) or stat.S_ISFIFO(
        mode
    ):  # our end only: clients close their copy of it after the start
        os.set_blocking(fd, False)
    return fd
