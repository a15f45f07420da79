"""How many calls may start in a minute. Pure: the clock is passed in."""

from __future__ import annotations

from collections import deque

from sandbox.errors import Refused

WINDOW_SECONDS = 60.0


class TooFast(Refused):
    """The calls of this minute are used up: `limit` were made, in `wait` seconds there may be another."""

    code = "rate_limited"

    def __init__(self, limit: int, wait: float) -> None:
        super().__init__("rate limit")
        self.limit, self.wait = limit, wait


class TooMany(Refused):
    """Too many calls wait for a worker already."""

    code = "too_many_calls"


class GivenUp(Refused):
    """The client gave the call up before it was let in."""

    code = "cancelled"


class Pace:
    """A sliding window: at most `limit` calls in any 60 seconds."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: deque[float] = deque()

    def take(self, now: float) -> None:
        """Count a call at `now` (seconds, monotonic). Raises TooFast when it may not start, and does not count it."""
        while self._taken and now - self._taken[0] >= WINDOW_SECONDS:
            self._taken.popleft()
        if len(self._taken) >= self.limit:
            raise TooFast(self.limit, WINDOW_SECONDS - (now - self._taken[0]))
        self._taken.append(now)
