from __future__ import annotations

import pytest

from runner.outputs import URI_PREFIX, HandleRefused, Outputs


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pages_join_to_the_whole() -> None:
    outputs = Outputs()
    text = "".join(f"line {n}\n" for n in range(1000))
    handle = outputs.keep(text, "lint")
    assert handle.startswith("out_")
    assert len(handle) >= 26  # 22 characters of base64 hold 132 bits
    parts, offset = [], 0
    while True:
        page = outputs.read(handle, offset, 700)
        parts.append(page.text)
        assert page.total == len(text)
        if page.next_offset is None:
            assert page.end
            break
        offset = page.next_offset
    assert "".join(parts) == text == outputs.whole(handle)
    assert outputs.read(handle, 10**9, 5).text == ""
    assert (
        outputs.read(handle, 0, 5).shown().split("\n")[0]
        == f"{handle} · characters 0-5 of {len(text)} · next offset 5"
    )


def test_grep_and_tail() -> None:
    outputs = Outputs()
    handle = outputs.keep("a1\nb2\na3\nb4\n", "t")
    assert outputs.read(handle, grep="a").text == "a1\na3"
    assert outputs.read(handle, tail=2).text == "a3\nb4"
    assert outputs.read(handle, grep="b", tail=1).text == "b4"
    assert outputs.read(handle, grep="(").text == ""


def test_a_page_never_cuts_a_placeholder() -> None:
    outputs = Outputs()
    handle = outputs.keep("0123456789[REDACTED:github-token]tail", "t")
    page = outputs.read(handle, 0, 15)
    assert page.text == "0123456789"
    assert page.next_offset == 10
    assert (
        outputs.read(handle, 10, 15).text == "[REDACTED:githu"
    )  # no endless loop when it does not fit at all


def test_expired_dropped_and_forged_handles_say_which() -> None:
    clock = Clock()
    outputs = Outputs(max_items=2, ttl_seconds=10, clock=clock)
    first = outputs.keep("1", "t")
    second, third = outputs.keep("2", "t"), outputs.keep("3", "t")
    with pytest.raises(HandleRefused, match="make room"):
        outputs.read(first)
    assert outputs.read(second).text == "2"
    clock.now = 10.0
    with pytest.raises(HandleRefused, match="expired"):
        outputs.read(third)
    with pytest.raises(HandleRefused, match="unknown") as caught:
        outputs.read("out_" + "A" * 24)
    assert caught.value.remedy
    assert outputs.listing() == []


def test_room_is_bounded_in_bytes() -> None:
    outputs = Outputs(max_bytes=100)
    handles = [outputs.keep("é" * 20, "t") for _ in range(5)]
    assert len(outputs.listing()) == 2
    assert outputs.read(handles[-1]).text == "é" * 20
    large = outputs.keep("x" * 1000, "t")
    assert outputs.whole(large) == "x" * 100 + "\n[900 bytes not kept]"


def test_listing_has_what_a_resource_needs() -> None:
    outputs = Outputs()
    handle = outputs.keep("é", "lint")
    assert outputs.listing() == [
        {"uri": URI_PREFIX + handle, "name": "lint output", "mimeType": "text/plain", "size": 2}
    ]


def test_a_whole_resource_is_bounded_and_says_so() -> None:
    outputs = Outputs()
    shown = outputs.whole(outputs.keep("x" * 300_000, "t"))
    assert shown.endswith("[100000 more characters: read_output(handle, offset=200000)]")
