from __future__ import annotations

import json
import sys
import time
import unicodedata

import pytest

from runner import visible
from runner.error_texts import relative


def test_runs_of_identical_lines() -> None:
    assert visible.joined_repeats("a\n" * 200 + "b\nb\nc") == "a\n[the line above 199 more times]\nb\nb\nc"
    assert visible.joined_repeats("a\n" * 116 + "b").count("a\n") == 116  # 200 characters are not saved
    line = "x" * 150 + "\n"
    assert visible.joined_repeats(line * 3) == line + "[the line above 2 more times]\n"
    assert visible.joined_repeats("") == ""
    assert visible.joined_repeats("a\n") == "a\n"


def test_last_frames_keep_line_ends() -> None:
    assert visible.last_frames("a\r\nb\r\n") == "a\nb\n"
    assert visible.last_frames("1\r2\r3\nx") == "3 [redrawn 2 times]\nx"


def test_a_state_that_draws_nothing_is_not_the_last() -> None:
    assert visible.last_frames("50%\r100%\r\x1b[2K  \r\n") == "100% [redrawn once]\n"
    assert visible.last_frames("only\r") == "only"
    assert visible.last_frames("\r\x1b[K\r") == ""
    assert visible.last_frames("no return\n\x1b[K") == "no return\n\x1b[K"


def test_cuts_prefer_whole_lines() -> None:
    text = "first\nsecond\nthird"
    assert visible.cut_head(text, 10) == "first\n"
    assert visible.cut_tail(text, 10) == "third"
    assert visible.cut_tail("ab[REDACTED:jwt]cd", 10) == "cd"


def test_relative() -> None:
    roots = ["/work", "/home/u/My Docs"]
    text = '/home/u/My Docs/a.txt in "/home/u/My Docs/" or /home/u/My Docsx/a, /etc/passwd, see https://a.b/c and a/b'
    assert (
        relative(text, roots)
        == 'a.txt in "." or <path outside the root> Docsx/a, <path outside the root>, see https://a.b/c and a/b'
    )
    assert relative("x: /a/b", ["/"]) == "x: <path outside the root>"


OUT = "<path outside the root>"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cat:/etc/shadow: denied", f"cat:{OUT}: denied"),
        ("PATH=/a/b:/c/d", f"PATH={OUT}:{OUT}"),
        ("'/home/u/Her Files/x' and \"/a b\"", f"'{OUT}' and \"{OUT}\""),
        ("can't open '/etc/x': it's '/b'", f"can't open '{OUT}': it's '{OUT}'"),
        ("file:///etc/passwd //etc/passwd", f"{OUT} {OUT}"),
        ("~/.ssh/id and ~bob/x", f"{OUT} and {OUT}"),
        ("-L/home/bob -I/opt/x", f"{OUT[:0]}-L{OUT} -I{OUT}"),
        ("(/etc/a) [/etc/b,/etc/c] </etc/d/e>.", f"({OUT}) [{OUT},{OUT}] <{OUT}>."),
        ("/work/a/b.c:3 and /workshop/x", f"a/b.c:3 and {OUT}"),
        ("/home/u/My Docs", "."),
    ],
)
def test_paths_outside_the_root_are_left_out(text: str, shown: str) -> None:
    assert relative(text, ["/work", "/home/u/My Docs"]) == shown


@pytest.mark.parametrize(
    "text", ["https://a.b/c:80/d", "and/or 1/2 ./a ../b a/b", "<b>x</b>", "a / b", "s/x/y/"]
)
def test_what_is_no_absolute_path_stays(text: str) -> None:
    assert relative(text, ["/work"]) == text


def test_everything_that_is_not_drawn_is_shown() -> None:
    """By the Unicode categories: a tool cannot choose one that was forgotten."""
    drawn = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, 0x0A, 0x09}
    hidden = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp") and code not in drawn
    ]
    assert len(hidden) > 2000
    for char in hidden:
        assert char not in visible.visible(f"a{char}b"), hex(ord(char))
    assert visible.visible("aé\t\u4e2d\U0001f600\n") == "aé\t\u4e2d\U0001f600\n"  # the control


def test_osc_ansi_c1_and_bidi_are_plain_text() -> None:
    text = "\x1b]8;;http://evil\x07link\x1b]8;;\x07 \x1b[2J \x9b2J \u202etxt.exe\u2066 \U000e0041"
    shown = visible.visible(text)
    assert shown == ("␛]8;;http://evil␇link␛]8;;␇ ␛[2J <U+009B>2J <U+202E>txt.exe<U+2066> <U+E0041>")
    assert visible.visible(shown) == shown


def test_escaped_json_means_the_same_and_has_no_unseen_character() -> None:
    value = ["\u2028\x85\x7f\u202e\ufe0f\U000e0041", "plain é"]
    text = visible.escaped(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert text == '["\\u2028\\u0085\\u007f\\u202e\\ufe0f\\udb40\\udc41", "plain é"]'


def test_large_text_of_the_worst_kind_is_shown_in_time() -> None:
    for unit in ("a\0", "\r \r", "\u202e", "\n", "same\n", "\x1b[0m\r"):
        text = unit * ((4 << 20) // len(unit))
        begun = time.thread_time()
        visible.joined_repeats(visible.visible(visible.last_frames(text)))
        assert time.thread_time() - begun < 4, unit
