"""PS: other processes: seeing them, signalling them, starting them. Only the battery's own processes are aimed at."""

from __future__ import annotations

from sandbox.battery.case import Case, blocked
from sandbox.battery.kernel import raw

_GROUP = "processes"
CASES = (
    Case("PS-01", _GROUP, "signals the front", "os.kill({front}, 0)", blocked("ESRCH", "EPERM")),
    Case(
        "PS-03", _GROUP, "starts a process",
        "pid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)", blocked("EPERM"), needs=("alone",),
    ),
    Case(
        "PS-09", _GROUP, "changes the limits of another process", raw(302, 261, "os.getppid(), 7, 0, 0"),
        blocked("EPERM"),
    ),
    Case("PS-10", _GROUP, "asks for a real-time schedule", raw(144, 119, "0, 99, 0"), blocked("EPERM")),
    Case("PS-10-nice", _GROUP, "sets a priority", raw(141, 140, "9, 0, 0"), blocked("EPERM")),
)  # fmt: skip
