"""The cage of a plan, changed at one place, so that what stands behind it can be attacked too. Pure.

Layers overlap: as long as the filter refuses every socket, nobody sees whether the network namespace is there. Each
change opens one layer, or lends one thing, and leaves the others as they are in the plan under attack: one that is weak
stays weak. Such a cage exists for the battery only; attempts are harmless even where nothing holds them.
"""

from __future__ import annotations

import base64
import dataclasses
import struct
from pathlib import Path

from sandbox.plan import Plan
from sandbox.steps.limits import MIB, ResourceLimits
from sandbox.steps.mounts import Mount
from sandbox.steps.seccomp import Seccomp
from sandbox.types import Limits

AS_IS, SMALL, BRIEF, UNFILTERED, SHELF = "", "small", "brief", "unfiltered", "shelf"
KINDS = {
    SMALL: "with small limits, so that reaching them costs little",
    BRIEF: "with a second of time",
    UNFILTERED: "with a filter that allows every system call: what is behind it",
    SHELF: "with a writable folder and a folder of programs that Landlock does not know: what is behind the mounts",
}
SHELF_AT, PROGRAMS_AT = "/toolcage-verify-shelf", "/toolcage-verify-programs"
SMALL_LIMITS = Limits(
    wall_seconds=20,
    cpu_seconds=1,
    memory_mb=64,
    processes=12,
    open_files=32,
    file_mb=1,
    tmp_mb=4,
    output_mb=1,
)
_BRIEF_SECONDS = 1.0
# SECCOMP_RET_ALLOW as the only instruction; linux/filter.h.
ALLOW_ALL = Seccomp(base64.b64encode(struct.pack("@HBBI", 0x06, 0, 0, 0x7FFF0000)).decode())


def change(plan: Plan, kind: str, programs: Path) -> Plan:
    """The plan of a changed cage, under a name of its own. `programs`: the folder that the shelf lends."""
    changed = {SMALL: _small, BRIEF: _brief, UNFILTERED: _unfiltered, SHELF: _shelf, AS_IS: _as_is}
    return dataclasses.replace(changed[kind](plan, programs), name=name_of(plan, kind))


def name_of(plan: Plan, kind: str) -> str:
    """The name under which a changed plan is registered."""
    return f"{plan.name} {KINDS[kind]}" if kind else plan.name


def _as_is(plan: Plan, _programs: Path) -> Plan:
    return plan


def _small(plan: Plan, _programs: Path) -> Plan:
    """Only limits that the plan has are made smaller: one that is missing stays missing."""
    smaller = dict(ResourceLimits.build(SMALL_LIMITS).values)
    values = tuple((name, min(value, smaller[name])) for name, value in plan.resources.values)
    size = SMALL_LIMITS.tmp_mb * MIB
    mounts = tuple(
        dataclasses.replace(mount, size=min(mount.size, size)) if mount.kind == "temp" else mount
        for mount in plan.mounts.mounts
    )
    return dataclasses.replace(
        plan,
        limits=SMALL_LIMITS,
        cgroup=dataclasses.replace(
            plan.cgroup,
            memory_bytes=min(plan.cgroup.memory_bytes, (SMALL_LIMITS.memory_mb + SMALL_LIMITS.tmp_mb) * MIB),
            processes=min(plan.cgroup.processes, SMALL_LIMITS.processes),
        ),
        resources=dataclasses.replace(plan.resources, values=values),
        mounts=dataclasses.replace(plan.mounts, mounts=mounts),
    )


def _brief(plan: Plan, _programs: Path) -> Plan:
    return dataclasses.replace(plan, limits=dataclasses.replace(plan.limits, wall_seconds=_BRIEF_SECONDS))


def _unfiltered(plan: Plan, _programs: Path) -> Plan:
    return dataclasses.replace(plan, seccomp=ALLOW_ALL)


def _shelf(plan: Plan, programs: Path) -> Plan:
    seen = programs.stat()
    more = (
        Mount("temp", SHELF_AT, size=MIB),
        Mount("tree", PROGRAMS_AT, str(programs), identity=(seen.st_dev, seen.st_ino), execute=True),
    )
    both = sorted((*plan.mounts.mounts, *more), key=lambda mount: mount.target.split("/"))
    return dataclasses.replace(plan, mounts=dataclasses.replace(plan.mounts, mounts=tuple(both)))
