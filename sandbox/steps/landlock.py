"""Landlock: a second, independent word on which files the tool may read, write and execute; no TCP, no outside signals.

Runs: apply in the tool, after the mounts (mount is refused afterwards) and before seccomp.
Needs: ABI 3 (Linux 6.2), without which truncation is not controlled; 4 adds TCP, 5 device ioctls, 6 scopes.
Does not: hide names and metadata (the mounts do), stop system calls (seccomp does). landlock(7).
"""

from __future__ import annotations

import dataclasses
import os
import stat
from dataclasses import dataclass

from sandbox import abi, syscalls

MINIMUM_ABI = 3
SIGNALS_SINCE = abi.LANDLOCK_SCOPE_SINCE
_READ = abi.FS_READ_FILE | abi.FS_READ_DIR
_WRITE = (
    _READ
    | abi.FS_WRITE_FILE
    | abi.FS_TRUNCATE
    | abi.FS_REMOVE_DIR
    | abi.FS_REMOVE_FILE
    | abi.FS_MAKE_DIR
    | abi.FS_MAKE_REG
    | abi.FS_MAKE_SYM
    | abi.FS_MAKE_FIFO
    | abi.FS_REFER
)
_DEVICE = abi.FS_READ_FILE | abi.FS_WRITE_FILE
_FILE_ONLY = abi.FS_READ_FILE | abi.FS_WRITE_FILE | abi.FS_EXECUTE | abi.FS_TRUNCATE


def handled(version: int) -> tuple[int, int, int]:
    """(filesystem, network, scope) rights that ABI `version` can deny; all of them are denied by default."""
    filesystem = (1 << 13) - 1
    for since, right in (
        (2, abi.FS_REFER),
        (3, abi.FS_TRUNCATE),
        (5, abi.FS_IOCTL_DEV),
        (9, abi.FS_RESOLVE_UNIX),
    ):
        if version >= since:
            filesystem |= right
    return filesystem, abi.NET_ALL_TCP if version >= 4 else 0, abi.SCOPE_ALL if version >= 6 else 0


@dataclass(frozen=True, slots=True)
class Landlock:
    """Paths as the tool sees them.

    version  ABI; 0 on a host without Landlock, whose rung says so.
    execute  files or folders whose programs may be started.
    known    (path, st_dev, st_ino) of lent folders, where no mount has compared them already.
    """

    version: int
    read: tuple[str, ...]
    write: tuple[str, ...]
    devices: tuple[str, ...]
    execute: tuple[str, ...]
    known: tuple[tuple[str, int, int], ...] = ()

    def moved(self, scratch: str) -> Landlock:
        """The same with the temporary folder at `scratch`, which is known only when the call is prepared."""
        return dataclasses.replace(self, write=(scratch,))

    def around(self, *more: str) -> Landlock:
        """A domain for the keeper, in which the tool's own is nested: it reads `more` as well."""
        return dataclasses.replace(self, read=(*self.read, *more))

    def apply(self) -> dict[str, object]:
        """Restrict this process for good. A path that does not exist in the cage is an error: the plan was wrong."""
        if self.version == 0:
            return {"landlock": {"abi": 0}}
        filesystem, network, scope = handled(self.version)
        ruleset = syscalls.landlock_ruleset(filesystem, network, scope)
        try:
            for paths, access in (
                (self.read, _READ),
                (self.write, _WRITE),
                (self.devices, _DEVICE),
                (self.execute, abi.FS_EXECUTE | _READ),
            ):
                for path in paths:
                    self._allow(ruleset, path, access & filesystem)
            syscalls.landlock_restrict_self(ruleset)
        finally:
            os.close(ruleset)
        return {"landlock": {"abi": self.version, "fs": filesystem, "net": network, "scope": scope}}

    def _allow(self, ruleset: int, path: str, access: int) -> None:
        known = next((item[1:] for item in self.known if item[0] == path), None)
        # a lent folder is the one that was there at start-up, and no link has taken its place
        resolve = 0 if known is None else abi.RESOLVE_NO_SYMLINKS
        descriptor = syscalls.openat2(abi.AT_FDCWD, os.fsencode(path), os.O_PATH, resolve)
        try:
            found = os.fstat(descriptor)
            if known is not None and known != (found.st_dev, found.st_ino):
                raise PermissionError(1, f"{path} is not what was there at start-up")
            if not stat.S_ISDIR(found.st_mode):
                access &= _FILE_ONLY
            syscalls.landlock_allow_path(ruleset, access, descriptor)
        finally:
            os.close(descriptor)
