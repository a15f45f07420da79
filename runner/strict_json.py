"""Tool output as JSON, or a reason why it is not: one document, nothing before or after it, nothing altered.

Runs in the front, on untrusted bytes; pure. Iterative, with a bound on depth and on nodes.
"""

from __future__ import annotations

import json
import re

import orjson

from runner.redaction.document import MAX_DEPTH, MAX_NODES

_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1  # what the wire can carry without turning it into a float


class NotJson(Exception):
    """The bytes are not what is asked for; the message is a plain phrase without tool text."""


def parse(data: bytes) -> object:
    """The one JSON document (RFC 8259) in `data`. Raises NotJson."""
    if not data.strip(b" \t\r\n"):
        raise NotJson("it printed nothing")
    if data.startswith(b"\xef\xbb\xbf"):
        raise NotJson("it begins with a byte order mark")
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise NotJson(f"{_phrase(error.msg)} at line {error.lineno}, column {error.colno}") from None
    if not is_small(value):
        raise NotJson(f"it is nested deeper than {MAX_DEPTH} levels or has more than {MAX_NODES} members")
    if _LONG_NUMBER.search(data):
        _check_numbers(data)
    return value


def is_small(value: object) -> bool:
    """Whether depth and number of nodes are within what redaction looks through."""
    level: list[object] = [value]
    nodes = 0
    for _ in range(MAX_DEPTH + 1):
        nodes += len(level)
        if nodes > MAX_NODES:
            return False
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        if not below:
            return True
        level = below
    return False


def _phrase(message: str) -> str:
    # The parser's messages are fixed phrases; nothing of the document is in them. Kept short all the same.
    return message.partition(": line ")[0][:120]


def _check_numbers(data: bytes) -> None:
    """The fast parser turns an integer beyond 64 bits into a rounded float; that would be a silent change."""

    def whole(text: str) -> int:
        if len(text) > 20 or not _INT_MIN <= int(text) <= _INT_MAX:
            raise NotJson("it has an integer beyond 64 bits, which cannot be passed on unchanged")
        return 0

    json.loads(data, parse_int=whole)
