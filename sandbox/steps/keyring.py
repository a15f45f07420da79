"""Keyring: a fresh session keyring, because no namespace cuts the inherited one (keyrings(7)).

Runs: apply in the keeper, before the filter that denies keyctl.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

from sandbox import syscalls

FRESH, NONE = "fresh", "none in this kernel"


@dataclass(frozen=True, slots=True)
class Keyring:
    """`required`: False where a container's filter may refuse keyctl: what it refuses to us it refuses to the tool."""

    required: bool = True

    def apply(self) -> dict[str, object]:
        """Join a new anonymous keyring. A kernel built without keyrings has none to leak."""
        try:
            syscalls.join_new_session_keyring()
        except OSError as problem:
            if problem.errno == errno.ENOSYS:
                return {"keyring": NONE}
            if self.required or problem.errno != errno.EPERM:
                raise
            return {
                "keyring": "the caller's; this host refuses the calls that use it, and so does the tool's filter"
            }
        return {"keyring": FRESH}
