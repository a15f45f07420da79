"""Reads what the processes of a call use at one moment, from the keeper's own proc, and what /tmp holds at the end.

Runs in the keeper. Peaks are lower bounds: what happens between two samples is not seen. proc(5).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_MAX_ENTRIES = 20_000  # more than the tmpfs has inodes


@dataclass(frozen=True, slots=True)
class Sample:
    """Sums over all processes but the keeper. `memory`: anonymous and shared-memory pages in bytes; file pages do not
    count, the kernel can drop them. Pages that a fork shares count once per process. `processes` counts threads too.
    """

    memory: int = 0
    processes: int = 0
    cpu: float = 0.0
    open_files: int = 0

    def plus_cpu(self, seconds: float) -> Sample:
        """With the time of processes that have ended."""
        return Sample(self.memory, self.processes, self.cpu + seconds, self.open_files)

    def with_memory(self, size: int) -> Sample:
        """With a better figure for the memory."""
        return Sample(size, self.processes, self.cpu, self.open_files)

    def highest(self, other: Sample) -> Sample:
        """The higher of each figure."""
        return Sample(
            max(self.memory, other.memory),
            max(self.processes, other.processes),
            max(self.cpu, other.cpu),
            max(self.open_files, other.open_files),
        )


@dataclass(frozen=True, slots=True)
class Temp:
    """State of /tmp: bytes used, whether it is full, whether a file reached the file size limit."""

    used: int
    full: bool
    file_at_limit: bool


def sample(proc: int, count_files: bool) -> Sample:
    """One look at every process below the `proc` descriptor. A process that ends meanwhile is left out."""
    total = Sample()
    for name in os.listdir(proc):
        if not name.isdigit() or name == "1":
            continue
        try:
            one = _process(proc, name, count_files)
        except OSError:
            continue
        total = Sample(
            total.memory + one.memory,
            total.processes + one.processes,
            total.cpu + one.cpu,
            max(total.open_files, one.open_files),
        )
    return total


def shared_memory(proc: int) -> int:
    """Bytes of memory of all processes but the keeper, pages that several share counted once (proportional set size).

    Exact where `sample` may count a page once per process after a fork, but slow: only asked when that matters.
    """
    total = 0
    for name in os.listdir(proc):
        if not name.isdigit() or name == "1":
            continue
        try:
            rollup = _read(proc, f"{name}/smaps_rollup")
        except OSError:
            continue
        total += _field(rollup, b"Pss_Anon:") + _field(rollup, b"Pss_Shmem:")
    return total * 1024


def temp_use(file_limit: int) -> Temp:
    """What /tmp holds when the tool has ended. The walk follows no links."""
    state = os.statvfs("/tmp")  # noqa: S108 - the private tmpfs of this call
    used = (state.f_blocks - state.f_bfree) * state.f_frsize
    at_limit = False
    seen = 0
    for folder, _folders, names in os.walk("/tmp"):  # noqa: S108
        for name in names:
            seen += 1
            if seen > _MAX_ENTRIES:
                return Temp(used, state.f_bfree == 0, at_limit)
            try:
                at_limit = at_limit or os.lstat(os.path.join(folder, name)).st_size >= file_limit
            except OSError:
                continue
    return Temp(used, state.f_bfree == 0 or state.f_ffree == 0, at_limit)


def _process(proc: int, name: str, count_files: bool) -> Sample:
    status = _read(proc, f"{name}/status")
    memory = _field(status, b"RssAnon:") + _field(status, b"RssShmem:")
    stat = _read(proc, f"{name}/stat")
    # The command name is in parentheses and may contain anything, so fields are counted from the last one.
    fields = stat[stat.rindex(b")") + 2 :].split()
    ticks = sum(int(fields[index]) for index in (11, 12, 13, 14))
    files = _open_files(proc, name, count_files)
    return Sample(memory * 1024, _field(status, b"Threads:"), ticks / _TICKS, files)


def _open_files(proc: int, name: str, wanted: bool) -> int:
    if not wanted:
        return 0
    try:
        folder = os.open(f"{name}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return 0
    try:
        return len(os.listdir(folder))
    finally:
        os.close(folder)


def _read(proc: int, path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    try:
        return os.read(descriptor, 8192)
    finally:
        os.close(descriptor)


def _field(status: bytes, key: bytes) -> int:
    start = status.find(b"\n" + key)
    return int(status[start + 1 + len(key) :].split(None, 1)[0]) if start >= 0 else 0
