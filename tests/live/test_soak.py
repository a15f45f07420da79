"""Many calls of every kind, several at a time: nothing grows. TOOLCAGE_SOAK is the number of calls."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sandbox.supervisor import Supervisor
from sandbox.types import Call, Limits, Outcome, Profile
from tests.live.cage import Cage
from tests.live.census import Census, steady

CALLS = int(os.environ.get("TOOLCAGE_SOAK", "300"))
WARM_UP, AT_ONCE, SPARE, PARTS = 96, 8, 2, 6
GROWTH = 8 << 20  # bytes
SMALL = Limits(wall_seconds=10, cpu_seconds=5, memory_mb=256, processes=32, output_mb=2, file_mb=1)
BIG = 1_000_000
# A call, and how it must end.
KINDS: tuple[tuple[Call, str], ...] = (
    (Call("sh", ("echo ran",)), "exited"),
    (Call("sh", ("cat",), stdin=b"words " * 20_000), "exited"),
    (Call("sh", ("echo no >&2; exit 3",)), "exited"),
    (Call("sh", ("sleep 60 & echo ran",)), "exited"),
    (Call("sh", (f"exec head -c {BIG} /dev/urandom",)), "exited"),
    (Call("sh", ("kill -9 $$",)), "signalled"),
    (Call("sh", ("exec cat /dev/urandom",)), "too_much_output"),
    (Call("sh", ("exec head -c 9000000 /dev/urandom >/tmp/file",)), "file_too_large"),
    (Call("sh", ("echo ran",), cwd="nowhere"), "setup_failed"),
    (Call("hasty", ("exec sleep 60",)), "timed_out"),
    (Call("sh", ("exec sleep 60",)), "cancelled"),
    (Call("hasty", ("exec sleep 60",)), "cancelled"),
)


@pytest.fixture
def busy(place: Path) -> Iterator[Cage]:
    hasty = dataclasses.replace(SMALL, wall_seconds=0.1)
    made = Cage(
        [
            Profile(name, ("/bin/sh", "-c"), str(place / "root"), limits=limits, processes="any")
            for name, limits in (("sh", SMALL), ("hasty", hasty))
        ]
    )
    made.supervisor._spare = SPARE
    yield made
    made.close()


async def one(supervisor: Supervisor, call: Call, end: str, delay: float) -> None:
    task: asyncio.Task[Outcome] = asyncio.ensure_future(supervisor.run(call))
    if end == "cancelled":
        await asyncio.wait({task}, timeout=delay)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
        return
    outcome = await task
    assert outcome.kind == end, (call, outcome)
    if call.argv[0].startswith("exec head -c") and end == "exited":
        assert len(outcome.stdout) == BIG
    if call.stdin:
        assert outcome.stdout == call.stdin


async def spell(supervisor: Supervisor, chance: random.Random, count: int) -> None:
    """`count` calls, some at once; every kind comes equally often."""
    kinds = [KINDS[n % len(KINDS)] for n in range(count)]
    chance.shuffle(kinds)
    for start in range(0, count, AT_ONCE):
        await asyncio.gather(
            *(
                one(supervisor, call, end, chance.uniform(0, 0.03))
                for call, end in kinds[start : start + AT_ONCE]
            )
        )


async def rest(supervisor: Supervisor) -> Census:
    """Both plans have a worker that waits; then everything must be as it was."""
    for plan in ("sh", "hasty"):
        await supervisor.run(Call(plan, ("echo ran",)))
    return await steady(supervisor, SPARE)


LATE_SLOTS = 4


def test_nothing_grows(busy: Cage) -> None:
    chance = random.Random(7)
    front, launcher = psutil.Process(), psutil.Process(busy.supervisor.launcher_pid)

    async def work(supervisor: Supervisor) -> None:
        await spell(supervisor, chance, WARM_UP)
        before = await rest(supervisor)
        # as root the launcher keeps a namespace for each slot and owner that was ever used: some slots come late
        before = before._replace(launcher=before.launcher + (LATE_SLOTS if os.geteuid() == 0 else 0))
        memory = front.memory_info().rss, launcher.memory_info().rss
        seen = []
        for _ in range(PARTS):
            await spell(supervisor, chance, CALLS // PARTS)
            assert not (now := await rest(supervisor)).over(before), (now, before)
            seen.append((front.memory_info().rss, launcher.memory_info().rss))
        # one reading goes up and down with the buffers of large outputs; what has leaked is in all of them
        grown = [
            min(late) - first
            for late, first in zip(zip(*seen[PARTS // 2 :], strict=True), memory, strict=True)
        ]
        print(f"{before}, rss before {memory}, grown by {grown} bytes")
        assert max(grown) < GROWTH, grown

    busy.run(work)
