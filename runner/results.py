"""What a client is told about an outcome: the one way from a tool's bytes to a client.

Runs in the front; pure but for storing shortened output. Everything a tool printed is redacted first, then cut, then
made visible. JSON is passed on whole or refused, text is shortened with a handle for the rest, and everything that
is not a good exit says so with a code, a message and a remedy. Sizes: the JSON document is at most `max_output_bytes`,
the content on the wire (text copy and structured copy, escaped) at most three times that; `meta` at most 8 KiB more.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from typing import Protocol

import orjson

from runner import error_texts, strict_json, text_results, visible, wording
from runner.admission import MachineBusy
from runner.mcp.messages import ToolResult
from runner.outputs import Outputs
from runner.redaction.engine import WITHHELD, Redactor
from runner.wording import Words
from sandbox.errors import Refused
from sandbox.types import Kind, Outcome

MAX_MESSAGES = 4000  # characters of stderr in a JSON document
MAX_ERROR = error_texts.MAX_ERROR
MAX_META_BYTES = 8192
_PARSE_FACTOR = 8  # pretty-printed output may shrink to fit; beyond this it is refused unread


class ToolFacts(Protocol):
    """What is needed of a tool: runner.catalog.tools.Tool."""

    @property
    def name(self) -> str: ...
    @property
    def output(self) -> str: ...
    @property
    def ok_exit_codes(self) -> tuple[int, ...]: ...
    @property
    def findings_exit_codes(self) -> tuple[int, ...]: ...
    @property
    def redact_exempt(self) -> frozenset[str]: ...


class PolicyFacts(Protocol):
    """What is needed of a policy: policies.policy.Policy."""

    @property
    def max_output_bytes(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def root_at(self) -> str | None: ...


def to_result(
    tool: ToolFacts, outcome: Outcome, redactor: Redactor, outputs: Outputs, policy: PolicyFacts
) -> ToolResult:
    """The result of a call that was tried. Never raises on any bytes."""
    redactor = redactor.exempting(tool.redact_exempt)
    counts: Counter[str] = Counter()
    root = policy.root_at or policy.root
    words = None if outcome.kind is Kind.EXITED else wording.explain(outcome)
    if tool.output == "json":
        document, is_error = _document(tool, outcome, words, redactor, counts, policy)
        text, structured = _json_text(document), document
    else:
        status = _status(tool, outcome)
        room = text_results.Room(status, words, min(text_results.MAX_TEXT, policy.max_output_bytes // 2))
        text = text_results.block(
            outcome, room, redactor, counts, lambda full: outputs.keep(full, tool.name), root
        )
        structured, is_error = None, status == "error" or WITHHELD in counts
    return ToolResult(text, structured, is_error, _meta(outcome, counts, policy.digest))


def _status(tool: ToolFacts, outcome: Outcome) -> str:
    """ "ok", "findings" or "error"."""
    if outcome.kind is not Kind.EXITED or outcome.exit_code is None:
        return "error"
    if outcome.exit_code in tool.ok_exit_codes:
        return "ok"
    return "findings" if outcome.exit_code in tool.findings_exit_codes else "error"


# ---- JSON tools --------------------------------------------------------------------------------------------------------


def _document(  # one call's facts, used once
    tool: ToolFacts,
    outcome: Outcome,
    words: Words | None,
    redactor: Redactor,
    counts: Counter[str],
    policy: PolicyFacts,
) -> tuple[dict[str, object], bool]:
    """(document within the cap, is_error)."""
    printed = error_texts.decoded(outcome.stderr, outcome.stderr_total)
    redacted, found = redactor.text(printed)
    counts.update(found)
    root = policy.root_at or policy.root
    messages = error_texts.relative(visible.visible(visible.last_frames(redacted)).strip(), root)
    cap = policy.max_output_bytes
    if words is not None:
        return error_texts.document({"outcome": words.code}, words, messages, cap), True
    status = _status(tool, outcome)
    base: dict[str, object] = {"exit_code": outcome.exit_code, "outcome": status, "result": None}
    if outcome.stdout_total > len(outcome.stdout) or len(outcome.stdout) > _PARSE_FACTOR * cap:
        return error_texts.document(
            base, _too_large(max(outcome.stdout_total, len(outcome.stdout)), cap), messages, cap
        ), True
    try:
        parsed = strict_json.parse(outcome.stdout)
    except strict_json.NotJson as problem:
        text, found = redactor.text(error_texts.decoded(outcome.stdout, outcome.stdout_total))
        counts.update(found)
        failed = error_texts.not_json(str(problem), text, messages, outcome.exit_code, status, root)
        return error_texts.document(base, failed, messages, cap), True
    result, found = redactor.value(parsed)
    counts.update(found)
    if WITHHELD in found:
        return error_texts.document(base, error_texts.UNCHECKED, messages, cap), True
    base["result"] = result
    return _with_result(base, status, messages, cap, root)


def _with_result(
    base: dict[str, object], status: str, messages: str, cap: int, root: str
) -> tuple[dict[str, object], bool]:
    result = base["result"]
    document = dict(base)
    if status == "error" and not (isinstance(result, dict) and "error" in result):
        failed = error_texts.tool_failed(base["exit_code"], messages, root, has_result=result is not None)
        document["error"] = {"code": failed.code, "message": failed.message, "remedy": failed.remedy}
    if messages:
        document["messages"] = visible.cut_tail(messages, MAX_MESSAGES)
    size = len(orjson.dumps(document))
    if size > cap or _wire_bytes(document) > 3 * cap:
        refused = {**base, "outcome": "error", "result": None}
        return error_texts.document(refused, _too_large(size, cap), messages, cap), True
    return document, status == "error"


def _too_large(size: int, cap: int) -> Words:
    return Words(
        "result_too_large",
        f"The result is {size:,} bytes; the limit is {cap:,} bytes. It was refused, not cut.",
        "Narrow the call (a smaller path, a filter, fewer items), or ask the operator to raise max_output_bytes.",
    )


def _json_text(document: dict[str, object]) -> str:
    """The same JSON as text; characters that would not be seen are written as escapes."""
    return error_texts.escaped(orjson.dumps(document).decode())


def _wire_bytes(document: dict[str, object]) -> int:
    text = {
        "content": [{"type": "text", "text": _json_text(document)}],
        "structuredContent": document,
        "isError": True,
    }
    return len(orjson.dumps(text))


# ---- about the call ----------------------------------------------------------------------------------------------------


def _meta(outcome: Outcome, counts: Counter[str], digest: str) -> dict[str, object]:
    """{"outcome", "exit_code"?, "limit"?, "limit_value"?, "usage", "redactions"?, "cage"?, "policy"?}; no nulls."""
    usage = {name: value for name, value in asdict(outcome.usage).items() if math.isfinite(value)}
    cage = _without_nulls(outcome.attestation or {})
    members: dict[str, object] = {
        "outcome": outcome.kind.value,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "step": outcome.step,
        "limit": outcome.limit,
        "limit_value": outcome.limit_value,
        "usage": usage,
        "redactions": dict(counts) or None,
        "cage": cage or None,
        "policy": digest or None,
    }
    meta = {name: value for name, value in members.items() if value is not None}
    try:
        fits = len(orjson.dumps(meta)) <= MAX_META_BYTES
    except TypeError:
        fits = False
    if not fits:
        meta["cage"] = {"omitted": f"larger than {MAX_META_BYTES} bytes or no JSON"}
    return meta


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


def refusal(refused: Refused, redactor: Redactor, root: str | None = None) -> ToolResult:
    """A call that was not tried: a bad argument, a bad path, a bad handle."""
    message, found = redactor.text(refused.message)
    remedy, more = redactor.text(refused.remedy)
    counts = Counter(found) + Counter(more)
    meta: dict[str, object] = {"outcome": "refused", "code": refused.code}
    if counts:
        meta["redactions"] = dict(counts)
    if root is not None:
        message, remedy = error_texts.relative(message, root), error_texts.relative(remedy, root)
    return _refused(Words(refused.code, message, remedy), meta)


def too_fast(limit: int, wait: float) -> ToolResult:
    """The call rate is used up: `limit` calls in a minute were started, `wait` seconds until the next may be."""
    seconds = max(1, math.ceil(wait))
    return _refused(
        Words(
            "rate_limited",
            f"The limit is {limit} tool calls in any 60 seconds, and {limit} were made. This call was not run.",
            f"Wait {seconds} s before the next call; ask for more in one call.",
        ),
        {"outcome": "refused", "code": "rate_limited", "limit": "max_calls_per_minute", "limit_value": limit,
         "retry_after_seconds": seconds},
    )  # fmt: skip


def too_many(limit: int) -> ToolResult:
    """More calls wait for a worker than are allowed to."""
    return _refused(
        Words(
            "too_many_calls",
            f"{limit} calls are waiting already, and the limit is {limit}. This call was not run.",
            "Wait for answers before sending more calls.",
        ),
        {"outcome": "refused", "code": "too_many_calls", "limit": "waiting_calls", "limit_value": limit},
    )


def machine_busy(busy: MachineBusy) -> ToolResult:
    """There was no room for the call beside what runs on this machine."""
    missing = busy.shortage
    words = wording.no_room(busy.code, missing, busy.waited)
    meta: dict[str, object] = {
        "outcome": "refused", "code": words.code, "class": "capacity", "scope": "machine",
        "retryable": not missing.is_lasting, "limit": missing.bound, "limit_value": missing.limit,
        "current": missing.current,
    }  # fmt: skip
    if missing.bound == "max_machine_memory_mb":
        meta["needed"] = missing.need
    return _refused(words, meta)


def _refused(words: Words, meta: dict[str, object]) -> ToolResult:
    return ToolResult(error_texts.plain(f"refused · {words.code}", words, MAX_ERROR), None, True, meta)
