"""Tables: a secret name in the first line, its values in the same column below. Runs in the front; pure over bytes."""

from __future__ import annotations

import re

from runner.redaction.keys import Level
from runner.redaction.spans import Budget, Span
from runner.redaction.worth import is_password, is_token

_LINE, _ROWS = 1024, 200  # bytes of a line, rows of a table that are looked at
_SEPARATORS = (b",", b"\t", b"|", b";")
_ENDS = (*_SEPARATORS, b"\n", b"\r", b" ", b'"')
_RULE = re.compile(rb"[-+=|: ]{3,}").fullmatch
_CELL = re.compile(rb"[A-Za-z0-9_ ./()#-]{1,40}\Z").match


def below(text: bytes, heading: tuple[int, int], level: Level, budget: Budget) -> list[Span]:
    """Spans of the cells below the heading at [start, end); none when that is no heading of a table."""
    start, end = heading
    following = text[end : end + 1]
    if following not in _ENDS:
        return []
    first = text.rfind(b"\n", max(0, start - _LINE), start) + 1
    last = text.find(b"\n", end, end + _LINE)
    if last < 0 or start - first > _LINE - 2:
        return []
    line = text[first:last]
    if following == b" " and b"|" not in line:
        return []
    separator = next((mark for mark in _SEPARATORS if mark in line), b"")
    if not separator:
        return []
    cells = [cell.strip(b' \t\r"').lower() for cell in line.split(separator)]
    if sum(map(bool, cells)) < 2:
        return []  # an argument or a member with a comma, on a line of its own
    column = text.count(separator, first, start)
    if any((cell and not _CELL(cell)) or cell.isdigit() for cell in cells) or not cells[column].endswith(
        text[start:end].lower()
    ):
        return []
    above = text[text.rfind(b"\n", max(0, first - 1 - _LINE), max(0, first - 1)) + 1 : max(0, first - 1)]
    if above.count(separator) == len(cells) - 1:
        return []  # a row, not the head: each row of a table is looked at once
    return _cells(text, last + 1, separator, (column, len(cells), level), budget)


def _cells(
    text: bytes, at: int, separator: bytes, shape: tuple[int, int, Level], budget: Budget
) -> list[Span]:
    column, width, level = shape
    spans: list[Span] = []
    for _ in range(_ROWS):
        budget.spend()
        last = text.find(b"\n", at, at + _LINE)
        last = min(len(text), at + _LINE) if last < 0 else last
        cells = text[at:last].split(separator)
        if len(cells) != width:
            if _RULE(text, at, last):  # ----+---- below the head, as psql and mysql draw it
                at = last + 1
                continue
            break
        cell = cells[column]
        value = cell.strip(b' \t\r",')
        fits = is_password(value, 6) if level == "password" else is_token(value)
        if fits and b" " not in value:
            begin = at + sum(len(other) + 1 for other in cells[:column]) + cell.index(value)
            spans.append(Span(begin, begin + len(value), level if level != "weak" else "key"))
        at = last + 1
        if at >= len(text):
            break
    return spans
