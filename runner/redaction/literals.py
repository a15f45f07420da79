"""Finds many literals in one pass. Runs in the front; the one user of the Aho-Corasick matcher (docs/decisions)."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from ahocorasick_rs import BytesAhoCorasick, Implementation

Hit = tuple[int, int, int]  # number of the literal, start, end
_BY_START = itemgetter(1)


class Literals:
    """A fixed set of byte strings. The time of `find` grows with the text and with what it finds, nothing else."""

    def __init__(self, words: Iterable[bytes]) -> None:
        self.words = tuple(dict.fromkeys(words))
        # The largest and fastest of three tables: below 1 MiB for all rules together.
        self._table = BytesAhoCorasick(self.words, implementation=Implementation.DFA) if self.words else None

    def find(self, text: bytes) -> list[Hit]:
        """Every occurrence of every literal, also overlapping ones, by rising start, the longest first."""
        if self._table is None:
            return []
        hits: list[Hit] = self._table.find_matches_as_indexes(text, overlapping=True)
        hits.reverse()  # they come by rising end
        hits.sort(key=_BY_START)
        return hits
