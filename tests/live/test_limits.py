"""Every limit ends the call by its own name, within 250 ms, and the next call works."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sandbox.types import Limits
from tests.live.cage import Cage, cage, said

LIMITS = Limits(
    wall_seconds=1.5,
    cpu_seconds=1,
    memory_mb=64,
    processes=16,
    open_files=32,
    file_mb=4,
    tmp_mb=8,
    output_mb=1,
)
SLACK = 0.25

TOOLS = {
    "out_of_cpu_time": "while True: pass",
    "out_of_cpu_time threads": "import threading\ndef spin():\n while True: pass\nfor _ in range(3): threading.Thread(target=spin).start()",
    "out_of_cpu_time processes": "import os\nfor _ in range(3): os.fork()\nwhile True: pass",
    "out_of_memory": "held = []\nwhile True: held.append(bytearray(1 << 20))",
    "out_of_memory tables": "import mmap\nheld = []\nwhile True: held.append(mmap.mmap(-1, 1 << 30, flags=0x4022, prot=1)); [held[-1][n] for n in range(0, 1 << 30, 1 << 21)]",
    "out_of_memory processes": (
        "import os, time\nfor _ in range(2): os.fork()\nheld = bytearray(os.urandom(1 << 10)) * (30 << 10)\ntime.sleep(60)"
    ),
    "out_of_memory hidden": (  # the first thread ends, and /proc/PID shows no memory any more
        "import ctypes, platform, threading, time\ndef eat():\n held = []\n time.sleep(.2)\n"
        " while True: held.append(bytearray(1 << 20)); time.sleep(.001)\n"
        "threading.Thread(target=eat).start()\n"
        "ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)"
    ),
    "too_many_processes": "import os, time\nwhile True:\n try: pid = os.fork()\n except OSError: pid = 1\n if pid == 0: time.sleep(60)",
    "too_many_processes bomb": "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
    "too_many_processes threads": (
        "import threading, time\nfor _ in range(99):\n"
        " try: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n except RuntimeError: pass\n"
        "time.sleep(60)"
    ),
    "too_many_open_files": "import os, time\nheld = []\ntry:\n while True: held.append(os.open('/dev/null', 0))\nfinally: time.sleep(.1)",
    "too_much_output": "import os\nb = b'x' * 65536\nwhile True: os.write(1, b)",
    "too_much_output stderr": "import os\nb = b'x' * 65536\nwhile True: os.write(2, b)",
    "file_too_large": "import os\nf = os.open('/tmp/f', 65)\nwhile True: os.write(f, b'x' * 65536)",
    "file_too_large signal": "import os, signal\nsignal.signal(25, signal.SIG_DFL)\nf = os.open('/tmp/f', 65)\nos.truncate(f, 1 << 40)",
    "temp_space_full": "import os\nfor n in range(9):\n f = os.open(f'/tmp/{n}', 65)\n for _ in range(60): os.write(f, b'x' * 65536)",
    "timed_out": "import time\ntime.sleep(60)",
    "timed_out stubborn": "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)",
    "timed_out trickle": "import time\nwhile True:\n print('.', flush=True)\n time.sleep(.05)",
    "timed_out stopped": "import os, signal, time\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(60)",
}
LIMIT_NAMES = {
    "out_of_cpu_time": ("cpu_seconds", 1.0),
    "out_of_memory": ("memory_mb", 64.0),
    "too_many_processes": ("processes", 16.0),
    "too_many_open_files": ("open_files", 32.0),
    "too_much_output": ("output_mb", 1.0),
    "file_too_large": ("file_mb", 4.0),
    "temp_space_full": ("tmp_mb", 8.0),
    "timed_out": ("wall_seconds", 1.5),
}


@pytest.fixture(scope="module")
def patient(place: Path) -> Iterator[Cage]:
    """The same with a long wall limit: on a loaded machine a second of processor time takes longer than a second."""
    with cage(place / "root", limits=dataclasses.replace(LIMITS, wall_seconds=20), processes="any") as made:
        yield made


@pytest.fixture(scope="module")
def small(place: Path) -> Iterator[Cage]:
    with cage(place / "root", limits=LIMITS, processes="any") as made:
        yield made


@pytest.mark.parametrize("case", TOOLS)
def test_limit_ends_the_call_by_name(small: Cage, patient: Cage, case: str) -> None:
    kind = case.split()[0]
    if kind != "timed_out":
        outcome = patient.call("python", TOOLS[case])
        assert outcome.kind == kind, outcome
        assert (outcome.limit, outcome.limit_value) == LIMIT_NAMES[kind]
        assert said(patient.call("python", "print('next')")) == "next"
        return
    begun = time.monotonic()
    outcome = small.call("python", TOOLS[case])
    spent = time.monotonic() - begun
    assert outcome.kind == kind, outcome
    assert (outcome.limit, outcome.limit_value) == LIMIT_NAMES[kind]
    assert spent <= LIMITS.wall_seconds + SLACK + 0.25, spent  # and the time to set up and to be reported
    assert outcome.usage.wall_seconds <= LIMITS.wall_seconds + SLACK
    assert said(small.call("python", "print('next')")) == "next"


def test_usage_is_measured(small: Cage, patient: Cage) -> None:
    memory = small.call("python", TOOLS["out_of_memory"]).usage
    assert memory.memory_bytes > 64 << 20
    assert memory.memory_bytes < (64 << 20) * 4
    cpu = patient.call("python", TOOLS["out_of_cpu_time"]).usage
    assert 0.7 <= cpu.cpu_seconds <= 1.5  # the kernel rounds its ticks
    full = small.call("python", TOOLS["temp_space_full"]).usage
    assert full.tmp_bytes >= (8 << 20) * 0.95


def test_below_the_limits_a_tool_ends_by_itself(small: Cage) -> None:
    code = "import os\nheld = bytearray(os.urandom(1 << 10)) * (30 << 10)\nfor _ in range(3):\n if os.fork() == 0: os._exit(0)\nopen('/tmp/f','wb').write(b'x' * (2 << 20))\nprint('y' * 500_000)"
    outcome = small.call("python", code)
    assert (outcome.kind, outcome.exit_code, outcome.stdout_total) == ("exited", 0, 500_001)


def test_a_flood_does_not_grow_the_front(place: Path) -> None:
    with cage(place / "root", limits=LIMITS) as made:
        made.call("python", TOOLS["too_much_output"])
        me = psutil.Process()
        before = me.memory_info().rss
        for _ in range(10):
            assert made.call("python", TOOLS["too_much_output"]).stdout_total < 4 << 20
        assert me.memory_info().rss - before < 16 << 20


def test_a_full_stderr_beside_an_unread_stdout_does_not_hang(small: Cage) -> None:
    code = "import os\nfor _ in range(4): os.write(2, b'e' * 65536)\nos.write(1, b'done')"
    outcome = small.call("python", code)
    assert (outcome.kind, outcome.stdout, len(outcome.stderr)) == ("exited", b"done", 4 * 65536)


def test_a_daemon_does_not_outlive_its_call(small: Cage) -> None:
    code = (
        "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  time.sleep(60)\n os._exit(0)\n"
        "os.wait()\nprint('parent done', flush=True)"
    )
    begun = time.monotonic()
    outcome = small.call("python", code)
    assert said(outcome) == "parent done"
    assert time.monotonic() - begun < 1.0
    assert not psutil.Process(small.supervisor.launcher_pid).children(recursive=True)


def test_exit_codes_and_signals_are_told_apart(small: Cage) -> None:
    assert small.call("python", "raise SystemExit(3)").exit_code == 3
    killed = small.call("python", "import os\nos.kill(os.getpid(), 9)")
    assert (killed.kind, killed.signal, killed.exit_code) == ("signalled", 9, None)
    aborted = small.call("python", "import os\nos.abort()")
    assert (aborted.kind, aborted.signal) == ("signalled", 6)


def test_a_program_that_cannot_be_started_is_a_step_by_name(place: Path) -> None:
    outcome_step = []
    with cage(place / "root") as made:
        outcome = made.call("python", "pass", cwd="nowhere")
        outcome_step.append((outcome.kind, outcome.step, outcome.errno))
    assert outcome_step == [("setup_failed", "cwd", 2)]
    assert os.path.exists(place / "root")
