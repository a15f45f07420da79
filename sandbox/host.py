"""What this host is: facts that plans are made from, found by the launcher, which has tried it. Never from version numbers.

Runs in the front, at start-up. A Host is data, so a test can make plans for any kernel on one machine.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from sandbox import abi, ladder, spawn, wire
from sandbox.errors import HostRefused, WireError
from sandbox.ladder import Cgroup, Namespaces, Rung
from sandbox.plan import SYSTEM
from sandbox.spawn import Launcher
from sandbox.steps.landlock import MINIMUM_ABI
from sandbox.wire import Packet

_SECONDS = 20.0  # a cage takes milliseconds, a loaded host longer


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that this host refused to the launcher: at which step, with which errno (0: none)."""

    layer: str
    step: str
    errno: int
    detail: str


@dataclass(frozen=True, slots=True)
class Host:
    """`base`: first kernel id of workers of their own, 0 for the caller's; `landlock`: ABI, 0 when it cannot be used."""

    machine: str
    root_user: bool
    base: int
    works: bool  # False: not even the steps that need no namespaces could be taken, or something went wrong
    namespaces: Namespaces
    proc: bool
    landlock: int
    cgroup: Cgroup
    cgroup_why: str  # what keeps cgroup v2 away; "" when nothing does
    last_capability: int
    system: tuple[tuple[str, str], ...]  # folders below "/": (path, link target or "" for a folder)
    refused: tuple[Refusal, ...] = ()

    @property
    def missing(self) -> tuple[Rung, ...]:
        """What is missing to the full cage, the worst last."""
        return ladder.missing(
            namespaces=self.namespaces,
            proc=self.proc,
            landlock=self.landlock > 0,
            cgroup=self.cgroup,
        )

    @property
    def rung(self) -> str:
        """Name of the rung on which this host stands, whatever a policy accepts."""
        return self.missing[-1].name if self.missing else ladder.FULL.name

    def why(self, layer: str) -> Refusal | None:
        """What was refused about a layer, the last attempt first."""
        if layer.startswith("cgroup"):
            return Refusal("cgroup", "cgroup", 0, self.cgroup_why) if self.cgroup_why else None
        asked = "namespaces" if layer == "user namespace" else layer
        return next((found for found in reversed(self.refused) if found.layer == asked), None)

    def require(self, floor: str) -> None:
        """Raise HostRefused, naming the layer and the remedy, when this host stands below `floor`."""
        if self.machine not in abi.SUPPORTED_MACHINES:
            raise HostRefused(
                f"machine {self.machine}: system call numbers are known for {', '.join(abi.SUPPORTED_MACHINES)} only",
                "run Toolcage on one of these machines",
            )
        if self.root_user and not self.base:
            raise HostRefused(
                "identity: running as root, but no kernel ids can be given to workers",
                "start Toolcage as an ordinary user, or give this container more ids (a range of 4096 or more)",
            )
        if not self.works:
            found = self.refused[-1]
            raise HostRefused(
                f"{found.step}: {found.detail}", "run toolcage doctor: it says what that step needs"
            )
        if self.namespaces == "none" and not self.landlock:
            raise HostRefused(
                "landlock: neither namespaces nor Landlock can be used here, so nothing would keep a tool from files",
                "run toolcage doctor: it says what either of them needs on this host",
            )
        if not ladder.accepts(floor, self.rung):
            self._refuse(floor)

    def _refuse(self, floor: str) -> None:
        worst = self.missing[-1]
        found = self.why(worst.missing)
        reason = f" ({found.step}: {found.detail})" if found else ""
        raise HostRefused(
            f"{worst.missing}: not available here{reason}. This host stands on rung {self.rung!r}, the policy's floor is "
            f"{floor!r}",
            f'run toolcage doctor: it says what is needed. Or accept less by name: floor = "{self.rung}" in [server]; '
            f"what is lost then: {'; '.join(worst.lost)}",
        )


def probe(launcher: Launcher) -> Host:
    """What `launcher` has found out; it tells once, before anything else. Raises HostRefused when it does not."""
    launcher.link.settimeout(_SECONDS)
    try:
        data = launcher.link.recv(wire.PACKET_LIMIT + 1)
        message = wire.unpack(data) if data else None
    except (OSError, WireError):
        message = None
    if message is None or message.type is not Packet.HOST:
        raise HostRefused("the launcher did not start", "its own words stand above on stderr")
    return from_facts(json.loads(message.payload))


def here() -> Host:
    """The same by a launcher that is started for this question alone."""
    launcher = spawn.launcher()
    try:
        return probe(launcher)
    finally:
        launcher.link.close()
        os.waitpid(launcher.pid, 0)


def from_facts(facts: dict[str, Any]) -> Host:
    """The Host that the launcher's words describe."""
    return Host(
        machine=abi.MACHINE,
        root_user=os.geteuid() == 0,
        base=facts["base"],
        works=facts["works"],
        namespaces=facts["namespaces"],
        proc=facts["proc"],
        landlock=facts["landlock"] if facts["landlock"] >= MINIMUM_ABI else 0,
        cgroup=facts["cgroup"],
        cgroup_why=facts["cgroup_why"],
        last_capability=facts["last_capability"],
        system=tuple(_system_folders()),
        refused=tuple(Refusal(*entry) for entry in facts["refused"]),
    )


def _system_folders() -> list[tuple[str, str]]:
    found = []
    for path in SYSTEM:
        if os.path.islink(path):
            found.append((path, os.readlink(path)))
        elif os.path.isdir(path):
            found.append((path, ""))
    return found
