"""NE: sockets of every family. Attempts go to loopback and to sockets that the battery itself listens on."""

from __future__ import annotations

from sandbox.battery.case import Case, blocked
from sandbox.battery.kernel import raw

_NO = blocked("EPERM")
_GROUP = "network"


def _socket(number: str, name: str, arguments: str) -> Case:
    return Case(
        number, _GROUP, f"opens a socket: {name}", f"import _socket\n_socket.socket({arguments})", _NO
    )


CASES = (
    Case(
        "NE-01", _GROUP, "connects to a port of this machine",
        "import _socket\n_socket.socket(2, 1, 0).connect(('127.0.0.1', {port}))",
        blocked("EPERM", "ENETUNREACH", "EACCES"),
    ),
    _socket("NE-01-udp", "UDP", "2, 2, 0"),
    _socket("NE-01-six", "IPv6", "10, 1, 0"),
    _socket("NE-03", "Unix", "1, 1, 0"),
    Case(
        "NE-06", _GROUP, "connects to an abstract Unix socket of this machine",
        "import _socket\n_socket.socket(1, 1, 0).connect({abstract})", blocked("EPERM", "ECONNREFUSED"),
    ),
    _socket("NE-08", "netlink", "16, 3, 0"),
    Case(
        "NE-09", _GROUP, "opens a socket with the family's high bits set",
        "import ctypes, platform\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "number = 41 if platform.machine() == 'x86_64' else 198\n"
        "if libc.syscall(number, ctypes.c_long(1 | 1 << 32), 1, 0) < 0: raise OSError(ctypes.get_errno(), '')", _NO,
    ),
    Case("NE-09-pair", _GROUP, "makes a pair of Unix sockets", raw(53, 199, "1, 1, 0, 1"), _NO, needs=("no_pairs",)),
    Case("NE-09-pair-datagram", _GROUP, "makes a pair of datagram sockets", raw(53, 199, "1, 2, 0, 1"), _NO),
)  # fmt: skip
