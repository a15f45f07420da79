"""Launchers whose workers lack one thing: a namespace, a flag of a mount, a step. For the battery, which has to see it.

Runs in the launcher of a test, in place of `sandbox.launcher.main`, and in the workers that it forks. The hole is made
after the launcher has found out what the host gives: the host is as strong as ever, only the cage is not. Imports nothing
but the standard library and sandbox.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

from sandbox import abi, launcher, probing, slots, syscalls, tool, worker
from sandbox.steps import descriptors, identity, landlock, mounts
from sandbox.steps.cgroup import Cgroup
from sandbox.steps.keyring import Keyring
from sandbox.steps.landlock import Landlock
from sandbox.steps.privileges import Privileges
from sandbox.steps.seccomp import Seccomp

Hole = Callable[[], None]
_LEAKED = 77
_GROUP = 12345


def main(descriptor: int, hole: str) -> None:
    """The launcher, with that hole."""
    look = probing.look

    def look_first(base: int) -> probing.Facts:
        found = look(base)
        HOLES[hole]()
        return found

    probing.look = look_first
    launcher.main(descriptor)


def _replace(module: Any, **functions: Any) -> Hole:
    def hole() -> None:
        for name, function in functions.items():
            setattr(module, name, function)

    return hole


def _both(*holes: Hole) -> Hole:
    def hole() -> None:
        for one in holes:
            one()

    return hole


def _without_namespace(flag: int) -> Hole:
    def hole() -> None:
        for kind in probing.FLAGS:
            probing.FLAGS[kind] &= ~flag

    return hole


def _without_prctl(option: int) -> Hole:
    """prctl that says it has done `option`, and has not."""
    inner = syscalls.prctl
    return _replace(syscalls, prctl=lambda asked, *words: 0 if asked == option else inner(asked, *words))


def _stay_dumpable(option: int, *words: int) -> int:
    """Said, not only left out: a change of the kernel uid closes a process as well."""
    return _prctl(option, 1) if option == abi.PR_SET_DUMPABLE else _prctl(option, *words)


_prctl = syscalls.prctl


def _without_attribute(flag: int) -> Hole:
    """Mounts without one of their flags."""
    setattr_, new = syscalls.mount_setattr, syscalls.new_filesystem

    def weaker(tree: int, attributes: int, **named: Any) -> None:
        setattr_(tree, attributes & ~flag, **named)

    def weaker_new(kind: bytes, options: Any, attributes: int) -> int:
        return new(kind, options, attributes & ~flag)

    return _replace(syscalls, mount_setattr=weaker, new_filesystem=weaker_new)


def _only_the_top() -> None:
    """Flags that what is mounted below a lent folder does not get: the old calls are like that."""
    inner = syscalls.mount_setattr

    def top(tree: int, attributes: int, *, userns: int = -1, recursive: bool = True) -> None:
        inner(tree, attributes, userns=userns, recursive=False)

    _replace(syscalls, mount_setattr=top)()


def _tied() -> None:
    """Mounts that stay in the peer group of the host's, which are shared here as on every host with systemd."""

    def tied(tree: int, attributes: int, *, userns: int = -1, recursive: bool = True) -> None:
        attributes |= abi.MOUNT_ATTR_IDMAP if userns >= 0 else 0
        record = struct.pack("=QQQQ", attributes, 0, 0, max(userns, 0))
        flags = abi.AT_EMPTY_PATH | (abi.AT_RECURSIVE if recursive else 0)
        syscalls._invoke("mount_setattr", tree, b"", flags, record, len(record))

    if syscalls._libc.unshare(abi.CLONE_NEWNS) < 0:
        raise OSError("unshare")
    syscalls._invoke("mount", None, b"/", None, abi.MS_REC | 1 << 20, None)
    _replace(syscalls, mount_setattr=tied)()


def _leak() -> None:
    """The tool keeps a descriptor of the host's root folder."""
    inner = descriptors.close_all_but

    def leaky(keep: Any) -> None:
        kept = list(keep)
        inner([*kept, _LEAKED] if len(kept) == 5 and kept == list(range(5)) else kept)

    def arranged(ends: tuple[int, ...]) -> None:
        os.dup2(os.open("/", os.O_PATH), _LEAKED, inheritable=True)
        arrange(ends)

    arrange = tool._arrange
    _replace(descriptors, close_all_but=leaky)()
    _replace(tool, _arrange=arranged)()


def _keep_groups() -> None:
    os.setgroups([_GROUP])
    _replace(os, setgroups=lambda _groups: None)()


