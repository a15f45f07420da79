from __future__ import annotations

import json

import orjson
import pytest

from runner import json_path
from runner.outputs import JSON, TEXT, URI_PREFIX, Cut, HandleRefused, NoJson, Outputs, fitting


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def reason(outputs: Outputs, handle: str) -> str:
    with pytest.raises(HandleRefused) as caught:
        outputs.read(handle)
    assert caught.value.remedy
    return caught.value.reason


def test_pages_join_to_the_whole() -> None:
    outputs = Outputs()
    text = "".join(f"line {n}\n" for n in range(1000))
    handle = outputs.keep(text, "lint")
    assert handle.startswith("out_")
    assert len(handle) == 28
    parts, offset = [], 0
    while True:
        page = outputs.read(handle, Cut(offset, 700))
        parts.append(page.text)
        assert page.total == len(text)
        if page.next_offset is None:
            assert page.end
            break
        offset = page.next_offset
    assert "".join(parts) == text
    assert outputs.whole(handle) == (text, TEXT)
    assert outputs.read(handle, Cut(10**9, 5)).text == ""
    assert (
        outputs.read(handle, Cut(0, 5)).shown().split("\n")[0]
        == f"{handle} · characters 0-5 of {len(text)} · next offset 5"
    )


def test_grep_and_tail() -> None:
    outputs = Outputs()
    handle = outputs.keep("a1\nb2\na3\nb4\n", "t")
    assert outputs.read(handle, Cut(grep="a")).text == "a1\na3"
    assert outputs.read(handle, Cut(tail=2)).text == "a3\nb4"
    assert outputs.read(handle, Cut(grep="b", tail=1)).text == "b4"
    assert outputs.read(handle, Cut(grep="(")).text == ""


def test_a_page_never_cuts_a_placeholder() -> None:
    outputs = Outputs()
    handle = outputs.keep("0123456789[REDACTED:github-token]tail", "t")
    page = outputs.read(handle, Cut(0, 15))
    assert page.text == "0123456789"
    assert page.next_offset == 10
    assert (
        outputs.read(handle, Cut(10, 15)).text == "[REDACTED:githu"
    )  # no endless loop when it does not fit at all


@pytest.mark.parametrize("text", ["x" * 50_000, "\u4e2d" * 50_000, '"\\\n' * 20_000, "\U0001f600a" * 20_000])
@pytest.mark.parametrize("room", [500, 5000, 30_000])
def test_a_page_and_a_resource_fit_into_the_room_on_the_wire(text: str, room: int) -> None:
    outputs = Outputs()
    handle = outputs.keep(text, "t")
    parts, offset = [], 0
    while True:
        page = outputs.read(handle, Cut(offset, 10_000, room=room))
        assert 0 < len(orjson.dumps(page.text)) - 2 <= room
        parts.append(page.text)
        if page.next_offset is None:
            break
        offset = page.next_offset
    assert "".join(parts) == text
    whole, _ = outputs.whole(handle, room)
    assert len(orjson.dumps(whole)) - 2 <= room
    assert f"read_output({handle}" in whole or "read_output(handle, offset=" in whole


def test_fitting_is_exact() -> None:
    for text in ("", "abc", '"""', "é\n"):
        full = len(orjson.dumps(text)) - 2
        assert fitting(text, full) == len(text)
        if text:
            assert fitting(text, full - 1) == len(text) - 1
    assert fitting("abc", 0) == fitting("abc", -5) == 0


# ---- handles ----


def test_expired_dropped_and_forged_handles_say_which() -> None:
    clock = Clock()
    outputs = Outputs(max_items=2, ttl_seconds=10, clock=clock)
    first = outputs.keep("1", "t")
    second, third = outputs.keep("2", "t"), outputs.keep("3", "t")
    assert reason(outputs, first) == "dropped"
    assert outputs.read(second).text == "2"
    clock.now = 10.0
    assert reason(outputs, third) == "expired"
    forged = third[:-1] + ("A" if third[-1] != "A" else "B")
    assert reason(outputs, forged) == "forged"
    assert reason(outputs, Outputs().keep("x", "t")) == "other session"
    assert reason(outputs, "out_" + "A" * 24) == "other session"
    for odd in (
        "",
        "out_",
        "out_x",
        third + "A",
        third.upper(),
        "toolcage://output/" + third,
        "out_" + "é" * 24,
    ):
        assert reason(outputs, odd) in ("no handle", "other session")
    assert outputs.listing() == []


