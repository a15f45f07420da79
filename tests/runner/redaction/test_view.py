from __future__ import annotations

from runner.redaction.view import SEPARATOR, Viewer

SEE = Viewer().see


def test_plain_text_is_its_own_view() -> None:
    view = SEE(b"plain text\n")
    assert view.text == b"plain text\n"
    assert view.original(2, 5) == (2, 5)


def test_spans_map_back_over_what_was_left_out() -> None:
    source = b"ab\x1b[31mcd\x01e\\u0041f"
    view = SEE(source)
    assert view.text == b"abcdeAf"
    assert source[slice(*view.original(1, 3))] == b"b\x1b[31mc"
    assert source[slice(*view.original(2, 3))] == b"c"
    assert source[slice(*view.original(5, 6))] == b"\\u0041"
    assert source[slice(*view.original(4, 7))] == b"e\\u0041f"


def test_colours_alone_are_mapped_when_asked_for() -> None:
    source = b"\x1b[31mab\x1b[0mcd\x1b[K\x1b[me"
    view = SEE(source)
    assert view.text == b"abcde"
    assert not view.incomplete
    for start in range(5):
        for end in range(start + 1, 6):
            first, last = view.original(start, end)
            assert source[first : first + 1] == view.text[start : start + 1]
            assert source[last - 1 : last] == view.text[end - 1 : end]


def test_every_spelling_of_a_character_is_read() -> None:
    spellings = (b"\\u0041", b"\\x41", b"\\U00000041", b"\\u{41}", b"%41", b"\\101")
    for spelling in spellings:
        view = SEE(b"x" + spelling + b"y")
        assert view.text == b"xAy", spelling
        assert view.original(1, 2) == (1, 1 + len(spelling))
    assert SEE(b"a\\/b").text == b"a/b"
    assert SEE("gh".encode("utf-16-le")).text.startswith(b"gh")  # text of two bytes a character
    assert SEE(b"A=1\x00B=2\x00").text == b"A=1\nB=2\n"  # /proc/*/environ


def test_titles_and_links_are_seen_apart_from_the_text() -> None:
    source = b"gh\x1b]8;;http://x\x07p_"
    view = SEE(source)
    assert view.text == b"ghp_" + SEPARATOR + b"8;;http://x"
    start = view.text.index(b"http")
    assert source[slice(*view.original(start, start + 8))] == b"http://x"
