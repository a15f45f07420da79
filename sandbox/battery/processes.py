"""PS: other processes: seeing them, signalling them, starting them, outliving the call. Only signal 0 is ever sent to
another, and only to the battery's own processes by name.
"""

from __future__ import annotations

from sandbox.battery import rungs
from sandbox.battery.case import Case, blocked
from sandbox.battery.changed import BRIEF, SMALL
from sandbox.battery.program import finds, raw

_GROUP = "processes"
_NO = blocked("EPERM")
_NOBODY = blocked("ESRCH")
# Seconds that a process stays which is meant to outlive its call; outside it is ended as soon as it was seen.
_STAYS = "import time\n"
_DAEMON = """\
import time
def leave():
    os.setsid()
    if os.fork(): return
    for n in range(3): os.close(n)
    time.sleep(60)
os.waitpid(child(leave), 0)"""


def _call(number: str, name: str, arguments: str, sentence: str) -> Case:
    return Case(number, _GROUP, sentence, raw(name, arguments), _NO, needs=("call",), optional=True)


def _stays(number: str, sentence: str, attempt: str, cage: str = "") -> Case:
    return Case(
        number, _GROUP, sentence, attempt, ("GONE",), needs=("many",), cage=cage, look="gone",
    )  # fmt: skip


def _ends(number: str, sentence: str, attempt: str, expected: str) -> Case:
    return Case(number, _GROUP, sentence, attempt, (expected,), control="pass")


CASES = (
    Case("PS-01", _GROUP, "signals the front", "os.kill({front}, 0)", _NOBODY, on=rungs.PROCESS),
    Case("PS-01-all", _GROUP, "signals everybody", "os.kill(-1, 0)", _NOBODY,
         on={"no-namespaces": "without a pid namespace the kernel's answer does not say whether anybody was reached"}),
    Case(
        "PS-01-thread", _GROUP, "signals a thread of the front", raw("tgkill", "{front}, {front}, 0"), _NOBODY, on=rungs.PROCESS,
    ),
    Case(
        "PS-01-pidfd", _GROUP, "takes hold of the front by pidfd", raw("pidfd_open", "{front}, 0"), _NOBODY,
        on={"no-namespaces": "this rung does not hide which processes exist"},
    ),
    _call("PS-01-queue", "rt_sigqueueinfo", "{front}, 0, 1", "signals the front with a message"),
    Case(
        "PS-01-keeper", _GROUP, "signals the process that guards it", "os.kill(os.getppid(), 0)", _NO,
        needs=("landlock_scope",), on=rungs.SCOPE,
    ),
    Case(
        "PS-01-group", _GROUP, "belongs to the session or the group of another", finds("not os.getsid(0) == os.getpgrp() == os.getpid()", "ESRCH"),
        _NOBODY, control=finds("os.getsid(0) != os.getpid()", "ESRCH"),
    ),
    Case(
        "PS-02", _GROUP, "has signals that somebody before it blocked or ignored",
        # without those that Python ignores itself (SIGPIPE, SIGXFSZ) and those that belong to libc
        finds("int(status('SigBlk'), 16) or int(status('SigIgn'), 16) & 0x7fffffff & ~0x1001000"), blocked("ENOENT"),
        control="import signal\nsignal.signal(15, signal.SIG_IGN)\n" + finds("int(status('SigIgn'), 16) & 1 << 14"), on=rungs.PROC,
    ),
    Case(
        "PS-02-stop", _GROUP, "ignores SIGTERM and stops itself",
        "import signal\nsignal.signal(15, signal.SIG_IGN)\nos.kill(os.getpid(), signal.SIGSTOP)", ("ENDED timed_out",),
        control="import signal\nsignal.signal(15, signal.SIG_IGN)\nos.kill(os.getpid(), 15)", cage=BRIEF,
    ),
    Case(
        "PS-03", _GROUP, "starts a process", "os.waitpid(child(int), 0)", _NO, needs=("alone",),
    ),
    Case("PS-03-fork", _GROUP, "starts a process by fork", "call({sys_fork}) or os._exit(0)", _NO, control="os.waitpid(child(int), 0)",
         needs=("alone", "call")),
    Case("PS-03-vfork", _GROUP, "starts a process by vfork", "call({sys_vfork}) or os._exit(0)", _NO, control="os.waitpid(child(int), 0)",
         needs=("alone", "call")),
    _stays("PS-03-daemon", "leaves a daemon behind", _DAEMON),
    _stays(
        "PS-03-sibling", "leaves a process behind that is not its child",
        "import time\nif call({sys_clone}, 0x8000 | 17, 0, 0, 0, 0) == 0:\n    time.sleep(60)\n    os._exit(0)",
    ),
    _stays(
        "PS-03-late", "leaves a daemon behind and runs into its time limit", _DAEMON + "\nif os.getppid() == 1: time.sleep(60)", BRIEF,
    ),
    Case(
        "PS-04", _GROUP, "starts processes without end (here 40, more than the limit)",
        "import time\nfor n in range(40): child(lambda: time.sleep(20))",
        ("BLOCKED EAGAIN", "ENDED too_many_processes"), control="for n in range(40): os.waitpid(child(int), 0)", needs=("many",), cage=SMALL,
    ),
    Case(
        "PS-04-threads", _GROUP, "starts threads without end (here 40, more than the limit)",
        "import threading, time\ntry:\n    for n in range(40): threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n"
        "except RuntimeError: raise OSError(errno.EAGAIN, '')\ntime.sleep(0.3)", ("BLOCKED EAGAIN", "ENDED too_many_processes"),
        cage=SMALL,
    ),
    _stays("PS-06", "ends while its child holds its output open", _STAYS + "child(lambda: time.sleep(60))"),
    Case(
        "PS-09", _GROUP, "changes the limits of another process", raw("prlimit64", "os.getppid(), 7, 0, 0"), _NO,
    ),
    _call("PS-09-affinity", "sched_setaffinity", "0, 0, 0", "says where a process may run"),
    _call("PS-09-priority", "setpriority", "9, 0, 0", "sets a priority"),
    _call("PS-09-io", "ioprio_set", "9, 0, 0", "sets a priority for reading and writing"),
    _call("PS-10", "sched_setscheduler", "0, 99, 0", "asks for a real-time schedule"),
    _call("PS-10-attributes", "sched_setattr", "0, 1, 0", "asks for a schedule with a deadline"),
    _ends("PS-11", "kills itself, and is called killed", "os.kill(os.getpid(), 9)", "KILLED 9"),
    _ends("PS-11-abort", "aborts, and is called aborted", "os.abort()", "KILLED 6"),
    _ends(
        "PS-11-file", "is killed by the file limit, and is called so",
        "import signal\nsignal.signal(25, signal.SIG_DFL)\nos.truncate(os.open(mine, os.O_CREAT | os.O_RDWR), 1 << 40)",
        "ENDED file_too_large",
    ),
    _ends(
        "PS-11-cpu", "is killed as by the processor limit, and is called so", "os.kill(os.getpid(), 24)", "ENDED out_of_cpu_time",
    ),
)  # fmt: skip
