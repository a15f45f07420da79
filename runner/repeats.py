"""How often a very call was refused in a row: a model in a loop gets the long answer twice, then a short one.

Runs in the front; pure, the clock is passed in. Keeps digests under a key of this process, never arguments.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Mapping

import orjson

SHORT_FROM = 3  # this refusal of a call, and each one after it, is one line
FORGET_SECONDS = 300.0  # a model whose memory was cut meanwhile must be told the reason again
_REMEMBERED = 128  # calls


class Repeats:
    """The last refused calls: same tool, same arguments, same reason."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._seen: OrderedDict[bytes, tuple[str, int, float]] = OrderedDict()  # reason, times, when last

    def count(self, tool: str, arguments: Mapping[str, object] | None, code: str, now: float) -> int:
        """Count a refusal at `now` (seconds, monotonic): 1 for the first. One that is long past does not count."""
        key = self._digest(tool, arguments)
        reason, times, last = self._seen.pop(key, (code, 0, now))
        times = times + 1 if reason == code and now - last < FORGET_SECONDS else 1
        self._seen[key] = (code, times, now)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return times

    def let_in(self, tool: str, arguments: Mapping[str, object] | None) -> None:
        """The call was not refused this time: what was before does not count."""
        if self._seen:
            self._seen.pop(self._digest(tool, arguments), None)

    def _digest(self, tool: str, arguments: Mapping[str, object] | None) -> bytes:
        call = orjson.dumps([tool, arguments or {}], option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(call, key=self._key, digest_size=16).digest()
