"""Takes secrets out of text and of parsed JSON: `Redactor.text` and `Redactor.value`.

Runs in the front, on everything a tool printed, before anything is cut, stored or sent. Known values, known token
formats and values beside secret names become [REDACTED:kind]. Fails closed: on a spent budget, an oversized text or
an error of its own, the text is withheld. Never logs, never keeps what it saw, never says where or how long.

What it promises is protection against accidental disclosure; a tool that disguises a secret gets past it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass

from runner.redaction.document import flatten
from runner.redaction.pairs import PairFinder
from runner.redaction.spans import Budget, Span
from runner.redaction.tokens import TokenFinder, trie_pattern
from runner.redaction.values import SecretValue, literals
from runner.redaction.view import SEPARATOR, View

MAX_BYTES = 32 * 1024 * 1024  # about six seconds; beyond it the text is withheld
_BASE_SECONDS, _SECONDS_PER_BYTE = 0.5, 0.5e-6  # half a second, and half a second for each MB
MAX_PASSES = 4  # a pass that changes nothing ends it: what was returned stays as it is when redacted again
WITHHELD = "withheld"  # the kind that counts a text which could not be checked
WITHHELD_TEXT = (
    "[WITHHELD: this output could not be checked for secrets within its bounds, so it is not shown.]"
)
VALUE_KIND = "secret-value"
_FEW = 60  # below this many forms, one fast find per form beats the trie

Counts = dict[str, int]


class _Unsettled(Exception):
    """Redacted text that still changes when redacted again."""


@dataclass(frozen=True, slots=True)
class _Finders:
    tokens: TokenFinder
    pairs: PairFinder
    known: dict[bytes, tuple[bool, bool]]
    trie: re.Pattern[bytes] | None


class Redactor:
    """Redacts with the operator's `values`, the built-in rules, minus `exempt` kinds or key names.

    `exempt` never covers known values or private keys. Nothing is compiled before the first use (about 20 ms).
    """

    def __init__(self, values: tuple[SecretValue, ...], exempt: frozenset[str] = frozenset()) -> None:
        self._values = values
        self._exempt = frozenset(word.lower() for word in exempt) - {VALUE_KIND, "private-key", WITHHELD}
        self._finders: _Finders | None = None

    def __repr__(self) -> str:
        return f"Redactor({len(self._values)} values)"

    def exempting(self, exempt: frozenset[str]) -> Redactor:
        """This redactor with further exemptions; shares what is compiled. The same object when there are none."""
        if exempt <= self._exempt:
            return self
        other = Redactor(self._values, self._exempt | exempt)
        ready = self._ready()
        other._finders = _Finders(ready.tokens, PairFinder(other._exempt), ready.known, ready.trie)
        return other

    def text(self, text: str) -> tuple[str, Counts]:
        """`text` without secrets, and how many were taken out by kind. {"withheld": 1} when it could not be checked."""
        try:
            return self._settle_text(text)
        except Exception:  # noqa: BLE001  # whatever went wrong, unchecked text must not leave
            return WITHHELD_TEXT, {WITHHELD: 1}

    def value(self, value: object) -> tuple[object, Counts]:
        """A copy of parsed JSON without secrets in its strings and keys, and the counts. Withheld as in `text`."""
        try:
            return self._settle_value(value)
        except Exception:  # noqa: BLE001  # whatever went wrong, unchecked text must not leave
            return WITHHELD_TEXT, {WITHHELD: 1}

    def _settle_text(self, text: str) -> tuple[str, Counts]:
        total: Counter[str] = Counter()
        source = text.encode("utf-8", "surrogatepass")
        deadline = _deadline(len(source))
        for _ in range(MAX_PASSES):
            spans = self._scan(source, deadline)
            if not spans:
                return source.decode("utf-8", "surrogatepass"), dict(total)
            total.update(span.kind for span in spans)
            source = _replaced(source, 0, len(source), spans)
        raise _Unsettled

    def _settle_value(self, value: object) -> tuple[object, Counts]:
        total: Counter[str] = Counter()
        deadline = 0.0
        for _ in range(MAX_PASSES):
            flat = flatten(value, self._exempt)
            pieces = [string.encode("utf-8", "surrogatepass") for string in flat.strings]
            joined = SEPARATOR.join(pieces)
            deadline = deadline or _deadline(len(joined))
            spans = self._scan(joined, deadline) if pieces else []
            total.update(flat.hidden)
            total.update(span.kind for span in spans)
            if not spans and not flat.hidden:
                return value, dict(total)
            value = flat.rebuild(_spread(pieces, spans))
        raise _Unsettled

    def _ready(self) -> _Finders:
        if self._finders is None:
            known = literals(self._values)
            trie = re.compile(trie_pattern(known)) if len(known) > _FEW else None
            self._finders = _Finders(TokenFinder(), PairFinder(self._exempt), known, trie)
        return self._finders

    def _scan(self, source: bytes, deadline: float) -> list[Span]:
        """Disjoint spans of `source`, rising."""
        if len(source) > MAX_BYTES:
            raise _Unsettled
        finders = self._ready()
        view = View(source)
        found = [
            Span(*view.original(span.start, span.end), span.kind)
            for span in _spans(finders, view.text, self._exempt, deadline)
        ]
        if view.incomplete:  # what was left out may begin a token: the "g" of "\x1b[ghp_"
            found += _spans(finders, source, self._exempt, deadline)
        elif view.text is not source:  # a value may itself hold what the view decodes
            found += _known_spans(finders, source, Budget(len(source), deadline))
        return _merged(source, found)


def _deadline(length: int) -> float:
    """Processor time at which the checking of one text ends: ordinary text needs a tenth of this."""
    return time.thread_time() + _BASE_SECONDS + length * _SECONDS_PER_BYTE


def _spans(finders: _Finders, text: bytes, exempt: frozenset[str], deadline: float) -> list[Span]:
    budget = Budget(len(text), deadline)
    spans = finders.tokens.find(text, budget) + finders.pairs.find(text, budget)
    return [span for span in spans if span.kind not in exempt] + _known_spans(finders, text, budget)


def _known_spans(finders: _Finders, text: bytes, budget: Budget) -> list[Span]:
    spans: list[Span] = []
    if finders.trie is not None:
        position = 0
        while hit := finders.trie.search(text, position):
            budget.spend()
            spans.append(_widened(text, hit.start(), hit.end(), *finders.known[hit.group()]))
            position = hit.start() + 1
        return spans
    for form, shared in finders.known.items():
        position = text.find(form)
        while position >= 0:
            budget.spend()
            spans.append(_widened(text, position, position + len(form), *shared))
            position = text.find(form, position + 1)
    return spans


_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")


def _widened(text: bytes, start: int, end: int, first: bool, last: bool) -> Span:
    """The form with the base64 characters beside it that hold some of its bits."""
    if first and start > 0 and text[start - 1] in _BASE64:
        start -= 1
    if last and end < len(text) and text[end] in _BASE64:
        end += 1
    return Span(start, end, VALUE_KIND)


def _merged(source: bytes, spans: list[Span]) -> list[Span]:
    """Overlapping spans joined (the first one's kind), ends moved outwards to whole UTF-8 characters."""
    out: list[Span] = []
    for span in sorted(spans):
        start, end, kind = span
        while start > 0 and source[start] & 0xC0 == 0x80:
            start -= 1
        while end < len(source) and source[end] & 0xC0 == 0x80:
            end += 1
        if out and start < out[-1].end:
            out[-1] = Span(out[-1].start, max(end, out[-1].end), out[-1].kind)
        else:
            out.append(Span(start, end, kind))
    return out


def _replaced(source: bytes, start: int, end: int, spans: list[Span]) -> bytes:
    """source[start:end] with the given spans inside it replaced."""
    pieces: list[bytes] = []
    for span in spans:
        pieces += (source[start : span.start], b"[REDACTED:" + span.kind.encode() + b"]")
        start = span.end
    pieces.append(source[start:end])
    return b"".join(pieces)


def _spread(pieces: list[bytes], spans: list[Span]) -> list[str]:
    """Apply spans of the joined buffer to the pieces it was joined from. A span never crosses the separator."""
    out: list[str] = []
    offset = upcoming = 0
    for piece in pieces:
        end = offset + len(piece)
        own: list[Span] = []
        while upcoming < len(spans) and spans[upcoming].start < end:
            span = spans[upcoming]
            own.append(Span(span.start - offset, span.end - offset, span.kind))
            upcoming += 1
        out.append((_replaced(piece, 0, len(piece), own) if own else piece).decode("utf-8", "surrogatepass"))
        offset = end + len(SEPARATOR)
    return out
