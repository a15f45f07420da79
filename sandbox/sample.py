"""Reads what the processes of a call use at one moment, from the keeper's own proc, and what /tmp holds at the end.

Runs in the keeper. Peaks are lower bounds: what happens between two samples is not seen. proc(5), kcmp(2).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from sandbox import procfs, syscalls
from sandbox.tree import Tree

_TICKS = os.sysconf("SC_CLK_TCK")
_MAX_ENTRIES = 20_000  # more than the tmpfs has inodes
_MAX_DEPTH = 32
_WALK_SECONDS = 0.1  # a statistic must not cost a deadline
_EXACT_SECONDS = (
    0.05  # processor time for the exact memory figure; what is not reached by then counts in full
)


@dataclass(frozen=True, slots=True)
class Process:
    """One process: its pid as the keeper knows it, bytes of memory (with page tables), threads, processor seconds of its
    own and of the children that it has waited for, open files.
    """

    pid: int
    memory: int
    threads: int
    cpu: float
    children_cpu: float
    open_files: int


@dataclass(frozen=True, slots=True)
class Sample:
    """All processes but the keeper, by name in the proc. Anonymous and shared-memory pages count, swapped out or not; file pages do
    not, the kernel can drop them. Pages that a fork shares count once per process here: see `shared_memory`.
    """

    each: dict[str, Process] = field(default_factory=dict)

    @property
    def memory(self) -> int:
        """Bytes of all."""
        return sum(one.memory for one in self.each.values())

    @property
    def processes(self) -> int:
        """Processes and threads."""
        return sum(one.threads for one in self.each.values())

    @property
    def open_files(self) -> int:
        """Of the process that has most open."""
        return max((one.open_files for one in self.each.values()), default=0)


@dataclass(frozen=True, slots=True)
class Temp:
    """State of /tmp: bytes used, whether it is full, whether a file reached the file size limit."""

    used: int
    full: bool
    file_at_limit: bool


def sample(tree: Tree, count_files: bool) -> Sample:
    """One look at every process of the call. A process that ends meanwhile is left out."""
    each = {}
    for name in tree.names():
        try:
            each[name] = _process(tree.proc, name, count_files)
        except OSError:
            continue
    return Sample(each)


def shared_memory(proc: int, seen: Sample) -> int:
    """Bytes of memory of the processes in `seen`, pages that several share counted once.

    Slow, so only asked when the plain sum is over the limit. Two processes of one address space (vfork) count once;
    after a fork the kernel's proportional size is taken. A process that cannot be asked counts in full.
    """
    total = 0
    spaces: dict[int, list[int]] = {}
    deadline = time.thread_time() + _EXACT_SECONDS
    for name, one in seen.each.items():
        late = time.thread_time() > deadline
        if not late and any(_same_memory(one.pid, other) for other in spaces.get(one.memory, ())):
            continue
        spaces.setdefault(one.memory, []).append(one.pid)
        exact = None if late else _proportional(proc, name)
        total += one.memory if exact is None else exact
    return total


def temp_use(file_limit: int) -> Temp:
    """What /tmp holds when the tool has ended. The walk is bounded in entries, depth and time, and follows no links."""
    state = os.statvfs("/tmp")  # noqa: S108 - the private tmpfs of this call
    used = (state.f_blocks - state.f_bfree) * state.f_frsize
    full = state.f_bfree == 0 or state.f_ffree == 0
    return Temp(used, full, any(found.st_size >= file_limit for found in _files("/tmp")))  # noqa: S108


def scratch_use(tree: Tree, folder: str, limit: int, file_limit: int) -> Temp:
    """The same for a temporary folder that shares its file system, with what the call has deleted and still has open.

    A folder that cannot be looked into, or lies too deep, makes it full: it could hold anything.
    """
    hidden: list[str] = []
    used, large = _deleted(tree), False
    entries = 0
    for found in _files(folder, hidden):
        used += found.st_blocks * 512
        entries += 1
        large |= stat.S_ISREG(found.st_mode) and found.st_size >= file_limit
    return Temp(used, used >= limit or entries >= _MAX_ENTRIES or bool(hidden), large)


def _deleted(tree: Tree) -> int:
    """Bytes of regular files without a name that processes of the call have open.

    Thread by thread: one may have a table of its own (clone(2) without CLONE_FILES), and that of the first is empty when
    it has ended.
    """
    seen: dict[tuple[int, int], int] = {}
    for name in tree.names():
        for thread in _threads(tree.proc, name):
            try:
                table = os.open(
                    f"{name}/task/{thread}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=tree.proc
                )
            except OSError:
                continue  # it has just ended, or not yet become the tool
            try:
                seen |= _nameless(table)
            finally:
                os.close(table)
    return sum(seen.values())


def _nameless(table: int) -> dict[tuple[int, int], int]:
    """Regular files without a name in one table of descriptors: (device, inode) -> bytes."""
    found: dict[tuple[int, int], int] = {}
    with contextlib.suppress(OSError):
        for number in os.listdir(table):
            with contextlib.suppress(OSError):
                file = os.stat(number, dir_fd=table)
                if stat.S_ISREG(file.st_mode) and file.st_nlink == 0:
                    found[file.st_dev, file.st_ino] = file.st_blocks * 512
    return found


def _files(folder: str, hidden: list[str] | None = None) -> Iterator[os.stat_result]:
    """Everything below `folder`, within bounds; folders that are not looked into are added to `hidden`."""
    deadline = time.monotonic() + _WALK_SECONDS
    waiting, seen, unseen = [folder], 0, [] if hidden is None else hidden
    while waiting:
        here = waiting.pop()
        try:
            entries = os.scandir(here)
        except FileNotFoundError:
            continue
        except OSError:
            unseen.append(here)
            continue
        with entries:
            for entry in entries:
                seen += 1
                if seen > _MAX_ENTRIES or time.monotonic() > deadline:
                    unseen.append(here)
                    return
                if entry.is_dir(follow_symlinks=False):
                    (waiting if entry.path.count("/") < _MAX_DEPTH else unseen).append(entry.path)
                with contextlib.suppress(OSError):
                    yield entry.stat(follow_symlinks=False)


def _process(proc: int, name: str, count_files: bool) -> Process:
    status = procfs.read(proc, f"{name}/status")
    threads, memory = _field(status, b"Threads:"), _memory(status)
    if memory is None:
        memory = _of_a_thread(proc, name) if threads > 1 else 0
    line = procfs.read(proc, f"{name}/stat")
    # The command name is in parentheses and may contain anything, so fields are counted from the last one.
    fields = line[line.rindex(b")") + 2 :].split()
    own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    files = _open_files(proc, name, count_files)
    pid = procfs.inner_pid(status) or int(name)
    return Process(pid, memory, threads, own / _TICKS, children / _TICKS, files)


def _memory(status: bytes) -> int | None:
    """Bytes; None for a process, or thread, that has ended and has no memory of its own any more."""
    if b"\nVmRSS:" not in status:
        return None
    return 1024 * (
        _field(status, b"RssAnon:")
        + _field(status, b"RssShmem:")
        + _field(status, b"VmSwap:")
        + _field(status, b"VmPTE:")
    )


def _of_a_thread(proc: int, name: str) -> int:
    """When the first thread has ended, /proc/PID shows no memory although the others use it: one of them tells."""
    for thread in _threads(proc, name):
        try:
            memory = _memory(procfs.read(proc, f"{name}/task/{thread}/status"))
        except OSError:
            continue
        if memory is not None:
            return memory
    return 0


def _threads(proc: int, name: str) -> list[str]:
    try:
        return procfs.names(proc, f"{name}/task")
    except OSError:
        return []


def _same_memory(first: int, second: int) -> bool:
    try:
        return syscalls.same_memory(first, second)
    except OSError:
        return False


def _proportional(proc: int, name: str) -> int | None:
    """Bytes, each page divided by the number of its users; 0 for a process that is gone, None for one that hides."""
    try:
        rollup = procfs.read(proc, f"{name}/smaps_rollup")
        tables = _field(procfs.read(proc, f"{name}/status"), b"VmPTE:")
    except OSError as problem:
        return 0 if problem.errno in (errno.ENOENT, errno.ESRCH) and not _threads(proc, name)[1:] else None
    if not rollup:
        return None  # its first thread has ended: the plain figure counts
    return (
        _field(rollup, b"Pss_Anon:") + _field(rollup, b"Pss_Shmem:") + _field(rollup, b"SwapPss:") + tables
    ) * 1024


def _open_files(proc: int, name: str, wanted: bool) -> int:
    if not wanted:
        return 0
    try:
        return len(procfs.names(proc, f"{name}/fd"))
    except OSError:
        return 0


def _field(status: bytes, key: bytes) -> int:
    start = status.find(b"\n" + key)
    return int(status[start + 1 + len(key) :].split(None, 1)[0]) if start >= 0 else 0
