"""Finds secrets by the name beside them: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, `Authorization: Bearer …`.

Runs in the front; pure over bytes. A pass over the lower-cased text stops at words that occur in secret names; the
whole name is read once, judged by keys.level, and only then is a value looked for, on the same line or in the next
`value` member.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from runner.redaction.keys import Level, is_gap, is_token, level, worth_hiding
from runner.redaction.rules import KEY_WORDS
from runner.redaction.spans import Budget, Span
from runner.redaction.tokens import is_basic, trie_pattern

Matcher = Callable[[bytes, int], "re.Match[bytes] | None"]

_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_NAME_TAIL = re.compile(rb"[A-Za-z0-9_.-]*+").match
_QUOTE = rb"""\\{0,3}["'`]|&quot;|%22"""
_ASSIGN = re.compile(
    rb"(?P<close>"
    + _QUOTE
    + rb")?\]?[ \t]{0,16}+(?P<op>:=|=>|==|=|:|%3[dD])[ \t]{0,16}+(?P<open>"
    + _QUOTE
    + rb")?"
).match
_MEMBER = re.compile(
    rb"(?P<close>"
    + _QUOTE
    + rb")?,?\s{0,64}+(?P<mark>"
    + _QUOTE
    + rb")?[vV]alue(?(mark)(?:"
    + _QUOTE
    + rb"))"
    rb"[ \t]{0,8}+[:=][ \t]{0,8}+(?P<open>" + _QUOTE + rb")?"
).match
_FLAG = re.compile(rb"(?P<close>)[ \t]{1,8}+(?P<open>[\"'])?").match
_IS = re.compile(rb"(?P<close>) (?:is|was) (?P<open>[\"'])?").match
_ELEMENT = re.compile(rb"(?P<close>)>(?P<open>)").match
_SCHEME = re.compile(rb"(?:[ \t]{1,8}|%20|\+)[\"']?([A-Za-z0-9._~+/=-]{4,8192}+)").match

_BARE = re.compile(
    rb"""[^\s"'<>,;&|)}\]`\\\xff]{0,256}+(?:\\(?![nrtu"'\\])[^\s"'<>,;&|)}\]`\\\xff]{0,64}+){0,4}+"""
).match
_BARE_LINE = re.compile(rb"""[^\s"'`\xff]{1,256}+""").match
_ON = re.compile(
    rb"""[^\s"'<>,;&|)}\]`\\\xff]{0,8192}+"""
).match  # the rest of a long one, read only when it is hidden
_IN_DOUBLE = re.compile(rb"""(?:[^"\\\n\xff]|\\[^\n]){0,4096}+""").match
_IN_SINGLE = re.compile(rb"""(?:[^'\\\n\xff]|\\[^\n]){0,4096}+""").match
_IN_TICKS = re.compile(rb"""[^`\n\xff]{0,4096}+""").match
_IN_ESCAPED = re.compile(rb"""(?:[^"'\\\n\xff]|\\\\\\[^\n"']|\\[^"'\n\\]){0,4096}+""").match
_IN_ENTITY = re.compile(rb"""[^&\n\xff]{0,4096}+""").match
_IN_PERCENT = re.compile(rb"""(?:[^%\s&\xff]|%(?!22)){0,4096}+""").match
_IN_ELEMENT = re.compile(rb"""[^<\n\xff]{0,4096}+""").match
_SCHEME_WORD = re.compile(rb"(?i:bearer|basic)(?:[ +]|%20|\Z)").match
_LINE_START = re.compile(rb"(?:\n|\A)[ \t]{0,8}(?:export )?[\"']?\Z")


class PairFinder:
    """Compiled key words. `find(text, budget)` gives spans of values; `skip` names whose values stay."""

    def __init__(self, skip: frozenset[str] = frozenset()) -> None:
        self._word = re.compile(trie_pattern(word.encode() for word in KEY_WORDS)).search
        self._skip = frozenset(name.lower().encode() for name in skip)

    def find(self, text: bytes, budget: Budget) -> list[Span]:
        """Spans of values beside secret names. Raises BudgetSpent."""
        lowered = text.lower()
        netrc = b"machine " in lowered and b"login " in lowered
        levels: dict[bytes, Level] = {}
        spans: list[Span] = []
        position = 0
        while hit := self._word(lowered, position):
            budget.spend()
            start, end = _name_around(text, hit.start())
            position = max(end, hit.end())
            name = text[start:end]
            if name not in levels:
                levels[name] = "" if name.lower() in self._skip else level(name)
            span = _scheme(text, lowered, name, start, end)
            if span is None and levels[name] and text[max(0, start - 3) : start] != b"://":
                span = _value(text, levels[name], start, end, netrc)
            if span:
                spans.append(span)
                position = max(position, span.end)
        return spans


def _name_around(text: bytes, inside: int) -> tuple[int, int]:
    """The identifier that covers `inside`; of what stands in front of it at most 64 bytes."""
    front = text[max(0, inside - 64) : inside]
    tail = _NAME_TAIL(text, inside)
    return inside - (len(front) - len(front.rstrip(_NAME_BYTES))), tail.end() if tail else inside


def _scheme(text: bytes, lowered: bytes, name: bytes, start: int, end: int) -> Span | None:
    """`Bearer x` and `Basic x` (RFC 6750, 7617), alone or in an Authorization header."""
    kind = name.lower()
    if kind not in (b"bearer", b"basic"):
        return None
    found = _SCHEME(text, end)
    if not found or is_gap(found[1]):
        return None
    header = b"authorization" in lowered[max(0, start - 32) : start]
    if kind == b"basic":
        return Span(*found.span(1), "basic-credentials") if is_basic(found[1]) else None
    return Span(*found.span(1), "bearer-token") if header or is_token(found[1]) else None


def _value(text: bytes, found: Level, start: int, end: int, netrc: bool) -> Span | None:
    for matcher in _grammars(text, start, end, netrc):
        operator = matcher(text, end)
        if not operator:
            continue
        opening = operator["open"] or b""
        at = operator.end()
        body = _reader(text, start, opening, element=matcher is _ELEMENT)(text, at)
        if not body or not body.group():
            continue
        value = body.group().rstrip(b"\\") if opening.startswith(b"\\") else body.group()
        sure = bool(opening) and bool(operator["close"])
        if _is_something_else(text, matcher, operator, body.end(), value):
            continue
        if worth_hiding(found, value, sure=sure):
            stop = at + len(value)
            if not opening and len(value) >= 256:
                rest = _ON(text, stop)
                stop = rest.end() if rest else stop
            return Span(at, stop, found if found != "weak" else "key")
    return None


def _is_something_else(
    text: bytes, matcher: Matcher, operator: re.Match[bytes], end: int, value: bytes
) -> bool:
    """Prose, comparisons, half an element, or a scheme whose credentials are found on their own."""
    if matcher is _ELEMENT:
        return text[end : end + 2] != b"</"
    if matcher is _IS and not operator["open"]:
        return not is_token(value, 8)
    if matcher is _ASSIGN and operator["op"] == b"==" and not operator["open"]:
        return True
    return _SCHEME_WORD(value) is not None


def _grammars(text: bytes, start: int, end: int, netrc: bool) -> Iterator[Matcher]:
    following = text[end : end + 1]
    if following == b">":
        if text[max(0, start - 1) : start] == b"<":
            yield _ELEMENT
        return
    yield _ASSIGN
    yield _MEMBER
    if following in (b" ", b"\t"):
        if text.startswith(b"--", start) or netrc:
            yield _FLAG
        yield _IS


def _reader(text: bytes, start: int, opening: bytes, *, element: bool) -> Matcher:
    if element:
        return _IN_ELEMENT
    if not opening:
        # An environment dump has one value a line, and a password in it may hold any punctuation.
        return _BARE_LINE if _LINE_START.search(text, max(0, start - 24), start) else _BARE
    if opening.startswith(b"\\"):
        return _IN_ESCAPED
    return {b'"': _IN_DOUBLE, b"'": _IN_SINGLE, b"`": _IN_TICKS, b"&quot;": _IN_ENTITY, b"%22": _IN_PERCENT}[
        opening
    ]
