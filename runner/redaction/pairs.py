"""Finds secrets by the name beside them: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, `<token>…</token>`, tables.

Runs in the front; pure over bytes. A pass over the lower-cased text stops at words that occur in secret names; the
whole name is read once, judged by keys.level, and only then is a value looked for, on the same line or in the next
`value` member (forms.py).
"""

from __future__ import annotations

import re

from runner.redaction import columns, grammar, headers
from runner.redaction.forms import Form, Name, Value, forms, is_out
from runner.redaction.grammar import Matcher
from runner.redaction.keys import KEY_OWNERS, MAX_NAME, Level, level
from runner.redaction.literals import Literals
from runner.redaction.rules import KEY_WORDS
from runner.redaction.spans import Budget, Span
from runner.redaction.worth import worth_hiding

_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_DEAD = frozenset((b"", *(bytes((byte,)) for byte in b"!*/^~\xff")))  # after these no value follows
_NAME_TAIL = re.compile(rb"[A-Za-z0-9_.-]*+").match
_LINE_START = re.compile(rb"(?:\n|\A)[ \t]{0,8}(?:[+-] ?)?(?:export |set |env )?[\"']?\Z").search
_WORD_BEFORE = re.compile(rb"([A-Za-z]{2,16}) \Z").search
_STOPS = re.compile(
    rb"\xef\xbc[\x81\x89\x8c\x9b]|\xe3\x80[\x81\x82]"
).split  # full-width commas, stops and brackets
_AFTER_NAME = re.compile(rb"(?: #?[0-9]{1,2}|\*\*)(?=:)").match  # Unseal Key 1: …, **Password**: …


class PairFinder:
    """Compiled key words. `find(text, budget)` gives spans of values; `skip` names whose values stay."""

    def __init__(self, skip: frozenset[str] = frozenset()) -> None:
        self._words = Literals(word.encode() for word in KEY_WORDS)
        self._skip = frozenset(name.lower().encode() for name in skip)

    def find(self, text: bytes, budget: Budget) -> list[Span]:
        """Spans of values beside secret names. Raises BudgetSpent."""
        lowered = text.lower()
        netrc = b"machine " in lowered and b"login " in lowered
        levels: dict[bytes, Level] = {}
        spans: list[Span] = []
        position = 0
        for _, inside, _ in self._words.each(lowered):
            if inside < position:
                continue
            start, end = _name_around(text, inside + (text[inside] == 32))
            position = end
            if text[end : end + 1] in _DEAD and not _AFTER_NAME(text, end):
                continue
            found = headers.special(text, lowered, start, end)
            if found is None:
                name = Name(text, start, end, self._level(text, start, end, levels), netrc)
                if not name.level or _is_part(name):
                    continue
                budget.spend()
                found = _beside(name, spans, budget)
            if found:
                spans += found
                position = max(position, found[-1].end)
        return spans

    def _level(self, text: bytes, start: int, end: int, levels: dict[bytes, Level]) -> Level:
        word = text[start:end]
        if word not in levels:
            levels[word] = "" if word.lower() in self._skip else level(word)
        return levels[word] or _spoken(text, word, start)


def _name_around(text: bytes, inside: int) -> tuple[int, int]:
    """The identifier that covers `inside`; of what stands in front of it at most MAX_NAME bytes."""
    front = text[max(0, inside - MAX_NAME) : inside]
    tail = _NAME_TAIL(text, inside)
    end = tail.end() if tail else inside
    while end > inside and text[end - 1] in b".-":
        end -= 1
    return inside - (len(front) - len(front.rstrip(_NAME_BYTES))), end


def _spoken(text: bytes, word: bytes, start: int) -> Level:
    """The level of a name in words: "api key", "Secret Access Key"."""
    if word.lower() not in (b"key", b"keys"):
        return ""
    before = _WORD_BEFORE(text, max(0, start - 18), start)
    return "token" if before and before[1].lower() in KEY_OWNERS else ""


