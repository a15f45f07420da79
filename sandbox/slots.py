"""Kernel ids for workers, and the trees that only root can make: id-mapped, cloned from descriptors held since start-up.

Runs in the launcher. As an ordinary user there is one id, the caller's own, and no trees: the worker clones them itself.
mount_setattr(2) MOUNT_ATTR_IDMAP, Linux 5.12; a file system without support is mounted without it.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from typing import NoReturn

from sandbox import abi, syscalls
from sandbox.plan import SYSTEM, Plan
from sandbox.steps.descriptors import close_all_but
from sandbox.steps.identity import write_map
from sandbox.steps.mounts import Mount, clone_tree

# Also where Toolcage is root of a container only: the file system belongs to a user namespace above.
_NO_IDMAP = (errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)


class StepFailed(OSError):
    """An OSError of a step that is not the one in progress."""

    def __init__(self, step: str, problem: OSError) -> None:
        super().__init__(problem.errno, problem.strerror)
        self.step = step


def _hold_namespace() -> NoReturn:
    """A process whose only use is its user namespace; it must neither outlive the launcher nor hold what it holds."""
    try:
        syscalls.prctl(abi.PR_SET_PDEATHSIG, signal.SIGKILL)
        close_all_but(())
        while True:
            time.sleep(60)
    finally:
        os._exit(70)  # a fork of the launcher must not go on into the launcher's code


class Slots:
    """`alive`: read end of a pipe whose write end only the launcher has; it ends when the launcher ends.

    base: first kernel id of the workers, 0 for the caller's own.
    """

    def __init__(self, alive: int, writer: int, base: int) -> None:
        self.alive = alive
        self.base = base
        self._writer = writer
        self._held: dict[str, int] = {}
        self._maps: dict[tuple[int, int, int], int] = {}
        self._without_idmap: set[str] = set()

    def hold(self, plan: Plan) -> None:
        """Open every source of the plan once; later swaps of the path change nothing. OSError names the path."""
        for mount in plan.mounts.mounts:
            if mount.kind not in ("tree", "device") or mount.source in self._held:
                continue
            path = os.fsencode(mount.source)
            held = syscalls.openat2(abi.AT_FDCWD, path, os.O_PATH, abi.RESOLVE_NO_SYMLINKS)
            found = os.fstat(held)
            if mount.identity not in ((0, 0), (found.st_dev, found.st_ino)):
                os.close(held)
                raise PermissionError(1, f"{mount.source} changed during start-up")
            self._held[mount.source] = held

    def take(self, used: set[int]) -> int:
        """The lowest free slot."""
        return next(slot for slot in range(len(used) + 1) if slot not in used)

    def ids(self, slot: int) -> tuple[int, int]:
        """(uid, gid) outside for a worker."""
        return (self.base + slot, self.base + slot) if self.base else (os.geteuid(), os.getegid())

    def trees(self, plan: Plan, slot: int) -> dict[str, int]:
        """A detached tree for every bind of the plan, by target; the caller closes them."""
        made: dict[str, int] = {}
        mapped = plan.identity.namespaces == "user"
        try:
            for mount in plan.mounts.mounts:
                if mount.kind in ("tree", "device"):
                    made[mount.target] = self._tree(mount, slot if mapped else None)
        except OSError:
            for tree in made.values():
                os.close(tree)
            raise
        return made

    def _tree(self, mount: Mount, slot: int | None) -> int:
        held = self._held[mount.source]
        # What everybody may read needs no map, and /usr holds files of many owners. A root folder is never one of these.
        system = mount.kind == "device" or mount.source in SYSTEM or mount.source.startswith("/etc/")
        if slot is None or system or mount.source in self._without_idmap:
            return clone_tree(mount, held)
        owner = os.fstat(held)
        try:
            return clone_tree(mount, held, self._userns(owner.st_uid, owner.st_gid, slot))
        except OSError as problem:
            if problem.errno not in _NO_IDMAP:
                raise
        self._without_idmap.add(mount.source)
        return clone_tree(mount, held)

    def _userns(self, uid: int, gid: int, slot: int) -> int:
        """A user namespace that says: what `uid` and `gid` own on disk belongs to the slot's ids here."""
        key = (uid, gid, slot)
        if key not in self._maps:
            try:
                pid, pidfd = syscalls.spawn(abi.CLONE_NEWUSER)
            except OSError as problem:
                raise StepFailed("namespaces", problem) from None
            if pid == 0:
                _hold_namespace()
            try:
                outside = self.base + slot
                for name, line in (("gid_map", f"{gid} {outside} 1"), ("uid_map", f"{uid} {outside} 1")):
                    write_map(pid, name, line)
                self._maps[key] = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
            finally:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.waitpid(pid, 0)
                os.close(pidfd)
        return self._maps[key]
