"""Real descriptors: pipes, sockets, terminals, files; slow readers, readers that are gone, streams that end."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.mcp import stdio
from runner.mcp.lines import OVERSIZED, Oversized
from tests.runner.mcp.descriptors import INPUTS, closing

DEADLINE = 20.0


async def lines_of(fd: int, on_line: Callable[[object], None] = lambda _: None) -> list[bytes | Oversized]:
    """Everything a Reader delivers until the end of input."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    found: list[bytes | Oversized] = []

    def take(line: bytes | Oversized) -> None:
        found.append(line)
        on_line(line)

    reader = stdio.Reader(loop, fd, take, lambda: ended.set_result(None))
    await asyncio.wait_for(ended, DEADLINE)
    reader.close()
    return found


# ---- reader


@pytest.mark.parametrize("kind", INPUTS)
def test_lines_and_the_end_of_input(kind: str) -> None:
    ours, theirs = INPUTS[kind]()

    def hang_up(line: object) -> None:  # not before: a terminal that hangs up forgets what was typed
        if line == b"last":
            os.write(theirs, b"rest")
            os.close(theirs)

    with closing(ours):
        os.write(theirs, b"one\r\ntw")
        os.write(theirs, b"o\n\nlast\n")
        assert asyncio.run(lines_of(ours, hang_up)) == [b"one\r", b"two", b"", b"last"]


@pytest.mark.parametrize("kind", INPUTS)
def test_the_flags_of_the_description_are_left_alone(kind: str) -> None:
    ours, theirs = INPUTS[kind]()
    before = fcntl.fcntl(ours, fcntl.F_GETFL)

    async def check() -> None:
        reader = stdio.Reader(asyncio.get_running_loop(), ours, lambda _: None, lambda: None)
        await asyncio.sleep(0)
        assert fcntl.fcntl(ours, fcntl.F_GETFL) == before
        reader.close()

    with closing(ours, theirs):
        asyncio.run(check())


def test_a_regular_file_is_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_bytes(b"a\n" * 100_000 + b"x" * 1_048_577 + b"\nlast\n")
    fd = os.open(file, os.O_RDONLY)
    with closing(fd):
        assert asyncio.run(lines_of(fd)) == [*[b"a"] * 100_000, OVERSIZED, b"last"]


def test_dev_null_and_a_closed_descriptor_are_the_end() -> None:
    fd = os.open("/dev/null", os.O_RDONLY)
    with closing(fd):
        assert asyncio.run(lines_of(fd)) == []
    assert asyncio.run(lines_of(fd)) == []


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_nothing_is_delivered_while_paused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"1\n2\n3\n")

    async def check(fd: int) -> None:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        found: list[object] = []
        first = loop.create_future()

        def on_line(line: object) -> None:
            found.append(line)
            reader.pause()
            if not first.done():
                first.set_result(None)

        reader = stdio.Reader(loop, fd, on_line, lambda: ended.set_result(None))
        await asyncio.wait_for(first, DEADLINE)
        for _ in range(20):
            await asyncio.sleep(0)
        assert found == [b"1"]
        while not ended.done():
            reader.resume()
            await asyncio.sleep(0)
        assert found == [b"1", b"2", b"3"]

    if kind == "pipe":
        fd, theirs = os.pipe()
        os.write(theirs, b"1\n2\n3\n")
        os.close(theirs)
    else:
        fd = os.open(tmp_path / "in", os.O_RDONLY)
    with closing(fd):
        asyncio.run(check(fd))


def test_a_pause_takes_back_a_resume_of_the_same_turn() -> None:
    async def check(fd: int) -> None:
        found: list[object] = []
        reader = stdio.Reader(asyncio.get_running_loop(), fd, found.append, lambda: found.append("eof"))
        reader.pause()
        for _ in range(5):
            await asyncio.sleep(0)
        reader.resume()
        reader.resume()
        reader.pause()
        reader.resume()
        reader.close()
        for _ in range(5):
            await asyncio.sleep(0)
        assert found == []

    ours, theirs = os.pipe()
    os.write(theirs, b"1\n")
    with closing(ours, theirs):
        asyncio.run(check(ours))


def test_close_within_a_line_stops_at_once() -> None:
    async def check(fd: int) -> list[object]:
        found: list[object] = []
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def on_line(line: object) -> None:
            found.append(line)
            reader.close()
            loop.call_soon(done.set_result, None)

        reader = stdio.Reader(loop, fd, on_line, lambda: found.append("eof"))
        await asyncio.wait_for(done, DEADLINE)
        reader.resume()
        await asyncio.sleep(0)
        return found

    ours, theirs = os.pipe()
    os.write(theirs, b"1\n2\n")
    os.close(theirs)
    with closing(ours):
        assert asyncio.run(check(ours)) == [b"1"]


# ---- claim

CLAIM = """
import os, subprocess, sys
from runner.mcp.claim import claim_stdio
source, sink = claim_stdio()
print("noise")
sys.stdout.flush()
subprocess.run(["sh", "-c", "echo child; cat; ls /proc/self/fd >/dev/null"], check=True)
assert not os.get_inheritable(source) and not os.get_inheritable(sink)
assert source > 2 and sink > 2
assert os.readlink("/proc/self/fd/0") == "/dev/null"
assert sys.stdin.read() == ""
os.write(sink, b"got " + os.read(source, 100))
"""


def claim(script: str, **kwargs: Any) -> subprocess.CompletedProcess[bytes]:
    root = Path(__file__).parents[3]
    return subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, timeout=DEADLINE, cwd=root, **kwargs
    )


def test_prints_and_children_cannot_reach_the_protocol() -> None:
    done = claim(CLAIM, input=b"request")
    assert (done.returncode, done.stdout) == (0, b"got request"), done.stderr
    assert done.stderr.split() == [b"noise", b"child"]


def test_claim_with_stderr_closed() -> None:
    check = "os.write(sink, repr([os.readlink(f'/proc/self/fd/{n}') for n in (0, 1, 2)]).encode())\n"
    script = (
        "import os; os.close(2)\nfrom runner.mcp.claim import claim_stdio\nsource, sink = claim_stdio()\n"
        + check
    )
    script += "assert os.get_inheritable(2) and os.get_inheritable(1) and os.get_inheritable(0)\n"
    done = claim(script)
    assert (done.returncode, done.stdout) == (0, b"['/dev/null', '/dev/null', '/dev/null']")


@pytest.mark.parametrize("fd", [0, 1])
def test_claim_without_stdin_or_stdout_is_refused(fd: int) -> None:
    script = (
        f"import os; os.close({fd})\nfrom runner.mcp.claim import claim_stdio\nfrom sandbox.errors import Refused\n"
        "try:\n    claim_stdio()\nexcept Refused as fault:\n    os.write(2, fault.message.encode())\n"
    )
    assert b"stdin or stdout is closed" in claim(script).stderr
