"""policies.values: which values become words, and which are refused before anything starts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from policies import values
from policies.params import AnyParam, PathParam


def texts(table: dict[str, Any], value: object, *, whole: bool = True) -> list[str]:
    param: AnyParam = msgspec.convert(table, AnyParam)

    def look(_param: PathParam, text: str) -> str:
        return f"./{text}"

    return values.texts(param, value, whole=whole, look=look)


STRING = {"type": "string"}
INTEGER = {"type": "integer", "min": -5, "max": 5}
ENUM = {"type": "enum", "values": ["a", "b"]}
LIST = {"type": "list", "items": {"type": "string"}, "max_items": 2}


@pytest.mark.parametrize(
    ("table", "value", "expected"),
    [
        (STRING, "a b; $(c) é", ["a b; $(c) é"]),
        ({**STRING, "multiline": True}, "a\r\nb", ["a\r\nb"]),
        ({**STRING, "allow_at": True}, "@a", ["@a"]),
        ({**STRING, "pattern": "a|b"}, "b", ["b"]),
        (INTEGER, 3, ["3"]),
        (INTEGER, 3.0, ["3"]),
        ({"type": "number"}, 3, ["3.0"]),
        ({"type": "number", "min": 0, "max": 1}, 0.25, ["0.25"]),
        ({"type": "boolean", "flag": "-v"}, True, ["-v"]),
        ({"type": "boolean", "flag": "-v"}, False, []),
        (ENUM, "b", ["b"]),
        ({"type": "enum", "values": [1, 2]}, 2, ["2"]),
        ({"type": "path"}, "a/b", ["./a/b"]),
        (LIST, ["x", "y"], ["x", "y"]),
        (LIST, '["x", "y"]', ["x", "y"]),
        (LIST, [], []),
    ],
)
def test_allowed(table: dict[str, Any], value: object, expected: list[str]) -> None:
    assert texts(table, value) == expected


@pytest.mark.parametrize(
    ("table", "value", "problem"),
    [
        (STRING, 1, "must be text"),
        (STRING, "x" * 1001, "at most 1000"),
        (STRING, "a\0b", "NUL"),
        (STRING, "\ud800", "surrogate"),
        (STRING, "a\nb", "one line"),
        (STRING, "a\rb", "one line"),
        (STRING, "@x", "@"),
        (STRING, "-x", "start with"),
        (STRING, "", "empty"),
        ({**STRING, "pattern": "a|b"}, "ab", "match"),
        ({**STRING, "pattern": "a"}, "a\n", "one line"),
        (INTEGER, True, "whole number"),
        (INTEGER, "3", "whole number"),
        (INTEGER, 3.5, "whole number"),
        (INTEGER, 6, "between"),
        (INTEGER, 10**400, "between"),
        (INTEGER, -1, "start with"),
        ({"type": "number"}, float("nan"), "finite"),
        ({"type": "number"}, float("inf"), "finite"),
        ({"type": "number"}, 10**400, "finite"),
        ({"type": "number"}, True, "number"),
        ({"type": "number", "max": 1}, 1.5, "at most 1"),
        ({"type": "boolean", "flag": "-v"}, "true", "true or false"),
        ({"type": "boolean", "flag": "-v"}, 1, "true or false"),
        (ENUM, "c", "one of: a, b"),
        (ENUM, ["a"], "one of"),
        ({"type": "enum", "values": [1, 2]}, True, "one of"),
        ({"type": "enum", "values": [1, 2]}, "1", "one of"),
        ({"type": "path"}, "", "path"),
        ({"type": "path"}, "-x", "path"),
        ({"type": "path"}, "~/x", "path"),
        ({"type": "path"}, "@x", "path"),
        ({"type": "path"}, "a\nb", "one line"),
        ({"type": "path"}, "x" * 5000, "4096"),
        (LIST, ["x", "y", "z"], "at most 2"),
        (LIST, "x", "list"),
        (LIST, '{"a": 1}', "list"),
        (LIST, "[" * 100_000, "list"),
        (LIST, '["\ud800"]', "list"),
        (LIST, ["-x"], "start with"),
        (LIST, [["x"]], "must be text"),
    ],
)
def test_refused(table: dict[str, Any], value: object, problem: str) -> None:
    with pytest.raises(values.BadValueError, match=problem):
        texts(table, value)


@pytest.mark.parametrize(
    ("table", "value", "way_out"),
    [
        (INTEGER, "3", "between -5 and 5: write 3 without quotes"),
        (INTEGER, 9, "between -5 and 5; the nearest is 5"),
        (INTEGER, -9, "the nearest is -5"),
        ({"type": "number"}, "0.5", "write 0.5 without quotes"),
        ({"type": "boolean", "flag": "-v"}, "true", "write true without quotes"),
        (ENUM, "bb", 'did you mean "b"?'),
        ({"type": "enum", "values": [1, 2]}, "2", "write 2 without quotes"),
        (LIST, "x", 'such as ["x"]'),
        (LIST, "a; b", "such as [...]"),
        (LIST, ["x", "y", "z"], "at most 2 values, has 3"),
        (STRING, "x" * 1001, "at most 1000 characters, is 1001"),
    ],
)
def test_a_refusal_says_the_nearest_allowed_form(table: dict[str, Any], value: object, way_out: str) -> None:
    with pytest.raises(values.BadValueError) as caught:
        texts(table, value)
    assert way_out in str(caught.value)


def test_behind_a_flag_a_value_may_start_with_a_dash() -> None:
    assert texts(STRING, "-x", whole=False) == ["-x"]
    assert texts(INTEGER, -1, whole=False) == ["-1"]
    assert texts(STRING, "", whole=False) == [""]


def test_foreign_text_is_shortened_and_printable() -> None:
    assert values.shown("plain") == "'plain'"
    for text in ("x" * 1000, "\x1b[31m" * 50, "\ud800" * 90, "é" * 90):
        assert len(values.shown(text)) <= 80
        assert values.shown(text).isprintable()
