"""From what was reported to what became of the call. Pure, front side. No complete, honest report is `unknown`.

The report comes from the keeper, which is our code, but it comes from inside the cage: every field is checked for type
and range, and whatever does not fit makes the whole report worthless.
"""

from __future__ import annotations

import base64
import binascii
import os
import signal
from typing import TypeVar

from sandbox import abi
from sandbox.errors import WireError
from sandbox.plan import Plan
from sandbox.types import (
    MAX_ENTRIES,
    MAX_PATH,
    OPERATIONS,
    REASONS,
    Denials,
    DeniedCall,
    DeniedFile,
    Kind,
    Outcome,
    Usage,
)

_MIB = 1 << 20
_STOPPED = {
    Kind.TIMED_OUT: "wall_seconds",
    Kind.OUT_OF_CPU: "cpu_seconds",
    Kind.OUT_OF_MEMORY: "memory_mb",
    Kind.TOO_MANY_PROCESSES: "processes",
    Kind.TOO_MUCH_OUTPUT: "output_mb",
    Kind.FILE_TOO_LARGE: "file_mb",
    Kind.TEMP_FULL: "tmp_mb",
    Kind.TOO_MANY_FILES: "open_files",
}
_UNKNOWN = (
    "No complete report came back. The tool may have run, in part or to its end. This is not a success and not a "
    "failure: look at the state of things before you repeat the call."
)
T = TypeVar("T")


def unknown(reason: str, attestation: dict[str, object] | None = None) -> Outcome:
    """The outcome of a call about whose end nothing is known."""
    return Outcome(Kind.UNKNOWN, attestation=attestation, detail=f"{reason}. {_UNKNOWN}")


def not_started(reason: str) -> Outcome:
    """The outcome of a call that ended before its tool was told what to run: nothing can have happened."""
    return Outcome(Kind.SETUP_FAILED, step="start", detail=f"{reason}. The tool was not started.")


def cancelled(started: bool) -> Outcome:
    """The outcome of a call that was stopped on request."""
    what = (
        "The tool was stopped on request; it may have run in part."
        if started
        else "The tool was not started."
    )
    return Outcome(Kind.CANCELLED, detail=what)


def failed(document: object) -> Outcome:
    """The outcome of a set-up step that failed: {"step", "errno", "detail"}. Raises WireError for anything else."""
    if not isinstance(document, dict):
        raise WireError("failure is not an object")
    step, code = _typed(document, "step", str), _typed(document, "errno", int)
    detail = _typed(document, "detail", str)
    text = (
        f"The cage could not be built: step {step}: {detail or os.strerror(code)}. The tool was not started."
    )
    return Outcome(Kind.SETUP_FAILED, step=step, errno=code, detail=text)


def reported(document: object, token: str, plan: Plan, attestation: dict[str, object]) -> Outcome:
    """The outcome that a report describes. Raises WireError when it is not a report of this call."""
    if not isinstance(document, dict) or document.get("token") != token:
        raise WireError("not the report of this call")
    usage = _usage(document.get("usage"))
    stdout, stderr = _output(document, "stdout"), _output(document, "stderr")
    if len(stdout) + len(stderr) > plan.limits.output_mb * _MIB:
        raise WireError("more output than the limit")
    kind, status = _kind(document, plan)
    exited = os.WIFEXITED(status)
    limit = _STOPPED.get(kind)
    return Outcome(
        kind,
        exit_code=os.WEXITSTATUS(status) if exited and kind is Kind.EXITED else None,
        signal=os.WTERMSIG(status) if kind is Kind.SIGNALLED else None,
        limit=limit,
        limit_value=float(getattr(plan.limits, limit)) if limit else None,
        stdout=stdout,
        stderr=stderr,
        stdout_total=_typed(document, "stdout_total", int),
        stderr_total=_typed(document, "stderr_total", int),
        usage=usage,
        attestation=attestation,
        denials=_denials(document, plan),
    )


