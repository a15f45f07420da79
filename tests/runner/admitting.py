"""Processes for the tests of admission: they use the real thing on a folder of the test and say what happens to them.

Read by `python -m tests.runner.admitting FOLDER CALLS MEMORY_MB NEED WAIT TIMES RECORD`: each time a call is let in,
it is counted in RECORD, under a lock of its own, and the most that ever were in at once is kept there.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from runner.admission import Admission, Bounds
from runner.places import Places, folders, open_shared
from tests.end_to_end.waiting import PATIENCE, until

REPO = Path(__file__).resolve().parents[2]
_HOLD = """\
import sys
from runner.places import Places, open_shared
places = Places(open_shared((sys.argv[1],)))
assert places.take(int(sys.argv[2]), places.running())
print("held", flush=True)
sys.stdin.read()
"""
_CALL = """\
import asyncio, sys
from runner.admission import Admission, Bounds, MachineBusy
folder, calls, memory, need, wait = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
allowed = Bounds(calls, memory, wait_seconds=wait)
admission = Admission({"call": need}, lambda: allowed, folder, print)
async def main():
    try:
        async with admission.place("call"):
            print("in", flush=True)
            sys.stdin.read()
    except MachineBusy as busy:
        print("refused", busy.shortage.bound, flush=True)
asyncio.run(main())
"""
# Everybody tries at the same instant, so that between one's look and its lock another looks.
_TOGETHER = """\
import asyncio, sys, time
from runner.admission import Admission, Bounds, MachineBusy
from tests.runner.admitting import count
folder, record, start, rounds = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
allowed = Bounds(1, 1000, wait_seconds=0)
admission = Admission({"call": 10}, lambda: allowed, folder, print)
admission.look()
async def main():
    for number in range(rounds):
        while time.monotonic() < start + 0.008 * number:
            pass
        try:
            async with admission.place("call"):
                count(record, 1, 10)
                time.sleep(0.001)
                count(record, -1, -10)
        except MachineBusy:
            pass
asyncio.run(main())
"""


def view(folder: Path) -> Places:
    """A look at the shared file."""
    return Places(open_shared(folders(str(folder), os.geteuid())))


def hold(folder: Path, memory_mb: int) -> subprocess.Popen[bytes]:
    """A process that holds a place until its input ends."""
    process = _start("-c", _HOLD, *folders(str(folder), os.geteuid()), str(memory_mb))
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def call(folder: Path, allowed: Bounds, need: int) -> subprocess.Popen[bytes]:
    """A process with one call; see `said`. It ends when its input does."""
    words = (folder, allowed.calls, allowed.memory_mb, need, allowed.wait_seconds)
    return _start("-c", _CALL, *map(str, words))


def waits(look: Places, count: int) -> None:
    """Until that many calls wait."""
    until(lambda: len(look.waiting(PATIENCE)) == count)


def said(process: subprocess.Popen[bytes]) -> str:
    """What became of it: "in" or "refused BOUND". Blocks until it is known."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def end(process: subprocess.Popen[bytes]) -> None:
    """Let it end by itself."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    assert process.wait(PATIENCE) == 0


@contextmanager
def ended(*processes: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whatever happens, they are gone afterwards."""
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
            for end_ in (process.stdin, process.stdout):
                if end_ is not None:
                    end_.close()


def collide(folder: Path, record: Path, rounds: int) -> dict[str, int]:
    """Two processes that try to get the one place at the same instants; returns the record."""
    _clear(record)
    words = (folder, record, time.monotonic() + 1, rounds)
    return _record_of([_start("-c", _TOGETHER, *map(str, words)) for _ in range(2)], record)


def compete(
    folder: Path, record: Path, processes: int, allowed: Bounds, need: int, times: int
) -> dict[str, int]:
    """Many processes, each with several calls at once; returns the record."""
    _clear(record)
    words = (folder, allowed.calls, allowed.memory_mb, need, allowed.wait_seconds, times, record)
    running = [_start("-m", "tests.runner.admitting", *map(str, words)) for _ in range(processes)]
    return _record_of(running, record)


def _clear(record: Path) -> None:
    record.write_text(json.dumps({"in": 0, "memory": 0, "most": 0, "most_memory": 0, "times": 0}))


def _record_of(running: list[subprocess.Popen[bytes]], record: Path) -> dict[str, int]:
    with ended(*running):
        assert [process.wait(PATIENCE * 4) for process in running] == [0] * len(running)
    found: dict[str, int] = json.loads(record.read_text())
    return found


def _start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPO, bufsize=0
    )


# ---- one of the competing processes ----------------------------------------------------------------------------------


def main(words: list[str]) -> None:
    """Three callers, each `times` times."""
    folder, record = words[0], words[6]
    calls, memory, need, times = (int(words[index]) for index in (1, 2, 3, 5))
    allowed = Bounds(calls, memory, wait_seconds=float(words[4]))
    admission = Admission({"call": need}, lambda: allowed, folder, print)

    async def caller() -> None:
        for _ in range(times):
            async with admission.place("call"):
                count(record, 1, need)
                await asyncio.sleep(0)
                time.sleep(0.0005)  # long enough for others to come in, if they can
                count(record, -1, -need)

    async def all_of_them() -> None:
        await asyncio.gather(caller(), caller(), caller())

    asyncio.run(all_of_them())


def count(record: str, step: int, memory: int) -> None:
    """One more, or one less, in the record."""
    with open(record, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _write(file, step, memory)


def _write(file: IO[bytes], step: int, memory: int) -> None:
    found: dict[str, Any] = json.loads(file.read())
    found["in"] += step
    found["memory"] += memory
    found["times"] += step > 0
    found["most"] = max(found["most"], found["in"])
    found["most_memory"] = max(found["most_memory"], found["memory"])
    file.seek(0)
    file.truncate()
    file.write(json.dumps(found).encode())


if __name__ == "__main__":
    main(sys.argv[1:])
