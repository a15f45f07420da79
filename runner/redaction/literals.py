"""Finds many literals in one pass. Runs in the front; the one user of the Aho-Corasick matcher (docs/decisions)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter

from ahocorasick_rs import BytesAhoCorasick, Implementation

Hit = tuple[int, int, int]  # number of the literal, start, end
_WINDOW = 1 << 16  # bytes looked at together
_BY_START = itemgetter(1)


class Literals:
    """A fixed set of byte strings. The time of `find` grows with the text and with what it finds, nothing else."""

    def __init__(self, words: Iterable[bytes]) -> None:
        self.words = tuple(dict.fromkeys(words))
        self._longest = max(map(len, self.words), default=1)
        # The largest and fastest of three tables: below 1 MiB for all rules together.
        self._table = BytesAhoCorasick(self.words, implementation=Implementation.DFA) if self.words else None

    def each(self, text: bytes) -> Iterator[Hit]:
        """The hits of `find`, a window at a time: a hit is an object of 200 bytes, and there may be one for three bytes."""
        if len(text) <= _WINDOW:
            yield from self.find(text)
            return
        for begin in range(0, len(text), _WINDOW):
            part = text[begin : begin + _WINDOW + self._longest - 1]
            for number, start, end in self.find(part):
                if start < _WINDOW:
                    yield number, begin + start, begin + end

    def find(self, text: bytes) -> list[Hit]:
        """Every occurrence of every literal, also overlapping ones, by rising start, the longest first."""
        if self._table is None:
            return []
        hits: list[Hit] = self._table.find_matches_as_indexes(text, overlapping=True)
        hits.reverse()  # they come by rising end
        hits.sort(key=_BY_START)
        return hits
