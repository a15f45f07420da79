from __future__ import annotations

from runner import visible
from runner.error_texts import relative


def test_runs_of_identical_lines() -> None:
    assert visible.joined_repeats("a\na\na\na\nb\nb\nc") == "a\n[the line above 3 more times]\nb\nb\nc"
    assert visible.joined_repeats("") == ""
    assert visible.joined_repeats("a\n") == "a\n"


def test_last_frames_keep_line_ends() -> None:
    assert visible.last_frames("a\r\nb\r\n") == "a\nb\n"
    assert visible.last_frames("1\r2\r3\nx") == "3\nx"


def test_cuts_prefer_whole_lines() -> None:
    text = "first\nsecond\nthird"
    assert visible.cut_head(text, 10) == "first\n"
    assert visible.cut_tail(text, 10) == "third"
    assert visible.cut_tail("ab[REDACTED:jwt]cd", 10) == "cd"


def test_relative() -> None:
    root = "/home/u/My Docs"
    text = '/home/u/My Docs/a.txt in "/home/u/My Docs/" or /home/u/My Docsx/a, /etc/passwd, see https://a.b/c and a/b'
    assert (
        relative(text, root)
        == 'a.txt in "." or <path outside the root> Docsx/a, <path outside the root>, see https://a.b/c and a/b'
    )
    assert relative("x: /a/b", "/") == "x: <path outside the root>"
