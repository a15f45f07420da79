"""Waiting for what happens in other processes: asked often, with generous ends, never a fixed sleep."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import psutil

PATIENCE = 30.0  # seconds for what takes milliseconds on an idle machine
GONE_WITHIN = 1.0  # seconds for server, launcher and workers to be gone, whoever died


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait for a condition by asking often."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen within {seconds} s"
        time.sleep(0.005)


def is_gone(process: psutil.Process) -> bool:
    """No such process any more, or one that only waits to be collected."""
    try:
        return not process.is_running() or bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def all_gone(processes: Iterable[psutil.Process], seconds: float = GONE_WITHIN) -> None:
    """All of them are gone within that time."""
    known = list(processes)
    until(lambda: all(is_gone(process) for process in known), seconds)
