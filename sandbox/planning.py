"""Planning: a Profile on a Host becomes a Plan, or an error that names the missing layer and the remedy.

Runs in the front, at start-up. Pure, but for looking at the paths of programs and folders.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import os
import secrets
from collections.abc import Collection

from sandbox import filters, programs
from sandbox.errors import ProfileRefused
from sandbox.filecalls import CALLS, MAY_BE_EMPTY
from sandbox.host import Host
from sandbox.ladder import DEFAULT_FLOOR
from sandbox.layout import mounts_for
from sandbox.plan import Plan
from sandbox.steps.cgroup import Cgroup
from sandbox.steps.identity import Identity
from sandbox.steps.keyring import Keyring
from sandbox.steps.landlock import SIGNALS_SINCE, Landlock
from sandbox.steps.limits import ResourceLimits
from sandbox.steps.mounts import Mount, Mounts
from sandbox.steps.privileges import Privileges
from sandbox.steps.seccomp import Reporting, Seccomp
from sandbox.types import Profile


class Filters:
    """Seccomp programs as raw BPF, compiled when a plan first needs one.

    tool, keeper  names of the system calls that each may make.
    apart         those of them that a tool may make only in namespaces of its own.
    """

    def __init__(self, tool: Collection[str], keeper: Collection[str], apart: Collection[str]) -> None:
        self._tool, self._keeper, self._apart = tuple(tool), tuple(keeper), frozenset(apart)
        self._compiled: dict[tuple[bool, bool, bool], bytes] = {}

    def tool(self, *, processes: bool, socket_pairs: bool, apart: bool = True) -> bytes:
        """The filter of a tool that may start processes, or make socket pairs, or neither; `apart`: in namespaces."""
        key = (processes, socket_pairs, apart)
        if key not in self._compiled:
            denied = frozenset() if apart else self._apart
            self._compiled[key] = filters.tool_filter(
                self._tool, processes=processes, socket_pairs=socket_pairs, denied=denied
            )
        return self._compiled[key]

    @functools.cached_property
    def keeper(self) -> bytes:
        """The filter of the keeper."""
        return filters.keeper_filter(self._keeper)


def make(profile: Profile, host: Host, compiled: Filters, floor: str = DEFAULT_FLOOR) -> Plan:
    """The plan for `profile` on `host`. Raises HostRefused or ProfileRefused, each with a remedy.

    floor: the weakest rung of the ladder that is accepted.
    """
    host.require(floor)
    _check(profile, host)
    if not profile.processes:  # an empty list allows nothing
        profile = dataclasses.replace(profile, processes="none")
    found = programs.needs(profile.command[0], profile.root)
    for extra in profile.processes if isinstance(profile.processes, tuple) else ():
        _merge(found, programs.needs(extra, profile.root))
    mounts = mounts_for(profile, host, found)
    many, apart = profile.processes != "none", host.namespaces != "none"
    program = compiled.tool(processes=many, socket_pairs=profile.socket_pairs, apart=apart)
    return Plan(
        name=profile.name,
        command=profile.command,
        environment=_environment(profile),
        root_at=profile.root_at or profile.root,
        processes=profile.processes if isinstance(profile.processes, str) else ", ".join(profile.processes),
        socket_pairs=profile.socket_pairs,
        rung=host.rung,
        lost=tuple(sentence for rung in host.missing for sentence in rung.lost),
        limits=profile.limits,
        cgroup=Cgroup.build(host.cgroup, profile.limits),
        identity=Identity(host.base > 0, host.namespaces),
        mounts=Mounts(mounts),
        keyring=Keyring(required=apart),
        privileges=Privileges(host.last_capability, bounding=apart or host.base > 0),
        resources=_resources(profile, host),
        landlock=_landlock(profile, host, found, mounts),
        seccomp=_program(program),
        keeper_seccomp=_program(compiled.keeper),
    )


def _resources(profile: Profile, host: Host) -> ResourceLimits:
    apart, limits = host.namespaces != "none", profile.limits
    if not apart:  # a file of the host's disk may not grow beyond the whole budget between two looks
        limits = dataclasses.replace(limits, file_mb=min(limits.file_mb, limits.tmp_mb))
    return ResourceLimits.build(limits, shared=not apart and host.base == 0, grouped=host.cgroup != "none")


def reporting(plan: Plan, compiled: Filters, keeper: bytes) -> Plan:
    """The same plan with the same decisions, made to report what it refuses: slower, for one who writes a policy.

    keeper: the filter of a keeper that reports.
    """
    program, apart = base64.b64decode(plan.seccomp.program), plan.in_namespaces
    many, pairs = plan.processes != "none", plan.socket_pairs
    looser = {} if many else {"processes": compiled.tool(processes=True, socket_pairs=pairs, apart=apart)}
    if not pairs:
        looser["socket_pairs"] = compiled.tool(processes=many, socket_pairs=True, apart=apart)
    files, door = filters.numbers(CALLS), secrets.randbits(63)
    asked = {number: MAY_BE_EMPTY.get(name) for number, name in files.items()}
    return dataclasses.replace(
        plan,
        seccomp=_program(filters.reporting_filter(program, asked, door)),
        keeper_seccomp=_program(keeper),
        reports=Reporting(
            decides=plan.seccomp.program,
            looser=tuple((key, _program(bpf).program) for key, bpf in looser.items()),
            files=tuple(files.items()),
            door=door,
        ),
    )


def _program(bpf: bytes) -> Seccomp:
    return Seccomp(base64.b64encode(bpf).decode())


def _merge(found: programs.Needs, more: programs.Needs) -> None:
    found.trees.update({path: why for path, why in more.trees.items() if not found.covers(path)})
    found.links.update(more.links)
    found.execute += [path for path in more.execute if path not in found.execute]


def _environment(profile: Profile) -> tuple[tuple[str, str], ...]:
    """Built from nothing: the fixed part, then what the policy adds."""
    fixed = {
        "PATH": programs.TOOL_PATH,
        "HOME": "/tmp/home",  # noqa: S108 - the private /tmp inside the cage
        "TMPDIR": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
    }
    return tuple(sorted({**fixed, **dict(profile.environment)}.items()))


def _landlock(profile: Profile, host: Host, found: programs.Needs, mounts: tuple[Mount, ...]) -> Landlock:
    execute = list(found.execute)
    if profile.processes == "any":
        execute += [mount.target for mount in mounts if mount.kind == "tree" and mount.execute]
    read = [mount.target for mount in mounts if mount.kind in ("tree", "proc")]
    apart = host.namespaces != "none"
    lent = [mount for mount in mounts if mount.kind == "tree" and mount.identity != (0, 0)]
    return Landlock(
        version=host.landlock,
        read=(*read, "/etc") if apart else tuple(path for path in read if path != "/proc"),
        write=("/tmp",),  # noqa: S108
        devices=tuple(mount.target for mount in mounts if mount.kind == "device"),
        execute=tuple(dict.fromkeys(execute)),
        known=() if apart else tuple((mount.target, *mount.identity) for mount in lent),
    )


def _check(profile: Profile, host: Host) -> None:
    if host.namespaces == "none" and host.landlock < SIGNALS_SINCE and profile.processes != "none":
        raise ProfileRefused(
            f"{profile.name}: on a host without namespaces, and with Landlock below ABI {SIGNALS_SINCE} (Linux 6.12), "
            "nothing could end for certain what a tool has started",
            'processes = "none" for this tool, or a host with namespaces (toolcage doctor says what it needs)',
        )
    if host.namespaces == "none" and profile.root_at not in (None, profile.root):
        raise ProfileRefused(
            f"root_at {profile.root_at!r}: without namespaces the root folder cannot have another name",
            "leave root_at out, or use a host with namespaces (toolcage doctor says what it needs)",
        )
    if not os.path.isabs(profile.command[0]):
        raise ProfileRefused(f"program {profile.command[0]!r} is not an absolute path", "resolve it first")
    if profile.root_at is not None and (
        not profile.root_at.startswith("/") or os.path.normpath(profile.root_at) == "/"
    ):
        raise ProfileRefused(
            f"root_at {profile.root_at!r}: an absolute path below / is needed", 'use "/work"'
        )
