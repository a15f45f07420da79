"""One line per call on stderr, and the same as JSON lines in a file if the operator wants one.

Runs in the front. Says which tool, what became of it, how much and how long; never arguments, never output. A log
that cannot be written never breaks a call.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import traceback
from collections.abc import Callable
from datetime import UTC, datetime

import orjson

from sandbox.errors import Refused
from sandbox.types import Outcome

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


class CallLog:
    """Writes both. `say` takes one line for stderr; `digest` is the policy's; `now` gives aware UTC times."""

    def __init__(
        self,
        say: Callable[[str], object],
        json_log: JsonLog | None = None,
        digest: str = "",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._say, self._json, self._digest, self._now = say, json_log, digest, now

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
        milliseconds = seconds * 1000
        self._say(line(tool, word, exit_code, size, milliseconds))
        if self._json is None:
            return
        record: dict[str, object] = {
            "timestamp": self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "tool": tool_word(tool),
            "outcome": word,
            "bytes": size,
            "ms": round(milliseconds, 1),
            "redactions": redactions,
            "policy": self._digest,
        }
        if exit_code is not None:
            record["exit_code"] = exit_code
        self._json.write(record)
