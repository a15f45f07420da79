"""Every rung of the ladder, on hosts that really deny the facility: what it still promises holds there."""

from __future__ import annotations

import asyncio
import errno
import glob
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runner.prepare import compiled_filters
from sandbox import host, ladder, planning
from sandbox.errors import HostRefused
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Limits, Profile
from tests.live import rungs
from tests.live.cage import PYTHON, Cage, cage, outside, probe, said
from tests.live.rungs import HOSTS, on_host
from tests.live.test_death import GONE_WITHIN, cancelling_kills_the_whole_tree, gone, running, until

WEAKEST = ladder.NAMES[-1]


@pytest.fixture(params=sorted(HOSTS), scope="module")
def weak(request: pytest.FixtureRequest) -> Iterator[str]:
    with on_host(request.param):
        yield request.param


@pytest.fixture(scope="module")
def rung(weak: str) -> str:
    return HOSTS[weak][1]


@pytest.fixture(scope="module")
def held(weak: str, place: Path) -> Iterator[Cage]:
    with cage(place / "root", floor=WEAKEST) as made:
        yield made


@pytest.fixture(scope="module")
def many(weak: str, place: Path) -> Iterator[Cage]:
    with cage(place / "root", floor=WEAKEST, processes="any") as made:
        yield made


def test_the_host_is_seen_as_what_it_is(weak: str, rung: str, held: Cage) -> None:
    found = held.host
    assert found.rung == rung
    assert found.why(found.missing[-1].missing) is not None
    assert held.plans["python"].rung == rung
    assert set(found.missing[-1].lost) <= set(held.plans["python"].lost)


def test_a_floor_above_refuses_before_anything_runs(weak: str, rung: str, place: Path) -> None:
    profile = Profile("t", (PYTHON, "-c"), str(place / "root"))
    found = host.here()
    above = ladder.NAMES[ladder.NAMES.index(rung) - 1]
    with pytest.raises(HostRefused, match=found.missing[-1].missing) as refused:
        planning.make(profile, found, compiled_filters(), above)
    assert f'floor = "{rung}"' in refused.value.remedy
    assert planning.make(profile, found, compiled_filters(), rung).rung == rung


def test_a_call_runs_and_says_where(held: Cage, rung: str) -> None:
    outcome = held.call("python", "print(open('inside.txt').read().strip())")
    assert said(outcome) == "inside"
    assert outcome.attestation is not None
    assert (outcome.attestation["rung"], outcome.attestation["seen_from_outside"]) == (rung, True)
    assert outcome.attestation["lost"]


def test_files_outside_cannot_be_read(held: Cage, place: Path) -> None:
    reading = probe(f"print(open({str(place / 'outside.txt')!r}).read())")
    assert outside(reading).endswith("WORKED")
    assert said(held.call("python", reading)) in ("BLOCKED ENOENT", "BLOCKED EACCES")


@pytest.mark.parametrize("attempt", [
    "open(ROOT + '/new', 'w')", "os.mkdir(ROOT + '/new')", "os.chmod(ROOT + '/inside.txt', 0o600)",
    "os.utime(ROOT + '/inside.txt', (1, 1))", "os.rename(ROOT + '/inside.txt', ROOT + '/other')",
    "os.truncate(ROOT + '/inside.txt', 0)", "os.link(ROOT + '/inside.txt', os.environ['TMPDIR'] + '/link')",
    "os.setxattr(ROOT + '/inside.txt', 'user.x', b'1')",
])  # fmt: skip
def test_the_root_cannot_be_changed(held: Cage, place: Path, tmp_path: Path, attempt: str) -> None:
    def program(root: Path) -> str:
        return probe(f"import os\nROOT = {str(root)!r}\n{attempt}")

    (tmp_path / "inside.txt").write_text("control\n")
    assert outside(program(tmp_path), env={"TMPDIR": str(tmp_path)}) == "WORKED"
    answer = said(held.call("python", program(place / "root")))
    assert answer in ("BLOCKED EROFS", "BLOCKED EACCES", "BLOCKED EPERM", "BLOCKED EXDEV"), answer
    assert (place / "root" / "inside.txt").read_text() == "inside\n"
    assert not {"new", "other"} & set(os.listdir(place / "root"))


def test_no_socket_can_be_opened(held: Cage) -> None:
    for family in (1, 2, 10, 16, 40):
        attempt = probe(f"import _socket\n_socket.socket({family}, {3 if family == 16 else 1}, 0)")
        assert said(held.call("python", attempt)) == "BLOCKED EPERM"
    assert outside(probe("import _socket\n_socket.socket(1, 1, 0)")) == "WORKED"


