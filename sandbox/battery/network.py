"""NE: sockets of every family, and the other ways to talk. Attempts go to loopback and to what the battery itself
listens on; outside, no family is asked for that could make the kernel load a module.
"""

from __future__ import annotations

from sandbox.battery import rungs
from sandbox.battery.case import Case, blocked
from sandbox.battery.changed import UNFILTERED
from sandbox.battery.program import finds, raw

_NO = blocked("EPERM")
_GROUP = "network"
_MODULE = "import _socket\n"
_LOCAL = "_socket.socket(1, 1, 0)"
# name -> family, type, protocol
_FAMILIES = {
    "alg": "38, 5, 0", "bluetooth": "31, 3, 1", "can": "29, 3, 1", "icmp": "2, 2, 1", "ieee802154": "36, 3, 0",
    "key": "15, 3, 2", "mctp": "45, 2, 0", "mptcp": "2, 1, 262", "nfc": "39, 5, 0", "packet": "17, 3, 0",
    "phonet": "35, 2, 0", "qipcrtr": "42, 2, 0", "raw": "2, 3, 1", "rds": "21, 5, 0", "sctp": "2, 1, 132", "smc": "43, 1, 0",
    "tipc": "30, 1, 0", "x25": "9, 5, 0", "xdp": "44, 3, 0",
}  # fmt: skip
# The last one is what the controls are given.
_ADDRESSES = (
    "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR",
    "DOCKER_HOST", "TOOLCAGE_CANARY",
)  # fmt: skip
_BASH = """\
import signal
pid = child(lambda: os.execv('/bin/bash', ['bash', '-c', 'exec 2>/dev/null 3<>/dev/tcp/127.0.0.1/%d' % {port}]))
if os.waitpid(pid, 0)[1] != 0: raise OSError(errno.EPERM, '')"""


def _socket(number: str, name: str, arguments: str, control: str = "") -> Case:
    attempt = f"{_MODULE}_socket.socket({arguments})"
    return Case(number, _GROUP, f"opens a socket: {name}", attempt, _NO, control=control)


def _behind(number: str, sentence: str, attempt: str, *names: str, needs: tuple[str, ...] = ()) -> Case:
    """What the filter would refuse, behind a filter that does not."""
    return Case(
        number, _GROUP, sentence, _MODULE + attempt, blocked(*names), needs=needs, cage=UNFILTERED,
        on=rungs.LANDLOCK if needs else rungs.BEHIND,
    )  # fmt: skip


def _object(name: str, arguments: str) -> Case:
    return Case(
        f"NE-12-{name}", _GROUP, f"calls {name}: System V and POSIX objects", raw(name, arguments), _NO
    )


