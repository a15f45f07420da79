"""Cgroup: what all processes of a call together may use, kept and counted by the kernel. Only the tool is in it, never
the keeper, which must outlive an out-of-memory kill to report it.

Runs: apply in the tool, before anything else, `prove` and Counters in the keeper. Makes no cgroup: sandbox.groups does,
in the launcher. The tool goes in through a descriptor that the launcher opened, because the kernel asks what the opener
may do, not the writer (Linux 5.16 and stable kernels since January 2022, CVE-2021-4197). cgroups(7),
Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from sandbox.types import Limits

Version = Literal["v2", "v1", "none"]
_MIB = 1 << 20
# One more than the limit, so that going over it is seen by the sampler instead of only refused.
SPARE_PROCESSES = 1
_CHUNK = 4096  # every file that is read here is shorter


@dataclass(frozen=True, slots=True)
class Counted:
    """What the kernel has counted since the cgroup was made: processes killed for want of memory, forks refused, highest
    memory in bytes, highest number of processes and threads, processor seconds. What this kernel does not count is 0.
    """

    out_of_memory: int = 0
    processes_refused: int = 0
    memory_peak: int = 0
    processes_peak: int = 0
    cpu_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Counters:
    """Descriptors of the files that count; -1 for one that this kernel does not have."""

    out_of_memory: int = -1
    processes_refused: int = -1
    memory_peak: int = -1
    processes_peak: int = -1
    cpu: int = -1

    def read(self) -> Counted:
        """Read all. OSError (ENODEV) when the cgroup is gone or has lost its controllers: nothing is limited then."""
        return Counted(
            out_of_memory=_field(_look(self.out_of_memory), b"oom_kill"),
            processes_refused=_field(_look(self.processes_refused), b"max"),
            memory_peak=_number(_look(self.memory_peak)),
            processes_peak=_number(_look(self.processes_peak)),
            cpu_seconds=_seconds(_look(self.cpu)),
        )

    def descriptors(self) -> tuple[int, ...]:
        """Those that are open."""
        every = (self.out_of_memory, self.processes_refused, self.memory_peak, self.processes_peak, self.cpu)
        return tuple(descriptor for descriptor in every if descriptor >= 0)


@dataclass(frozen=True, slots=True)
class Leaf:
    """The cgroup of one call, as open descriptors (close-on-exec).

    procs    cgroup.procs of each hierarchy (one in v2), to go in and to see who is in.
    limits   the files of the memory limit and of the process limit, to read.
    """

    number: int
    procs: tuple[int, ...]
    limits: tuple[int, int]
    counters: Counters

    def descriptors(self) -> tuple[int, ...]:
        """All, for the worker's `close_all_but`."""
        return (*self.procs, *self.limits, *self.counters.descriptors())

    def close(self) -> None:
        """Close all in this process. The cgroup itself stays."""
        for descriptor in self.descriptors():
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The limits of one call's cgroup. memory_bytes holds the temporary folder too: the kernel counts its pages as the
    tool's. `version` "none" is a host without: nothing is applied, and the limits are kept by samples.
    """

    version: Version
    memory_bytes: int = 0
    processes: int = 0

    @classmethod
    def build(cls, version: Version, limits: Limits) -> Cgroup:
        """From the limits of a profile."""
        if version == "none":
            return cls(version)
        return cls(version, (limits.memory_mb + limits.tmp_mb) * _MIB, limits.processes)

    def apply(self, procs: tuple[int, ...]) -> dict[str, object]:
        """Move this process in, see that it is in, and close `procs`. Raises OSError, PermissionError when it is not."""
        if bool(procs) != (self.version != "none"):
            raise PermissionError(1, f"{len(procs)} cgroups to enter, planned is {self.version}")
        self.enter(procs)
        for descriptor in procs:
            os.close(descriptor)
        return {"cgroup": self.version}

    def enter(self, procs: tuple[int, ...]) -> None:
        """Move this process in and see that it is in. The first move of a moment takes milliseconds: the kernel waits
        until no fork is in progress anywhere.
        """
        for descriptor in procs:
            os.write(descriptor, b"0")  # the writer itself, whatever its number is in which namespace
            _must_hold(descriptor, os.getpid())

    def prove(self, leaf: Leaf | None, pid: int) -> dict[str, object]:
        """From outside: process `pid` (as numbered here) is in, and the limits are the planned ones."""
        if self.version == "none" and leaf is None:
            return {"cgroup": {"version": "none"}}
        if self.version == "none" or leaf is None:
            raise PermissionError(1, f"planned is cgroup {self.version}, given {leaf}")
        for descriptor in leaf.procs:
            _must_hold(descriptor, pid)
        memory, processes = (_number(_look(descriptor)) for descriptor in leaf.limits)
        if (memory, processes - SPARE_PROCESSES) != (self.memory_bytes, self.processes):
            raise PermissionError(1, f"the cgroup's limits are {memory} bytes, {processes} processes")
        found = {"version": self.version, "memory_bytes": memory, "processes": processes - SPARE_PROCESSES}
        return {"cgroup": found}


def _must_hold(procs: int, pid: int) -> None:
    # The call has just begun: one process is in it, or a few, and the kernel numbers them for the reader's namespace.
    if str(pid).encode() not in _look(procs).split():
        raise PermissionError(1, "the process is not in its cgroup")


def _look(descriptor: int) -> bytes:
    return os.pread(descriptor, _CHUNK, 0) if descriptor >= 0 else b""


def _field(text: bytes, key: bytes) -> int:
    """The number behind `key` in lines of "key number"."""
    for line in text.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name == key:
            return _number(value)
    return 0


def _number(text: bytes) -> int:
    """A decimal number of at most 20 digits; anything else ("max") is 0."""
    text = text.strip()
    return int(text) if text.isdigit() and len(text) <= 20 else 0


def _seconds(text: bytes) -> float:
    """cpu.stat of v2 says "usage_usec N", cpuacct.usage of v1 a number of nanoseconds."""
    return _field(text, b"usage_usec") / 1e6 or _number(text) / 1e9
