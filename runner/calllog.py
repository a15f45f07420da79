"""One line per call on stderr, and the same as JSON lines in a file if the operator wants one.

Runs in the front. Says which tool, what became of it, how much and how long; never arguments, never output. A log
that cannot be written never breaks a call.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from sandbox.errors import Refused
from sandbox.types import Outcome

_LINES, _MINUTE = 60, 60.0  # of one outcome that costs a client nothing, in seconds
_ODD = re.compile(r"[^A-Za-z0-9_.-]")


class LogRefused(Refused):
    """The call log cannot be opened as asked."""

    code = "log_refused"


def tool_word(name: str) -> str:
    """A tool name as it may stand in a log line: one word of plain characters, at most 64."""
    return _ODD.sub("_", name[:64]) or "_"


def line(tool: str, outcome: str, exit_code: int | None, size: int, milliseconds: float) -> str:
    """`tool NAME OUTCOME [exit N] BYTES bytes MS ms`, without a line end."""
    code = "" if exit_code is None else f" exit {exit_code}"
    return f"tool {tool_word(tool)} {tool_word(outcome)}{code} {size} bytes {milliseconds:.0f} ms"


class JsonLog:
    """A file of JSON lines, opened once at start-up: appended to, mode 0600, a symbolic link refused.

    Raises LogRefused.
    """

    def __init__(self, path: str) -> None:
        flags = (
            os.O_WRONLY
            | os.O_APPEND
            | os.O_CREAT
            | os.O_CLOEXEC
            | os.O_NOFOLLOW
            | os.O_NONBLOCK
            | os.O_NOCTTY
        )
        remedy = "Give a path of a regular file in a folder that the user who runs this server can write."
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except (OSError, ValueError) as error:
            code = error.errno if isinstance(error, OSError) else None
            reason = (
                "it is a symbolic link"
                if code == errno.ELOOP
                else os.strerror(code)
                if code
                else "not a valid path"
            )
            raise LogRefused(f"The call log {path!r} cannot be opened: {reason}.", remedy) from error
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.close(self._descriptor)
            raise LogRefused(f"The call log {path!r} is not a regular file.", remedy)

    def write(self, record: dict[str, object]) -> bool:
        """Append one line in one write; False when that failed (disk full, descriptor gone)."""
        data = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        try:
            return os.write(self._descriptor, data) == len(data)
        except OSError:
            return False

    def close(self) -> None:
        """Close the file; later writes are lost silently."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass(slots=True)
class _Minute:
    """Lines about calls that were not run, of one outcome: since when, how many were written and how many were not."""

    begun: float
    written: int = 0
    dropped: int = 0


class CallLog:
    """Writes both. `say` takes one line for stderr; `digest` is the policy's; `now` gives aware UTC times, `clock`
    monotonic seconds.

    Calls that were let in are bounded by the policy and all logged. Those that were not, refused or given up before, cost
    a client nothing: of each outcome 60 in a minute are logged, then it is said that the rest is counted, and later how
    many.
    """

    def __init__(
        self,
        say: Callable[[str], object],
        json_log: JsonLog | None = None,
        digest: str = "",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._json, self._digest, self._now, self._clock = say, json_log, digest, now, clock
        self._minutes: dict[str, _Minute] = {}

    def bug(self, frames: traceback.StackSummary, kind: type[BaseException] | None) -> None:
        """A bug of ours: where, and what kind. Never its message: that may quote arguments or output."""
        where = " < ".join(
            f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames[-6:])
        )
        self._say(f"toolcage: internal error {kind.__name__ if kind else ''} at {where}")

    def ended(
        self, tool: str, outcome: Outcome | Refused | None, size: int, seconds: float, redactions: int = 0
    ) -> None:
        """Log one call. outcome: a Refused never started; None for a call that needs no worker. size: bytes sent."""
        exit_code: int | None = None
        word = "ok"
        if isinstance(outcome, Outcome):
            word, exit_code = outcome.kind.value, outcome.exit_code
        elif outcome is not None:
            word = outcome.code
        self._tell_dropped(self._clock() - _MINUTE)
        if isinstance(outcome, Refused) and not self._may_write(word):
            return
        milliseconds = seconds * 1000
        self._say(line(tool, word, exit_code, size, milliseconds))
        record: dict[str, object] = {
            "tool": tool_word(tool),
            "outcome": word,
            "bytes": size,
            "ms": round(milliseconds, 1),
            "redactions": redactions,
        }
        if exit_code is not None:
            record["exit_code"] = exit_code
        self._write(record)

    def close(self) -> None:
        """Say what was dropped and not told yet. More may be logged after this."""
        self._tell_dropped(math.inf)

    def _may_write(self, word: str) -> bool:
        minute = self._minutes.setdefault(word, _Minute(self._clock()))
        if minute.written < _LINES:
            minute.written += 1
            return True
        if not minute.dropped:
            self._say(
                f"toolcage: {_LINES} calls ended with {word} in a minute; more of them are only counted"
            )
            self._write({"outcome": word, "dropped": "counted from now on"})
        minute.dropped += 1
        return False

    def _tell_dropped(self, before: float) -> None:
        """Of the minutes that began before that time; they are over."""
        for word, minute in [item for item in self._minutes.items() if item[1].begun <= before]:
            del self._minutes[word]
            if minute.dropped:
                self._say(f"toolcage: {minute.dropped} more calls ended with {word} and were not logged")
                self._write({"outcome": word, "dropped": minute.dropped})

    def _write(self, facts: dict[str, object]) -> None:
        if self._json is not None:
            when = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
            self._json.write({"timestamp": when, **facts, "policy": self._digest})
