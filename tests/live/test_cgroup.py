"""Cgroups hold what a whole call uses, whichever version this host gives, and nothing of them is left afterwards."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from sandbox import cgroupfs, division, groups
from sandbox.steps.cgroup import Cgroup
from tests.live.grouped import ROOT, TOOL_UID, Launcher

MIB = 1 << 20
Test = TypeVar("Test", bound=Callable[..., object])


def folders_of(pid: int) -> list[str]:
    """Every folder of one launcher in any hierarchy; others on this host are none of our business."""
    found = glob.glob("/sys/fs/cgroup/**/toolcage-*", recursive=True)
    front, own = f"{division.FRONT}{pid}", f"{division.PREFIX}{pid}-"
    return sorted(
        path for path in found if any(part == front or part.startswith(own) for part in path.split("/"))
    )


def kind_here() -> str:
    started = Launcher()
    try:
        return str(started.ask("find")[0])
    finally:
        started.end()


def unified() -> str:
    """Where v2 is mounted for root to try the division in, with or without controllers; else ""."""
    points = [
        one.point for one in cgroupfs.mounts(Path("/proc/self/mountinfo").read_bytes()) if not one.controllers
    ]
    return next((point for point in points if ROOT and os.access(point, os.W_OK)), "")


KIND = kind_here()
UNIFIED = unified()


def only(condition: object) -> Callable[[Test], Test]:
    """Leave a test out, which is not skipping, where what it is about does not exist."""

    def mark(test: Test) -> Test:
        test.__test__ = bool(condition)  # type: ignore[attr-defined]
        return test

    return mark


@contextlib.contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing and ends with the test."""
    with subprocess.Popen(["sleep", "60"]) as started:
        try:
            yield started
        finally:
            started.kill()


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    started = Launcher()
    try:
        assert started.ask("find")[0] == KIND
        yield started
    finally:
        started.end()
    assert not folders_of(started.process.pid)


@pytest.fixture
def own() -> Iterator[groups.Groups]:
    """This process is the launcher, and its parent the front."""
    before = len(os.listdir("/proc/self/fd"))
    found = groups.find(os.getppid())
    try:
        yield found
    finally:
        found.close()
    assert not folders_of(os.getpid())
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_reason_is_told() -> None:
    started = Launcher()
    try:
        kind, why = started.ask("find")
    finally:
        started.end()
    assert kind in ("v2", "v1", "none")
    assert ("cgroup v2: " in why, "cgroup v1: " in why) == (kind != "v2", kind == "none")
    assert kind != "none" or ROOT or "cgroup v1: only root can use it" in why


@only(KIND != "none")
def test_the_tool_is_in_and_proven_and_holds_no_descriptor(launcher: Launcher) -> None:
    report = launcher.call("pass")
    assert report["told"]["kernel_uid"] == TOOL_UID
    assert report["told"]["cgroup"] == KIND
    assert report["told"]["closed"]
    place = rf"/{division.PREFIX}{launcher.process.pid}-[0-9a-f]+/{division.CALL}1\n"
    assert re.search(place, report["told"]["lines"])
    limits = {"version": KIND, "memory_bytes": 64 * MIB, "processes": 16}
    assert report["proven"] == {"cgroup": limits}
    assert report["status"] == 0


@only(KIND != "none")
def test_memory_of_all_processes_is_held(launcher: Launcher) -> None:
    one = "held = bytearray(os.urandom(1024)) * ({} << 10)"
    below = launcher.call("import os\n" + one.format(30))
    assert (below["status"], below["counted"]["out_of_memory"]) == (0, 0)
    peak = below["counted"]["memory_peak"]
    assert 30 * MIB <= peak <= 64 * MIB or (KIND == "v2" and peak == 0)  # not counted before Linux 5.19
    over = launcher.call("import os\n" + one.format(100))
    assert os.WTERMSIG(over["status"]) == signal.SIGKILL
    assert over["counted"]["out_of_memory"] >= 1
    assert over["counted"]["memory_peak"] <= 64 * MIB
    # each of four is below the limit
    together = (
        "import os, signal\nfirst = os.getpid()\nfor _ in range(3):\n if os.getpid() == first: os.fork()\n"
        f"{one.format(30)}\nos.wait() if os.getpid() == first else signal.pause()"
    )
    assert launcher.call(together)["counted"]["out_of_memory"] >= 1


