"""What is hidden, and what looking for it may cost. Runs in the front; pure but for the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple


class Span(NamedTuple):
    """What to hide: bytes [start, end) of the scanned text, and the word that takes their place."""

    start: int
    end: int
    kind: str


VALUE_KIND = "secret-value"  # of the operator's known values
Found = tuple[Span | None, int]  # what stands at an anchor, and how far was looked
Shape = Callable[[bytes, int, int], Found]  # of a text, and where the anchor begins and ends in it


class BudgetSpent(Exception):
    """More places to verify than the text may cost. The text must be withheld."""


class Budget:
    """Places that one scan may verify: one for 4 bytes on top of a base. Ordinary text needs one for 100, a table of nothing
    but PASS and FAIL one for 5. And processor time, until `deadline` (time.thread_time).
    """

    __slots__ = ("deadline", "left")

    def __init__(self, length: int, deadline: float = math.inf) -> None:
        self.left = 4_000 + length // 4
        self.deadline = deadline

    def spend(self) -> None:
        """Take one; raises BudgetSpent when none or no time is left."""
        self.left -= 1
        if self.left < 0 or (not self.left & 1023 and time.thread_time() > self.deadline):
            raise BudgetSpent
