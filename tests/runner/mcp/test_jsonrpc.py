"""Bytes to messages: what is refused before anything looks at MCP."""

from __future__ import annotations

import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.mcp import jsonrpc

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab\"\\[{é", max_size=4), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(json_values, st.integers(0, 5))
def test_depth_is_counted_exactly_on_json(value: Any, levels: int) -> None:
    for data in (orjson.dumps(value), json.dumps(value, indent=1).encode()):
        assert jsonrpc.nests_deeper(data, levels) == (depth(value) > levels)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_cap_is_64(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    at_cap = opening * 63 + "[]" + closing * 63
    assert jsonrpc.decode(at_cap.encode()) is not None
    with pytest.raises(jsonrpc.ParseError):
        jsonrpc.decode((opening + at_cap + closing).encode())


def test_brackets_in_strings_are_no_depth() -> None:
    text = '\\"[[{{' * 50 + "\\"
    assert jsonrpc.decode(orjson.dumps([text, text])) == [text, text]


@pytest.mark.parametrize(
    "line",
    [b"{", b"\xef\xbb\xbf{}", b'"\xff"', b'"\xed\xa0\x80"', rb'"\ud800"', b"NaN", b"[Infinity]", b"{} {}", b"\x00",
     b"'a'", b"[" * 100_000, b'{"a":' * 100_000, b"[]" * 100_000, b'"' * 99_999, b'\\"' * 50_001, b"\\" * 9],
)  # fmt: skip
def test_anything_but_json_in_utf8_is_a_parse_error(line: bytes) -> None:
    with pytest.raises(jsonrpc.ParseError):
        jsonrpc.decode(line)


@pytest.mark.parametrize("line", [b"1", b'{"a":1}\r', b' {"a": "\xe2\x80\xa8"} '])
def test_json_is_read(line: bytes) -> None:
    assert jsonrpc.decode(line) == json.loads(line)


@pytest.mark.parametrize("piece", [b"[", b"[]", b"[{}]", b'"', b'\\"', b"\\", b'["', b"{[", b"[[]"])
def test_a_hostile_mebibyte_costs_little(piece: bytes) -> None:
    began = time.perf_counter()
    jsonrpc.nests_deeper(piece * (1_048_576 // len(piece)), 64)
    assert time.perf_counter() - began < 0.5


@given(st.binary())
def test_any_bytes_decode_or_are_a_parse_error(data: bytes) -> None:
    try:
        value = jsonrpc.decode(data)
    except jsonrpc.ParseError:
        return
    assert orjson.loads(orjson.dumps(value)) == value


@given(json_values)
def test_any_json_is_classified_or_refused(value: Any) -> None:
    for candidate in (value, {"jsonrpc": "2.0", "id": value, "method": value, "params": value}):
        try:
            message = jsonrpc.classify(candidate)
        except jsonrpc.MessageError:
            continue
        assert message is None or isinstance(message.method, str)


@pytest.mark.parametrize("value", [0, -1, 2**63, "", "0", "x" * 1024])
def test_ids(value: object) -> None:
    assert jsonrpc.is_id(value)


@pytest.mark.parametrize("value", [None, True, False, 1.0, [], {}, "x" * 1025])
def test_no_ids(value: object) -> None:
    assert not jsonrpc.is_id(value)


@given(st.text())
def test_clean_and_shown_can_always_be_written(text: str) -> None:
    orjson.dumps(jsonrpc.clean(text))
    head = jsonrpc.shown(text)
    assert orjson.loads(orjson.dumps(head)) == head
    assert len(head) <= jsonrpc.SHOWN_CHARS + 1
    assert head.isprintable()


def test_clean_keeps_what_is_well_formed() -> None:
    assert jsonrpc.clean("naïve \U0001f600\n") == "naïve \U0001f600\n"
    assert jsonrpc.clean("a\udcffb") == "a?b"


def test_error_never_raises_on_data() -> None:
    fault = jsonrpc.RequestError(-32602, "b\udcffd", {"n": 2**70})
    assert json.loads(jsonrpc.error("a", fault)) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32602, "message": "b?d"},
    }


@pytest.mark.parametrize(("null_id", "expected"), [(True, {"id": None}), (False, {})])
def test_error_without_id(null_id: bool, expected: dict[str, object]) -> None:
    answer = json.loads(jsonrpc.error(None, jsonrpc.RequestError(-32700, "x"), null_id=null_id))
    assert answer == {"jsonrpc": "2.0", "error": {"code": -32700, "message": "x"}} | expected


def test_a_result_that_json_cannot_say_is_an_internal_error() -> None:
    assert json.loads(jsonrpc.response(7, {"n": 2**70}))["error"]["code"] == jsonrpc.INTERNAL_ERROR
    assert json.loads(jsonrpc.response(7, {"n": 1})) == {"jsonrpc": "2.0", "id": 7, "result": {"n": 1}}
