"""Holds what a call uses against its limits, sample by sample. Runs in the keeper.

Limits that the kernel keeps per process (setrlimit) are kept here for all processes together.
"""

from __future__ import annotations

import resource

from sandbox.sample import Sample, Temp, sample, scratch_use, shared_memory, temp_use
from sandbox.steps.cgroup import Counters
from sandbox.tree import Tree
from sandbox.types import Kind, Limits

_MIB = 1 << 20


class Meter:
    """Peaks so far: `memory` in bytes, `processes` with threads, `open_files` of one process, `cpu` in seconds.

    scratch   the temporary folder where it is one of the host's; nothing else bounds what is put there.
    counters  those of the call's cgroup: the kernel's own word on what the samples can only approach.
    """

    def __init__(self, limits: Limits, tree: Tree, scratch: str, counters: Counters | None) -> None:
        self._limits, self.tree, self._scratch, self._counters = limits, tree, scratch, counters
        self._last: dict[str, float] = {}
        self._ended = 0.0
        self.memory, self.processes, self.open_files, self.cpu = 0, 0, 0, 0.0

    def look(self) -> Kind | None:
        """Take a sample; the limit that is passed, if one is."""
        now = sample(self.tree, count_files=self.open_files < self._limits.open_files)
        limit = self._limits.memory_mb * _MIB
        memory = now.memory
        if memory > limit and now.processes > 1:
            memory = shared_memory(self.tree.proc, now)
        self.memory = max(self.memory, memory)
        self.processes = max(self.processes, now.processes)
        self.open_files = max(self.open_files, now.open_files)
        self._add_cpu(now)
        counted = self._count()
        if memory > limit or counted is Kind.OUT_OF_MEMORY:
            return Kind.OUT_OF_MEMORY
        if now.processes > self._limits.processes or counted:
            return Kind.TOO_MANY_PROCESSES
        if self.cpu > self._limits.cpu_seconds:
            return Kind.OUT_OF_CPU
        return self.overfull(self.temp()) if self._scratch else None

    def overfull(self, temp: Temp) -> Kind | None:
        """Whether a temporary folder of the host's holds more than its limit: no errno has told the tool so."""
        return Kind.TEMP_FULL if self._scratch and temp.full else None

    def temp(self) -> Temp:
        """What the temporary folder holds."""
        file_limit = self._limits.file_mb * _MIB
        if self._scratch:
            return scratch_use(self.tree, self._scratch, self._limits.tmp_mb * _MIB, file_limit)
        return temp_use(file_limit)

    def finish(self) -> Kind | None:
        """When every process has been reaped: the kernel's own sums count too. The limit that it enforced, if one."""
        self.cpu = max(self.cpu, _reaped())
        return self._count()

    def _count(self) -> Kind | None:
        """What the kernel has counted for the call's cgroup."""
        if self._counters is None:
            return None
        found = self._counters.read()
        self.cpu = max(self.cpu, found.cpu_seconds)
        self.processes = max(self.processes, found.processes_peak)
        if found.out_of_memory:
            self.memory = max(self.memory, found.memory_peak)
            return Kind.OUT_OF_MEMORY
        return Kind.TOO_MANY_PROCESSES if found.processes_refused else None

    def _add_cpu(self, now: Sample) -> None:
        """Two sums, the higher counts: the kernel's, which knows the shortest process but not those that nobody waited
        for (SIGCHLD ignored), and our own, which knows those if a sample saw them.
        """
        own = {name: one.cpu for name, one in now.each.items()}
        self._ended += sum(seconds for name, seconds in self._last.items() if name not in own)
        self._last = own
        running = sum(own.values())
        waited_for = sum(one.children_cpu for one in now.each.values())
        self.cpu = max(self.cpu, self._ended + running, _reaped() + running + waited_for)


def _reaped() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