@only(KIND != "none")
def test_pages_of_files_in_memory_are_held(launcher: Launcher) -> None:
    code = "import os\nf = os.memfd_create('f')\nfor _ in range({}): os.write(f, b'x' * (1 << 20))"
    below, over = (launcher.call(code.format(count)) for count in (30, 100))
    assert (below["status"], below["counted"]["out_of_memory"]) == (0, 0)
    assert os.WTERMSIG(over["status"]) == signal.SIGKILL
    assert over["counted"]["out_of_memory"] >= 1


@only(KIND == "v2")
def test_out_of_memory_ends_the_whole_call(launcher: Launcher) -> None:
    code = (
        "import os, signal\nif os.fork() == 0: signal.pause()\n"
        "held = bytearray(os.urandom(1024)) * (100 << 10)"
    )
    report = launcher.call(code)
    assert os.WTERMSIG(report["status"]) == signal.SIGKILL
    assert report["counted"]["out_of_memory"] >= 2


@only(KIND != "none")
def test_processes_are_held(launcher: Launcher) -> None:
    code = (
        "import os, signal\ncount = 0\ntry:\n"
        " while count < 12:\n  if os.fork() == 0: signal.pause()\n  count += 1\n"
        "except BlockingIOError: pass\nos._exit(count)"
    )
    below = launcher.call(code, processes=16)
    assert (os.WEXITSTATUS(below["status"]), below["counted"]["processes_refused"]) == (12, 0)
    over = launcher.call(code, processes=8)
    # nine may exist, one more than the limit, and the first is the tool itself
    assert (os.WEXITSTATUS(over["status"]), over["counted"]["processes_refused"]) == (8, 1)
    assert over["counted"]["processes_peak"] in (0, 9)  # 0 before Linux 6.11
    threads = (
        "import os, threading, signal\ncount = 0\ntry:\n"
        " while count < 12:\n  threading.Thread(target=signal.pause, daemon=True).start()\n  count += 1\n"
        "except RuntimeError: pass\nos._exit(count)"
    )
    assert os.WEXITSTATUS(launcher.call(threads, processes=8)["status"]) == 8


@only(KIND != "none")
def test_processor_time_is_exact_for_children_that_nobody_waits_for(launcher: Launcher) -> None:
    code = (
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nreader, writer = os.pipe()\n"
        "if os.fork() == 0:\n while time.thread_time() < {}: pass\n os._exit(0)\n"
        "os.close(writer)\nos.read(reader, 1)"  # ends when the child does
    )
    idle, busy = (launcher.call(code.format(seconds))["counted"]["cpu_seconds"] for seconds in (0, 0.4))
    assert 0 < idle < busy
    assert busy >= 0.4


@only(KIND != "none")
def test_calls_leave_no_folder_and_no_descriptor(launcher: Launcher) -> None:
    before = launcher.ask("where")["open"]
    for _ in range(3):
        assert launcher.call("import os, signal\nif os.fork() == 0: signal.pause()")["left"] >= 1
        assert not [path for path in folders_of(launcher.process.pid) if division.CALL in path]
    assert launcher.ask("where")["open"] == before


@only(KIND != "none")
def test_close_takes_everything_back() -> None:
    started = Launcher()
    try:
        where = started.ask("where")
        assert started.ask("find")[0] == KIND
        started.ask("leaf", number=3)
        assert folders_of(started.process.pid)
        assert started.ask("close") == where
        assert not folders_of(started.process.pid)
    finally:
        started.end()


