"""Log lines: whole or dropped, never waited for, never forged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.mcp import stderr
from runner.mcp.stderr import QuietStderr
from tests.runner.mcp.descriptors import socket_pair


def pipe() -> tuple[int, int]:
    return os.pipe()


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("make", [pipe, socket_pair])
def test_a_reader_that_never_reads(make: object, own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not own:  # /proc is not mounted, or the pipe belongs to another user
        monkeypatch.setattr(stderr, "reopen_nonblocking", lambda fd, flags: None)
    ours_first = make is socket_pair
    left, right = pipe() if make is pipe else socket_pair()
    theirs, ours = (right, left) if ours_first else (left, right)
    log = QuietStderr(ours)
    written = 0
    while log.line("x" * 1_000):
        written += 1
    assert written >= 15
    assert log.dropped == 1
    assert not log.line("x" * 1_000)
    assert log.dropped == 2
    assert os.get_blocking(ours)
    received = b""
    while len(received) < written * 1_001:
        received += os.read(theirs, 1 << 20)
    assert received == (b"x" * 1_000 + b"\n") * written  # no line was cut
    assert log.line("again")
    assert os.read(theirs, 100) == b"again\n"
    log.close()
    os.close(theirs)
    os.close(ours)


def test_a_reader_that_is_gone() -> None:
    theirs, ours = os.pipe()
    log = QuietStderr(ours)
    assert log.line("x")
    os.close(theirs)
    assert not log.line("x")
    log.close()
    os.close(ours)
    assert not log.line("x")
    assert log.dropped == 2


def test_a_regular_file_is_appended_to(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"before\n")
    assert QuietStderr(fd).line("after")
    os.close(fd)
    assert (tmp_path / "log").read_bytes() == b"before\nafter\n"


def test_one_safe_line_of_bounded_length(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    log = QuietStderr(fd)
    assert log.line("a\nb\r\x1b[31m\u202e\udcff\tnaïve")
    assert log.line("é" * 10_000)
    os.close(fd)
    first, second, rest = (tmp_path / "log").read_bytes().split(b"\n")
    assert first.decode() == "a?b??[31m???naïve"
    assert second.decode() == "é" * 2_047
    assert rest == b""


def test_a_descriptor_that_was_never_open() -> None:
    fd = os.open("/dev/null", os.O_WRONLY)
    os.close(fd)
    log = QuietStderr(fd)
    assert not log.line("x")
    assert log.dropped == 1
