"""Signals: only to itself, for a tool that shares its pid namespace with the host.

Runs: apply in the tool, before the main filter, on hosts without namespaces and where Landlock does not scope signals or
the tool is one process anyhow. A filter of its own because the pid is known only now. kill(2), seccomp(2).
"""

from __future__ import annotations

import errno
import os
import struct

from sandbox import abi, syscalls

_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _FIRST_ARGUMENT = (
    0,
    16,
)  # offsets in seccomp_data; the low half of the argument on little-endian machines
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_CALLS = ("kill", "tkill", "tgkill")


def only_self() -> dict[str, object]:
    """Load the filter for this very process. What it starts inherits it, and may then signal nobody but this one."""
    syscalls.load_seccomp(program(os.getpid()))
    return {"signals": "only itself"}


def program(pid: int) -> bytes:
    """BPF: kill, tkill and tgkill pass when they aim at `pid`; everything else passes to the main filter."""
    checks = [(_JUMP_EQUAL, len(_CALLS) - n, 0, abi.NUMBERS[name]) for n, name in enumerate(_CALLS)]
    rows = [
        (_LOAD, 0, 0, _NUMBER),
        *checks,
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_EQUAL, 0, 1, pid),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("@HBBI", *row) for row in rows)
