"""The front's own filter: after start-up it cannot start a program and, on stdio, cannot open a socket.

SECURITY: "the front never runs a command itself" is thereby a fact that the kernel keeps, also for a front whose code has
been taken over. Irreversible; applied when the launcher runs, the plans are sealed, the event loop exists, and before
the first byte of a client is read.
"""

from __future__ import annotations

import os

from policies.syscalls import names
from sandbox import abi, filters, syscalls
from sandbox.errors import HostRefused


def program() -> bytes:
    """The filter as BPF, for a front that serves stdio."""
    return filters.front_filter([*names("front", "deny"), *names("front", "deny_stdio")])


def lock(filter_program: bytes, *, landlock: bool) -> None:
    """Apply and ask the kernel. Raises HostRefused when it did not take effect.

    landlock: False on a host without it, whose rung says what is lost.
    """
    try:
        syscalls.prctl(abi.PR_SET_NO_NEW_PRIVS, 1)
        if landlock:
            _leave_others_alone()
        syscalls.load_seccomp(filter_program)
        on = syscalls.prctl(abi.PR_GET_SECCOMP) == abi.SECCOMP_MODE_FILTER
    except OSError as problem:
        raise HostRefused(
            f"lockdown: the front could not be locked ({problem.strerror})",
            "the kernel needs CONFIG_SECCOMP_FILTER; see: toolcage doctor",
        ) from None
    if not on:
        raise HostRefused("lockdown: the kernel says that the filter is not on", "see: toolcage doctor")


def _leave_others_alone() -> None:
    """A Landlock domain of its own: no ptrace and no /proc/PID/mem of a process outside it, above all of the launcher.

    Without it a front that was taken over could write a program into the launcher's memory. The ruleset also forbids
    to execute any file, which the filter forbids anyhow. landlock(7), "Ptrace restrictions".
    """
    scope = abi.SCOPE_ALL if syscalls.landlock_abi() >= abi.LANDLOCK_SCOPE_SINCE else 0
    ruleset = syscalls.landlock_ruleset(abi.FS_EXECUTE, 0, scope)
    try:
        syscalls.landlock_restrict_self(ruleset)
    finally:
        os.close(ruleset)
