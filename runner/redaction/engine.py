"""Takes secrets out of text and of parsed JSON: `Redactor.text` and `Redactor.value`.

Runs in the front, on everything a tool printed, before anything is cut, stored or sent. Known values, known token
formats and values beside secret names become [REDACTED:kind]. Fails closed: on a spent budget, an oversized text or
an error of its own, the text is withheld. Never logs, never keeps what it saw, never says where or how long.

What it promises is protection against accidental disclosure; a tool that disguises a secret gets past it.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from operator import itemgetter

from runner.redaction import encoded, shapes
from runner.redaction.document import flatten, listed
from runner.redaction.known import KnownFinder
from runner.redaction.pairs import PairFinder
from runner.redaction.rule import Rule
from runner.redaction.rules import TOKEN_RULES
from runner.redaction.spans import VALUE_KIND, Budget, Span
from runner.redaction.spellings import literals
from runner.redaction.tokens import TokenFinder
from runner.redaction.values import SecretValue, is_number
from runner.redaction.view import SEPARATOR, Viewer

MAX_BYTES = 32 * 1024 * 1024  # about two seconds; beyond it the text is withheld
_BASE_SECONDS, _SECONDS_PER_BYTE = 0.5, 0.5e-6  # half a second, and half a second for each MB
MAX_PASSES = 4  # a pass that changes nothing ends it: what was returned stays as it is when redacted again
MAX_LAYERS = 2  # base64 in base64; whoever encodes more often hides on purpose
WITHHELD = "withheld"  # the kind that counts a text which could not be checked
WITHHELD_TEXT = (
    "[WITHHELD: this output could not be checked for secrets within its bounds, so it is not shown.]"
)
_START = itemgetter(0)
_FLAG_IN_LIST = SEPARATOR + b"-"

Counts = dict[str, int]


class _Unsettled(Exception):
    """Redacted text that still changes when redacted again."""


@dataclass(frozen=True, slots=True)
class _Finders:
    viewer: Viewer
    tokens: TokenFinder
    pairs: PairFinder
    known: KnownFinder


class Redactor:
    """Redacts with the operator's `values`, the built-in rules and the operator's own, minus `exempt` kinds or names.

    `exempt` never covers known values or private keys. Nothing is compiled before the first use (about 5 ms).
    """

    def __init__(
        self,
        values: tuple[SecretValue, ...],
        exempt: frozenset[str] = frozenset(),
        rules: tuple[Rule, ...] = (),
    ) -> None:
        self._values = values
        self._numbers = frozenset(one.value for one in values if is_number(one.value))
        self._rules = rules
        self._exempt = frozenset(word.lower() for word in exempt) - {VALUE_KIND, "private-key", WITHHELD}
        self._finders: _Finders | None = None

    def __repr__(self) -> str:
        return f"Redactor({len(self._values)} values)"

    def exempting(self, exempt: frozenset[str]) -> Redactor:
        """This redactor with further exemptions; shares what is compiled. The same object when there are none."""
        if exempt <= self._exempt:
            return self
        other = Redactor(self._values, self._exempt | exempt, self._rules)
        ready = self._ready()
        other._finders = _Finders(ready.viewer, ready.tokens, PairFinder(other._exempt), ready.known)
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
                return (source.decode("utf-8", "surrogatepass") if total else text), dict(total)
            total.update(span.kind for span in spans)
            source = _replaced(source, 0, len(source), spans)
        raise _Unsettled

    def _settle_value(self, value: object) -> tuple[object, Counts]:
        strings = listed(value, self._exempt, self._numbers)
        if strings is not None:
            joined = _joined(strings)
            if _FLAG_IN_LIST not in joined and not self._scan(joined, _deadline(len(joined))):
                return value, {}
        total: Counter[str] = Counter()
        deadline = 0.0
        for _ in range(MAX_PASSES):
            flat = flatten(value, self._exempt, self._numbers)
            joined = _joined(flat.strings)
            deadline = deadline or _deadline(len(joined))
            spans = self._scan(joined, deadline) if flat.strings else []
            total.update(flat.hidden)
            total.update(span.kind for span in spans)
            if not spans and not flat.hidden:
                return value, dict(total)
            value = flat.rebuild(_spread(joined.split(SEPARATOR), spans))
        raise _Unsettled

    def _ready(self) -> _Finders:
        if self._finders is None:
            tokens = TokenFinder((*self._rules, *TOKEN_RULES))
            known = KnownFinder(literals(self._values))
            self._finders = _Finders(Viewer(), tokens, PairFinder(self._exempt), known)
        return self._finders

    def _scan(self, source: bytes, deadline: float) -> list[Span]:
        """Disjoint spans of `source`, rising."""
        if len(source) > MAX_BYTES:
            raise _Unsettled
        finders = self._ready()
        view = finders.viewer.see(source)
        found = [
            Span(*view.original(span.start, span.end), span.kind)
            for span in _spans(finders, view.text, self._exempt, deadline)
        ]
        if view.incomplete:  # what was left out may begin a token: the "g" of "\x1b[ghp_"
            found += _beside(found, _spans(finders, source, self._exempt, deadline))
        if view.text is not source:  # a value may itself hold what the view decodes
            found += finders.known.find(source, Budget(len(source), deadline))
        return _merged(source, found)


def _deadline(length: int) -> float:
    """Processor time at which the checking of one text ends: ordinary text needs a tenth of this."""
    return time.thread_time() + _BASE_SECONDS + length * _SECONDS_PER_BYTE


def _spans(
    finders: _Finders, text: bytes, exempt: frozenset[str], deadline: float, layer: int = 0
) -> list[Span]:
    budget = Budget(len(text), deadline)
    spans = finders.tokens.find(text, budget) + finders.pairs.find(text, budget) + shapes.discord_tokens(text)
    kept = [span for span in spans if span.kind not in exempt] if exempt else spans
    kept += finders.known.find(text, budget)
    if layer < MAX_LAYERS and (runs := encoded.runs(text)):
        starts, at = [], 0
        for run in runs:
            starts.append(at)
            at += len(run.content) + len(SEPARATOR)
        content = SEPARATOR.join(run.content for run in runs)
        for span in _spans(finders, content, exempt, deadline, layer + 1):
            run = runs[bisect_right(starts, span.start) - 1]
            kept.append(Span(run.start, run.end, span.kind))
    return kept


def _beside(found: list[Span], others: list[Span]) -> list[Span]:
    """Those of `others` that touch none of `found`."""
    taken = sorted(found)
    starts = [span.start for span in taken]
    out: list[Span] = []
    for span in others:
        place = bisect_right(starts, span.start)
        before, after = taken[place - 1 : place], taken[place : place + 1]
        if not (before and before[0].end > span.start) and not (after and after[0].start < span.end):
            out.append(span)
    return out


def _joined(strings: list[str]) -> bytes:
    """All strings as one text. None of them can hold the separator: it is not UTF-8."""
    try:
        "".join(strings).encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can carry
        return SEPARATOR.join(string.encode("utf-8", "surrogatepass") for string in strings)
    return "\n\udcff\n".join(strings).encode("utf-8", "surrogateescape")


def _merged(source: bytes, spans: list[Span]) -> list[Span]:
    """Overlapping spans joined (the first one's kind), ends moved outwards to whole UTF-8 characters."""
    out: list[Span] = []
    for start, end, kind in sorted(spans, key=_START):  # of two at one place the more telling one comes first
        first, last = start, end
        while first > 0 and source[first] & 0xC0 == 0x80:
            first -= 1
        while last < len(source) and source[last] & 0xC0 == 0x80:
            last += 1
        if out and first < out[-1].end:
            out[-1] = Span(out[-1].start, max(last, out[-1].end), out[-1].kind)
        else:
            out.append(Span(first, last, kind))
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
