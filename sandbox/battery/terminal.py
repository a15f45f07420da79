"""TT: terminals, and the front's own streams."""

from __future__ import annotations

from sandbox.battery.case import Case, blocked
from sandbox.battery.kernel import raw

_GROUP = "terminal"
_NO = blocked("EPERM")
CASES = (
    Case("TT-01", _GROUP, "types into a terminal (TIOCSTI)", raw(16, 29, "0, 0x5412, 1"), _NO),
    Case(
        "TT-01-high", _GROUP, "types into a terminal, with high bits set",
        raw(16, 29, "0, ctypes.c_long(0x5412 | 1 << 32), 1"), _NO,
    ),
    Case("TT-02", _GROUP, "looks for a terminal", "os.lstat('/dev/tty')", blocked("ENOENT")),
    Case("TT-02-ptmx", _GROUP, "looks for a new terminal", "os.lstat('/dev/ptmx')", blocked("ENOENT")),
)  # fmt: skip
