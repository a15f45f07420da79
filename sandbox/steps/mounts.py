"""Mounts: a root folder made of nothing but what the plan lists; everything else of the host does not exist there.

Runs: apply in the keeper, inside its own user and mount namespace, after its ids are set. The order matters:
sources are cloned first (the staging mount may hide them), attached by descriptor, compared with the identity that the
front saw at start-up, and only then the root is changed. mount_setattr(2) makes a tree read-only *recursively*; the old
remount flags do not. mount_namespaces(7), pivot_root(2).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox import abi, syscalls

_PLACES_FOR_STAGING = ("/tmp", "/mnt", "/var/tmp", "/opt", "/srv")  # noqa: S108 - only a mount point, never a file
_COMMON = abi.MOUNT_ATTR_NOSUID | abi.MOUNT_ATTR_NODEV
MOUNTED = (
    "tree",
    "device",
    "temp",
    "proc",
)  # kinds that are mounts, which are looked at from inside afterwards
PROC_OPTIONS = ((b"subset", b"pid"), (b"hidepid", b"ptraceable"))
UID = "{uid}"  # in the text of a file: the worker's user, as it is called inside


@dataclass(frozen=True, slots=True)
class Mount:
    """One thing in the tool's file system, at absolute path `target`.

    kind      tree (read-only bind of `source`, a folder or file) · device · temp (tmpfs of `size` bytes, writable) ·
              proc · file (with `text`) · link (to `text`) · folder (empty).
    identity  (st_dev, st_ino) of a tree's source as the front saw it; (0, 0) is not compared.
    execute   whether programs may be started from a tree.
    reason    why it is there, for `explain`.
    """

    kind: str
    target: str
    source: str = ""
    text: str = ""
    size: int = 0
    identity: tuple[int, int] = (0, 0)
    execute: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Mounts:
    """The whole file system of a worker, in the order in which it is built (parents first)."""

    mounts: tuple[Mount, ...]
    hostname: str = "toolcage"

    def apply(self, trees: dict[str, int], host_proc: int) -> dict[str, object]:
        """Build it and move in. `trees` holds detached trees by target that the launcher made; others are opened here.

        `host_proc`: descriptor of the host's /proc, to look at the own mounts where there is no /proc inside.
        Raises OSError; the message names the mount that failed.
        """
        syscalls.set_hostname(self.hostname.encode())
        syscalls.make_mounts_private()
        detached = dict(trees)
        for mount in self.mounts:
            if mount.kind in ("tree", "device") and mount.target not in detached:
                with _named(mount):
                    detached[mount.target] = clone_tree(mount)
        staging = self._enter_staging()
        for mount in self.mounts:
            with _named(mount):
                _build(mount, detached)
        syscalls.mount_setattr(
            staging, abi.MOUNT_ATTR_RDONLY | _COMMON | abi.MOUNT_ATTR_NOEXEC, recursive=False
        )
        syscalls.pivot_here()
        os.chdir("/")
        os.close(staging)
        _check_propagation(host_proc)
        checked = 0
        for mount in self.mounts:
            with _named(mount):
                checked += _verify(mount)
        return {"mounts": checked}

    def _enter_staging(self) -> int:
        options = ((b"size", b"4m"), (b"nr_inodes", b"4096"), (b"mode", b"0755"))
        staging = syscalls.new_filesystem(b"tmpfs", options, _COMMON)
        for place in _PLACES_FOR_STAGING:
            if os.path.isdir(place) and not os.path.islink(place):
                spot = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                syscalls.move_mount(staging, spot, b"")
                os.close(spot)
                os.fchdir(staging)
                return staging
        raise FileNotFoundError(2, f"no folder to mount on: none of {', '.join(_PLACES_FOR_STAGING)}")


def new_proc(options: tuple[tuple[bytes, bytes], ...]) -> int:
    """A detached proc of this pid namespace. EPERM where the host's own /proc is covered in places (containers)."""
    attributes = _COMMON | abi.MOUNT_ATTR_NOEXEC | abi.MOUNT_ATTR_RDONLY
    return syscalls.new_filesystem(b"proc", options, attributes)


def private_proc() -> int:
    """A proc of this pid namespace for the keeper's own sampling: never attached, so the tool cannot name it."""
    mount = new_proc(((b"subset", b"pid"),))
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=mount)
    finally:
        os.close(mount)


def clone_tree(mount: Mount, held: int = -1, userns: int = -1) -> int:
    """A detached, restricted copy of a mount's source; from the descriptor `held` when the caller holds one."""
    if held >= 0:
        tree = syscalls.open_tree(held, b"")
    else:
        path = os.fsencode(mount.source)
        spot = syscalls.openat2(abi.AT_FDCWD, path, os.O_PATH, abi.RESOLVE_NO_SYMLINKS)
        try:
            tree = syscalls.open_tree(spot, b"")
        finally:
            os.close(spot)
    try:
        found = os.stat(tree)
        if mount.identity != (0, 0) and (found.st_dev, found.st_ino) != mount.identity:
            raise PermissionError(1, "the source is not the one that was there at start-up")
        syscalls.mount_setattr(tree, _attributes(mount), userns=userns)
    except OSError:
        os.close(tree)  # the launcher lives on, and would hold the detached mounts for ever
        raise
    return tree


