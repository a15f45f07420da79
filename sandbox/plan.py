"""A plan: the complete list of what will be enforced for one tool. Made by `planning`, once, at start-up.

Used in every process. A plan prints as JSON (`explain`), crosses to the launcher as JSON, and is never changed
afterwards. The order of the steps stands here and nowhere else:

    launcher   Namespaces   clone3 with all that the rung has, so that no process of a call exists outside; the id maps
    keeper     Descriptors  first, a leaked descriptor beats every later layer
               Identity     before the mounts, so that they belong to the inside user
               Mounts       needs the capabilities that Privileges takes away
               Keyring      before the filter that denies keyctl
               Privileges   before the fork, so that the tool never had any
               Seccomp      of its own (keeper_seccomp), after the tool's process was forked and has proven its steps
    tool       Cgroup       before anything is used that it counts
               Descriptors  three pipes and nothing else
               Limits       inside the user namespace, where RLIMIT_NPROC has a budget of its own
               Landlock     after the mounts (mount is refused afterwards), needs no_new_privs
               Signals      (no pid namespace) only to itself
               Seccomp      last, because it denies what the steps before it need

Without namespaces (rung no-namespaces) there are no Mounts; the keeper takes a Landlock domain of its own before it
forks the tool, so that it can read no more than the tool may, and /proc.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from sandbox.steps.cgroup import Cgroup
from sandbox.steps.identity import INSIDE, Identity
from sandbox.steps.keyring import Keyring
from sandbox.steps.landlock import Landlock
from sandbox.steps.limits import ResourceLimits
from sandbox.steps.mounts import MOUNTED, Mount, Mounts
from sandbox.steps.privileges import Privileges
from sandbox.steps.seccomp import Reporting, Seccomp
from sandbox.types import Limits

# Folders of the host's system. They are mounted as they are; everything else has to be asked for.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")


_PARTS: dict[str, type[Any]] = {
    "limits": Limits,
    "cgroup": Cgroup,
    "identity": Identity,
    "keyring": Keyring,
    "privileges": Privileges,
    "resources": ResourceLimits,
    "landlock": Landlock,
    "seccomp": Seccomp,
    "keeper_seccomp": Seccomp,
}


@dataclass(frozen=True)  # without slots: the digest is kept once it is known, every call reports it
class Plan:
    """Everything a worker needs to know besides one call's arguments.

    reports: set only in a plan that was made to report what it refuses; no policy asks for it, and no server has one.
    """

    name: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    root_at: str
    processes: str
    socket_pairs: bool
    rung: str
    lost: tuple[str, ...]
    limits: Limits
    cgroup: Cgroup
    identity: Identity
    mounts: Mounts
    keyring: Keyring
    privileges: Privileges
    resources: ResourceLimits
    landlock: Landlock
    seccomp: Seccomp
    keeper_seccomp: Seccomp
    reports: Reporting | None = None

    def as_json(self) -> dict[str, object]:
        """Plain data; `from_json` reads it back."""
        return dataclasses.asdict(self)

    @functools.cached_property
    def digest(self) -> str:
        """sha256 of the JSON form: two equal digests enforce the same."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()

    def expected(self) -> dict[str, object]:
        """What an honest attestation of this plan says, as far as it is known beforehand."""
        mounted = self.in_namespaces
        return {
            "capabilities": 0,
            "no_new_privs": True,
            "landlock_abi": self.landlock.version,
            "seccomp": self.seccomp.digest,
            "mounts": sum(mount.kind in MOUNTED for mount in self.mounts.mounts) if mounted else None,
            "cgroup": self.cgroup.version,
            **({"uid": INSIDE} if self.identity.namespaces == "user" else {}),
        }

    @property
    def in_namespaces(self) -> bool:
        """Whether a call has a file system and a pid namespace of its own."""
        return self.identity.namespaces != "none"

    @property
    def has_proc(self) -> bool:
        """Whether a /proc of the call's own stands inside."""
        return any(mount.kind == "proc" for mount in self.mounts.mounts)

    @property
    def only_self(self) -> bool:
        """Whether the tool may signal nobody but itself: it is one process, in the host's pid namespace."""
        return not self.in_namespaces and self.processes == "none"


def from_json(document: dict[str, Any]) -> Plan:
    """The plan again, in the launcher. Raises TypeError or KeyError for anything that `as_json` does not write."""
    fields = {key: _tuples(value) for key, value in document.items()}
    for key, kind in _PARTS.items():
        fields[key] = kind(**fields[key])
    mounts = tuple(Mount(**mount) for mount in fields["mounts"]["mounts"])
    fields["mounts"] = Mounts(mounts, fields["mounts"]["hostname"])
    fields["reports"] = Reporting(**fields["reports"]) if fields["reports"] else None
    return Plan(**fields)


def _tuples(value: Any) -> Any:
    """JSON has lists where plans have tuples."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return value
