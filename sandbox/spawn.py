"""Starts the launcher. Apart from the supervisor, and importing little, so that a server can do it before all else:
the launcher's interpreter then starts while the front still reads its policy.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from dataclasses import dataclass

from sandbox import wire
from sandbox.errors import HostRefused

_LAUNCHER_FD = 3
_START = "import sys; sys.path.append(sys.argv[1]); from sandbox.launcher import main; main(int(sys.argv[2]))"


@dataclass(frozen=True, slots=True)
class Launcher:
    """A running launcher: its pid, and our end of the packet socket, blocking."""

    pid: int
    link: socket.socket


def launcher() -> Launcher:
    """A fresh interpreter without environment, site packages or descriptors of ours; its words go to stderr."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * wire.PACKET_LIMIT)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    # a high number first: posix_spawn's dup2 of a descriptor onto itself would keep it close-on-exec
    high = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, 10)
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", _START, package, str(_LAUNCHER_FD)],
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, 2, 1),
                (os.POSIX_SPAWN_DUP2, high, _LAUNCHER_FD),
            ],
        )
    except OSError as problem:
        ours.close()
        raise HostRefused(
            f"launcher: {sys.executable} could not be started ({problem.strerror})",
            "install Toolcage again: its interpreter is missing or may not be executed",
        ) from None
    finally:
        for descriptor in (null, high):
            os.close(descriptor)
        theirs.close()
    return Launcher(pid, ours)
