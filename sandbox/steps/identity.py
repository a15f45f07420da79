"""Identity: uid and gid 1000 inside, and a kernel uid that is never 0.

Runs: `write_maps` in the launcher for the keeper, `apply` in the keeper before any mount.
Why: files below /proc/sys are checked against the kernel uid, not against capabilities, so kernel uid 0 in a user
namespace can still change the host (core_pattern). user_namespaces(7), credentials(7).
Without a user namespace there is nothing to map: as root the worker becomes its slot's id, otherwise it stays the caller.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from sandbox import abi, syscalls
from sandbox.ladder import Namespaces

INSIDE = 1000
# Kernel ids for workers when Toolcage runs as root: in the range that systemd's table of uids leaves unused.
SLOT_BASE = 1_879_050_000
SLOTS = 128  # ids of one launcher
_LAUNCHERS = 4096  # launchers with ranges of their own
NAMESPACE_KINDS = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
_FULL_RANGE = 4_294_967_295
_SMALLEST_RANGE = 4096  # ids that a container needs to have, so that some of them are nobody's


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the worker is. `slots`: it has a kernel id of its own (Toolcage is root) instead of the caller's."""

    slots: bool
    namespaces: Namespaces = "user"

    def apply(self, uid: int, gid: int) -> dict[str, object]:
        """Become the worker's user and prove it; `uid` and `gid` are the kernel's numbers. Raises OSError.

        PermissionError when the kernel uid would be 0. As root without a user namespace the capabilities stay until
        the step that drops them, as they do inside one.
        """
        mapped = self.namespaces == "user"
        ids = (INSIDE, INSIDE) if mapped else (uid, gid)
        if self.slots:
            os.setgroups([])
        if self.slots and not mapped:
            syscalls.prctl(abi.PR_SET_KEEPCAPS, 1)
        os.setresgid(*(ids[1],) * 3)
        os.setresuid(*(ids[0],) * 3)
        if self.slots and not mapped:
            syscalls.regain_capabilities()
        if os.getresuid() != (ids[0],) * 3 or os.getresgid() != (ids[1],) * 3:
            raise PermissionError(1, "the ids did not change")
        outside = _mapped("uid_map") if mapped else os.getuid()
        if outside <= 0 or outside != uid:
            raise PermissionError(1, f"the kernel uid would be {outside}")
        syscalls.prctl(abi.PR_SET_DUMPABLE, 0)
        return {"uid": ids[0], "kernel_uid": outside, "groups": len(os.getgroups()) if self.slots else None}


def namespaces(proc: int) -> dict[str, int]:
    """Which namespaces this process is in: kind -> inode, namespaces(7). `proc`: descriptor of a /proc."""
    return {kind: os.stat(f"self/ns/{kind}", dir_fd=proc).st_ino for kind in NAMESPACE_KINDS}


def base(uid_map: str, launcher: int) -> int:
    """First id for the workers of this launcher (its pid), from the text of /proc/self/uid_map; 0 when there is none.

    With all ids there is a range that nobody uses. A container that has some tens of thousands gives its last ones.
    """
    ranges = [tuple(map(int, line.split())) for line in uid_map.splitlines() if line.strip()]
    if any(count == _FULL_RANGE for _, _, count in ranges):
        return SLOT_BASE + launcher % _LAUNCHERS * SLOTS
    inside, _, count = max(ranges, key=lambda one: one[2], default=(0, 0, 0))
    return inside + count - _SMALLEST_RANGE // 2 if count >= _SMALLEST_RANGE else 0


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
