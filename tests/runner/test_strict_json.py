from __future__ import annotations

import contextlib
import json
import time
import tracemalloc

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import strict_json
from runner.redaction.document import MAX_DEPTH, MAX_NODES
from runner.redaction.engine import Redactor
from runner.strict_json import NotJson

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet='ab:,[]{}"\\\n é\u2028', max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(alphabet='ab:,"\\{[', max_size=5), inner, max_size=4),
    max_leaves=30,
)  # fmt: skip


def problem(data: bytes) -> str:
    with pytest.raises(NotJson) as caught:
        strict_json.parse(data)
    return str(caught.value)


@given(JSON, st.sampled_from([None, 2]), st.booleans(), st.sampled_from(["", " \r\n\t"]))
def test_good_documents_are_passed_on_unchanged(
    value: object, indent: int | None, ascii_: bool, space: str
) -> None:
    data = (space + json.dumps(value, indent=indent, ensure_ascii=ascii_) + space).encode()
    assert strict_json.parse(data) == orjson.loads(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1, "a": 2}', b'{"a": 1, "b": {"c": 0, "c": 0}}', b'[{"x": {}, "y": [], "x": {}}]', b'{"": 1, "": 2}',
        b'{"a": 1, "\\u0061": 2}', '{"é": 1, "\\u00e9": 2}'.encode(), b'{"a" \n : 1, "a":1}', b'{"a:b": ":", "a:b": 0}',
        b'{"q\\"": 1, "q\\"": 2}', b'{"b\\\\": 1, "b\\\\": 2}', b'[' + b'{"k": 1},' * 5000 + b'{"k": 1, "k": 1}]',
    ],
)  # fmt: skip
def test_a_name_that_stands_twice_is_an_error(data: bytes) -> None:
    assert orjson.loads(data)  # the control: the parser itself takes the last one
    assert "stands twice in one object" in problem(data)


def test_the_name_is_told_quoted_and_short() -> None:
    assert problem(b'{"id": 1, "id": 2}') == "the name 'id' stands twice in one object"
    name = "\\u202e\\n" * 500
    said = problem(f'{{"{name}": 1, "{name}": 2}}'.encode())
    assert said.isascii()
    assert len(said) < 150


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1, "b": 1}', b'[{"a": 1}, {"a": 2}]', b'{"a": {"a": {"a": 1}}}', b'{"a": "x:y", ":": "\\":\\""}',
        b'{"a": ["\\\\", ":", "\\\\\\""], "b": ":::"}', b'":"', b'{"A": 1, "a": 1}',
    ],
)  # fmt: skip
def test_names_that_only_look_alike_are_none(data: bytes) -> None:
    assert strict_json.parse(data) == json.loads(data)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 65_534, 65_535, 65_536, 65_537, 131_072])
