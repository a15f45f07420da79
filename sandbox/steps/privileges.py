"""Privileges: no capability in any set, locked securebits, no_new_privs. For the keeper and all that it starts.

Runs: apply in the keeper, after the mounts, before the tool is forked. capabilities(7), prctl(2).
"""

from __future__ import annotations

from dataclasses import dataclass

from sandbox import abi, syscalls


@dataclass(frozen=True, slots=True)
class Privileges:
    """`last_capability`: highest capability number that the kernel knows.

    bounding  whether the bounding set and the securebits can be closed as well: not for an ordinary user without a
              user namespace, who holds nothing and gains nothing by no_new_privs.
    """

    last_capability: int
    bounding: bool = True

    def apply(self) -> dict[str, object]:
        """Drop everything and read it back. Raises PermissionError when something is left."""
        if self.bounding:
            syscalls.prctl(abi.PR_SET_SECUREBITS, abi.SECUREBITS_LOCKED)
            for number in range(self.last_capability + 1):
                syscalls.prctl(abi.PR_CAPBSET_DROP, number)
        syscalls.prctl(abi.PR_CAP_AMBIENT, abi.PR_CAP_AMBIENT_CLEAR_ALL)
        syscalls.clear_capabilities()
        syscalls.prctl(abi.PR_SET_NO_NEW_PRIVS, 1)
        return self._facts()

    def _facts(self) -> dict[str, object]:
        left, bits = [], abi.SECUREBITS_LOCKED
        if self.bounding:
            left = [n for n in range(self.last_capability + 1) if syscalls.prctl(abi.PR_CAPBSET_READ, n)]
            bits = syscalls.prctl(abi.PR_GET_SECUREBITS)
        held = syscalls.capabilities()
        if left or held != (0, 0, 0) or bits != abi.SECUREBITS_LOCKED:
            raise PermissionError(
                1, f"privileges are left: bounding {left}, held {held}, securebits {bits:#x}"
            )
        if syscalls.prctl(abi.PR_GET_NO_NEW_PRIVS) != 1:
            raise PermissionError(1, "no_new_privs is not set")
        return {"capabilities": 0, "no_new_privs": True}
