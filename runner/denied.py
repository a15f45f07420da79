"""What a tool was refused, for the person who writes its policy: names, reasons, and the policy key that would allow it.

Runs in the front of `toolcage call --explain-denials`. Looks with lstat whether a path exists on this machine; opens
nothing. A path is text of the tool: it is redacted here and made visible where it is printed.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

from policies.syscalls import names
from runner.prepare import Prepared, compiled_filters
from runner.redaction.engine import Redactor
from sandbox import filters, planning
from sandbox.plan import Plan
from sandbox.programs import below
from sandbox.root import Root
from sandbox.types import DeniedFile, Kind, Outcome

NOTE = (
    "This is what the tool tried in this run; another run may need more. The list is no evidence: a tool can hide what "
    "it tries, and forge it, because its paths are read while its other threads may change them. Allow what its task "
    "needs, not all that it asks for."
)
_UNKNOWN = "No report of this call came back, so nothing is known about what was refused."
_CALLS = {
    "processes": 'processes = "any", or a list of the programs that it may start',
    "socket_pairs": "socket_pairs = true",
}
_WHY = {
    "missing": "does not exist inside",
    "read-only": "may not be changed",
    "not-lent": "is there, but not lent",
    "not-a-program": "may not be started",
    "permission": "its mode or owner forbids it",
    "unreadable": "the path could not be read",
}
_NEVER_LENT = ("/proc/", "/dev/")


def reporting(prepared: Prepared) -> Prepared:
    """The same plans, made to report; those of describe commands stay as they are."""
    compiled = compiled_filters()
    keeper = filters.keeper_filter([*names("keeper"), *names("keeper", "reporting")], reporting=True)
    plans = {
        name: plan if name.startswith("describe:") else planning.reporting(plan, compiled, keeper)
        for name, plan in prepared.plans.items()
    }
    return dataclasses.replace(prepared, plans=plans)


@dataclass(frozen=True, slots=True)
class CallRow:
    """A refused system call. `allowed_by`: a line for the policy, None when no policy can allow it."""

    call: str
    number: int
    count: int
    allowed_by: str | None


@dataclass(frozen=True, slots=True)
class FileRow:
    """A refused use of a file (sandbox.types.DeniedFile). `on_host`: whether a path that is missing inside is on this
    machine; None where that was not asked. `because`: why no policy can allow it.
    """

    path: str
    operation: str
    why: str
    count: int
    on_host: bool | None
    allowed_by: str | None
    because: str


@dataclass(frozen=True, slots=True)
class Explained:
    """All of it. `more`: refusals beyond the bounds of a report."""

    calls: tuple[CallRow, ...]
    files: tuple[FileRow, ...]
    more: int
    note: str

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return dataclasses.asdict(self)


def explain(outcome: Outcome, plan: Plan, root: Root, redactor: Redactor) -> Explained:
    """What the outcome of a call of `plan` says."""
    denials = outcome.denials
    calls = tuple(
        CallRow(filters.name_of(one.number) or str(one.number), one.number, one.count, _CALLS.get(one.key))
        for one in denials.calls
    )
    files = tuple(_row(file, plan, root, redactor) for file in denials.files)
    known = outcome.kind not in (Kind.UNKNOWN, Kind.SETUP_FAILED, Kind.CANCELLED)
    return Explained(calls, files, denials.more, NOTE if known else _UNKNOWN)


def lines(found: Explained) -> Iterator[str]:
    """For people: a line for each refusal. Paths that exist nowhere are counted, not listed."""
    nowhere = sum(file.on_host is False for file in found.files)
    if found.note == NOTE:
        some = found.calls or len(found.files) > nowhere
        yield "refused in this run:" if some else "Nothing was refused in this run."
    for call in found.calls:
        yield f"{call.count:>8} x  system call {call.call}: {call.allowed_by or 'no policy can allow this call'}"
    for file in found.files:
        if file.on_host is not False:
            remedy = file.allowed_by or f"no policy: {file.because}"
            yield f"{file.count:>8} x  {file.operation} {file.path or '?'}: {_WHY[file.why]}; {remedy}"
    if nowhere:
        yield f"  {nowhere} more paths that it tried exist neither inside nor on this machine."
    if found.more:
        yield f"  {found.more} more refusals are not listed: there were too many different ones."
    yield found.note


def _row(file: DeniedFile, plan: Plan, root: Root, redactor: Redactor) -> FileRow:
    on_host = os.path.lexists(file.path) if file.why == "missing" else None
    line, reason = (None, "") if on_host is False else _remedy(file, plan, root)
    return FileRow(
        redactor.text(file.path)[0],
        file.operation,
        file.why,
        file.count,
        on_host,
        redactor.text(line)[0] if line else None,
        redactor.text(reason)[0],
    )


def _remedy(file: DeniedFile, plan: Plan, root: Root) -> tuple[str | None, str]:
    """(the line of a policy that would allow it, None when there is none; else why)."""
    if file.why == "permission":
        return None, "it depends on the file"
    if file.why == "read-only" or file.operation in ("write", "create", "remove", "change"):
        return None, "a tool writes into its own temporary folder only"
    if file.why == "unreadable":
        return None, "the tool named no file"
    if plan.root_at != root.path and below(file.path, root.path):
        return None, f"the root folder is {plan.root_at} inside"
    return _lending(file, plan)


def _lending(file: DeniedFile, plan: Plan) -> tuple[str | None, str]:
    """The same for a path that is to be read or started."""
    real = os.path.realpath(file.path)
    if file.operation == "start":
        if plan.processes == "any" and file.why != "missing":
            return None, "only programs of the system and the root folder can be started"
        return f"processes = [{json.dumps(real)}]", ""
    if any(below(mount.target, file.path) for mount in plan.mounts.mounts):
        return None, "it holds only what is lent in it"
    if real.startswith(_NEVER_LENT):
        return None, "it belongs to the kernel"
    if real != file.path:
        return None, f"on this machine it is a link to {real}, and links cannot be lent"
    return f"read_only_paths = [{json.dumps(real)}]", ""