@pytest.mark.parametrize("unit", [b"\\\\", b'\\"', b'\\\\\\"', b":", b"x"])
def test_strings_are_told_from_structure_across_the_pieces(size: int, unit: bytes) -> None:
    """The text is looked at in pieces; none may begin between a backslash and what it escapes."""
    for pad in range(4):
        data = b'{"p":"' + b"x" * pad + unit * (size // len(unit)) + b'","a":{"b":1},"c":[":","\\\\"]}'
        assert strict_json.parse(data) == orjson.loads(data)
        assert "twice" in problem(data[:-1] + b',"c":2}')


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it printed nothing"), (b" \n", "it printed nothing"), (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a": "\xff"}', "it is not UTF-8: byte 0xff at offset 7"), (b'["ok", "\xc3\x28"]', "byte 0xc3 at offset 8"),
        (b'"\xed\xa0\x80"', "not UTF-8"), (b"NaN", "it has NaN at line 1, column 1"), (b'{"a": NaN}', "it has NaN at line 1"),
        (b"[Infinity]", "it has Infinity"), (b"[\n-Infinity]", "it has -Infinity at line 2"), (b"[1e999]", "infinity"),
        (b"[123456789012345678901]", "64 bits"), (b"[-9223372036854775809]", "64 bits"), (b"[18446744073709551616]", "64 bits"),
        (b"[" + b"9" * 5000 + b"]", "infinity"), (b"{} {}", "unexpected content after document"), (b"{'a': 1}", "line 1, column 2"),
        (b'"\\ud800"', "surrogate"), (b"[01]", "leading zero"), (b"[1,]", "trailing comma"), (b"ok", "line 1, column 1"),
        (b"[" * 66 + b"]" * 66, "nested deeper than 64"), (b'{"a":' * 1000 + b"1" + b"}" * 1000, "nested deeper than 64"),
        (b"[" * 1000 + b"]" * 1000, "nested deeper than 64"), (b"[" * 1_000_000, "at most 200000 members and 64 levels"),
        (b"[" + b"0," * 1_000_000 + b"0]", "at most 200000 members"), (b"[" + b"{}," * 1_000_000 + b"0]", "at most 200000 members"),
        (b"[" + b'{"a":0},' * 150_000 + b"0]", "more than 200000 members"),
    ],
)  # fmt: skip
def test_each_fault_has_a_clear_error(data: bytes, said: str) -> None:
    assert said in problem(data)


def test_the_bounds_are_exact() -> None:
    nested = b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)
    assert strict_json.parse(nested) == json.loads(nested)
    many = b"[" + b"0," * (MAX_NODES - 2) + b"0]"
    assert len(strict_json.parse(many)) == MAX_NODES - 1  # type: ignore[arg-type]
    assert "more than 200000" in problem(b"[" + b"0," * (MAX_NODES - 1) + b"0]")
    numbers = b'[18446744073709551615, -9223372036854775808, "123456789012345678901"]'
    assert strict_json.parse(numbers) == json.loads(numbers)


MEGABYTES = 4 << 20
HOSTILE = {
    "lists": b"[" + b"[]," * (MEGABYTES // 3) + b"[]]",
    "numbers": b"[" + b"0," * (MEGABYTES // 2) + b"0]",
    "open": b"[" * MEGABYTES,
    "objects": b'{"a":' * (MEGABYTES // 5),
    "quotes": b"[" + b'"' * MEGABYTES,
    "short strings": b"[" + b'"ab"' * (MEGABYTES // 4),
    "backslashes": b'["' + b"\\\\" * (MEGABYTES // 2) + b'"]',
    "names twice": b"[" + b'{"a":1,"a":2},' * 45_000 + b"0]",
    "one name twice": b"{" + b",".join(b'"k%d":1' % n for n in range(150_000)) + b',"k5":2}',
    "digits": b"[" + b"1" * MEGABYTES + b"]",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_documents_take_little_memory_and_time(kind: str) -> None:
    data = HOSTILE[kind]
    tracemalloc.start()
    try:
        strict_json.parse(data)
    except NotJson:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 80 << 20
    begun = time.thread_time()
    with contextlib.suppress(NotJson):
        strict_json.parse(data)
    assert time.thread_time() - begun < 1.5


def test_ordinary_documents_are_not_slowed_down() -> None:
    """The look for names is nothing beside redaction, which every result goes through."""
    rows = [
        {"id": n, "url": f"https://x.y/{n}?a=b:c", "tags": ["a", "b"], "in": {"x": 1.5}} for n in range(2000)
    ]
    data = orjson.dumps(rows)

    def best(work: object) -> float:
        times = []
        for _ in range(7):
            begun = time.thread_time()
            work()  # type: ignore[operator]
            times.append(time.thread_time() - begun)
        return min(times)

    value = orjson.loads(data)
    redactor = Redactor(())
    redactor.value(value)
    assert best(lambda: strict_json._names(data)) * 4 < best(lambda: redactor.value(value))
