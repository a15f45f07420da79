"""The file system of a cage as a list of mounts: what is there, and why. The rest of the host does not exist inside.

Runs in the front, at start-up; pure but for asking which system paths exist.
"""

from __future__ import annotations

import os

from sandbox import programs
from sandbox.errors import ProfileRefused
from sandbox.host import Host
from sandbox.steps.mounts import UID, Mount
from sandbox.types import Profile

_MIB = 1 << 20
# No /dev/zero: mapping it shared makes memory that belongs to no process and that no limit here would see.
_DEVICES = ("null", "full", "random", "urandom")
_HOME = "/tmp/home"  # noqa: S108 - inside the cage, on its own tmpfs
# Files that programs expect in /etc. None of them says anything about the host or its users.
_ETC = {
    "/etc/passwd": f"tool:x:{UID}:{UID}:tool:{_HOME}:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "/etc/group": f"tool:x:{UID}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_ETC_TREES = ("/etc/alternatives", "/etc/ld.so.cache")


def mounts_for(profile: Profile, host: Host, found: programs.Needs) -> tuple[Mount, ...]:
    """Parents before children. Raises ProfileRefused when a listed path does not exist or cannot be used."""
    mounts = [*_system(host), *_runtime(profile, host)]
    root_at = profile.root_at or profile.root
    inside_root = [path for path in found.trees if programs.below(path, profile.root)]
    for path, reason in found.trees.items():
        if path not in inside_root or root_at != profile.root:
            mounts.append(_tree(path, path, reason, execute=True))
    mounts += [
        Mount("link", path, text=target, reason=reason)
        for path, (target, reason) in found.links.items()
        if not programs.below(path, profile.root) or root_at != profile.root
    ]
    for path in profile.read_only:
        mounts.append(_tree(path, path, "listed in the policy (read_only_paths)", execute=False))
    execute_root = bool(inside_root) or profile.processes == "any"
    mounts.append(_tree(profile.root, root_at, "the root folder", execute=execute_root))
    return _ordered(mounts)


def _system(host: Host) -> list[Mount]:
    mounts = []
    for path, link in host.system:
        if link:
            mounts.append(Mount("link", path, text=link, reason="system folder"))
        else:
            mounts.append(_tree(path, path, "system folder", execute=True))
    mounts += [_tree(path, path, "system data", execute=False) for path in _ETC_TREES if os.path.exists(path)]
    return mounts


def _runtime(profile: Profile, host: Host) -> list[Mount]:
    size = profile.limits.tmp_mb * _MIB
    mounts = [Mount("file", path, text=text, reason="generated") for path, text in _ETC.items()]
    mounts += [Mount("device", f"/dev/{name}", f"/dev/{name}", reason="device node") for name in _DEVICES]
    mounts += [
        Mount("temp", "/tmp", size=size, reason="private, gone with the call"),  # noqa: S108
        Mount("folder", _HOME, reason="empty home folder"),
    ]
    if host.proc:
        mounts += [
            Mount("link", "/dev/fd", text="/proc/self/fd", reason="standard name"),
            Mount("link", "/dev/stdin", text="/proc/self/fd/0", reason="standard name"),
            Mount("link", "/dev/stdout", text="/proc/self/fd/1", reason="standard name"),
            Mount("link", "/dev/stderr", text="/proc/self/fd/2", reason="standard name"),
            Mount("proc", "/proc", reason="own processes only"),
        ]
    return mounts


def _tree(source: str, target: str, reason: str, *, execute: bool) -> Mount:
    try:
        found = os.lstat(source)
    except OSError as problem:
        raise ProfileRefused(
            f"{reason}: {source}: {problem.strerror}", "correct the path in the policy"
        ) from None
    if os.path.realpath(source) != source:
        raise ProfileRefused(
            f"{reason}: {source} goes through a symlink", f"write {os.path.realpath(source)}"
        )
    return Mount(
        "tree", target, source, identity=(found.st_dev, found.st_ino), execute=execute, reason=reason
    )


def _ordered(mounts: list[Mount]) -> tuple[Mount, ...]:
    """By path, so that parents come first; the first mention of a path wins, but the root folder always stays."""
    chosen: dict[str, Mount] = {}
    for mount in mounts:
        if mount.target not in chosen or mount.reason == "the root folder":
            chosen[mount.target] = mount
    return tuple(sorted(chosen.values(), key=lambda mount: mount.target.split("/")))
