"""RE: more than the limits allow. Most attack the same cage with small limits, so that the control is harmless too."""

from __future__ import annotations

from sandbox.battery.case import Case, blocked
from sandbox.battery.changed import BRIEF, SMALL, SMALL_LIMITS
from sandbox.battery.program import finds, raw

_GROUP = "resources"
_NO = blocked("EPERM")
_MIB = 1 << 20
_OVER_MB = SMALL_LIMITS.memory_mb + 16
_HOLD = "held = []\nfor n in range({0}): held.append(bytearray(b'x') * (1 << 20))\n"
_FILL = (
    "for n in range(8):\n    f = os.open(mine + str(n), os.O_CREAT | os.O_WRONLY)\n"
    "    for m in range(15): os.write(f, bytes(65536))"
)
_MANY = "for n in range({0}): os.close(os.open(mine + str(n), os.O_CREAT | os.O_WRONLY))"
_FLOOD = "block = b'x' * 65536\nfor n in range({0}): os.write({1}, block)"
# Each limit of the kernel -> the case that asks for it.
LIMITS = {
    "RLIMIT_CORE": "IL-11-limit", "RLIMIT_CPU": "RE-01-limit", "RLIMIT_DATA": "RE-02-limit", "RLIMIT_FSIZE": "RE-04-limit",
    "RLIMIT_MEMLOCK": "RE-03-limit", "RLIMIT_MSGQUEUE": "NE-12-limit", "RLIMIT_NICE": "PS-10-nice", "RLIMIT_NOFILE": "RE-04-open",
    "RLIMIT_NPROC": "PS-04-limit", "RLIMIT_RTPRIO": "PS-10-realtime", "RLIMIT_SIGPENDING": "RE-03-pending",
    "RLIMIT_STACK": "RE-02-stack",
}  # fmt: skip
# Outside these two are 0 as well; who may make them higher there sees a difference.
_ROOTS = ("RLIMIT_NICE", "RLIMIT_RTPRIO")


def _limit(name: str, number: str) -> Case:
    """The kernel's own limit, as it was set; soft and hard are the same but for the processor time."""
    hard, asked = f"resource.getrlimit(resource.{name})[1]", f"{{limit_{name}}} + {int(name == 'RLIMIT_CPU')}"
    attempt = "import resource\n" + finds(f"not 0 <= {hard} <= {asked}", "EPERM")
    higher = "import resource, struct\nmore = struct.pack('QQ', 1, 1)\n" + raw(
        "prlimit64", f"0, resource.{name}, more, 0"
    )
    another = "import resource\n" + finds(f"{hard} != {asked}", "EPERM")
    return Case(
        number, _GROUP, f"has a higher {name} than its profile says", attempt, _NO,
        control=higher if name in _ROOTS else another, optional=True, needs=("own_count",) if name == "RLIMIT_NPROC" else (),
    )  # fmt: skip


CASES = (
    Case(
        "RE-01", _GROUP, "computes without end", "while True: pass", ("ENDED out_of_cpu_time",), control="for n in range(10 ** 6): pass",
        cage=SMALL,
    ),
    Case(
        "RE-01-many", _GROUP, "computes without end in four processes, each below the limit",
        "def spin():\n    while True: pass\nfor n in range(4): child(spin)\nos.wait()", ("ENDED out_of_cpu_time",),
        control="for n in range(4): child(lambda: sum(range(10 ** 5)))\nos.wait()", needs=("many", "own_count", "five"), cage=SMALL,
    ),
    Case(
        "RE-02", _GROUP, "uses more memory than the limit", _HOLD.format(_OVER_MB) + "import time\ntime.sleep(0.2)",
        ("ENDED out_of_memory",), cage=SMALL,
    ),
    Case(
        "RE-02-many", _GROUP, "uses more memory than the limit in four processes, each below it",
        f"import time\ndef hold():\n    held = [bytearray(b'x') * (1 << 20) for n in range({SMALL_LIMITS.memory_mb // 3})]\n"
        "    time.sleep(0.5)\nfor n in range(4): child(hold)\nfor n in range(4): os.wait()", ("ENDED out_of_memory",),
        needs=("many", "own_count", "five"), cage=SMALL,
    ),
    Case(
        "RE-02-reserve", _GROUP, "reserves far more memory than the limit",
        f"import mmap\nmmap.mmap(-1, ({SMALL_LIMITS.memory_mb} + 1024) * {_MIB} + {_MIB}, flags=0x4022)", blocked("ENOMEM"), cage=SMALL,
    ),
    Case("RE-03", _GROUP, "makes memory that belongs to no process", "import mmap\nmmap.mmap(-1, 1 << 20)", _NO),
    Case(
        "RE-03-huge", _GROUP, "makes memory of huge pages", raw("mmap", "0, 1 << 21, 3, 0x40022, -1, 0"), _NO, optional=True,
        control="import mmap\nmmap.mmap(-1, 1 << 20, flags=0x22)",
    ),
    Case("RE-03-full", _GROUP, "fills /tmp", _FILL, blocked("ENOSPC"), cage=SMALL, on={"no-namespaces": ("ENDED temp_space_full",)}),
    Case(
        "RE-03-names", _GROUP, "fills /tmp with empty files", _MANY.format(16500), blocked("ENOSPC"), control=_MANY.format(100),
        on={"no-namespaces": "the temporary folder of this rung has no limit on names"},
    ),
    Case(
        "RE-03-lock", _GROUP, "locks memory", "call({sys_mlock}, id(b'x') & ~4095, 4096)", _NO,
    ),
    Case(
        "RE-03-timers", _GROUP, "makes timers without end (here 300)",
        "import ctypes\nt = ctypes.create_string_buffer(8)\nfor n in range(300): call({sys_timer_create}, 1, 0, t)", blocked("EAGAIN"),
    ),
    Case(
        "RE-04", _GROUP, "makes a file larger than the limit",
        f"f = os.open(mine + 'large', os.O_CREAT | os.O_RDWR)\nos.ftruncate(f, {_MIB} + 4096)", blocked("EFBIG"), cage=SMALL,
    ),
    Case(
        "RE-04-files", _GROUP, "opens more files than the limit",
        f"held = [os.open('/dev/null', 0) for n in range({SMALL_LIMITS.open_files} + 1)]", blocked("EMFILE"), cage=SMALL,
    ),
    Case(
        "RE-08", _GROUP, "prints a letter now and then, without end", "import time\nwhile True:\n    os.write(1, b'x')\n    time.sleep(0.05)",
        ("ENDED timed_out",), control="import time\nfor n in range(3):\n    os.write(2, b'x')\n    time.sleep(0.05)", cage=BRIEF,
    ),
    Case(
        "RE-09", _GROUP, "sleeps beyond the time limit", "import time\ntime.sleep(1.5)", ("ENDED timed_out",), cage=BRIEF,
    ),
    *(_limit(name, number) for name, number in LIMITS.items()),
    Case(
        "PA-01", _GROUP, "prints more than the limit, without end", _FLOOD.format("1 << 20", 1), ("ENDED too_much_output",),
        control=_FLOOD.format(40, 2), cage=SMALL, look="flat",
    ),
    Case(
        "PA-02", _GROUP, "prints more than the limit to stderr, while nobody writes to stdout", _FLOOD.format("1 << 20", 2),
        ("ENDED too_much_output",), control=_FLOOD.format(40, 2), cage=SMALL, look="flat",
    ),
)  # fmt: skip
