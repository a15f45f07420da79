"""One value of one parameter: is it allowed, and which text does the tool get for it?

Used for the defaults and examples of a policy and for what clients send, so that both obey the same rules. Pure: paths
are only checked as text here; whether they lie beneath the root is asked of `sandbox.root` in runner/catalog.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable

import msgspec

from policies.errors import did_you_mean
from policies.params import (
    MAX_PATH,
    SAFE_INT,
    AnyParam,
    BooleanParam,
    EnumParam,
    IntegerParam,
    ListParam,
    NumberParam,
    PathParam,
    Scalar,
    StringParam,
)

MAX_LIST_TEXT = 100_000  # a list that arrives as JSON text: far above 50 ordinary items, far below a nuisance
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_SHOWN = 80  # characters of a client's text that an error may repeat

Look = Callable[[PathParam, str], str]


class BadValueError(Exception):
    """Why a value is not allowed: a sentence that starts after the parameter's name."""


def shown(text: str) -> str:
    """At most 80 printable ASCII characters of foreign text, quoted."""
    quoted = ascii(text[:_SHOWN])
    return quoted if len(quoted) <= _SHOWN else quoted[: _SHOWN - 4] + "...'"


def texts(param: AnyParam, value: object, *, whole: bool, look: Look) -> list[str]:
    """The words for `value`: one, or one per item of a list, or a switch's flag (none when false).

    whole  the value is a word of its own and not the end of "--flag=".
    look   turns an allowed path text into the path that the tool gets.
    Raises BadValueError.
    """
    if isinstance(param, BooleanParam):
        if not isinstance(value, bool):
            raise BadValueError("must be true or false" + _unquoted(value, ("true", "false")))
        return [param.flag] if value else []
    if isinstance(param, ListParam):
        items = _items(value)
        if items is None:
            raise BadValueError(
                f"must be a list of at most {param.max_items} values, such as [{_example(value)}]"
            )
        if len(items) > param.max_items:
            raise BadValueError(f"must be a list of at most {param.max_items} values, has {len(items):,}")
        return [_text(param.items, item, whole, look) for item in items]
    return [_text(param, value, whole, look)]


def _items(value: object) -> list[object] | None:
    """The list, also where a client sent it as JSON text (several do); None when it is no list."""
    if isinstance(value, str) and len(value) <= MAX_LIST_TEXT:
        try:
            return msgspec.json.decode(value.encode(), type=list[object])
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return None
    return list(value) if isinstance(value, (list, tuple)) else None


def _text(param: Scalar, value: object, whole: bool, look: Look) -> str:
    text = _of_type(param, value, look)
    if whole and (not text or text.startswith("-")):
        raise BadValueError('must not be empty or start with "-"')
    return text


def _of_type(param: Scalar, value: object, look: Look) -> str:
    match param:
        case StringParam():
            return _string(param, value)
        case IntegerParam():
            return _integer(param, value)
        case NumberParam():
            return _number(param, value)
        case EnumParam():
            return _choice(param, value)
        case PathParam():
            return look(param, _path(value))


def _plain(value: object, longest: int) -> str:
    """Text that can be one argument: valid Unicode, no NUL, not too long."""
    if not isinstance(value, str):
        raise BadValueError("must be text")
    if len(value) > longest:
        raise BadValueError(f"must be at most {longest} characters, is {len(value)}")
    if "\0" in value:
        raise BadValueError("must not contain NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadValueError("must be valid Unicode (it has a lone surrogate)") from None
    return value


def _string(param: StringParam, value: object) -> str:
    text = _plain(value, param.max_length)
    if not param.multiline and ("\n" in text or "\r" in text):
        raise BadValueError("must be one line")
    if not param.allow_at and text.startswith("@"):
        raise BadValueError('must not start with "@"')
    if param.pattern is not None and not _compiled(param.pattern).fullmatch(text):
        raise BadValueError(f"must match {param.pattern}")
    return text


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _integer(param: IntegerParam, value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) <= SAFE_INT:
        value = int(value)  # JSON has one kind of number: 3.0 is 3
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadValueError(f"must be a whole number between {param.min} and {param.max}" + _unquoted(value))
    if not param.min <= value <= param.max:
        near = param.min if value < param.min else param.max
        raise BadValueError(f"must be between {param.min} and {param.max}; the nearest is {near}")
    return str(value)


def _number(param: NumberParam, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadValueError("must be a number" + _unquoted(value))
    if not (isinstance(value, float) and math.isfinite(value)) and not (
        isinstance(value, int) and abs(value) <= SAFE_INT
    ):
        raise BadValueError("must be a finite number")
    if param.min is not None and value < param.min:
        raise BadValueError(f"must be at least {param.min:g}")
    if param.max is not None and value > param.max:
        raise BadValueError(f"must be at most {param.max:g}")
    return repr(float(value))


def _choice(param: EnumParam, value: object) -> str:
    for choice in param.values:
        if (
            value == choice
            and isinstance(value, bool) is False
            and isinstance(value, str) == isinstance(choice, str)
        ):
            return str(choice)
    words = [str(choice) for choice in param.values]
    near = _unquoted(value, tuple(words))
    if not near and isinstance(value, str):
        near = did_you_mean(value, words)
    raise BadValueError(f"must be one of: {', '.join(words)}"[:1000] + near)


def _unquoted(value: object, words: tuple[str, ...] = ()) -> str:
    """How to write it, where a client has put quotes around what would be allowed without."""
    if isinstance(value, str) and (value in words or (not words and _NUMBER.fullmatch(value))):
        return f": write {value} without quotes"
    return ""


def _example(value: object) -> str:
    return shown(value).replace("'", '"') if isinstance(value, str) and value.isalnum() else "..."


def _path(value: object) -> str:
    text = _plain(value, MAX_PATH)
    if not text or text.startswith(("-", "~", "@")):
        raise BadValueError(
            'must be a path beneath the root (write "./" before a name that starts with "-" or "@")'
        )
    if "\n" in text or "\r" in text:
        raise BadValueError("must be one line")
    return text