def _attributes(mount: Mount) -> int:
    if mount.kind == "device":
        # read-only keeps times and modes of the node, which is the host's; the device itself can be written
        return abi.MOUNT_ATTR_NOSUID | abi.MOUNT_ATTR_NOEXEC | abi.MOUNT_ATTR_RDONLY
    return _COMMON | abi.MOUNT_ATTR_RDONLY | (0 if mount.execute else abi.MOUNT_ATTR_NOEXEC)


def _build(mount: Mount, detached: dict[str, int]) -> None:
    place = mount.target.lstrip("/")
    if os.path.dirname(place):
        os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
    match mount.kind:
        case "tree" | "device":
            tree = detached.pop(mount.target)
            _place(place, folder=stat.S_ISDIR(os.fstat(tree).st_mode))
            syscalls.move_mount(tree, abi.AT_FDCWD, os.fsencode(place))
            os.close(tree)
        case "temp":
            _place(place, folder=True)
            _attach_temp(place, mount.size)
        case "proc":
            _place(place, folder=True)
            tree = new_proc(PROC_OPTIONS)
            syscalls.move_mount(tree, abi.AT_FDCWD, os.fsencode(place))
            os.close(tree)
        case "file":
            with open(place, "w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), 0o644)
                file.write(mount.text.replace(UID, str(os.getuid())))
        case "link":
            if not os.path.lexists(place):
                os.symlink(mount.text, place)
        case "folder":
            _place(place, folder=True)
        case _:
            raise ValueError(f"no such kind of mount: {mount.kind}")


def _attach_temp(place: str, size: int) -> None:
    owner = str(os.getuid()).encode()
    options = (
        (b"size", str(size).encode()),
        (b"nr_inodes", b"16384"),
        (b"mode", b"0700"),
        (b"uid", owner),
        (b"gid", owner),
    )
    tree = syscalls.new_filesystem(b"tmpfs", options, _COMMON | abi.MOUNT_ATTR_NOEXEC)
    syscalls.move_mount(tree, abi.AT_FDCWD, os.fsencode(place))
    os.close(tree)


def _place(place: str, *, folder: bool) -> None:
    """A mount point, unless an earlier mount already has something at that path."""
    if os.path.lexists(place):
        return
    if folder:
        os.mkdir(place, 0o755)
        os.chmod(place, 0o755)  # noqa: S103 - umask 077 would hide what is mounted below
    else:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))


def _check_propagation(host_proc: int) -> None:
    """No mount may belong to a peer group of the host: optional fields of mountinfo, proc_pid_mountinfo(5)."""
    descriptor = os.open("self/mountinfo", os.O_RDONLY | os.O_CLOEXEC, dir_fd=host_proc)
    try:
        text = b"".join(iter(lambda: os.read(descriptor, 1 << 16), b""))
    finally:
        os.close(descriptor)
    for line in text.splitlines():
        fields = line.split(b" - ")[0].split()[6:]
        if fields:
            raise PermissionError(1, f"a mount is tied to the host: {os.fsdecode(b' '.join(fields))}")


def _verify(mount: Mount) -> int:
    """Look at the result from inside. Returns 1 for a checked mount, 0 for something that is not one."""
    if mount.kind not in MOUNTED:
        return 0
    found = os.lstat(mount.target)
    if mount.identity not in ((0, 0), (found.st_dev, found.st_ino)):
        raise PermissionError(1, "something else is mounted there")
    flags = os.statvfs(mount.target).f_flag
    wanted = os.ST_NOSUID
    if mount.kind != "device":
        wanted |= os.ST_NODEV
    if mount.kind in ("tree", "proc", "device"):
        wanted |= os.ST_RDONLY
    if mount.kind == "temp" or (mount.kind == "tree" and not mount.execute):
        wanted |= os.ST_NOEXEC
    if flags & wanted != wanted:
        raise PermissionError(1, f"mount flags {flags:#x}, wanted {wanted:#x}")
    if mount.kind == "tree" and not os.access(mount.target, os.R_OK):
        raise PermissionError(13, "the worker's own user cannot read it")
    return 1


@contextlib.contextmanager
def _named(mount: Mount) -> Iterator[None]:
    """Say which mount failed: an errno alone helps nobody."""
    try:
        yield
    except OSError as problem:
        raise OSError(problem.errno, f"{mount.kind} {mount.target}: {problem.strerror}") from None
