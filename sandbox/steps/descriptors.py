"""Descriptors and signals: the worker keeps what it was given, and nothing that happened to be open.

Runs: apply in the keeper, first. A leaked descriptor beats every later layer (a folder descriptor survives pivot_root).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from sandbox import syscalls

_LAST = 2**31 - 1


def close_all_but(keep: Iterable[int]) -> None:
    """close_range(2) around the descriptors in `keep`."""
    start = 0
    for descriptor in sorted(set(keep)):
        if descriptor > start:
            syscalls.close_range(start, descriptor - 1)
        start = descriptor + 1
    syscalls.close_range(start, _LAST)


def reset_signals() -> None:
    """Default actions and an empty mask: ignored signals and masks survive execve (signal(7))."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def start_session() -> None:
    """A session of its own without terminal, umask 077."""
    os.setsid()
    os.umask(0o077)
