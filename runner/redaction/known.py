"""Finds the operator's known values in every form that spellings.literals lists. Runs in the front; pure over bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from runner.redaction.literals import Literals
from runner.redaction.spans import VALUE_KIND, Budget, Span

_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_BREAKS = b" \t\r\n"
# What stands at a break in a diff, a quotation, a table, a string that goes on in the next line: as long as its blanks.
_MARKS = (
    (b"\n+", b"\n "),
    (b"\n-", b"\n "),
    (b"\n>", b"\n "),
    (b"\n|", b"\n "),
    (b"\\\n", b" \n"),
    (b"\\\r\n", b" \r\n"),
)
_KEPT = re.compile(rb"[^ \t\r\n]+").finditer


class KnownFinder:
    """`find(text, budget)` gives spans of known values.

    known   form -> (is its first, is its last character shared with what stands beside it), as spellings.literals has it.
    """

    def __init__(self, known: Mapping[bytes, tuple[bool, bool]]) -> None:
        self._literals = Literals(known)
        self._shared = [known[form] for form in self._literals.words]
        self._unbroken = [not any(byte in _BREAKS for byte in form) for form in self._literals.words]

    def find(self, text: bytes, budget: Budget) -> list[Span]:
        """Spans of known values, also of those that a line break divides. Raises BudgetSpent."""
        if not self._shared:
            return []
        spans: list[Span] = []
        for number, start, end in self._literals.each(text):
            budget.spend()
            spans.append(_widened(text, start, end, *self._shared[number]))
        return spans + self._broken(text, budget)

    def _broken(self, text: bytes, budget: Budget) -> list[Span]:
        """Values that were wrapped: the text without its white space is searched, and only then mapped back."""
        if b"\n" not in text:
            return []
        spans = self._joined(text, budget)
        plain = text
        for mark, blank in _MARKS:
            plain = plain.replace(mark, blank)
        return spans if plain == text else spans + self._joined(plain, budget)

    def _joined(self, text: bytes, budget: Budget) -> list[Span]:
        joined = text.translate(None, _BREAKS)
        hits = [hit for hit in self._literals.each(joined) if self._unbroken[hit[0]]]
        if not hits:
            return []
        spans: list[Span] = []
        seen = 0  # bytes of the joined text before the current piece
        pieces = _KEPT(text)
        piece = next(pieces)
        for number, start, end in hits:
            budget.spend()
            while seen + len(piece.group()) <= start:
                seen += len(piece.group())
                piece = next(pieces)
            first, before, last_piece = piece.start() + start - seen, seen, piece
            if end <= seen + len(piece.group()):
                continue  # in one piece: found above
            rest = _KEPT(text, piece.end())
            while before + len(last_piece.group()) < end:
                before += len(last_piece.group())
                last_piece = next(rest)
            spans.append(_widened(text, first, last_piece.start() + end - before, *self._shared[number]))
        return spans


def _widened(text: bytes, start: int, end: int, first: bool, last: bool) -> Span:
    """The form with the base64 characters beside it that hold some of its bits."""
    if first and start > 0 and text[start - 1] in _BASE64:
        start -= 1
    if last and end < len(text) and text[end] in _BASE64:
        end += 1
    return Span(start, end, VALUE_KIND)
