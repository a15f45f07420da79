"""Hosts that deny something: each really refuses it to the launcher, and with it to every worker. Nothing is played.

A seccomp filter around the launcher refuses system calls as a container's filter or a security module would; a mount over a
part of /proc, or over the cgroups, hides them as container runtimes do. The front, the tests and the controls stay outside.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pyseccomp
import pytest

from sandbox import abi, spawn
from sandbox.filters import _export

ROOT = os.geteuid() == 0
_FILTER = "from sandbox import abi, syscalls; syscalls.prctl(abi.PR_SET_NO_NEW_PRIVS, 1); syscalls.load_seccomp(bytes.fromhex({!r}))"
# A part of /proc is covered, so that a new one would show more than this one does: the kernel refuses it.
_IN_A_MOUNT_NAMESPACE = """
import ctypes, os
uid, gid = os.geteuid(), os.getegid()
libc = ctypes.CDLL(None, use_errno=True)
def must(result):
    if result < 0: raise OSError(ctypes.get_errno(), "prelude")
must(libc.unshare(0x20000 if uid == 0 else 0x10020000))
if uid:
    open("/proc/self/setgroups", "w").write("deny")
    open("/proc/self/gid_map", "w").write(f"{{gid}} {{gid}} 1")
    open("/proc/self/uid_map", "w").write(f"{{uid}} {{uid}} 1")
must(libc.mount(None, b"/", None, 0x4000 | 1 << 18, None))
must(libc.mount({source!r}, {target!r}, {kind!r}, {flags}, None))
"""
MASKED_PROC = _IN_A_MOUNT_NAMESPACE.format(
    source=b"/proc/uptime", target=b"/proc/cpuinfo", kind=None, flags=0x1000
)
NO_CGROUPS = _IN_A_MOUNT_NAMESPACE.format(source=b"none", target=b"/sys/fs/cgroup", kind=b"tmpfs", flags=0)


def _without(*, flags: int = 0, calls: dict[str, int] | None = None) -> str:
    """A prelude that loads a filter: clone with any of `flags` is refused, and `calls` answer their errno."""
    built = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    built.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.ALLOW)
    if flags:
        built.add_rule(
            pyseccomp.ERRNO(errno.ENOSYS), abi.NUMBERS["clone3"]
        )  # its flags are out of a filter's sight
    for bit in (1 << n for n in range(32) if flags >> n & 1):
        built.add_rule(
            pyseccomp.ERRNO(errno.EPERM),
            abi.NUMBERS["clone"],
            pyseccomp.Arg(0, pyseccomp.MASKED_EQ, bit, bit),
        )
    for name, code in (calls or {}).items():
        built.add_rule(pyseccomp.ERRNO(code), abi.NUMBERS[name])
    return _FILTER.format(_export(built).hex())


USERNS = _without(flags=abi.CLONE_NEWUSER)
# What a container runtime's usual filter refuses besides namespaces: keys, mounts, and looking at others.
_CONTAINER = "mount umount2 pivot_root open_tree move_mount fsopen fsconfig mount_setattr keyctl kcmp"
NAMESPACES = _without(
    flags=abi.NEW_NAMESPACES & ~abi.CLONE_NEWTIME, calls=dict.fromkeys(_CONTAINER.split(), errno.EPERM)
)
MOUNTS = _without(
    calls={"mount": errno.EACCES, "fsopen": errno.EACCES}
)  # what AppArmor leaves of user namespaces
LANDLOCK = _without(calls={"landlock_create_ruleset": errno.EOPNOTSUPP})

_USUAL = spawn._START
HERE = "here"

# name of a host -> (what its launcher runs first, the rung on which it stands)
HOSTS: dict[str, tuple[str, str]] = {
    "masked-proc": (MASKED_PROC, "no-proc"),
    "no-landlock": (LANDLOCK, "no-landlock"),
    "container": (NAMESPACES, "no-namespaces"),
    "no-mounts": (MOUNTS, "no-namespaces"),
}
if ROOT:
    HOSTS["no-userns"] = (USERNS, "root-namespaces")
    HOSTS["no-cgroups"] = (NO_CGROUPS, "namespaces")  # an ordinary user stands there without any help


@contextmanager
def on_host(name: str) -> Iterator[str]:
    """Launchers that start meanwhile are on that host. Gives the rung."""
    if name == HERE:  # this machine as it is, whatever host another fixture still stands for
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spawn, "_START", _USUAL)
            yield ""
        return
    prelude, rung = HOSTS[name]
    path, main = _USUAL.split("; from sandbox.launcher", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawn, "_START", f"{path}\n{prelude}\nfrom sandbox.launcher{main}")
        yield rung