def test_nobody_outside_can_be_signalled(held: Cage, many: Cage) -> None:
    attempt = probe(f"import os\nos.kill({os.getpid()}, 0)")
    assert outside(attempt) == "WORKED"
    for one in (held, many):
        assert said(one.call("python", attempt)) in ("BLOCKED ESRCH", "BLOCKED EPERM")
    assert said(held.call("python", "import os\nos.kill(os.getpid(), 0)\nprint('own')")) == "own"


def test_the_memory_of_others_is_out_of_reach(held: Cage) -> None:
    for name in ("mem", "environ", "maps", "fd"):
        attempt = probe(
            f"import os\nos.listdir if 0 else None\nos.open('/proc/{os.getpid()}/{name}', os.O_RDONLY)"
        )
        assert outside(attempt) == "WORKED"
        assert said(held.call("python", attempt)) in ("BLOCKED ENOENT", "BLOCKED EACCES")


def test_the_temporary_folder_is_private_and_gone_afterwards(held: Cage) -> None:
    writing = (
        "import os\nfolder = os.environ['TMPDIR']\nhome = os.environ['HOME']\nassert home.startswith(folder)\n"
        "open(folder + '/x', 'w').write('x'); open(home + '/y', 'w').write('y'); os.makedirs(folder + '/d' * 20)\n"
        "print(os.listdir(folder) != [] and folder)"
    )
    first = held.call("python", writing)
    assert said(first)
    seen = said(held.call("python", "import os\nprint(sorted(os.listdir(os.environ['TMPDIR'])))"))
    assert "home" in seen
    assert "'x'" not in seen
    assert glob.glob(f"/tmp/toolcage-scratch-{held.supervisor.launcher_pid}-*/*") == []


def test_a_tool_that_leaves_a_daemon_is_ended_with_it(many: Cage) -> None:
    daemon = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.closerange(0, 3)\n        time.sleep(60)\n    os._exit(0)\nos.wait()\nprint('left')"
    )
    mark = f"# daemon {os.getpid()} {time.monotonic_ns()}"  # other runs leave daemons of their own
    assert said(many.call("python", f"{daemon}\n{mark}")) == "left"
    left = [p for p in psutil.process_iter(["cmdline"]) if mark in " ".join(p.info["cmdline"] or ())]
    assert left == []


def test_cancelling_kills_the_whole_tree(many: Cage) -> None:
    cancelling_kills_the_whole_tree(many)


@pytest.mark.parametrize("victim", ["keeper", "launcher"])
def test_whoever_dies_takes_the_tree_along(weak: str, place: Path, victim: str) -> None:
    with cage(place / "root", floor=WEAKEST, processes="any") as made:

        async def work(supervisor: Supervisor) -> str:
            task, processes = await running(supervisor)
            keeper = next(p.pid for p in processes if p.ppid() == supervisor.launcher_pid)
            os.kill(keeper if victim == "keeper" else supervisor.launcher_pid, signal.SIGKILL)
            outcome = await task
            await until(lambda: gone(processes), GONE_WITHIN)
            return outcome.kind

        assert made.run(work) == "unknown"


def test_limits_hold(weak: str, place: Path) -> None:
    limits = Limits(wall_seconds=20, cpu_seconds=1, memory_mb=128, processes=8, tmp_mb=8, file_mb=4)
    with cage(place / "root", floor=WEAKEST, processes="any", limits=limits) as made:
        hungry = "x = []\nwhile True: x.append(bytearray(b'x') * (1 << 20))"
        assert made.call("python", hungry).kind == "out_of_memory"
        assert made.call("python", "while True: pass").kind == "out_of_cpu_time"
        filling = (
            "import os\nfor n in range(100):\n    with open(os.environ['TMPDIR'] + f'/{n}', 'wb') as f:\n"
            "        f.write(b'x' * (1 << 20)); f.flush(); os.fsync(f.fileno())\nimport time; time.sleep(5)"
        )
        assert made.call("python", filling).kind == "temp_space_full"
        bomb = "import os, time\nfor n in range(40): os.fork() or time.sleep(9)\ntime.sleep(9)"
        outcome = made.call("python", bomb)
        assert outcome.kind == "too_many_processes" or outcome.exit_code, outcome
        assert said(made.call("python", "print('next')")) == "next"


HIDING = {
    "first thread gone": (
        "import ctypes, threading\nf = open(folder + '/x', 'wb')\nos.unlink(folder + '/x')\n"
        "def work():\n    time.sleep(0.05)\n    for n in range(63):\n        f.write(b'x' * (1 << 20)); f.flush()\n"
        "    g = open(folder + '/y', 'wb'); os.unlink(folder + '/y')\n"
        "    for n in range(9):\n        g.write(b'x' * (1 << 20)); g.flush()\n    time.sleep(5)\n"
        "threading.excepthook = lambda _: os._exit(1)\nthreading.Thread(target=work).start()\nctypes.CDLL(None).syscall({'x86_64': 60}.get(os.uname().machine, 93), 0)"
    ),
    "deleted": "f = open(folder + '/x', 'wb')\nos.unlink(folder + '/x')",
    "deep": "os.makedirs(folder + '/d' * 60)\nf = open(folder + '/d' * 60 + '/x', 'wb')",
    "closed": "os.mkdir(folder + '/d', 0o300)\nf = open(folder + '/d/x', 'wb')",
}


