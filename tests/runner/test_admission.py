"""runner.admission and runner.places: bounds over all processes of a user, kept by locks that the kernel frees."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import time
from pathlib import Path

import psutil
import pytest

from runner import results
from runner.admission import Admission, Bounds, MachineBusy, Shortage, bounds, shortage
from runner.places import STALE_SECONDS, Places, folders, open_shared
from tests.end_to_end.waiting import until
from tests.runner import admitting
from tests.runner.admitting import ended, view, waits

MIB = 1 << 20
PLENTY = 1 << 20  # MiB
SOON = 0.05  # seconds to wait for room, where a test wants to see the refusal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def admission(
    folder: Path, calls: int = 2, memory_mb: int = PLENTY, need: int = 10, wait: float = SOON, least: int = 1
) -> Admission:
    allowed = Bounds(calls, memory_mb, least, wait)
    return Admission({"call": need}, lambda: allowed, str(folder), lambda _line: None)


def let_in(one: Admission) -> Shortage | None:
    """Try one call; what was missing, None when it came in."""

    async def attempt() -> Shortage | None:
        try:
            async with one.place("call"):
                return None
        except MachineBusy as busy:
            return busy.shortage

    return asyncio.run(attempt())


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# ---- what is allowed -------------------------------------------------------------------------------------------------


def test_the_bounds_are_those_of_this_machine() -> None:
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total = int(lines["MemTotal"].split()[0]) // 1024
    found = bounds(None, None)
    assert found.calls == min(4 * (os.cpu_count() or 1), 1024)
    assert 0.74 * total < found.memory_mb < 0.76 * total
    assert bounds(7, 99) == Bounds(7, 99)


@pytest.mark.parametrize(
    ("others", "need", "missing"),
    [
        ((), 100, None),
        ((10, 20), 70, None),
        ((10, 20), 71, Shortage("max_machine_memory_mb", 100, 30, 71)),
        ((1, 1, 1), 1, Shortage("max_machine_calls", 3, 3, 1)),
        ((1, 1, 1, 1), 1, Shortage("max_machine_calls", 3, 4, 1)),
        ((), 101, Shortage("max_machine_memory_mb", 100, 0, 101)),
    ],
)
def test_what_is_missing(others: tuple[int, ...], need: int, missing: Shortage | None) -> None:
    assert shortage(Bounds(3, 100), others, need) == missing


# ---- the shared file -------------------------------------------------------------------------------------------------


def test_the_folder_follows_from_the_user_alone() -> None:
    assert folders(None, 1234) == ("/run/user/1234/toolcage", "/tmp/.toolcage-1234")
    assert folders(None, 0) == ("/run/user/0/toolcage", "/run/toolcage", "/tmp/.toolcage-0")
    assert folders("/somewhere", 0) == ("/somewhere/toolcage",)


def test_folder_and_file_are_for_their_owner_alone(folder: Path) -> None:
    os.close(open_shared((str(folder / "toolcage"),)))
    made = (folder / "toolcage").stat()
    file = (folder / "toolcage" / "running").stat()
    assert (stat.S_IMODE(made.st_mode), made.st_uid) == (0o700, os.geteuid())
    assert (stat.S_IMODE(file.st_mode), file.st_uid, file.st_size) == (0o1200, os.geteuid(), 0)
    if os.geteuid() != 0:  # for root the mode is what keeps other users' workers out
        with pytest.raises(PermissionError):
            os.open(folder / "toolcage" / "running", os.O_RDONLY)


def spoil(folder: Path, how: str) -> Path:
    """A folder at which the file must not be made or used."""
    path = folder / how
    if how == "a link":
        (folder / "real").mkdir(mode=0o700)
        path.symlink_to(folder / "real")
    elif how == "a file":
        path.touch(0o600)
    elif how == "open to others":
        path.mkdir(mode=0o700)
        path.chmod(0o710)
    elif how == "not there":
        path = folder / "nothing" / how
    return path


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("a link", "Not a directory"),
        ("a file", "Not a directory"),
        ("open to others", "open to, another user"),
        ("not there", "No such file or directory"),
    ],
)
def test_what_is_not_ours_alone_is_passed_over(folder: Path, how: str, why: str) -> None:
    bad, good = spoil(folder, how), folder / "good"
    with pytest.raises(OSError, match=why):
        open_shared((str(bad),))
    os.close(open_shared((str(bad), str(good))))
    assert [path.name for path in good.iterdir()] == ["running"]
    assert not bad.is_dir() or not list(bad.iterdir())


@pytest.mark.root_only
def test_folders_of_other_users_are_passed_over(folder: Path) -> None:
    theirs = folder / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 1234, 1234)
    for path in (theirs, theirs / "toolcage"):  # itself, and what we would make in it
        with pytest.raises(PermissionError):
            open_shared((str(path),))
    assert not list(theirs.iterdir())
    os.chown(theirs, 0, 0)
    os.close(open_shared((str(theirs / "toolcage"),)))


def test_two_views_of_one_process_exclude_each_other(folder: Path) -> None:
    first, second = view(folder), view(folder)
    assert first.take(300, ())
    assert (first.running(), second.running()) == ({}, {0: 300})  # without itself
    assert second.take(40, ())
    assert (first.running(), second.running()) == ({1: 40}, {0: 300})
    first.give_back()
    assert second.running() == {}
    second.close()
    assert first.running() == {}
    first.close()


def test_many_places_and_gaps_are_all_seen(folder: Path) -> None:
    views = [view(folder) for _ in range(40)]
    for number, one in enumerate(views):
        assert one.take(number + 1, range(number))
    look = view(folder)
    for number in range(0, 40, 3):
        views[number].close()
    expected = {number: number + 1 for number in range(40) if number % 3}
    assert look.running() == expected
    assert look.take(7, expected)
    assert views[1].running() == {0: 7} | {key: value for key, value in expected.items() if key != 1}
    for one in (look, *(views[number] for number in range(40) if number % 3)):
        one.close()


def test_a_killed_process_frees_its_place(folder: Path) -> None:
    look = view(folder)
    holder = admitting.hold(folder, 600)
    with ended(holder):
        assert look.running() == {0: 600}
        assert let_in(admission(folder, calls=1)) == Shortage("max_machine_calls", 1, 1, 10)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert look.running() == {}
        assert let_in(admission(folder, calls=1)) is None
    look.close()


# ---- calls of many processes -----------------------------------------------------------------------------------------


def test_processes_that_compete_stay_within_the_bounds(folder: Path) -> None:
    record = folder / "record"
    found = admitting.compete(folder, record, 4, Bounds(3, PLENTY, wait_seconds=60), need=10, times=40)
    assert (found["times"], found["in"], found["most"]) == (4 * 3 * 40, 0, 3)
    found = admitting.compete(folder, record, 4, Bounds(100, 250, wait_seconds=60), need=100, times=40)
    assert (found["times"], found["in"], found["most_memory"]) == (4 * 3 * 40, 0, 200)


def test_two_who_come_at_the_same_instant_do_not_both_come_in(folder: Path) -> None:
    found = admitting.collide(folder, folder / "record", rounds=200)
    assert (found["in"], found["most"]) == (0, 1)
    assert found["times"] > 0  # how often depends on how busy the machine is


def test_control_without_bounds_more_are_in(folder: Path) -> None:
    found = admitting.compete(folder, folder / "record", 4, Bounds(1000, PLENTY), need=100, times=40)
    assert found["most"] > 3
    assert found["most_memory"] > 250


def test_who_came_first_goes_first(folder: Path) -> None:
    look, allowed = view(folder), Bounds(1, PLENTY, wait_seconds=60)
    holder = admitting.hold(folder, 10)
    callers = []
    for number in range(4):
        callers.append(admitting.call(folder, allowed, 10))
        waits(look, number + 1)
    with ended(holder, *callers):
        admitting.end(holder)
        for number, caller in enumerate(callers):
            assert admitting.said(caller) == "in"
            assert len(look.waiting(60)) == 3 - number
            admitting.end(caller)
    look.close()


def test_a_large_call_is_not_overtaken_by_small_ones(folder: Path) -> None:
    look, allowed = view(folder), Bounds(100, 1000, wait_seconds=60)
    holder = admitting.hold(folder, 600)
    large = admitting.call(folder, allowed, 800)
    waits(look, 1)
    small = admitting.call(folder, allowed, 300)
    with ended(holder, large, small):
        waits(look, 2)  # 600 + 300 would fit, but not beside the 800 that came before
        admitting.end(holder)
        assert admitting.said(large) == "in"
        assert look.waiting(60) == (300,)
        admitting.end(large)
        assert admitting.said(small) == "in"
        admitting.end(small)
    look.close()


def test_control_without_a_large_call_the_small_one_goes_at_once(folder: Path) -> None:
    holder = admitting.hold(folder, 600)
    with ended(holder):
        assert let_in(admission(folder, memory_mb=1000, need=300)) is None
        assert let_in(admission(folder, memory_mb=1000, need=401)) == Shortage(
            "max_machine_memory_mb", 1000, 600, 401
        )


def test_several_who_fit_go_together(folder: Path) -> None:
    look, allowed = view(folder), Bounds(100, 1000, wait_seconds=60)
    holder = admitting.hold(folder, 1000)
    callers = []
    for number in range(3):
        callers.append(admitting.call(folder, allowed, 300))
        waits(look, number + 1)
    with ended(holder, *callers):
        admitting.end(holder)
        assert [admitting.said(caller) for caller in callers] == ["in"] * 3
        assert sorted(look.running().values()) == [300] * 3
    look.close()


def test_who_waits_but_is_stopped_holds_nobody_up(folder: Path) -> None:
    """A frozen client must not keep others waiting for ever with a number that it never uses."""
    look, wait = view(folder), 1.5
    holder = admitting.hold(folder, 10)
    frozen = admitting.call(folder, Bounds(1, PLENTY, wait_seconds=60), 10)
    with ended(holder, frozen):
        waits(look, 1)
        frozen.send_signal(signal.SIGSTOP)
        admitting.end(holder)
        assert look.running() == {}
        assert look.waiting(wait) == (10,)  # it would be next
        assert (
            let_in(admission(folder, calls=1, wait=wait)) is None
        )  # at the latest when its own wait is over
        until(lambda: look.waiting(wait) == (), wait + STALE_SECONDS)
        begun = time.monotonic()
        assert let_in(admission(folder, calls=1, wait=wait)) is None
        assert time.monotonic() - begun < wait
        assert look.waiting(60) == (10,)  # and it is still there
    look.close()


# ---- waiting and its end ---------------------------------------------------------------------------------------------


def test_the_wait_has_an_end(folder: Path) -> None:
    holder = admitting.hold(folder, 10)
    with ended(holder):
        begun = time.monotonic()
        assert let_in(admission(folder, calls=1, wait=0.3)) == Shortage("max_machine_calls", 1, 1, 10)
        assert 0.3 <= time.monotonic() - begun < 5
        look = view(folder)
        assert look.waiting(60) == ()
        look.close()


def test_the_wait_is_not_busy(folder: Path) -> None:
    holder = admitting.hold(folder, 10)
    with ended(holder):
        let_in(admission(folder, calls=1))  # imports
        used = time.process_time()
        let_in(admission(folder, calls=1, wait=1.0))
        assert time.process_time() - used < 0.1


def test_a_call_that_is_cancelled_while_it_waits_leaves_nothing(folder: Path) -> None:
    look = view(folder)
    holder = admitting.hold(folder, 10)
    one = admission(folder, calls=1, wait=60)

    async def give_up() -> None:
        entered = asyncio.ensure_future(one.place("call").__aenter__())
        while not look.waiting(60):
            await asyncio.sleep(0)
        entered.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entered

    with ended(holder):
        before = descriptors()
        asyncio.run(give_up())
        assert look.waiting(60) == ()
        assert len(look.running()) == 1
        assert descriptors() == before
        admitting.end(holder)
        assert let_in(one) is None
    look.close()


def test_calls_leave_no_descriptor_and_no_lock(folder: Path) -> None:
    one, look = admission(folder, calls=1), view(folder)

    async def fail() -> None:
        async with one.place("call"):
            assert len(look.running()) == 1
            raise ZeroDivisionError

    let_in(one)
    before = descriptors()
    for _ in range(5):
        assert let_in(one) is None
        with pytest.raises(ZeroDivisionError):
            asyncio.run(fail())
    with ended(admitting.hold(folder, 10)) as _, pytest.raises(MachineBusy):
        asyncio.run(one.place("call").__aenter__())
    assert descriptors() == before
    assert (look.running(), look.waiting(60)) == ({}, ())
    look.close()


def test_a_machine_without_memory_starts_no_call(folder: Path) -> None:
    """More than there is must be available; psutil is asked for real."""
    total = psutil.virtual_memory().total // MIB
    missing = let_in(admission(folder, memory_mb=9 * total, need=4 * total, least=2 * total))
    assert missing is not None
    assert (missing.bound, missing.limit) == ("available_memory_mb", 2 * total)
    assert 0 < missing.current <= total
    look = view(folder)
    assert look.running() == {}
    look.close()
    assert let_in(admission(folder, memory_mb=9 * total, need=4 * total, least=1)) is None
    assert let_in(admission(folder, memory_mb=9 * total, need=1, least=2 * total)) is None  # it needs no more


def test_a_call_that_waits_for_memory_holds_no_place(folder: Path) -> None:
    total, look = psutil.virtual_memory().total // MIB, view(folder)
    one = admission(folder, memory_mb=9 * total, need=4 * total, least=2 * total, wait=60)

    async def wait() -> None:
        entered = asyncio.ensure_future(one.place("call").__aenter__())
        while not look.waiting(60):
            await asyncio.sleep(0)
        assert look.running() == {}
        entered.cancel()

    asyncio.run(wait())
    look.close()


def test_a_call_that_could_never_run_does_not_wait(folder: Path) -> None:
    begun = time.monotonic()
    missing = let_in(admission(folder, memory_mb=100, need=101, wait=60))
    assert missing == Shortage("max_machine_memory_mb", 100, 0, 101)
    assert missing.is_lasting
    assert time.monotonic() - begun < 30
    assert let_in(admission(folder, memory_mb=100, need=100)) is None


# ---- what is said ----------------------------------------------------------------------------------------------------


def test_without_a_folder_the_bounds_hold_for_this_server_alone(folder: Path) -> None:
    (folder / "toolcage").touch()
    said: list[str] = []
    allowed = Bounds(1, PLENTY, 1, SOON)
    one, other = (Admission({"call": 10}, lambda: allowed, str(folder), said.append) for _ in range(2))

    async def both() -> None:
        async with one.place("call"):
            with pytest.raises(MachineBusy):
                await one.place("call").__aenter__()
            async with other.place("call"):
                pass

    asyncio.run(both())
    assert let_in(one) is None
    assert len(said) == 2  # each server once
    assert said[0] == said[1]
    assert f"{folder}/toolcage cannot be used (Not a directory)" in said[0]
    assert "for this server alone" in said[0]


def test_the_operator_is_told_which_tools_can_never_run() -> None:
    said: list[str] = []
    tools = {"small": 100} | {f"large{number}": 101 for number in range(7)}
    Admission(tools, lambda: Bounds(1, 100), None, said.append).look()
    assert len(said) == 1
    assert "calls of large0, large1, large2, large3, large4 and 2 more are refused" in said[0]
    assert "more than 100 MiB (max_machine_memory_mb); lower memory_mb or tmp_mb" in said[0]
    said.clear()
    Admission({"small": 100}, lambda: Bounds(1, 100), None, said.append).look()
    assert not said


@pytest.mark.parametrize(
    ("missing", "code", "text", "more"),
    [
        (Shortage("max_machine_calls", 8, 9, 1088), "machine_busy", "9 calls of this user's Toolcage servers", {}),
        (
            Shortage("max_machine_memory_mb", 18000, 17408, 1088), "machine_busy",
            "may use 17,408 MiB together, and this one 1,088 MiB more; the limit is 18,000 MiB", {"needed": 1088},
        ),
        (Shortage("available_memory_mb", 64, 20, 1088), "machine_busy", "has 20 MiB of memory available", {}),
        (
            Shortage("max_machine_memory_mb", 700, 0, 1088), "machine_too_small",
            "may use 1,088 MiB (memory_mb + tmp_mb)", {"needed": 1088},
        ),
    ],
)  # fmt: skip
def test_a_refusal_says_limit_count_and_way_out(
    missing: Shortage, code: str, text: str, more: dict[str, int]
) -> None:
    result = results.machine_busy(MachineBusy(missing, 5.01))
    lasting = code == "machine_too_small"
    assert result.is_error
    assert result.text.startswith(f"refused · {code}\n")
    assert text in result.text
    assert ("waited 5 s" in result.text) is not lasting
    assert ("lower memory_mb" in result.text) is (missing.bound == "max_machine_memory_mb")
    assert ("Call again in a few seconds" in result.text) is not lasting
    assert result.meta == {
        "outcome": "refused", "code": code, "class": "capacity", "scope": "machine", "retryable": not lasting,
        "limit": missing.bound, "limit_value": missing.limit, "current": missing.current, **more,
    }  # fmt: skip


def test_a_file_that_cannot_be_locked_is_not_used_and_not_left_open(folder: Path) -> None:
    before = descriptors()
    places = Places(os.open(folder, os.O_PATH))  # what a lock cannot be asked for, fcntl(2): EBADF
    with pytest.raises(OSError, match="Bad file descriptor"):
        places.running()
    places.close()
    assert descriptors() == before
