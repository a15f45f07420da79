"""Pairs of real descriptors as a client may give them to a server."""

from __future__ import annotations

import contextlib
import os
import pty
import socket
import tty
from collections.abc import Callable, Iterator


def raw_terminal() -> tuple[int, int]:
    leader, follower = pty.openpty()
    tty.setraw(follower)
    return leader, follower


def socket_pair() -> tuple[int, int]:
    left, right = socket.socketpair()
    return left.detach(), right.detach()


# (ours to read, theirs to write), as a client may make it
INPUTS: dict[str, Callable[[], tuple[int, int]]] = {
    "pipe": os.pipe,
    "socket": socket_pair,
    "terminal": lambda: raw_terminal()[::-1],
}
# (theirs to read, ours to write)
OUTPUTS: dict[str, Callable[[], tuple[int, int]]] = {
    "pipe": os.pipe,
    "socket": socket_pair,
    "terminal": raw_terminal,
}


@contextlib.contextmanager
def closing(*fds: int) -> Iterator[None]:
    try:
        yield
    finally:
        for fd in fds:
            with contextlib.suppress(OSError):
                os.close(fd)
