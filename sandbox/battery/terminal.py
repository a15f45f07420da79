"""TT: terminals, and the front's own streams. PA: the way on which the result comes. PE: what stays after a call."""

from __future__ import annotations

from sandbox.battery import rungs
from sandbox.battery.case import Case, blocked
from sandbox.battery.program import finds, raw

_GROUP = "terminal"
_LASTING = "lasting"
_NO = blocked("EPERM")
_NONE = blocked("ENOENT")
# A report as the keeper writes it: four bytes of length and JSON.
_FORGED = """\
import json, struct
body = json.dumps({'report': {'token': 'x' * 32, 'status': 0, 'stdout': 'Rk9SR0VE'}}).encode()
each(errno.EBADF, lambda n: os.write(n, struct.pack('!I', len(body)) + body), range(3, 512))"""
_SCHEDULES = (
    "/var/spool/cron", "/var/spool/at", "/var/lib/systemd", "/etc/cron.d", "/etc/crontab", "/etc/systemd", "/etc/profile",
    "/etc/profile.d", "/etc/pam.d", "/etc/xdg", "/etc/rc.local", "/etc/init.d", "/etc/ld.so.preload", "/etc/sudoers",
)  # fmt: skip


def _stream(number: str, sentence: str, own: str) -> Case:
    """Pipes, and none of the front's. Outside its input and its errors go nowhere (/dev/null), which is no pipe."""
    attempt = f"import stat\nown = [os.fstat(n) for n in {own}]\n" + finds(
        "not all(stat.S_ISFIFO(one.st_mode) for one in own) or {(one.st_dev, one.st_ino) for one in own} & set({streams})"
    )
    return Case(number, _GROUP, sentence, attempt, _NONE)


def _lasting(number: str, sentence: str, earlier: str, attempt: str) -> Case:
    return Case(number, _LASTING, sentence, attempt, _NONE, earlier=earlier)


CASES = (
    Case("TT-01", _GROUP, "types into a terminal (TIOCSTI)", raw("ioctl", "0, 0x5412, 1"), _NO),
    Case("TT-01-high", _GROUP, "types into a terminal, with high bits set", raw("ioctl", "0, 0x5412 | 1 << 32, 1"), _NO),
    Case("TT-01-linux", _GROUP, "pastes into a console (TIOCLINUX)", raw("ioctl", "0, 0x541C, 1"), _NO),
    Case("TT-02", _GROUP, "looks for a terminal", "os.lstat('/dev/tty')", _NONE, on=rungs.NAME),
    Case("TT-02-ptmx", _GROUP, "looks for a new terminal", "os.lstat('/dev/ptmx')", _NONE, aims=("/dev/ptmx",), on=rungs.NAME),
    _stream("TT-03", "reads what the front reads", "(0,)"),
    _stream("TT-05", "writes where the front writes", "(1, 2)"),
    Case(
        "PA-19", _GROUP, "forges a report on every descriptor", _FORGED, blocked("EBADF"),
        control="f = os.open(mine, os.O_CREAT | os.O_WRONLY)\n" + _FORGED,
    ),
    Case(
        "PE-01", _LASTING, "looks for places from which something is started later",
        f"each(errno.ENOENT, os.lstat, {_SCHEDULES!r})", _NONE, aims=_SCHEDULES, on=rungs.NAME,
    ),
    _lasting("PE-04", "finds a file that an earlier call has left in /tmp", "open(temp + '/left', 'w').close()", "os.stat(temp + '/left')"),
    _lasting(
        "PE-04-home", "finds what an earlier call has left in the home folder", "os.makedirs(temp + '/home/left', exist_ok=True)",
        "os.stat(temp + '/home/left')",
    ),
)  # fmt: skip
