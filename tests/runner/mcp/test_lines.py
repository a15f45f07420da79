"""Cutting bytes into lines: however they arrive, and never more than one line in memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.mcp.lines import MAX_LINE_BYTES, OVERSIZED, Lines, Oversized

CAP = 8


def expected(data: bytes, cap: int) -> list[bytes | Oversized]:
    return [line if len(line) <= cap else OVERSIZED for line in data.split(b"\n")[:-1]]


@given(st.lists(st.text("ab\n\r", max_size=12).map(str.encode)))
def test_any_cutting_gives_the_same_lines(pieces: list[bytes]) -> None:
    lines = Lines(CAP)
    found: list[bytes | Oversized] = []
    for piece in pieces:
        found += lines.feed(piece)
        assert lines.held <= CAP
    assert found == expected(b"".join(pieces), CAP)


@given(st.text("a\n\r\u2028\x85", max_size=60).map(str.encode))
def test_byte_by_byte(data: bytes) -> None:
    lines = Lines(CAP)
    assert [line for byte in data for line in lines.feed(bytes([byte]))] == expected(data, CAP)


def test_the_cap_is_one_mebibyte_without_the_newline() -> None:
    assert MAX_LINE_BYTES == 1_048_576
    at_cap = b"a" * MAX_LINE_BYTES
    assert Lines().feed(at_cap + b"\n" + at_cap + b"a\nb\n") == [at_cap, OVERSIZED, b"b"]


def test_an_oversized_line_is_dropped_as_it_comes() -> None:
    lines = Lines()
    for _ in range(9 * 16):
        assert lines.feed(b"x" * 65_536) == []
        assert lines.held <= MAX_LINE_BYTES
    assert lines.held == 0
    assert lines.feed(b"\nnext\n") == [OVERSIZED, b"next"]


def test_a_rest_without_newline_is_no_line() -> None:
    assert Lines().feed(b"a\nb") == [b"a"]
