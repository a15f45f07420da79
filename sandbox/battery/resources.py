"""RE: more than the limits of the profile allow: a little more, so that the control outside is harmless."""

from __future__ import annotations

from sandbox.battery.case import Case, blocked

_GROUP = "resources"
CASES = (
    Case(
        "RE-02", _GROUP, "uses more memory than the limit",
        "import time\nheld = []\nfor n in range({memory_mb} + 64):\n    held.append(bytearray(b'x') * (1 << 20))\n"
        "time.sleep(0.2)", ("ENDED out_of_memory",), needs=("small",),
    ),
    Case(
        "RE-02-reserve", _GROUP, "reserves far more memory than the limit",
        "import mmap\nmmap.mmap(-1, max(4 * {memory_mb}, {memory_mb} + 1024) + 1 << 20, flags=0x4022)",
        blocked("ENOMEM"),
    ),
    Case(
        "RE-03", _GROUP, "makes memory that belongs to no process", "import mmap\nmmap.mmap(-1, 1 << 20)",
        blocked("EPERM"),
    ),
    Case(
        "RE-04", _GROUP, "makes a file larger than the limit",
        "f = os.open({temp} + '/large', os.O_CREAT | os.O_RDWR, 0o600)\n"
        "os.ftruncate(f, ({file_mb} << 20) + 4096)", blocked("EFBIG"),
    ),
    Case(
        "RE-04-files", _GROUP, "opens more files than the limit",
        "held = [os.open('/dev/null', 0) for _ in range({open_files} + 1)]", blocked("EMFILE"),
        control="import resource\nhard = resource.getrlimit(7)[1]\nresource.setrlimit(7, (hard, hard))\n"
        "held = [os.open('/dev/null', 0) for _ in range({open_files} + 1)]",
    ),
    Case(
        "RE-04-output", _GROUP, "prints more than the limit",
        "for _ in range(16 * ({output_mb} + 1)): os.write(2, b'x' * 65536)", ("ENDED too_much_output",),
    ),
)  # fmt: skip
