"""What of two answers is compared, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Fields that say when the call was made; tool, then where in the document.
WHEN = {
    ("campaign_check", "result.history.now"),
    ("eu_review_evidence", "result.generated_at"),
    ("insights", "result.filters.now"),
    ("ops_summary", "result.metric_totals.ops_metrics_generated_timestamp_seconds"),
    ("ops_summary", "result.observed_at"),
    ("platform_risk", "result.generated_at"),
}
# Python prints the choices of a set in another order in every process.
UNORDERED = {"choices"}


def document(answer: dict[str, Any], root: str) -> dict[str, Any]:
    """The structured content and isError; a refusal, which has no structured content, is {"refused": True, ...}.

    Left out: `outcome`, which only Toolcage has, when it says what the exit code says too. Paths in the root are made
    relative: the original hands its tools absolute paths, Toolcage relative ones.
    """
    found = answer.get("structuredContent")
    if found is None:
        return {"refused": True, "isError": answer["isError"]}
    expected = {0: "ok", 1: "findings"}.get(found["exit_code"], "error")
    kept = {key: value for key, value in found.items() if key != "outcome" or value != expected}
    made: dict[str, Any] = _relative({**kept, "isError": answer["isError"]}, root)
    return made


def _relative(value: Any, root: str) -> Any:
    match value:
        case dict():
            return {key: _relative(item, root) for key, item in value.items()}
        case list():
            return [_relative(item, root) for item in value]
        case str():
            return value.replace(f"{root}/", "").replace(root, ".")
        case _:
            return value


def differences(tool: str, theirs: Any, ours: Any, where: str = "") -> Iterator[str]:
    """Where two documents differ, as dotted paths. Of a refused call, or another exit code, only that is told."""
    if (tool, where) in WHEN and type(theirs) is type(ours):
        return
    if not where and theirs.get("exit_code") != ours.get("exit_code"):
        yield "refused" if "refused" in ours else "exit_code"
    elif isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            inner = f"{where}.{key}" if where else key
            if key not in theirs or key not in ours:
                yield inner
            else:
                yield from differences(tool, _ordered(key, theirs[key]), _ordered(key, ours[key]), inner)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(tool, one, other, f"{where}[{index}]")
    elif theirs != ours or type(theirs) is not type(ours):
        yield where


def _ordered(key: str, value: Any) -> Any:
    return sorted(value) if key in UNORDERED and isinstance(value, list) else value
