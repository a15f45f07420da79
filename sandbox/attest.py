"""Compares what a worker says about its cage with the plan, and asks the kernel from outside. Front side.

The worker's own words come before the tool exists, from our code; still the front checks them, and reads the state of
both processes in its own proc: a worker cannot forge that.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

from sandbox.plan import Plan
from sandbox.steps.identity import NAMESPACE_KINDS
from sandbox.steps.keyring import FRESH, NONE

_MUST = {
    "NoNewPrivs": "1",
    "Seccomp": "2",
    "CapEff": "0",
    "CapPrm": "0",
    "CapBnd": "0",
    "CapAmb": "0",
    "CapInh": "0",
}


def compare(facts: dict[str, object], plan: Plan) -> str:
    """Empty when the attested facts are those of the plan, else the first difference."""
    landlock, seccomp, cgroup = facts.get("landlock"), facts.get("seccomp"), facts.get("cgroup")
    said = {
        "uid": facts.get("uid"),
        "capabilities": facts.get("capabilities"),
        "no_new_privs": facts.get("no_new_privs"),
        "landlock": landlock,
        "seccomp": seccomp.get("sha256") if isinstance(seccomp, dict) else None,
        "mounts": facts.get("mounts"),
        "cgroup": cgroup.get("version") if isinstance(cgroup, dict) else None,
    }
    for key, wanted in plan.expected().items():
        if said[key] != wanted:
            return f"{key} is {said[key]!r}, the plan says {wanted!r}"
    kernel_uid = facts.get("kernel_uid")
    if not isinstance(kernel_uid, int) or kernel_uid <= 0:
        return f"kernel_uid is {kernel_uid!r}"
    if plan.keyring.required and facts.get("keyring") not in (FRESH, NONE):
        return f"keyring is {facts.get('keyring')!r}"
    if plan.in_namespaces and (shared := _shared(facts.get("namespaces"), plan)):
        return f"the {shared} namespace is the front's own"
    if plan.only_self and "signals" not in facts:
        return "signals are not bounded"
    return ""


def _shared(said: object, plan: Plan) -> str:
    """A kind of namespace that the worker has in common with this process, or does not tell of; "" when there is none."""
    found = said if isinstance(said, dict) else {}
    kinds = [kind for kind in NAMESPACE_KINDS if kind != "user" or plan.identity.namespaces == "user"]
    return next((kind for kind in kinds if found.get(kind) in (None, _own(kind))), "")


@functools.cache
def _own(kind: str) -> int:
    return os.stat(f"/proc/self/ns/{kind}").st_ino


def look(keeper: int, plan: Plan) -> tuple[str, bool]:
    """Read the keeper's and the tool's status in /proc of the host.

    Returns (difference or "", whether it could be seen at all: a host may hide other processes).
    """
    try:
        with open(f"/proc/{keeper}/task/{keeper}/children", encoding="ascii") as file:
            tools = file.read().split()
        checked = [status_of(pid) for pid in (str(keeper), *tools)]
    except OSError:
        return "", False
    if len(tools) != 1:
        return f"the worker has {len(tools)} processes besides the keeper", True
    for status in checked:
        for key in odd(status, bounding=plan.privileges.bounding):
            return f"{key} is {status.get(key)} in the kernel's view", True
        if "0" in status.get("Uid", "0").split():
            return "a process of the worker has kernel uid 0", True
    return "", True


def odd(status: Mapping[str, str], *, bounding: bool) -> list[str]:
    """Keys of a status of /proc that are not as in a confined process. `bounding`: the bounding set has to be empty."""
    return [
        key
        for key, wanted in _MUST.items()
        if (key != "CapBnd" or bounding) and status.get(key, "").lstrip("0") != wanted.lstrip("0")
    ]


def status_of(place: str) -> dict[str, str]:
    """/proc/PLACE/status of a process, or of a thread ("PID/task/TID"). Raises OSError. proc_pid_status(5)."""
    with open(f"/proc/{place}/status", encoding="utf-8", errors="replace") as file:
        return {key: value.strip() for key, _, value in (line.partition(":") for line in file)}