def test_the_words_of_each_reason_differ() -> None:
    clock = Clock()
    outputs = Outputs(max_items=1, ttl_seconds=10, clock=clock)
    dropped, expired = outputs.keep("1", "t"), outputs.keep("2", "t")
    forged = expired[:-1] + ("A" if expired[-1] != "A" else "B")
    clock.now = 11
    said = {}
    for handle in (dropped, expired, forged, Outputs().keep("1", "t"), "out_1"):
        with pytest.raises(HandleRefused) as caught:
            outputs.read(handle)
        said[caught.value.reason] = caught.value.message
    assert len(set(said.values())) == len(said) == 5
    assert "expired" in said["expired"]
    assert "kept for 10 seconds" in said["expired"]
    assert "another session" in said["other session"]
    assert "never issued" in said["forged"]


def test_a_handle_that_was_forgotten_is_still_known_as_ours() -> None:
    outputs = Outputs(max_items=1)
    handles = [outputs.keep("x", "t") for _ in range(400)]
    assert len(set(handles)) == 400
    assert reason(outputs, handles[0]) == "gone"
    assert reason(outputs, handles[-2]) == "dropped"
    assert outputs.read(handles[-1]).text == "x"


# ---- bounds ----


def test_room_is_bounded_in_bytes() -> None:
    outputs = Outputs(max_bytes=100)
    handles = [outputs.keep("é" * 20, "t") for _ in range(5)]
    assert len(outputs.listing()) == 2
    assert outputs.read(handles[-1]).text == "é" * 20
    large = outputs.keep("x" * 1000, "t")
    assert outputs.whole(large)[0] == "x" * 100 + "\n[900 bytes not kept]"


def test_listing_has_what_a_resource_needs() -> None:
    outputs = Outputs()
    handle = outputs.keep("é", "lint")
    document = outputs.keep("[1]", "facts", JSON)
    assert outputs.listing() == [
        {"uri": URI_PREFIX + document, "name": "facts output", "mimeType": JSON, "size": 3},
        {"uri": URI_PREFIX + handle, "name": "lint output", "mimeType": TEXT, "size": 2},
    ]


def test_a_whole_resource_is_bounded_and_says_so() -> None:
    outputs = Outputs()
    shown, mime = outputs.whole(outputs.keep("x" * 300_000, "t", JSON))
    assert shown.endswith("[100000 more characters: read_output(handle, offset=200000)]")
    assert mime == TEXT  # what was cut is no JSON any more


# ---- paths into JSON ----


def test_a_path_reads_a_part_of_stored_json() -> None:
    outputs = Outputs()
    document = {"items": [{"name": f"n{n}", "text": "\u2028" * 50} for n in range(100)], "total": 100}
    handle = outputs.keep(json.dumps(document), "t", JSON)
    page = outputs.read(handle, Cut(path="$.items[7].name"))
    assert (page.text, page.end) == ('"n7"', True)
    assert page.shown().split("\n")[0] == f"{handle} · $.items[7].name · characters 0-4 of 4 · end"
    assert json.loads(outputs.read(handle, Cut(path="$.items[98:].name")).text) == ["n98", "n99"]
    first = outputs.read(handle, Cut(path="$.items", limit=1000))
    assert first.next_offset == 1000
    assert "\u2028" not in first.text
    parts = [outputs.read(handle, Cut(n, 1000, path="$.items")).text for n in range(0, first.total, 1000)]
    assert json.loads("".join(parts)) == document["items"]
    with pytest.raises(json_path.JsonPathRefused) as caught:
        outputs.read(handle, Cut(path="$.itms"))
    assert "did you mean 'items'" in caught.value.remedy


def test_a_path_into_what_is_no_json_says_so() -> None:
    outputs = Outputs()
    for text, said in (
        ("plain text", "This is none"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ("[1]\n[stderr, 2 bytes]\nx", "after"),
    ):
        handle = outputs.keep(text, "t")
        with pytest.raises(NoJson, match=said):
            outputs.read(handle, Cut(path="$"))
        assert outputs.read(handle).text == text  # the control
    assert outputs.read(outputs.keep("[5]", "t"), Cut(path="$[0]")).text == "5"
