"""The one vocabulary for what became of a call: a sentence that says it, and a remedy, for every kind of outcome.

Runs in the front; pure. Built from our own facts only, never from tool text.
"""

from __future__ import annotations

import errno
import signal
from dataclasses import dataclass

from runner.admission import Shortage
from sandbox.types import Kind, Outcome

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Words:
    """code: stable, machine readable. message: what happened. remedy: what to do next."""

    code: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Limit:
    what: str  # "The tool was stopped: " + what
    setting: str  # the name in [limits]
    unit: str
    narrow: str


_LIMITS: dict[Kind, _Limit] = {
    Kind.TIMED_OUT: _Limit("it ran longer than allowed", "wall_seconds", "s", "Ask for less at once: a smaller path, a filter"),
    Kind.OUT_OF_CPU: _Limit("it used more processor time than allowed", "cpu_seconds", "s", "Ask for less at once: a smaller path, a filter"),
    Kind.OUT_OF_MEMORY: _Limit("it used more memory than allowed", "memory_mb", "MiB", "Ask for less at once: fewer or smaller files"),
    Kind.TOO_MANY_PROCESSES: _Limit("it started more processes than allowed", "processes", "processes", "Ask for less parallel work, e.g. a jobs argument of 1"),
    Kind.TOO_MANY_FILES: _Limit("it had more files open than allowed", "open_files", "files", "Name fewer files at once"),
    Kind.TOO_MUCH_OUTPUT: _Limit("it printed more than allowed", "output_mb", "MiB", "Narrow the request so that it prints less"),
    Kind.FILE_TOO_LARGE: _Limit("it wrote a file larger than allowed", "file_mb", "MiB", "Ask for less at once"),
    Kind.TEMP_FULL: _Limit("it filled its temporary space", "tmp_mb", "MiB", "Ask for less at once"),
}  # fmt: skip


def explain(outcome: Outcome) -> Words:
    """Words for any outcome but a normal exit (for which the exit code speaks)."""
    detail = f" {outcome.detail}" if outcome.detail else ""
    code = outcome.kind.value
    if outcome.kind in _LIMITS:
        return _limit(outcome, _LIMITS[outcome.kind])
    match outcome.kind:
        case Kind.SIGNALLED:
            return _signalled(outcome)
        case Kind.CANCELLED:
            return Words(
                code,
                "The call was cancelled and the tool was stopped.",
                "Call it again if it is still wanted.",
            )
        case Kind.SETUP_FAILED:
            name = (
                errno.errorcode.get(outcome.errno, str(outcome.errno)) if outcome.errno else "no error number"
            )
            step = outcome.step or "not named"
            return Words(
                code,
                f"The cage could not be built, so the tool did not run: step {step} failed ({name}).{detail}",
                "Nothing was executed. Ask the operator to run `toolcage doctor` on this host.",
            )
        case Kind.UNKNOWN:
            return Words(
                code,
                "It is unknown what became of this call: no complete report of it arrived. The tool may have run and may "
                f"have had effects. This is not success.{detail}",
                "Do not repeat it blindly: first find out whether it had effects.",
            )
        case _:
            return Words(code, f"The tool ended with exit code {outcome.exit_code}.", "See what it printed.")


def no_room(code: str, missing: Shortage, waited: float) -> Words:
    """Words for a call that this machine had no room for. waited: seconds."""
    ending = f"This call waited {waited:.0f} s for its turn and was not run."
    again = "Call again in a few seconds, with fewer calls at the same time"
    if missing.is_lasting:
        return Words(
            code,
            f"A call of this tool may use {missing.need:,} MiB (memory_mb + tmp_mb), and the limit for all calls on "
            f"this machine together is {missing.limit:,} MiB. This call was not run, and none of this tool will be.",
            "Use another tool. Ask the operator to lower memory_mb or tmp_mb under [limits] for this tool, or to raise "
            "max_machine_memory_mb under [server].",
        )
    match missing.bound:
        case "max_machine_calls":
            return Words(
                code,
                f"{missing.current} calls of this user's Toolcage servers run on this machine, and the limit is "
                f"{missing.limit}. {ending}",
                f"{again}.",
            )
        case "max_machine_memory_mb":
            return Words(
                code,
                f"The calls that run on this machine may use {missing.current:,} MiB together, and this one "
                f"{missing.need:,} MiB more; the limit is {missing.limit:,} MiB. {ending}",
                f"{again}; or ask the operator to lower memory_mb under [limits] for this tool.",
            )
        case "available_memory_mb":
            return Words(
                code,
                f"This machine has {missing.current:,} MiB of memory available, and a call needs at least "
                f"{missing.limit:,} MiB to start. {ending}",
                "Call again in a few seconds; if it stays so, ask the operator to end other programs.",
            )


def _limit(outcome: Outcome, limit: _Limit) -> Words:
    name = outcome.limit or limit.setting
    allowed = "" if outcome.limit_value is None else f" = {_number(outcome.limit_value)} {limit.unit}"
    used = _used(outcome)
    measured = f"; it had used {used}" if used else ""
    return Words(
        outcome.kind.value,
        f"The tool was stopped: {limit.what}. Limit {name}{allowed}{measured}. What it printed until then is incomplete.",
        f"{limit.narrow}; or ask the operator to raise {name} under [limits] for this tool.",
    )


def _used(outcome: Outcome) -> str:
    """The measured usage that belongs to the limit, "" where nothing is measured."""
    usage = outcome.usage
    match outcome.kind:
        case Kind.TIMED_OUT:
            return f"{usage.wall_seconds:.1f} s"
        case Kind.OUT_OF_CPU:
            return f"{usage.cpu_seconds:.1f} s"
        case Kind.OUT_OF_MEMORY:
            return f"at least {usage.memory_bytes / _MIB:.0f} MiB" if usage.memory_bytes else ""
        case Kind.TOO_MANY_PROCESSES:
            return f"at least {usage.processes}" if usage.processes else ""
        case Kind.TOO_MANY_FILES:
            return f"at least {usage.open_files}" if usage.open_files else ""
        case Kind.TOO_MUCH_OUTPUT:
            return f"{outcome.stdout_total + outcome.stderr_total:,} bytes"
        case Kind.TEMP_FULL:
            return f"{usage.tmp_bytes / _MIB:.0f} MiB" if usage.tmp_bytes else ""
        case _:
            return ""


def _signalled(outcome: Outcome) -> Words:
    number = outcome.signal or 0
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    if name == "SIGSYS":
        return Words(
            outcome.kind.value,
            "The tool was killed by the system call filter (signal 31, SIGSYS): it used a call that its cage forbids.",
            "This tool, or this way of using it, does not work in the cage. Ask the operator.",
        )
    return Words(
        outcome.kind.value,
        f"The tool was ended by signal {number} ({name}), not by its own exit. What it printed is incomplete.",
        "Check its input; if it happens again, tell the operator.",
    )


def _number(value: float) -> str:
    return f"{value:g}" if value != int(value) else str(int(value))
