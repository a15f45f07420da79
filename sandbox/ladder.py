"""The ladder: which layers a host can give, from the strongest rung to the weakest, and what each lower rung loses.

Pure data, importable everywhere. A policy's `floor` names the weakest rung that it accepts; a host below it is refused
before a client connects. Nothing that a client sends is read here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Namespaces = Literal["user", "root", "none"]
Cgroup = Literal["v2", "v1", "none"]


@dataclass(frozen=True, slots=True)
class Rung:
    """`missing`: the layer whose absence puts a host here; `lost`: what does not hold any more, one sentence each."""

    name: str
    missing: str
    lost: tuple[str, ...]


FULL = Rung("full", "", ())
CGROUP_V1 = Rung(
    "cgroup-v1",
    "cgroup v2",
    ("when memory runs out the kernel may end one process of a call before the rest is ended",),
)
NAMESPACES = Rung(
    "namespaces",
    "cgroup",
    (
        "memory, processes and processor time of a whole call are sampled, a few milliseconds late; the kernel bounds "
        "each process only",
        "kernel memory that a tool makes (pipes, locks) is not counted",
    ),
)
ROOT_NAMESPACES = Rung(
    "root-namespaces",
    "user namespace",
    (
        "a worker's user belongs to the host's own user namespace: a kernel fault that gave it a capability would give "
        "it the host's",
        "inside, the user has a number of its own instead of 1000",
        "files that only the root folder's owner may read cannot be read, because nothing maps that owner",
    ),
)
NO_PROC = Rung("no-proc", "proc", ("there is no /proc inside: tools that need it fail",))
NO_LANDLOCK = Rung(
    "no-landlock",
    "landlock",
    (
        "files are decided by the mounts alone, not twice; any program that is mounted can be started where the policy "
        "allows processes, and the tool can replace itself by one",
        "a front that was taken over is not kept from its launcher's memory",
        "a FIFO that lies in a lent folder can be written to",
    ),
)
NO_NAMESPACES = Rung(
    "no-namespaces",
    "namespaces",
    (
        "names, sizes, times and link targets of files outside are visible; their contents are not",
        "that other processes exist is visible, of the same user's also how many descriptors they have; they cannot be "
        "signalled or read",
        "there is no /proc inside: tools that need it fail",
        "modes, times and extended attributes of files cannot be changed or read, also of the tool's own",
        "the temporary folder is one on the host's disk, bounded by samples and a look at the end (not what is "
        "mapped, closed and deleted), and "
        "has another name than /tmp",
        "devices whose nodes lie in the root folder can be opened where their permissions allow it",
        "the host's name is visible; the session keyring and System V objects may be the host's, but the filter refuses "
        "every call that uses them",
        "what a tool has written cannot be started, but a program loader that may be started can map it as code",
        "when a keeper is killed, by the kernel for want of memory or by the operator, processes that a tool has left in "
        "the background may stay; tools that start processes need Landlock ABI 6 (Linux 6.12)",
        "the worker's user is the caller's own; when Toolcage runs as root it is another one, and files that only the "
        "root folder's owner may read cannot be read",
    ),
)

LADDER = (FULL, CGROUP_V1, NAMESPACES, ROOT_NAMESPACES, NO_PROC, NO_LANDLOCK, NO_NAMESPACES)
NAMES = tuple(rung.name for rung in LADDER)
DEFAULT_FLOOR = NAMESPACES.name


def missing(*, namespaces: Namespaces, proc: bool, landlock: bool, cgroup: Cgroup) -> tuple[Rung, ...]:
    """The rungs whose layer is missing, strongest first: the last one is where the host stands."""
    absent = {
        CGROUP_V1: cgroup == "v1",
        NAMESPACES: cgroup == "none",
        ROOT_NAMESPACES: namespaces == "root",
        NO_PROC: namespaces != "none" and not proc,
        NO_LANDLOCK: not landlock,
        NO_NAMESPACES: namespaces == "none",
    }
    return tuple(rung for rung in LADDER if absent.get(rung, False))


def accepts(floor: str, rung: str) -> bool:
    """Whether a policy with this floor may be served on this rung."""
    return NAMES.index(rung) <= NAMES.index(floor)
