"""The words of a command: fixed text, or one placeholder. Parsed once, used by the checks and by the catalog.

A placeholder is a whole word ("{path}") or the value of a flag ("--max-count={count}", "-L{lines}"). It can never be a
part of another text, so a value cannot grow beyond its place. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]{0,39})\}")
_FLAGGED = re.compile(r"(--[A-Za-z0-9][A-Za-z0-9_.-]*=[^{}]*|-[A-Za-z])\{([a-z][a-z0-9_]{0,39})\}")
_DOUBLED = re.compile(r"\{\{([a-z][a-z0-9_]{0,39})\}\}")

ENDS_OPTIONS = ("--", "--end-of-options")  # the second is git's: it still tells revisions from paths


@dataclass(frozen=True, slots=True)
class Word:
    """One element of a command: `text` alone, or `text` followed by the value of `param`."""

    text: str
    param: str | None = None

    @property
    def whole(self) -> bool:
        """The value stands alone, so a value that starts with "-" would be a flag."""
        return self.param is not None and not self.text

    @property
    def needs_text(self) -> bool:
        """An empty value would change what is read: no operand, or a short flag that takes the next word."""
        return self.param is not None and not self.text.startswith("--")


def parse(word: str) -> Word:
    """Raises ValueError for a placeholder that is neither a whole word nor the value of a flag."""
    if found := _PLACEHOLDER.fullmatch(word):
        return Word("", found[1])
    if found := _FLAGGED.fullmatch(word):
        return Word(found[1], found[2])
    if _PLACEHOLDER.search(_DOUBLED.sub("", word)):
        raise ValueError(
            'a placeholder is a whole word or follows "--flag=" or "-x"; write {{name}} for the text {name}'
        )
    return Word(_DOUBLED.sub(r"{\1}", word))


def fixed_part(command: Iterable[str]) -> tuple[tuple[str, ...], tuple[Word, ...]]:
    """(words that are the same in every call, the rest): a plan's command and the template of a call's argv."""
    words = [parse(word) for word in command]
    end = next((i for i, word in enumerate(words) if word.param is not None), len(words))
    return tuple(word.text for word in words[:end]), tuple(words[end:])
