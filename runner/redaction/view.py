"""The view: text as a reader's eye joins it, with every byte mapped back to where it stands.

Runs in the front; pure. Escape sequences, zero-width and control characters that split a token are left out, `\\u0041`
and `\\x41` are decoded, so that rules match what a person (or a model) would read. Spans found in the view are mapped
to the original bytes, split characters included.
"""

from __future__ import annotations

import re
from bisect import bisect_right

SEPARATOR = b"\n\xff\n"  # 0xff occurs in no UTF-8 text, so nothing that is scanned can forge or cross it

_SPLITTER = re.compile(
    rb"\x1b\](?P<osc>[^\x07\x1b\n]{0,4096}+)(?:\x07|\x1b\\)?"
    rb"|\x1b\[[0-?]{0,64}+[ -/]{0,8}+[@-~]|\xc2\x9b[0-?]{0,64}+[ -/]{0,8}+[@-~]|\x1b[()][0-9A-Z]"
    rb"|(?P<back>\x08)|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xe1\xa0\x8e"
    rb"|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xef\xb8[\x80-\x8f]|\xcd\x8f"
    rb"|\\(?:u00|x)(?P<code>[2-7][0-9a-fA-F])"
)


class View:
    """`text`: what rules see. `original(start, end)`: the bytes that a span of it covers.

    `incomplete`: something was left out, not just decoded.
    """

    __slots__ = ("_starts", "_targets", "_widths", "incomplete", "text")

    def __init__(self, source: bytes) -> None:
        self._starts: list[int] = []  # where each piece begins in the view …
        self._targets: list[int] = []  # … where in the source …
        self._widths: list[
            int
        ] = []  # … and for a decoded escape how many source bytes its one byte stands for
        self.incomplete = False
        self.text = self._join(source)

    def _join(self, source: bytes) -> bytes:
        pieces: list[bytes] = []
        asides: list[tuple[int, bytes]] = []
        length = last = 0

        def add(piece: bytes, target: int, width: int) -> int:
            pieces.append(piece)
            self._starts.append(length)
            self._targets.append(target)
            self._widths.append(width)
            return length + len(piece)

        for hit in _SPLITTER.finditer(source):
            start = hit.start()
            # Overstrike ("x, backspace, x" in manual pages) takes the struck character with it.
            stop = start - 1 if hit["back"] is not None and start > last else start
            if stop > last:
                length = add(source[last:stop], last, 0)
            if hit["code"] is not None:
                length = add(bytes((int(hit["code"], 16),)), start, hit.end() - start)
                last = hit.end()
                continue
            self.incomplete = True
            if hit["osc"]:
                asides.append((hit.start("osc"), hit["osc"]))
            last = hit.end()
        if not pieces and not asides and last == 0:
            return source
        if last < len(source):
            length = add(source[last:], last, 0)
        for (
            target,
            payload,
        ) in asides:  # a title or a link is shown to somebody too: match it, apart from the text
            length = add(SEPARATOR, target, 0)
            length = add(payload, target, 0)
        return b"".join(pieces)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Source span of the view span [start, end), end > start."""
        if not self._starts:
            return start, end
        first = bisect_right(self._starts, start) - 1
        begin = self._targets[first] + (0 if self._widths[first] else start - self._starts[first])
        final = bisect_right(self._starts, end - 1) - 1
        width = self._widths[final]
        return begin, self._targets[final] + (width or end - self._starts[final])
