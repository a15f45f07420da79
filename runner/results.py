"""What a client is told about an outcome: the one way from a tool's bytes to a client.

Runs in the front; pure but for storing what was shortened or refused. Everything a tool printed is redacted first, then
cut, then made visible. JSON is passed on whole or refused, text is shortened with a handle for the rest, and everything
that is not a good exit says so with a code, a message and a remedy. A message is at most `max_output_bytes`
(runner.case.content_room says how).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, replace

import orjson

from runner import error_texts, json_results, text_results, visible, wording
from runner.admission import MachineBusy
from runner.case import MAX_META_BYTES, Case, PolicyFacts, Told, ToolFacts
from runner.mcp.messages import ToolResult
from runner.outputs import HandleRefused, Outputs
from runner.redaction.engine import Redactor
from runner.wording import Words
from sandbox.errors import Refused
from sandbox.types import Kind, Outcome

MAX_ERROR = error_texts.MAX_ERROR


def to_result(
    tool: ToolFacts, outcome: Outcome, redactor: Redactor, outputs: Outputs, policy: PolicyFacts
) -> ToolResult:
    """The result of a call that was tried. Never raises on any bytes."""
    case = Case(tool, outcome, redactor.exempting(tool.redact_exempt), outputs, policy)
    told = json_results.tell(case) if tool.output == "json" else text_results.tell(case)
    return ToolResult(told.text, told.structured, told.status == "error", _meta(case, told))


# ---- about the call ----------------------------------------------------------------------------------------------------


def _meta(case: Case, told: Told) -> dict[str, object]:
    """{"outcome", "code"?, "class"?, "retryable"?, "exit_code"?, "limit"?, "limit_value"?, "current"?, "usage", ...}.

    No nulls. outcome: the word that stands in the text and in the document: "ok", "findings", "error", or the kind.
    """
    outcome = case.outcome
    usage = {name: value for name, value in asdict(outcome.usage).items() if math.isfinite(value)}
    members: dict[str, object] = {
        "outcome": told.status if outcome.kind is Kind.EXITED else outcome.kind.value,
        **_standing(told.words),
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "step": outcome.step,
        "limit": outcome.limit if told.size is None else "max_output_bytes",
        "limit_value": outcome.limit_value if told.size is None else case.policy.max_output_bytes,
        "current": told.size or wording.used(outcome),
        "usage": usage,
        "handle": told.handle,
        "redactions": dict(case.counts) or None,
        "cage": _without_nulls(outcome.attestation or {}) or None,
        "policy": case.policy.digest or None,
    }
    meta = {name: value for name, value in members.items() if value is not None}
    try:
        fits = len(visible.escaped(orjson.dumps(meta).decode()).encode()) <= MAX_META_BYTES
    except TypeError:
        fits = False
    if not fits:
        meta["cage"] = {"omitted": f"larger than {MAX_META_BYTES} bytes or no JSON"}
    return meta


def _standing(words: Words | None) -> dict[str, object]:
    """What the words of an error or a refusal say to a program."""
    return {"code": words.code, "class": words.category, "retryable": words.retryable} if words else {}


def _without_nulls(value: dict[str, object], depth: int = 0) -> dict[str, object]:
    """A copy without null members, also in nested objects (they are a few levels of our own report)."""
    kept: dict[str, object] = {}
    for name, member in value.items():
        if isinstance(member, dict) and depth < 8:
            kept[name] = _without_nulls(member, depth + 1)
        elif member is not None:
            kept[name] = member
    return kept


# ---- refusals ----------------------------------------------------------------------------------------------------------


def refusal(refused: Refused, redactor: Redactor, *roots: str) -> ToolResult:
    """A call that was not tried: a bad argument, a bad path, a bad handle. roots: the root folder as it may be written."""
    message, found = redactor.text(refused.message)
    remedy, more = redactor.text(refused.remedy)
    counts = Counter(found) + Counter(more)
    is_handle = isinstance(refused, HandleRefused)
    words = Words(refused.code, message, remedy, "handle" if is_handle else "argument")
    meta: dict[str, object] = {"outcome": "refused", **_standing(words)}
    if isinstance(refused, HandleRefused):
        meta["reason"] = refused.reason
    if counts:
        meta["redactions"] = dict(counts)
    return _refused(words.mapped(lambda text: error_texts.relative(text, roots)), meta)


def too_fast(limit: int, wait: float) -> ToolResult:
    """The call rate is used up: `limit` calls in a minute were started, `wait` seconds until the next may be."""
    seconds = max(1, math.ceil(wait))
    words = Words(
        "rate_limited",
        f"The limit is {limit} tool calls in any 60 seconds, and {limit} were made. This call was not run.",
        f"Wait {seconds} s before the next call; ask for more in one call.",
        "capacity",
        retryable=True,
    )
    return _refused(
        words,
        {"outcome": "refused", **_standing(words), "scope": "server", "limit": "max_calls_per_minute",
         "limit_value": limit, "current": limit, "retry_after_seconds": seconds},
    )  # fmt: skip


def too_many(limit: int) -> ToolResult:
    """More calls wait for a worker than are allowed to."""
    words = Words(
        "too_many_calls",
        f"{limit} calls are waiting already, and the limit is {limit}. This call was not run.",
        "Wait for answers before sending more calls.",
        "capacity",
        retryable=True,
    )
    return _refused(
        words,
        {"outcome": "refused", **_standing(words), "scope": "server", "limit": "waiting_calls",
         "limit_value": limit, "current": limit},
    )  # fmt: skip


def machine_busy(busy: MachineBusy) -> ToolResult:
    """There was no room for the call beside what runs on this machine."""
    missing = busy.shortage
    words = replace(
        wording.no_room(busy.code, missing, busy.waited),
        category="capacity",
        retryable=not missing.is_lasting,
    )
    meta: dict[str, object] = {
        "outcome": "refused", **_standing(words), "scope": "machine", "limit": missing.bound,
        "limit_value": missing.limit, "current": missing.current,
    }  # fmt: skip
    if missing.bound == "max_machine_memory_mb":
        meta["needed"] = missing.need
    return _refused(words, meta)


def _refused(words: Words, meta: dict[str, object]) -> ToolResult:
    again = "yes, later" if words.retryable else "no, not unchanged"
    standing = f"Retryable: {again} ({words.category})"
    text = error_texts.plain(f"refused · {words.code}", words, MAX_ERROR - len(standing) - 1)
    return ToolResult(f"{text}\n{standing}", None, True, meta)


def again(result: ToolResult) -> ToolResult:
    """The third and every later refusal of the very same call: one line, the same each time, for a model in a loop."""
    code, retryable = result.meta.get("code"), result.meta.get("retryable")
    advice = "wait, as was said before" if retryable else "change the call or give it up"
    return replace(result, text=f"refused · {code} · again: this very call was refused before; {advice}")
