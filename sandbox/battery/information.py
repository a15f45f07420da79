"""IL: what a tool learns about this machine and its user."""

from __future__ import annotations

from sandbox.battery.case import Case, blocked

_GROUP = "information"
CASES = (
    Case(
        "IL-01", _GROUP, "finds a variable in its environment that nobody listed",
        "if not set(os.environ) - set({variables}) - {'LC_CTYPE'}: raise OSError(2, '')", blocked("ENOENT"),
    ),
    Case("IL-02", _GROUP, "reads the environment of the front", "open('/proc/%d/environ' % {front}).read()",
        blocked("ENOENT", "EACCES")),
    Case("IL-02-cmdline", _GROUP, "reads the command line of the front",
        "open('/proc/%d/cmdline' % {front}).read()", blocked("ENOENT")),
    Case("IL-04", _GROUP, "learns the name of this host",
        "if os.uname().nodename != {hostname}: raise OSError(2, '')", blocked("ENOENT")),
    Case("IL-04-boot", _GROUP, "reads this boot's id",
        "open('/proc/sys/kernel/random/boot_id').read()", blocked("ENOENT")),
    Case("IL-05", _GROUP, "finds root in the list of users",
        "if 'root:' not in open('/etc/passwd').read(): raise OSError(2, '')", blocked("ENOENT")),
)  # fmt: skip
