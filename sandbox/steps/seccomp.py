"""Seccomp: the allow-list of system calls, as BPF that the front compiled (sandbox.filters).

Runs: apply last of all, in the tool, because what it denies is needed until then. Needs no_new_privs. seccomp(2).
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
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
        syscalls.load_seccomp(base64.b64decode(self.program))
        return self._facts()

    def apply_asking(self, door: int, link: int) -> dict[str, object]:
        """The same for a filter that asks the keeper: its listener leaves through the socket `link`, and both are closed.

        Needs Linux 5.5. OSError EBUSY where something outside listens already.
        """
        try:
            listener = syscalls.load_seccomp_with_listener(base64.b64decode(self.program))
        except OSError as problem:
            if problem.errno == errno.EBUSY:
                words = "reporting: something around Toolcage listens to its calls already, and the kernel permits one"
                raise OSError(errno.EBUSY, words) from None
            raise
        syscalls.send_descriptor(link, listener, door)
        os.close(listener)
        os.close(link)
        return {**self._facts(), "reports": True}

    def _facts(self) -> dict[str, object]:
        if syscalls.prctl(abi.PR_GET_SECCOMP) != abi.SECCOMP_MODE_FILTER:
            raise PermissionError(1, "the filter is not on")
        count = len(base64.b64decode(self.program)) // 8
        return {"seccomp": {"mode": 2, "instructions": count, "sha256": self.digest}}


@dataclass(frozen=True, slots=True)
class Reporting:
    """What a plan that reports what it refuses has besides a filter that asks (sandbox.denials).

    decides  base64 of the filter whose decisions the keeper passes on: that of the same plan without reporting.
    looser   policy key -> base64 of the filter that a plan with that key would have.
    files    (number, name) of the calls that name a file, about which it asks though they are allowed.
    door     the number with which the listener leaves the tool's process (sandbox.filters.reporting_filter).
    """

    decides: str
    looser: tuple[tuple[str, str], ...]
    files: tuple[tuple[int, str], ...]
    door: int
