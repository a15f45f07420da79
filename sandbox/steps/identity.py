"""Identity: uid and gid 1000 inside, and a kernel uid that is never 0.

Runs: `write_maps` in the launcher for the keeper, `apply` runs in the keeper before any mount.
Why: files below /proc/sys are checked against the kernel uid, not against capabilities, so kernel uid 0 in a user
namespace can still change the host (core_pattern). user_namespaces(7), credentials(7).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from sandbox import abi, syscalls

INSIDE = 1000
# Kernel ids for workers when Toolcage runs as root: in the range that systemd's table of uids leaves unused.
SLOT_BASE = 1_879_050_000


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the worker is. `slots`: run as a slot id of its own (Toolcage is root) instead of as the caller."""

    slots: bool

    def apply(self) -> dict[str, object]:
        """Take the inside ids and prove them. Raises OSError, or PermissionError when the kernel uid would be 0."""
        if self.slots:
            os.setgroups([])
        os.setresgid(INSIDE, INSIDE, INSIDE)
        os.setresuid(INSIDE, INSIDE, INSIDE)
        if os.getresuid() != (INSIDE,) * 3 or os.getresgid() != (INSIDE,) * 3:
            raise PermissionError(1, "the ids did not change")
        outside = _mapped("uid_map")
        if outside == 0 or (self.slots and outside < SLOT_BASE):
            raise PermissionError(1, f"the kernel uid would be {outside}")
        syscalls.prctl(abi.PR_SET_DUMPABLE, 0)
        return {"uid": INSIDE, "kernel_uid": outside, "groups": len(os.getgroups()) if self.slots else None}


def write_maps(pid: int, uid: int, gid: int, *, slots: bool) -> None:
    """Map the inside ids of process `pid` to `uid` and `gid`. Without privileges setgroups must be denied first."""
    if not slots:
        write_map(pid, "setgroups", "deny")
    write_map(pid, "gid_map", f"{INSIDE} {gid} 1")
    write_map(pid, "uid_map", f"{INSIDE} {uid} 1")


def write_map(pid: int, name: str, text: str) -> None:
    """Write /proc/PID/NAME in one write(2), as user_namespaces(7) asks."""
    descriptor = os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _mapped(name: str) -> int:
    # bytes: a codec would be imported now, and the interpreter's files may be out of reach already
    descriptor = os.open(f"/proc/self/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        inside, outside, count = os.read(descriptor, 200).split()
    finally:
        os.close(descriptor)
    if (int(inside), int(count)) != (INSIDE, 1):
        raise PermissionError(1, f"{name} is not the one that was asked for")
    return int(outside)