@pytest.mark.parametrize("how", HIDING)
def test_what_is_hidden_in_the_temporary_folder_counts(held: Cage, rung: str, how: str) -> None:
    """Where it is a folder of the host; elsewhere the tmpfs bounds it."""
    filling = (
        f"import os, time\nfolder = os.environ['TMPDIR']\n{HIDING[how]}\n"
        "for n in range(63):\n    f.write(b'x' * (1 << 20)); f.flush()\n"
        "g = open(folder + '/y', 'wb')\nfor n in range(9):\n    g.write(b'x' * (1 << 20)); g.flush()\ntime.sleep(5)"
    )
    outcome = held.call("python", filling)
    if rung == "no-namespaces":
        assert outcome.kind == "temp_space_full", outcome
    else:
        assert outcome.kind != "exited" or outcome.exit_code == 1, outcome


def test_what_a_short_tool_leaves_in_the_temporary_folder_counts(held: Cage) -> None:
    """It may end before anybody looks. That it ended well does not make it less."""
    part = Limits().tmp_mb << 19
    filling = (
        "import os\nfor n, size in enumerate({}):\n"
        "    f = os.open(os.environ['TMPDIR'] + f'/{{n}}', os.O_CREAT | os.O_WRONLY)\n"
        "    os.posix_fallocate(f, 0, size)\nos._exit(0)"
    )
    assert held.call("python", filling.format((part,))).exit_code == 0
    assert held.call("python", filling.format((part, part, 4096))).kind == "temp_space_full"


STORM = """\
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def chain():
    while True:
        try:
            if os.fork(): os._exit(0)
            os.setsid()
        except OSError: time.sleep(0.001)
for n in range(12):
    if os.fork() == 0: chain()
time.sleep(60)
"""


def test_processes_that_run_away_from_the_kill_are_caught(weak: str, place: Path) -> None:
    mark = f"# storm {os.getpid()} {time.monotonic_ns()}"
    with cage(place / "root", floor=WEAKEST, processes="any") as made:

        async def work(supervisor: Supervisor) -> None:
            task = asyncio.ensure_future(supervisor.run(Call("python", (STORM + mark,))))
            await until(lambda: len(psutil.Process(supervisor.launcher_pid).children(recursive=True)) > 2)
            begun = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - begun < 4.0

        made.run(work)
        assert said(made.call("python", "print('next')")) == "next"
    left = [p for p in psutil.process_iter(["cmdline"]) if mark in " ".join(p.info["cmdline"] or ())]
    assert left == []


def test_a_root_folder_that_was_swapped_is_not_entered(weak: str, place: Path, tmp_path: Path) -> None:
    folder = place / f"swapped-{os.urandom(4).hex()}"
    folder.mkdir()
    (folder / "mine").write_text("mine\n")
    with cage(folder, floor=WEAKEST) as made:
        assert said(made.call("python", "import os\nprint(os.listdir('.'))")) == "['mine']"
        folder.rename(f"{folder}-away")
        folder.symlink_to("/etc")
        outcome = made.call("python", "import os\nprint(os.listdir('.'))")
        # as root the launcher holds the folder itself since the start; nobody follows the link
        assert outcome.kind == "setup_failed" or said(outcome) == "['mine']", outcome


def test_a_launcher_that_was_killed_leaves_folders_that_the_next_one_removes(place: Path) -> None:
    with on_host("container"), cage(place / "root", floor=WEAKEST, processes="any") as made:

        async def work(supervisor: Supervisor) -> None:
            task, _processes = await running(supervisor)
            os.kill(supervisor.launcher_pid, signal.SIGKILL)
            await task

        made.run(work)
        left = f"/tmp/toolcage-scratch-{made.supervisor.launcher_pid}-*"
        assert glob.glob(left)
        with cage(place / "root", floor=WEAKEST) as after:
            assert said(after.call("python", "print('works')")) == "works"
            assert not glob.glob(left)
            last = f"/tmp/toolcage-scratch-{after.supervisor.launcher_pid}-*"
            assert glob.glob(last)
    assert not glob.glob(last)


def test_a_host_in_trouble_is_not_a_weaker_host(place: Path) -> None:
    """No process, no memory: that is a failure of now, and a floor that accepts less does not turn it into a rung."""
    trouble = rungs._without(flags=0, calls={"clone3": errno.EAGAIN})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(rungs.HOSTS, "trouble", (trouble, ""))
        with on_host("trouble"):
            found = host.here()
            with pytest.raises(HostRefused, match="namespaces"):
                found.require(WEAKEST)
