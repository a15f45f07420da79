"""Finds tokens by their form: one pass for anchors, then a bounded look at each place where one stands.

Runs in the front; pure over bytes. Every look spends from a budget, and a run of characters that was measured once is
not measured again by the same rule, so the cost grows with the length of the text and with nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from runner.redaction.literals import Literals
from runner.redaction.rule import CHARSETS, Rule
from runner.redaction.rules import EXAMPLE_MARKS, SHAPE_ANCHORS, TOKEN_RULES
from runner.redaction.shapes import SHAPES, aws_secret, opens_token
from runner.redaction.spans import Budget, Found, Span
from runner.redaction.worth import is_words

Match = Callable[[bytes, int], "re.Match[bytes] | None"]


class _Compiled(NamedTuple):
    rule: Rule
    run: Match
    before: bytes  # characters that may stand in front of the anchor
    length: int


_ALNUM = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_DIGIT = re.compile(rb"[0-9]").search
_LOWER = re.compile(rb"[a-z]").search
_UPPER = re.compile(rb"[A-Z]").search
_NEEDS: dict[str, Callable[[bytes], object]] = {
    "d": _DIGIT,
    "l": _LOWER,
    "u": _UPPER,
    "m": lambda tail: bool(_DIGIT(tail)) + bool(_LOWER(tail)) + bool(_UPPER(tail)) > 1,
    "x": lambda tail: not is_words(tail),
}
_WRAP = re.compile(rb"[\"']?[ \t]{0,8}\\?\r?\n[ \t>|+#*\"']{0,32}+").match
_LINE_ENDS = re.compile(rb"[ \t\"'\\,;]{0,4}(?:\r?\n|\Z)").match
_ESCAPES = (b"\\n", b"\\r", b"\\t")
_INTRODUCES = frozenset(b" =")  # an anchor that ends so is the neighbour of a token, not a part of it
_WRAPS, _WRAPPED_LEAST, _WORDS_BYTES = 12, 16, 256


def _members(charset: str) -> bytes:
    """All bytes of a class, for strip()."""
    pattern = re.compile(b"[" + CHARSETS[charset].encode() + b"]")
    return bytes(byte for byte in range(128) if pattern.match(bytes((byte,))))


class TokenFinder:
    """Compiled token rules. `find(text, budget)` gives spans in rising order of their start."""

    def __init__(self, rules: tuple[Rule, ...] = TOKEN_RULES) -> None:
        runs = {name: re.compile(f"[{inside}]*+".encode()).match for name, inside in CHARSETS.items()}
        self._compiled = [
            _Compiled(rule, runs[rule.charset], _members(rule.before[0]) if rule.before else b"", rule.length)
            for rule in rules
        ]
        owners: dict[bytes, list[int | str]] = {}
        for number, rule in enumerate(rules):
            for anchor in rule.anchors:
                owners.setdefault(anchor.encode(), []).append(number)
        for shape, anchors in SHAPE_ANCHORS.items():
            for anchor in anchors:
                owners.setdefault(anchor.encode(), []).append(shape)
        self._anchors = Literals(owners)
        self._owners = [owners[anchor] for anchor in self._anchors.words]

    def find(self, text: bytes, budget: Budget) -> list[Span]:
        """Spans of tokens. Raises BudgetSpent."""
        spans: list[Span] = []
        measured: dict[int | str, int] = {}
        position = 0
        for number, start, end in self._anchors.each(text):
            if start < position:
                continue
            for owner in self._owners[number]:
                if start < measured.get(owner, 0):
                    continue
                budget.spend()
                if isinstance(owner, int):
                    span, seen = _verify(self._compiled[owner], text, start, end)
                else:
                    span, seen = SHAPES[owner](text, start, end)
                measured[owner] = seen
                if span:
                    spans.append(span)
                    position = max(position, span.end)
                    if span.kind == "aws-key-id" and (pair := aws_secret(text, span.end)):
                        spans.append(pair)
                    break
        return spans


def _verify(compiled: _Compiled, text: bytes, start: int, end: int) -> Found:
    rule = compiled.rule
    if rule.gap:
        return _after_word(compiled, text, end)
    run = compiled.run(text, end)
    stop = run.end() if run else end
    size = len(text[end:stop].rstrip(b".")) if stop - end < 8192 else stop - end
    tail, last = text[end : end + size], end + size
    if size < compiled.length and size >= 4 and _LINE_ENDS(text, last):
        tail, last = _unwrapped(compiled, text, tail, last)
    if not _looks_drawn(rule, tail) or (rule.words and not _near(text, start, rule.words)):
        return None, stop
    if rule.before:
        _, least, most = rule.before
        front = text[max(0, start - most) : start]
        own = len(front) - len(front.rstrip(compiled.before))
        if own < least:
            return None, stop
        start -= own
        if text[max(0, start - 1) : start + 1] in _ESCAPES:
            start += 1
    if rule.bounded and not (opens_token(text, start) and (last >= len(text) or text[last] not in _ALNUM)):
        return None, stop
    if text[end - 1] in _INTRODUCES:
        start = end
    return Span(start, last, rule.kind), max(stop, last)


def _after_word(compiled: _Compiled, text: bytes, end: int) -> Found:
    """The first run of the right length within the gap behind a key word."""
    rule, at, seen = compiled.rule, end, end
    while at <= end + rule.gap and at < len(text):
        run = compiled.run(text, at)
        if run and run.group():
            if _looks_drawn(rule, run.group()):
                return Span(*run.span(), rule.kind), run.end()
            at = seen = run.end()
        else:
            at += 1
    return None, seen


def _looks_drawn(rule: Rule, tail: bytes) -> bool:
    if len(tail) < rule.least or (rule.most and len(tail) > rule.most):
        return False
    return all(_NEEDS[need](tail) for need in rule.need) and (rule.strict or not is_example(tail, rule.least))


def _unwrapped(compiled: _Compiled, text: bytes, tail: bytes, last: int) -> tuple[bytes, int]:
    """The tail with what of it stands on the next lines: (tail, its end in the text)."""
    joined, at = tail, last
    for _ in range(_WRAPS):
        gap = _WRAP(text, at)
        run = compiled.run(text, gap.end()) if gap else None
        if not run or not run.group() or not _LINE_ENDS(text, run.end()):
            break
        piece = run.group()
        if len(joined) + len(piece) > compiled.length or b"=" in piece.rstrip(b"="):
            break
        joined, at = joined + piece, run.end()
        if len(joined) == compiled.length:
            return joined, at
        if len(piece) < _WRAPPED_LEAST or not _DIGIT(piece) or is_words(piece):
            break
        tail, last = joined, at
    return tail, last


def _near(text: bytes, start: int, words: tuple[str, ...]) -> bool:
    front = text[max(0, start - _WORDS_BYTES) : start].lower()
    return any(word.encode() in front for word in words)


def is_example(tail: bytes, least: int) -> bool:
    """Documented examples and gaps are no secrets; hiding them makes documentation unreadable.

    Only what a rule needs at least is judged: text that follows a token without a break must not excuse it.
    """
    lowered = tail[: least + 8].lower()
    return any(mark in lowered for mark in EXAMPLE_MARKS) or (least >= 16 and len(set(lowered)) < 6)