@only(KIND != "none")
def test_a_leaf_in_use_is_ended_and_removed_later(own: groups.Groups) -> None:
    leaf = own.leaf(7, Cgroup(own.kind, 64 * MIB, 16))
    assert leaf is not None
    with sleeper() as inside:
        for procs in leaf.procs:
            os.write(procs, str(inside.pid).encode())
        with pytest.raises(BlockingIOError, match="still in use"):
            own.leaf(7, Cgroup(own.kind, 64 * MIB, 16))
        leaf.close()
        own.remove(leaf)
        assert any(path.endswith(f"/{division.CALL}7") for path in folders_of(os.getpid()))
        assert inside.wait(10) == -signal.SIGKILL
    own.remove(None)
    assert not any(path.endswith(f"/{division.CALL}7") for path in folders_of(os.getpid()))


@only(KIND != "none")
def test_kill_ends_what_is_in_the_leaf_and_nothing_else(own: groups.Groups) -> None:
    leaf = own.leaf(7, Cgroup(own.kind, 64 * MIB, 16))
    assert leaf is not None
    with sleeper() as inside, sleeper() as outside:
        for procs in leaf.procs:
            os.write(procs, str(inside.pid).encode())
        own.kill(leaf)
        assert inside.wait(10) == -signal.SIGKILL
        assert outside.poll() is None
    leaf.close()
    own.remove(leaf)


@only(KIND != "none")
def test_a_process_that_is_not_in_and_other_limits_are_no_proof(own: groups.Groups) -> None:
    wanted = Cgroup(own.kind, 64 * MIB, 16)
    leaf = own.leaf(7, wanted)
    assert leaf is not None
    with sleeper() as inside:
        for procs in leaf.procs:
            os.write(procs, str(inside.pid).encode())
        assert wanted.prove(leaf, inside.pid)
        with pytest.raises(PermissionError, match="not in its cgroup"):
            wanted.prove(leaf, os.getpid())
        with pytest.raises(PermissionError, match="limits are"):
            Cgroup(own.kind, 64 * MIB, 17).prove(leaf, inside.pid)
    leaf.close()
    own.remove(leaf)


def test_a_plan_for_another_version_is_refused(own: groups.Groups) -> None:
    other = Cgroup("none") if own.kind != "none" else Cgroup("v2", 64 * MIB, 16)
    with pytest.raises(PermissionError, match="planned is cgroup"):
        own.leaf(1, other)
    assert own.kind != "none" or own.leaf(1, Cgroup("none")) is None


@only(KIND != "none")
def test_what_a_dead_launcher_leaves_is_swept_and_a_living_one_is_not() -> None:
    begun: list[Launcher] = []

    def start() -> Launcher:  # one after the other: in v2 the second one finds what the first has divided
        begun.append(Launcher())
        assert begun[-1].ask("find")[0] == KIND
        return begun[-1]

    try:
        dead, alive = start(), start()
        for started in (dead, alive):
            started.ask("leaf", number=3)
        dead.kill()
        assert folders_of(dead.process.pid)  # the control: nobody has swept
        held = folders_of(alive.process.pid)
        assert held
        start()
        assert folders_of(dead.process.pid) == [
            path for path in folders_of(dead.process.pid) if division.FRONT in path
        ]
        assert folders_of(alive.process.pid) == held
    finally:
        for started in begun:
            started.end()
    assert not [path for started in begun for path in folders_of(started.process.pid)]


@pytest.fixture
def lent() -> Iterator[str]:
    """A v2 cgroup to be divided by a launcher in it, with the controllers that the one above hands down."""
    path = os.path.join(UNIFIED, f"toolcage-test-{os.getpid()}")
    os.mkdir(path)
    try:
        yield path
    finally:
        for folder, _, _ in os.walk(path, topdown=False):
            Path(UNIFIED, "cgroup.procs").write_text("0")
            os.rmdir(folder)


@contextlib.contextmanager
def pair_in(path: str) -> Iterator[tuple[Launcher, list[str]]]:
    """A front and its launcher in a cgroup, and the controllers that they can have there."""
    started = Launcher(front=True)
    try:
        Path(path, "cgroup.procs").write_text(str(started.process.pid))
        started.begin()
        started.ask("where")  # it runs
        offered = Path(path, "cgroup.controllers").read_text().split()
        yield started, [name for name in ("memory", "pids") if name in offered]
    finally:
        started.end()


