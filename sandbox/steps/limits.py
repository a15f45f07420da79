"""Limits: what one process of the tool may use (setrlimit(2)); what all of them use is sampled by the keeper.

Runs: apply in the tool, after the namespaces exist: since Linux 5.14 RLIMIT_NPROC counts per user namespace, so a call
has a budget of its own only when the limit is set inside.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

from sandbox.types import Limits

MIB = 1 << 20
_SPARE_PROCESSES = 2  # the keeper, and one more, so that going over the limit is seen instead of only refused
_SPARE_BEHIND_A_CGROUP = 3  # the cgroup has the first word, because it counts what it refuses
_SPARE_MEMORY = (
    4  # the keeper stops the tool at the limit; the kernel refuses single allocations far beyond it
)


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Pairs of RLIMIT name and value; soft and hard are the same unless stated in `apply`.

    shared  the kernel counts processes per user and the user has others: what runs already is added to the limit.
    """

    values: tuple[tuple[str, int], ...]
    shared: bool = False

    @classmethod
    def build(cls, limits: Limits, *, shared: bool = False, grouped: bool = False) -> ResourceLimits:
        """From the limits of a profile. `grouped`: the call has a cgroup."""
        spare = _SPARE_BEHIND_A_CGROUP if grouped else _SPARE_PROCESSES
        return cls(
            (
                (
                    "RLIMIT_CORE",
                    1,
                ),  # with 0 a piped core_pattern still starts its helper, with 1 it does not (core(5))
                ("RLIMIT_CPU", limits.cpu_seconds),
                ("RLIMIT_DATA", max(_SPARE_MEMORY * limits.memory_mb, limits.memory_mb + 1024) * MIB),
                ("RLIMIT_FSIZE", limits.file_mb * MIB),
                ("RLIMIT_MEMLOCK", 0),
                ("RLIMIT_MSGQUEUE", 0),
                ("RLIMIT_NICE", 0),
                ("RLIMIT_NOFILE", limits.open_files),
                ("RLIMIT_NPROC", limits.processes + spare),
                ("RLIMIT_RTPRIO", 0),
                ("RLIMIT_SIGPENDING", 256),
                ("RLIMIT_STACK", 8 * MIB),
            ),
            shared,
        )

    def apply(self) -> dict[str, object]:
        """Set all; a lower hard limit of the caller stays. The CPU limit has a second hard limit one second later."""
        for name, wanted in self.values:
            value = wanted
            number = getattr(resource, name)
            if name == "RLIMIT_NPROC" and self.shared:
                value += _running(os.getuid())
            hard = resource.getrlimit(number)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            later = (
                bound + 1
                if name == "RLIMIT_CPU" and (hard == resource.RLIM_INFINITY or hard > bound)
                else bound
            )
            resource.setrlimit(number, (bound, later))
        return {
            "limits": {
                name[7:].lower(): resource.getrlimit(getattr(resource, name))[0] for name, _ in self.values
            }
        }


def _running(uid: int) -> int:
    """Threads of this user now, as far as /proc shows them."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:  # it has ended
                continue
    return count
