"""Tool output as JSON, or a reason why it is not: one document, nothing before or after it, nothing altered but that
decimals are read as doubles (RFC 8259, section 6).

Runs in the front, on untrusted bytes; pure. Iterative, with a bound on depth and on nodes that is checked before
anything is built. Names are counted twice, in the text and in what was read from it: where the numbers differ, a name
stood twice in one object and readers would not agree on what was said (RFC 8259, section 4).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import orjson

from policies.values import shown
from runner.mcp.jsonrpc import nests_deeper
from runner.redaction.document import MAX_DEPTH, MAX_NODES

_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1  # what the wire can carry without turning it into a float
_CHUNK = (
    1 << 16
)  # bytes that are cut at quotes at a time: text of nothing but quotes becomes a list of pieces
_NO_NUMBER = re.compile(r"-?(?:nan|infinity|inf)", re.IGNORECASE)
_BRACKETS, _OTHERS = bytes.maketrans(b"{}", b"[]"), bytes(set(range(256)) - set(b"[]{}"))
_TOO_MUCH = f"it is no JSON document of at most {MAX_NODES} members and {MAX_DEPTH} levels"


class NotJson(Exception):
    """The bytes are not what is asked for. `phrase` says why; where it has a place for it, `name` is one of the document's."""

    def __init__(self, phrase: str, name: str | None = None) -> None:
        self.phrase, self.name = phrase, name
        super().__init__(self.words(str))

    def words(self, masked: Callable[[str], str]) -> str:
        """The phrase with the name, which is masked whole before it is shortened."""
        return self.phrase if self.name is None else self.phrase.format(shown(masked(self.name)))


def parse(data: bytes) -> object:
    """The one JSON document (RFC 8259) in `data`. Raises NotJson."""
    if not data.strip(b" \t\r\n"):
        raise NotJson("it printed nothing")
    if data.startswith(b"\xef\xbb\xbf"):
        raise NotJson("it begins with a byte order mark")
    names = _names(data) if data.lstrip(b" \t\r\n")[:1] in (b"{", b"[") else 0
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise NotJson(_reason(data, error)) from None
    if _counted(value) != names:
        raise _twice(data)
    if _LONG_NUMBER.search(data):
        _check_numbers(data)
    return value


# ---- before it is read -------------------------------------------------------------------------------------------------


def _names(data: bytes) -> int:
    """How many names of members stand in the text, if it is JSON. Raises NotJson when it has too many nodes or levels."""
    names = commas = opened = 0
    brackets: list[bytes] = []
    for outside in _outside_strings(data):
        names += outside.count(b":")
        commas += outside.count(b",")
        nesting = outside.translate(_BRACKETS, _OTHERS)
        opened += nesting.count(b"[")
        if commas > MAX_NODES or opened > MAX_NODES:
            raise NotJson(_TOO_MUCH)
        brackets.append(nesting)
    if nests_deeper(b"".join(brackets), MAX_DEPTH + 1):
        raise NotJson(f"it is nested deeper than {MAX_DEPTH} levels")
    return names


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """What stands outside of strings, in pieces. Quotes of text that is no JSON may be taken the wrong way."""
    start, inside = 0, 0
    while start < len(data):
        chunk = data[start : start + _CHUNK]
        if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2:  # never between a backslash and what it escapes
            chunk = data[start : start + _CHUNK + 1]
        pieces = chunk.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(pieces[inside::2])
        inside ^= (len(pieces) - 1) & 1
        start += len(chunk)


# ---- after it was read -------------------------------------------------------------------------------------------------


def _counted(value: object) -> int:
    """How many members its objects have. Raises NotJson when it has too many nodes or levels."""
    level: list[object] = [value]
    nodes = members = 0
    for _ in range(MAX_DEPTH + 1):
        nodes += len(level)
        if nodes > MAX_NODES:
            raise NotJson(f"it has more than {MAX_NODES} members")
        below: list[object] = []
        for item in level:
            if type(item) is dict:  # exact, as the parser makes them: half the time of isinstance
                members += len(item)
                below.extend(item.values())
            elif type(item) is list:
                below.extend(item)
        if not below:
            return members
        level = below
    raise NotJson(f"it is nested deeper than {MAX_DEPTH} levels")


def _reason(data: bytes, error: orjson.JSONDecodeError) -> str:
    """Why it cannot be read, in a phrase of the parser (nothing of the document is in those) or in ours."""
    try:
        text = data.decode()
    except UnicodeDecodeError as fault:
        return f"it is not UTF-8: byte 0x{data[fault.start]:02x} at offset {fault.start:,}"
    begin = error.pos - (text[error.pos - 1 : error.pos] == "-")
    if hit := _NO_NUMBER.match(text, begin):
        return f"it has {hit[0]} at line {error.lineno}, column {error.colno}, which JSON does not have"
    return f"{error.msg.partition(': line ')[0][:120]} at line {error.lineno}, column {error.colno}"


def _twice(data: bytes) -> NotJson:
    """Which name stands twice. Only for text of which that is known, because it takes long."""

    def first(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NotJson("the name {} stands twice in one object", name)
            seen.add(name)

    try:
        json.loads(data, object_pairs_hook=first, parse_int=str, parse_float=str)
    except NotJson as found:
        return found
    return NotJson("a name stands twice in one object")


def _check_numbers(data: bytes) -> None:
    """The fast parser turns an integer beyond 64 bits into a rounded float; that would be a silent change."""

    def whole(text: str) -> int:
        if len(text) > 20 or not _INT_MIN <= int(text) <= _INT_MAX:
            raise NotJson("it has an integer beyond 64 bits, which cannot be passed on unchanged")
        return 0

    json.loads(data, parse_int=whole)