def pids_in(path: str) -> set[str]:
    return set(Path(path, "cgroup.procs").read_text().split())


@pytest.mark.root_only
@only(UNIFIED)
def test_v2_front_and_launcher_move_into_a_leaf_and_back(lent: str) -> None:
    with pair_in(lent) as (pair, needed):
        start = pair.ask("where")["where"]
        both = pids_in(lent)
        assert len(both) == 2
        assert pair.ask("way", way="v2_own", needed=needed) == [0, ""]
        made = sorted(os.listdir(lent))
        front = next(name for name in made if name.startswith(division.FRONT))
        assert (pids_in(lent), pids_in(f"{lent}/{front}")) == (set(), both)
        assert any(name.startswith(front.replace(division.FRONT, division.PREFIX) + "-") for name in made)
        assert set(Path(lent, "cgroup.subtree_control").read_text().split()) >= set(needed)
        assert pair.ask("undo")["where"] == start
        assert pids_in(lent) == both
        assert not [name for name in os.listdir(lent) if name.startswith(division.PREFIX)]
        assert not Path(lent, "cgroup.subtree_control").read_text().split()


@pytest.mark.root_only
@only(UNIFIED)
def test_v2_with_other_processes_is_refused_by_name(lent: str) -> None:
    with pair_in(lent) as (pair, needed), sleeper() as other:
        Path(lent, "cgroup.procs").write_text(str(other.pid))
        before = pids_in(lent)
        code, reason = pair.ask("way", way="v2_own", needed=needed)
        assert (code, f"{other.pid} sleep" in reason) == (1, True)
        assert pids_in(lent) == before
        assert not [name for name in os.listdir(lent) if name.startswith(division.PREFIX)]
        other.kill()
        other.wait(10)
        assert pair.ask("way", way="v2_own", needed=needed) == [0, ""]  # the control


@pytest.mark.root_only
@only(UNIFIED)
def test_v2_without_the_controllers_is_refused(lent: str) -> None:
    with pair_in(lent) as (pair, needed):
        code, reason = pair.ask("way", way="v2_own", needed=[*needed, "nosuch"])
        assert (code, "does not have: nosuch" in reason) == (1, True)
        assert len(pids_in(lent)) == 2


@pytest.mark.root_only
@only(UNIFIED)
def test_v2_parent_is_used_when_it_is_marked_as_ours(lent: str) -> None:
    main = f"{lent}/main"
    os.mkdir(main)
    with pair_in(main) as (pair, _), sleeper() as other:
        Path(main, "cgroup.procs").write_text(str(other.pid))
        both = pids_in(main)
        assert pair.ask("way", way="v2_parent", needed=[])[0] == 1
        os.setxattr(lent, "user.delegate", b"1")
        assert pair.ask("way", way="v2_parent", needed=[]) == [0, ""]
        assert pids_in(main) == both
        assert [name for name in os.listdir(lent) if name.startswith(division.PREFIX)]
        pair.ask("undo")
        assert not [name for name in os.listdir(lent) if name.startswith(division.PREFIX)]
        other.kill()


@pytest.mark.root_only
@only(UNIFIED)
def test_v2_two_launchers_of_one_front_and_the_last_one_takes_back(lent: str) -> None:
    with pair_in(lent) as (first, needed):
        assert first.ask("way", way="v2_own", needed=needed) == [0, ""]
        front = next(name for name in os.listdir(lent) if name.startswith(division.FRONT))
        with pair_in(f"{lent}/{front}") as (second, _):
            assert second.ask("way", way="v2_beside", needed=needed) == [0, ""]
            tops = [name for name in os.listdir(lent) if name.startswith(division.PREFIX)]
            assert len(tops) == 3
            first.ask("undo")
            assert not needed or Path(lent, "cgroup.subtree_control").read_text().split()
            second.ask("undo")
        assert not [name for name in os.listdir(lent) if name.startswith(division.PREFIX)]
        assert not Path(lent, "cgroup.subtree_control").read_text().split()
