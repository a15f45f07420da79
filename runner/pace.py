"""How many calls may start in a minute. Pure: the clock is passed in."""

from __future__ import annotations

from collections import deque

from sandbox.errors import Refused

WINDOW_SECONDS = 60.0


class TooFast(Refused):
    """The calls of this minute are used up."""

    code = "rate_limited"


class TooMany(Refused):
    """Too many calls wait for a worker already."""

    code = "too_many_calls"


class Pace:
    """A sliding window: at most `limit` calls in any 60 seconds."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: deque[float] = deque()

    def take(self, now: float) -> float:
        """Count a call at `now` (seconds, monotonic). Returns 0.0, or the seconds to wait when it may not start."""
        while self._taken and now - self._taken[0] >= WINDOW_SECONDS:
            self._taken.popleft()
        if len(self._taken) < self.limit:
            self._taken.append(now)
            return 0.0
        return WINDOW_SECONDS - (now - self._taken[0])
