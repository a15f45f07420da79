"""The view: text as a reader's eye joins it, with every byte mapped back to where it stands.

Runs in the front; pure. Escape sequences, zero-width and control characters that split a token are left out, `\\u0041`,
`\\x41`, `\\/` and `%41` are decoded, so that rules match what a person (or a model) would read. Spans found in the view
are mapped to the original bytes, split characters included.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence

from runner.redaction.literals import Literals

_MOST_PIECES = 4_500_000  # of 12 bytes each; 8 MiB of UTF-16 have one for two bytes
SEPARATOR = b"\n\xff\n"  # 0xff occurs in no UTF-8 text, so nothing that is scanned can forge or cross it

_SPLITTER = re.compile(
    rb"\x1b\](?P<osc>[^\x07\x1b\n]{0,4096}+)(?:\x07|\x1b\\)?"
    rb"|(?P<plain>\x1b\[[0-9;]{0,64}+[mK])"
    rb"|\x1b\[[0-?]{0,64}+[ -/]{0,8}+[@-~]|\xc2\x9b[0-?]{0,64}+[ -/]{0,8}+[@-~]|\x1b[()][0-9A-Z]"
    rb"|(?P<back>\x08)|(?P<wide>\x00)(?=[\t\n\r -~]\x00)|(?P<nul>\x00++)|[\x01-\x07\x0b\x0c\x0e-\x1f\x7f]++|\xc2[\x80-\x9f\xad]|\xe1\xa0\x8e"
    rb"|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xef\xb8[\x80-\x8f]|\xcd\x8f"
    rb"|(?:\\(?:u00|x|U000000|[ux]\{)|%|&\#x)(?P<code>[2-7][0-9a-fA-F])(?:(?<=\{..)\})?(?:(?<=\#x..);)?|&\#(?P<decimal>3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6]);|=(?P<quoted>3D)|\\(?P<slash>/)|\\(?P<octal>1[0-7][0-7]|0[4-7][0-7])"
).match
_SGR = re.compile(rb"\x1b\[[0-9;]{0,64}+[mK]")
_BEGINS = (
    *(bytes((byte,)) for byte in (*range(9), 11, 12, *range(14, 32), 127)),
    *(b"\xc2" + bytes((byte,)) for byte in (*range(0x80, 0xA0), 0xAD)),
    *(b"\xe2\x80" + bytes((byte,)) for byte in (*range(0x8B, 0x90), *range(0xAA, 0xAF))),
    *(b"\xe2\x81" + bytes((byte,)) for byte in range(0xA0, 0xB0)),
    *(b"\xef\xb8" + bytes((byte,)) for byte in range(0x80, 0x90)),
    b"\xe1\xa0\x8e", b"\xef\xbb\xbf", b"\xcd\x8f", b"\\u00", b"\\x", b"\\U000000", b"\\u{", b"\\/", b"\\1", b"\\0", b"&#", b"=3D",
    *(b"%" + bytes((byte,)) for byte in b"234567"),
)  # fmt: skip


class ViewTooLarge(Exception):
    """More pieces than a view may have. The text must be withheld."""


class Viewer:
    """Makes views; compiled once."""

    def __init__(self) -> None:
        self._begins = Literals(_BEGINS)

    def see(self, source: bytes) -> View:
        """The view of `source`."""
        # where something may begin; there may be one for each byte of 8 MiB
        places = array("I", (start for _, start, _ in self._begins.each(source)))
        if not places:
            return View(source, source)
        if b"\x1b[" in source and next(self._begins.each(text := _SGR.sub(b"", source)), None) is None:
            return View(source, text, plain=True)  # colours only: positions are mapped when one is asked for
        return View(source, None, places)


class View:
    """`text`: what rules see. `original(start, end)`: the bytes that a span of it covers.

    `incomplete`: something was left out that may be part of a token, not just decoded.
    """

    __slots__ = ("_pending", "_starts", "_targets", "_widths", "incomplete", "text")

    def __init__(
        self, source: bytes, text: bytes | None, places: Sequence[int] = (), *, plain: bool = False
    ) -> None:
        # Arrays: as lists of objects they would take ten times as much, and there may be millions.
        self._starts = array("I")  # where each piece begins in the view …
        self._targets = array("I")  # … where in the source …
        self._widths = array("I")  # … and for what was decoded, how many source bytes its one byte stands for
        self._pending = source if plain else b""
        self.incomplete = False
        self.text = self._join(source, places) if text is None else text

    def _join(self, source: bytes, places: Sequence[int]) -> bytes:
        pieces = bytearray()
        asides: list[tuple[int, bytes]] = []
        length = last = 0
        for place in places:
            hit = _SPLITTER(source, place) if place >= last else None
            if not hit:
                continue
            start, end = hit.span()
            # Overstrike ("x, backspace, x" in manual pages) takes the struck character with it.
            stop = start - 1 if hit["back"] is not None and start > last else start
            if stop > last:
                length = self._add(pieces, source[last:stop], (length, last, 0))
            last = end
            seen = _decoded(hit)
            if seen is not None:
                length = self._add(pieces, seen, (length, start, end - start))
            elif hit["plain"] is None:
                self.incomplete = True
            if hit["osc"]:
                asides.append((hit.start("osc"), hit["osc"]))
        if last < len(source):
            length = self._add(pieces, source[last:], (length, last, 0))
        for target, payload in asides:  # a title or a link is shown too: match it, apart from the text
            length = self._add(pieces, SEPARATOR, (length, target, 0))
            length = self._add(pieces, payload, (length, target, 0))
        return bytes(pieces)

    def _add(self, pieces: bytearray, piece: bytes, where: tuple[int, int, int]) -> int:
        start, target, width = where
        if len(self._starts) >= _MOST_PIECES:
            raise ViewTooLarge
        pieces += piece
        self._starts.append(start)
        self._targets.append(target)
        self._widths.append(width)
        return start + len(piece)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Source span of the view span [start, end), end > start."""
        if self._pending:
            self._map()
        if not self._starts:
            return start, end
        first = bisect_right(self._starts, start) - 1
        begin = self._targets[first] + (0 if self._widths[first] else start - self._starts[first])
        final = bisect_right(self._starts, end - 1) - 1
        width = self._widths[final]
        return begin, self._targets[final] + (width or end - self._starts[final])

    def _map(self) -> None:
        """The pieces between colours."""
        length = last = 0
        for hit in _SGR.finditer(self._pending):
            if hit.start() > last:
                self._starts.append(length)
                self._targets.append(last)
                length += hit.start() - last
            last = hit.end()
        self._starts.append(length)
        self._targets.append(last)
        self._widths = array("I", bytes(4 * len(self._starts)))
        self._pending = b""


def _decoded(hit: re.Match[bytes]) -> bytes | None:
    """The one byte that is read in the place of `hit`; None where nothing is."""
    if hit["code"] is not None:
        return bytes((int(hit["code"], 16),))
    if hit["octal"] is not None:
        return bytes((int(hit["octal"], 8),))
    if hit["decimal"] is not None:
        return bytes((int(hit["decimal"]),))
    if hit["quoted"] is not None:  # quoted-printable, as mail has it
        return b"="
    if hit["slash"] is not None:
        return b"/"
    return b"\n" if hit["nul"] is not None else None