def _only_in_the_tool(self: Seccomp) -> dict[str, object]:
    return {} if os.getpid() == 1 else _apply_seccomp(self)


_apply_seccomp = Seccomp.apply
_NONE_LEFT = {"capabilities": 0, "no_new_privs": True}
_unseen_privileges = _replace(Privileges, _facts=lambda _self: _NONE_LEFT)
_unseen_mounts = _replace(mounts, _verify=lambda mount: int(mount.kind in mounts.MOUNTED))


def _handled(position: int, lost: int) -> Hole:
    """Landlock that does not deny some of its rights: (files, network, scopes) by position."""

    def fewer(version: int) -> tuple[int, ...]:
        rights = list(inner(version))
        rights[position] &= ~lost
        return tuple(rights)

    inner = landlock.handled
    return _replace(landlock, handled=fewer)


def _no_landlock(self: Landlock) -> dict[str, object]:
    return {"landlock": {"abi": self.version}}


# A keeper that tells of namespaces which nobody else has.
_said_namespaces = _replace(worker, namespaces=lambda _proc: dict.fromkeys(identity.NAMESPACE_KINDS, 1))
_FLAGS = {
    "ro": abi.MOUNT_ATTR_RDONLY, "nosuid": abi.MOUNT_ATTR_NOSUID, "nodev": abi.MOUNT_ATTR_NODEV,
    "noexec": abi.MOUNT_ATTR_NOEXEC,
}  # fmt: skip
_NAMESPACES = {
    "user": abi.CLONE_NEWUSER, "mnt": abi.CLONE_NEWNS, "pid": abi.CLONE_NEWPID, "net": abi.CLONE_NEWNET,
    "ipc": abi.CLONE_NEWIPC, "uts": abi.CLONE_NEWUTS, "cgroup": abi.CLONE_NEWCGROUP,
}  # fmt: skip
HOLES: dict[str, Hole] = {
    **{f"namespace {name}": _without_namespace(flag) for name, flag in _NAMESPACES.items()},
    **{
        f"namespace {name}, unsaid": _both(_without_namespace(_NAMESPACES[name]), _said_namespaces)
        for name in ("net", "ipc", "cgroup")
    },
    "descriptors of the keeper": _replace(descriptors, close_all_but=lambda _keep: None),
    "descriptors of the tool": _leak,
    "signals": _replace(descriptors, reset_signals=lambda: None),
    "session": _both(_replace(descriptors, start_session=lambda: None), _replace(os, setsid=lambda: None)),
    "kernel uid 0": _replace(slots.Slots, ids=lambda _self, _slot: (0, 0)),
    "groups": _keep_groups,
    "dumpable": _replace(syscalls, prctl=_stay_dumpable),
    **{f"mounts with {name}, checked": _without_attribute(flag) for name, flag in _FLAGS.items()},
    **{f"mounts with {name}": _both(_without_attribute(flag), _unseen_mounts) for name, flag in _FLAGS.items()},
    "mounts below": _only_the_top,
    "mounts tied, checked": _tied,
    "mounts tied": _both(_tied, _replace(mounts, _check_propagation=lambda *_where: None)),
    "proc with the kernel's files": _replace(mounts, PROC_OPTIONS=((b"hidepid", b"ptraceable"),)),
    "proc with the keeper": _replace(mounts, PROC_OPTIONS=((b"subset", b"pid"),)),
    "keyring": _replace(Keyring, apply=lambda _self: {"keyring": "fresh"}),
    "privileges": _replace(Privileges, apply=lambda _self: _NONE_LEFT),
    "capabilities": _both(_replace(syscalls, clear_capabilities=lambda: None), _unseen_privileges),
    "bounding set": _both(_without_prctl(abi.PR_CAPBSET_DROP), _unseen_privileges),
    "securebits": _both(_without_prctl(abi.PR_SET_SECUREBITS), _unseen_privileges),
    "no_new_privs": _both(_without_prctl(abi.PR_SET_NO_NEW_PRIVS), _unseen_privileges),
    "filter of the keeper": _replace(Seccomp, apply=_only_in_the_tool),
    "cgroup": _replace(Cgroup, apply=lambda self, _procs: {"cgroup": self.version}),
    "landlock": _replace(Landlock, apply=_no_landlock),
    "landlock network": _handled(1, abi.NET_ALL_TCP),
    "landlock signals": _handled(2, 2),
    "landlock devices": _handled(0, abi.FS_IOCTL_DEV),
    "landlock execute": _handled(0, abi.FS_EXECUTE),
    "landlock make": _handled(0, abi.FS_MAKE_REG | abi.FS_MAKE_DIR),
}  # fmt: skip