def _denials(document: dict[str, object], plan: Plan) -> Denials:
    """What was refused; nothing of the kind from a plan that does not report."""
    if plan.reports is None:
        if not document.keys().isdisjoint(("denials", "files", "more")):
            raise WireError("denials that were not asked for")
        return Denials()
    keys = ("", *(key for key, _ in plan.reports.looser))
    calls = tuple(
        DeniedCall(
            _up_to(item, "call", abi.NEWEST_KNOWN),
            _up_to(item, "count", 1 << 53, 1),
            _one_of(item, "key", keys),
        )
        for item in _entries(document, "denials")
    )
    files = tuple(
        DeniedFile(
            _path(item),
            _one_of(item, "operation", OPERATIONS),
            _one_of(item, "why", REASONS),
            _up_to(item, "count", 1 << 53, 1),
        )
        for item in _entries(document, "files")
    )
    return Denials(calls, files, _up_to(document, "more", 1 << 53))


def _entries(document: dict[str, object], name: str) -> list[dict[str, object]]:
    entries = _typed(document, name, list)
    if len(entries) > MAX_ENTRIES or not all(isinstance(item, dict) for item in entries):
        raise WireError(f"{name} is not a list of at most {MAX_ENTRIES} entries")
    return entries


def _path(item: dict[str, object]) -> str:
    path = _typed(item, "path", str)
    if len(path) > MAX_PATH or "\0" in path or (path and not path.startswith("/")):
        raise WireError("path is none")
    return path


def _one_of(item: dict[str, object], name: str, known: tuple[str, ...]) -> str:
    value = _typed(item, name, str)
    if value not in known:
        raise WireError(f"{name} is not known")
    return value


def _up_to(document: dict[str, object], name: str, most: int, least: int = 0) -> int:
    value = _typed(document, name, int)
    if not least <= value <= most:
        raise WireError(f"{name} is out of range")
    return value


def _kind(document: dict[str, object], plan: Plan) -> tuple[Kind, int]:
    status = _typed(document, "status", int)
    hit = _hit(document, plan)
    stopped = document.get("stopped")
    if not 0 <= status < 1 << 16:
        raise WireError("not a wait status")
    if stopped is not None:
        if not isinstance(stopped, str) or stopped not in _STOPPED:
            raise WireError("stopped for no known reason")
        return Kind(str(stopped)), status
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return Kind.OUT_OF_CPU, status
        if number == signal.SIGXFSZ:
            return Kind.FILE_TOO_LARGE, status
        return Kind.SIGNALLED, status
    if not os.WIFEXITED(status):
        raise WireError("neither exited nor signalled")
    if os.WEXITSTATUS(status) != 0:
        return hit or Kind.EXITED, status
    return Kind.EXITED, status


def _hit(document: dict[str, object], plan: Plan) -> Kind | None:
    """A limit that the kernel enforced with an errno: the tool failed and the limit was reached."""
    file_at_limit, temp_full = _typed(document, "file_at_limit", bool), _typed(document, "temp_full", bool)
    if file_at_limit:
        return Kind.FILE_TOO_LARGE
    if temp_full:
        return Kind.TEMP_FULL
    if _usage(document.get("usage")).open_files >= plan.limits.open_files:
        return Kind.TOO_MANY_FILES
    return None


def _usage(document: object) -> Usage:
    if not isinstance(document, dict):
        raise WireError("usage is missing")
    return Usage(
        wall_seconds=_number(document, "wall_seconds"),
        cpu_seconds=_number(document, "cpu_seconds"),
        memory_bytes=_typed(document, "memory_bytes", int),
        processes=_typed(document, "processes", int),
        open_files=_typed(document, "open_files", int),
        tmp_bytes=_typed(document, "tmp_bytes", int),
    )


def _output(document: dict[str, object], name: str) -> bytes:
    try:
        return base64.b64decode(_typed(document, name, str), validate=True)
    except binascii.Error:
        raise WireError(f"{name} is not base64") from None


def _number(document: dict[str, object], name: str) -> float:
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise WireError(f"{name} is not a number of seconds")
    return float(value)


def _typed(document: dict[str, object], name: str, kind: type[T]) -> T:
    value = document.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise WireError(f"{name} is not {kind.__name__}")
    if isinstance(value, int) and not 0 <= value < 1 << 63:
        raise WireError(f"{name} is out of range")
    return value