CASES = (
    Case(
        "NE-01", _GROUP, "connects to a port of this machine",
        _MODULE + "_socket.socket(2, 1, 0).connect(('127.0.0.1', {port}))", _NO,
    ),
    _socket("NE-01-udp", "UDP", "2, 2, 0"),
    _socket("NE-01-six", "IPv6", "10, 1, 0", control=_MODULE + _LOCAL),
    _behind(
        "NE-01-tcp", "connects to a port of this machine, behind the filter",
        "_socket.socket(2, 1, 0).connect(('127.0.0.1', {port}))", "EACCES", needs=("landlock_net",),
    ),
    _behind(
        "NE-01-bind", "takes a port, behind the filter", "_socket.socket(2, 1, 0).bind(('127.0.0.1', 0))", "EACCES",
        needs=("landlock_net",),
    ),
    _behind(
        "NE-01-send", "sends to a port of this machine, behind the filter",
        "_socket.socket(2, 2, 0).sendto(b'x', ('127.0.0.1', {udp_port}))", "ENETUNREACH",
    ),
    Case(
        "NE-02", _GROUP, "learns which name server this machine asks", "os.stat('/etc/resolv.conf')", blocked("ENOENT"),
        aims=("/etc/resolv.conf",), on=rungs.NAME,
    ),
    Case(
        "NE-02-ask", _GROUP, "sends a question to a name server",
        _MODULE + "_socket.socket(2, 2, 0).sendto(b'x', ('127.0.0.1', {udp_port}))", _NO,
    ),
    _socket("NE-03", "Unix", "1, 1, 0"),
    Case(
        "NE-03-path", _GROUP, "connects to a Unix socket of this machine",
        _MODULE + "_socket.socket(1, 1, 0).connect({socket})", _NO,
    ),
    _behind(
        "NE-03-behind", "connects to a Unix socket of this machine, behind the filter",
        "_socket.socket(1, 1, 0).connect({socket})", "ENOENT",
    ),
    Case(
        "NE-04", _GROUP, "looks for sockets of services (D-Bus, containers, keys, displays)",
        "each(errno.ENOENT, os.lstat, ('/run', '/var/run', '/tmp/.X11-unix', '/run/docker.sock', '/run/dbus'))",
        blocked("ENOENT"), on=rungs.NAME,
    ),
    Case(
        "NE-05", _GROUP, "learns from its environment where agents and displays listen",
        finds(f"set({_ADDRESSES!r}) & set(os.environ) - set({{variables}})"),
        blocked("ENOENT"),
    ),
    Case(
        "NE-06", _GROUP, "connects to an abstract Unix socket of this machine",
        _MODULE + "_socket.socket(1, 1, 0).connect({abstract})", _NO,
    ),
    _behind(
        "NE-06-behind", "connects to an abstract Unix socket of this machine, behind the filter",
        "_socket.socket(1, 1, 0).connect({abstract})", "ECONNREFUSED",
    ),
    Case(
        "NE-06-list", _GROUP, "finds a Unix socket of this machine in a list",
        finds("{abstract}[1:] in open('/proc/self/net/unix').read()"), blocked("ENOENT"), on=rungs.PROC,
    ),
    _socket("NE-07", "vsock", "40, 1, 0", control=_MODULE + _LOCAL),
    _socket("NE-08", "netlink", "16, 3, 0"),
    *(_socket(f"NE-08-{name}", name, words, control=_MODULE + _LOCAL) for name, words in _FAMILIES.items()),
    Case(
        "NE-08-all", _GROUP, "opens a socket of any family and type",
        _MODULE + "each(errno.EPERM, lambda n: _socket.socket(n // 8, n % 8, 0), range(8, 48 * 8))", _NO,
        control=_MODULE + "each(errno.EPERM, lambda n: _socket.socket(n, 1, 0), (1, 2))",
    ),
    Case("NE-09", _GROUP, "opens a socket with the family's high bits set", raw("socket", "1 | 1 << 32, 1, 0"), _NO),
    Case("NE-09-pair", _GROUP, "makes a pair of Unix sockets", raw("socketpair", "1, 1, 0, 1"), _NO, needs=("no_pairs",)),
    Case("NE-09-pair-datagram", _GROUP, "makes a pair of datagram sockets", raw("socketpair", "1, 2, 0, 1"), _NO),
    Case("NE-09-pair-packet", _GROUP, "makes a pair of packet sockets", raw("socketpair", "1, 5, 0, 1"), _NO),
    Case("NE-11-pass", _GROUP, "passes a descriptor (sendmsg)", raw("sendmsg", "-1, 1, 0"), _NO),
    Case("NE-11-take", _GROUP, "takes a descriptor (recvmsg)", raw("recvmsg", "-1, 1, 0"), _NO),
    Case("NE-11-accept", _GROUP, "takes a connection", raw("accept4", "-1, 0, 0, 0"), _NO),
    Case("NE-11-to", _GROUP, "sends to an address", raw("sendto", "-1, 1, 0, 0, 1, 16"), _NO),
    _object("msgget", "0x7463, 0"),
    _object("semget", "0x7463, 0, 0"),
    _object("shmget", "0x7463, 0, 0"),
    _object("shmat", "-1, 0, 0"),
    _object("mq_open", "1, 0, 0, 0"),
    Case(
        "NE-12-behind", _GROUP, "makes a message queue, behind the filter",
        "f = call({sys_mq_open}, b'toolcage-verify', 0o302, 0o600, None)\ncall({sys_mq_unlink}, b'toolcage-verify')", blocked("EMFILE"),
        control="call({sys_mq_open}, b'toolcage-verify-none', 0, 0, None)", cage=UNFILTERED, on=rungs.BEHIND,
    ),
    Case(
        "NE-14", _GROUP, "lets bash connect to a port of this machine", _BASH, _NO, needs=("any", "bash"),
    ),
)  # fmt: skip
