"""Takes stdin and stdout away from everything else in the process, before anything else runs. Imports little.

The protocol then has descriptors of its own; a stray print or a child cannot write into it or read from it.
"""

from __future__ import annotations

import fcntl
import os

from sandbox.errors import Refused


def claim_stdio() -> tuple[int, int]:
    """Moves stdin and stdout to private close-on-exec descriptors: (input, output).

    Afterwards fd 0 is /dev/null and fd 1 is what fd 2 is (or /dev/null when fd 2 is closed), also for later children.
    Raises Refused when the client gave no stdin or stdout.
    """
    try:
        source = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
        sink = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError as fault:
        raise Refused(
            f"stdin or stdout is closed ({fault.strerror})",
            "start the server from an MCP client, or with pipes",
        ) from None
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(2, 1)
    if null == 2:  # stderr was closed: open(2) takes the lowest free number
        os.set_inheritable(2, True)
    else:
        os.close(null)
    return source, sink
