"""Seccomp: the allow-list of system calls, as BPF that the front compiled (sandbox.filters).

Runs: apply last of all, in the tool, because what it denies is needed until then. Needs no_new_privs. seccomp(2).
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from sandbox import abi, syscalls


@dataclass(frozen=True, slots=True)
class Seccomp:
    """`program`: base64 of the raw instructions, 8 bytes each."""

    program: str

    @property
    def digest(self) -> str:
        """Short sha256 of the program: which filter it is, for attestations."""
        return hashlib.sha256(base64.b64decode(self.program)).hexdigest()[:16]

    def apply(self) -> dict[str, object]:
        """Load the filter and ask the kernel whether it is on."""
        program = base64.b64decode(self.program)
        syscalls.load_seccomp(program)
        if syscalls.prctl(abi.PR_GET_SECCOMP) != abi.SECCOMP_MODE_FILTER:
            raise PermissionError(1, "the filter is not on")
        return {"seccomp": {"mode": 2, "instructions": len(program) // 8, "sha256": self.digest}}
