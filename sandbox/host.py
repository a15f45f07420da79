"""What this host is: facts that plans are made from, found by asking the kernel, never from version numbers.

Runs in the front, at start-up. A Host is data, so a test can make plans for any kernel on one machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from sandbox import abi, syscalls
from sandbox.errors import HostRefused
from sandbox.plan import SYSTEM
from sandbox.steps.landlock import MINIMUM_ABI


@dataclass(frozen=True, slots=True)
class Host:
    """`landlock`: ABI, 0 when absent. `slots`: workers get kernel ids of their own (we are root and may hand them out)."""

    machine: str
    root_user: bool
    slots: bool
    landlock: int
    last_capability: int
    system: tuple[tuple[str, str], ...]  # folders below "/": (path, link target or "" for a folder)

    def require(self) -> None:
        """Raise HostRefused, naming the layer and the remedy, when the floor "namespaces" cannot be reached."""
        if self.machine not in abi.SUPPORTED_MACHINES:
            raise HostRefused(
                f"machine {self.machine}: system call numbers are known for {', '.join(abi.SUPPORTED_MACHINES)} only",
                "run Toolcage on one of these machines",
            )
        if self.landlock < MINIMUM_ABI:
            raise HostRefused(
                f"landlock: ABI {self.landlock}, needed {MINIMUM_ABI} (Linux 6.2) or later",
                "use a newer kernel, or add landlock to the lsm= list of the kernel command line",
            )
        if self.root_user and not self.slots:
            raise HostRefused(
                "identity: running as root, but no kernel ids can be given to workers",
                "start Toolcage as an ordinary user, or as the root of the host (a user namespace's root has too few ids to give)",
            )


def probe() -> Host:
    """Ask this host. Namespaces are not asked about here: the first worker proves them, or names the step that fails."""
    root_user = os.geteuid() == 0
    return Host(
        machine=abi.MACHINE,
        root_user=root_user,
        slots=root_user and _full_id_range(),
        landlock=_landlock(),
        last_capability=_last_capability(),
        system=tuple(_system_folders()),
    )


def _landlock() -> int:
    try:
        return syscalls.landlock_abi()
    except OSError:
        return 0


def _full_id_range() -> bool:
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return any(line.split() == ["0", "0", "4294967295"] for line in file)


def _last_capability() -> int:
    try:
        with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
            return int(file.read())
    except OSError:
        return 40  # CAP_CHECKPOINT_RESTORE, the last one since Linux 5.9


def _system_folders() -> list[tuple[str, str]]:
    found = []
    for path in SYSTEM:
        if os.path.islink(path):
            found.append((path, os.readlink(path)))
        elif os.path.isdir(path):
            found.append((path, ""))
    return found
