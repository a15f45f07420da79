"""Writing to real descriptors: order, slow readers, readers that are gone, and memory that stays bounded."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from runner.mcp import stdio
from tests.runner.mcp.descriptors import OUTPUTS, closing

DEADLINE = 20.0


async def drain(fd: int, size: int) -> bytes:
    """Reads `size` bytes in a thread, so that the loop goes on."""

    def read_all() -> bytes:
        data = bytearray()
        while len(data) < size and (piece := os.read(fd, 1 << 20)):
            data += piece
        return bytes(data)

    return await asyncio.to_thread(read_all)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_whole_messages_in_order_to_a_slow_reader(kind: str) -> None:
    theirs, ours = OUTPUTS[kind]()
    messages = [bytes([65 + number % 26]) * (number * 997) + b"\n" for number in range(100)]

    async def check() -> bytes:
        writer = stdio.Writer(asyncio.get_running_loop(), ours)
        for message in messages:
            writer.write(message)
            writer.write(b"")
        assert writer.queued > 0
        received, _ = await asyncio.wait_for(
            asyncio.gather(drain(theirs, sum(map(len, messages))), writer.drained()), DEADLINE
        )
        assert writer.queued == 0
        await writer.drained()
        writer.close()
        return received

    with closing(theirs):
        assert asyncio.run(check()) == b"".join(messages)


def test_a_regular_file_gets_everything_at_its_own_offset(tmp_path: Path) -> None:
    async def check(fd: int) -> None:
        writer = stdio.Writer(asyncio.get_running_loop(), fd)
        writer.write(b"x" * 1_000_000 + b"\n")
        assert writer.queued == 0
        await writer.drained()
        writer.close()

    fd = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"before\n")
    asyncio.run(check(fd))
    assert (tmp_path / "out").read_bytes() == b"before\n" + b"x" * 1_000_000 + b"\n"


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_the_parents_description_stays_blocking(kind: str) -> None:
    theirs, ours = OUTPUTS[kind]()
    shared = os.dup(ours)

    async def check() -> None:
        writer = stdio.Writer(asyncio.get_running_loop(), ours)
        assert os.get_blocking(shared)
        writer.close()

    with closing(theirs, shared):
        asyncio.run(check())


def test_water_marks() -> None:
    theirs, ours = os.pipe()
    writers: list[stdio.Writer] = []
    seen: list[str] = []

    def drained() -> None:
        assert writers[0].queued <= stdio.LOW_WATER_BYTES
        seen.append("drained")

    async def check() -> None:
        loop = asyncio.get_running_loop()
        writer = stdio.Writer(loop, ours, on_full=lambda: seen.append("full"), on_drained=drained)
        writers.append(writer)
        sent = 0
        while not seen:
            assert writer.queued <= stdio.HIGH_WATER_BYTES
            writer.write(b"y" * 100_000)
            sent += 100_000
        writer.write(b"z" * 100_000)
        assert seen == ["full"]
        await asyncio.wait_for(asyncio.gather(drain(theirs, sent + 100_000), writer.drained()), DEADLINE)
        assert seen == ["full", "drained"]
        writer.close()

    with closing(theirs):
        asyncio.run(check())


@pytest.mark.parametrize("kind", ["pipe", "socket"])
@pytest.mark.parametrize("queued", [False, True])
def test_a_reader_that_is_gone(kind: str, queued: bool) -> None:
    theirs, ours = OUTPUTS[kind]()

    async def check() -> None:
        broken: list[OSError] = []
        writer = stdio.Writer(asyncio.get_running_loop(), ours, on_broken=broken.append)
        if queued:
            writer.write(b"x" * 5_000_000)
            assert not broken
        os.close(theirs)
        writer.write(b"x")
        await asyncio.wait_for(writer.drained(), DEADLINE)
        assert [type(fault) for fault in broken] in ([BrokenPipeError], [ConnectionResetError])
        assert writer.queued == 0
        writer.write(b"more")
        assert writer.queued == 0
        assert len(broken) == 1
        writer.close()

    asyncio.run(check())


def test_a_full_disk_breaks_the_writer() -> None:
    async def check() -> None:
        broken: list[OSError] = []
        fd = os.open("/dev/full", os.O_WRONLY)
        writer = stdio.Writer(asyncio.get_running_loop(), fd, on_broken=broken.append)
        writer.write(b"x")
        assert len(broken) == 1
        writer.close()

    asyncio.run(check())


def test_close_wakes_who_waits() -> None:
    theirs, ours = os.pipe()

    async def check() -> None:
        writer = stdio.Writer(asyncio.get_running_loop(), ours)
        writer.write(b"x" * 1_000_000)
        waiting = asyncio.ensure_future(writer.drained())
        await asyncio.sleep(0)
        assert not waiting.done()
        writer.close()
        await asyncio.wait_for(waiting, DEADLINE)
        assert writer.queued == 0

    with closing(theirs):
        asyncio.run(check())


def test_a_client_that_sends_without_reading_cannot_grow_our_memory() -> None:
    """Reader and Writer joined as the front joins them: each line makes a large answer; the client reads late."""
    requests_in, requests_out = os.pipe()
    answers_in, answers_out = os.pipe()
    answer = b"a" * 50_000 + b"\n"
    count = 1_000

    async def check() -> None:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        peak = 0

        def on_line(line: object) -> None:
            nonlocal peak
            writer.write(answer)
            peak = max(peak, writer.queued)

        reader = stdio.Reader(loop, requests_in, on_line, lambda: ended.set_result(None))
        writer = stdio.Writer(loop, answers_out, on_full=reader.pause, on_drained=reader.resume)
        os.write(requests_out, b"q\n" * count)
        os.close(requests_out)
        full = asyncio.ensure_future(drain(answers_in, count * len(answer)))
        await asyncio.wait_for(ended, DEADLINE)
        await writer.drained()
        assert len(await full) == count * len(answer)
        assert stdio.HIGH_WATER_BYTES < peak <= stdio.HIGH_WATER_BYTES + len(answer)
        writer.close()

    with closing(requests_in, answers_in):
        asyncio.run(check())