def _is_part(name: Name) -> bool:
    """Whether the name stands in an address, a qualified name, an ARN or a placeholder, and so names no value."""
    front = name.text[max(0, name.start - 90) : name.start]
    following = name.text[name.end : name.end + 2]
    if front.endswith(b"${") and following in (b":?", b":+", b"? ", b"+ "):  # ${NAME:?what to say without it}
        return True
    if name.word == b"PWD" and front.endswith((b"$", b"${", b"$(")):  # the folder of a shell, not a password
        return True
    return front.endswith((b"://", b"::", b"REDACTED:")) or (front.endswith(b":") and b"arn:" in front)


def _beside(name: Name, spans: list[Span], budget: Budget) -> list[Span]:
    """The value beside the name; of a heading the cells below it, which go to `spans` at once."""
    more = _AFTER_NAME(name.text, name.end)
    name = name._replace(end=more.end()) if more else name
    for form in forms(name):
        if value := _value(name, form):
            return [value, *_changed(name, value)]
    if value := _before(name):
        return [value]
    spans += columns.below(name.text, (name.start, name.end), name.level, budget)
    return []


def _value(name: Name, form: Form) -> Span | None:
    found = form.match(name.text, name.end)
    if not found:
        return None
    opening = found["open"] or b""
    at = found.end()
    body = (form.reader or _reader(name, opening))(name.text, at)
    value = body.group() if body else b""
    if not opening:
        value = _STOPS(value, 1)[0]
    if opening.startswith(b"\\"):
        value = value.rstrip(b"\\")
    read = Value(found, value, at + len(body.group()) if body else at)
    if not value or is_out(name, read, form.loose) or not form.accept(name, read):
        return None
    stop = at + len(value)
    if not opening and len(value) >= grammar.BARE_BYTES:
        rest = grammar.ON(name.text, stop)
        stop = rest.end() if rest else stop
    return Span(at, stop, name.kind)


def _changed(name: Name, old: Span) -> list[Span]:
    """What a value is changed to: "old" -> "new"."""
    arrow = grammar.CHANGED(name.text, old.end)
    new = grammar.inside(arrow["open"])(name.text, arrow.end()) if arrow else None
    return [Span(*new.span(), name.kind)] if new and worth_hiding(name.level, new.group(), sure=True) else []


def _reader(name: Name, opening: bytes) -> Matcher:
    if opening:
        return grammar.inside(opening)
    if name.level != "password":
        return grammar.BARE
    # An environment dump has one value a line, and a password in it may hold any punctuation.
    dump = _LINE_START(name.text, max(0, name.start - 24), name.start)
    return grammar.BARE_LINE if dump else grammar.BARE_PASSWORD


_NAMED_AFTER = re.compile(
    rb"""["']?\s{0,8}[:=]\s{0,8}["'](?P<value>[^"'\n\xff]{4,512}+)["']\s{0,16},?\s{1,64}["']?[\w-]{0,12}(?:[nN]ame|[kK]ey)["']?
    \s{0,4}[:=]\s{0,4}["']""", re.VERBOSE
).match  # fmt: skip
_NAME_KEY = re.compile(rb"""(?:[nN]ame|[kK]ey)["']?\s{0,4}[:=]\s{0,4}["']\Z""").search
_WINDOW = 640  # bytes in front of a name in which its value may stand


def _before(name: Name) -> Span | None:
    """{"value": "…", "name": "X"}: the value stands first."""
    text, start = name.text, name.start
    quote = text[max(0, start - 1) : start]
    if quote not in (b'"', b"'") or not _NAME_KEY(text, max(0, start - 16), start):
        return None
    window = max(0, start - _WINDOW)
    at = max(text.rfind(b"alue", window, start), text.rfind(b"ALUE", window, start))
    found = _NAMED_AFTER(text, at + len(b"alue")) if at >= 0 else None
    if not found or found.end() != start or not worth_hiding(name.level, found["value"], sure=True):
        return None
    return Span(*found.span("value"), name.kind)
