"""Keyring: a fresh session keyring, because no namespace cuts the inherited one (keyrings(7)).

Runs: apply in the keeper, before the filter that denies keyctl.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

from sandbox import syscalls


@dataclass(frozen=True, slots=True)
class Keyring:
    """Nothing to choose."""

    def apply(self) -> dict[str, object]:
        """Join a new anonymous keyring. A kernel built without keyrings has none to leak."""
        try:
            syscalls.join_new_session_keyring()
        except OSError as problem:
            if problem.errno != errno.ENOSYS:
                raise
            return {"keyring": "none in this kernel"}
        return {"keyring": "fresh"}
