from __future__ import annotations

from runner.redaction.view import SEPARATOR, View


def test_plain_text_is_its_own_view() -> None:
    view = View(b"plain text\n")
    assert view.text == b"plain text\n"
    assert view.original(2, 5) == (2, 5)


def test_spans_map_back_over_what_was_left_out() -> None:
    source = b"ab\x1b[31mcd\x00e\\u0041f"
    view = View(source)
    assert view.text == b"abcdeAf"
    assert source[slice(*view.original(1, 3))] == b"b\x1b[31mc"
    assert source[slice(*view.original(2, 3))] == b"c"
    assert source[slice(*view.original(5, 6))] == b"\\u0041"
    assert source[slice(*view.original(4, 7))] == b"e\\u0041f"


def test_titles_and_links_are_seen_apart_from_the_text() -> None:
    source = b"gh\x1b]8;;http://x\x07p_"
    view = View(source)
    assert view.text == b"ghp_" + SEPARATOR + b"8;;http://x"
    start = view.text.index(b"http")
    assert source[slice(*view.original(start, start + 8))] == b"http://x"
