"""The document of a JSON tool: passed on whole or refused, never cut; the same JSON as text.

Runs in the front; pure but for the store. Redacts before anything else. What is refused for its size has been read and
redacted by then, so it is stored: a path into it (read_output, json_path) costs no second run of the tool. What never
was JSON is stored too where its first lines are not all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import orjson

from runner import error_texts, json_path, strict_json, visible, wording
from runner.case import Case, Told
from runner.error_texts import MAX_MESSAGES, Messages
from runner.outputs import JSON
from runner.redaction.engine import WITHHELD
from runner.wording import Words
from sandbox.types import Kind, Outcome

_READ_BYTES = (
    8 * 1024 * 1024
)  # beyond this nothing is parsed: it takes seconds, and no client could use the result
_INDENTED_BYTES = 16 * 1024 * 1024  # stored with line breaks, for grep and tail, up to half of the store
_EXPLAINED_LEVELS, _SEGMENT, _NAMES = 6, 60, 8
_WHOLE_EXCERPT = 700  # characters below which the excerpt in the message is everything


class _Refused(Exception):
    """Why there is no result, the handle of what there is, and its size where that is the reason."""

    def __init__(self, words: Words, handle: str | None = None, size: int | None = None) -> None:
        super().__init__(words.code)
        self.words, self.handle, self.size = words, handle, size


def tell(case: Case) -> Told:
    """What the client is told."""
    messages = Messages(visible.visible(visible.last_frames(case.stderr())).strip())
    words = case.words()
    if words is not None:
        return _told(case, _ended(case.outcome, words), words, messages)
    status = case.status()
    base: dict[str, object] = {"exit_code": case.outcome.exit_code, "outcome": status, "result": None}
    try:
        base["result"] = _result(case, messages)
        return _with_result(case, base, status, messages)
    except _Refused as refused:
        handle = {"handle": refused.handle} if refused.handle else {}
        failed: dict[str, object] = {
            "exit_code": case.outcome.exit_code,
            "outcome": "error",
            **handle,
            "result": None,
        }
        return replace(_told(case, failed, refused.words, messages), handle=refused.handle, size=refused.size)


def _ended(outcome: Outcome, words: Words) -> dict[str, object]:
    """The document of an outcome that is no exit: the limit with value and usage, the step, the signal."""
    document: dict[str, object] = {"outcome": words.code}
    if outcome.limit is not None or wording.unit(outcome.kind):
        limit = {
            "name": outcome.limit,
            "value": outcome.limit_value,
            "used": wording.used(outcome),
            "unit": wording.unit(outcome.kind),
        }
        document["limit"] = {name: value for name, value in limit.items() if value is not None}
    if outcome.kind is Kind.SETUP_FAILED and outcome.step:
        document["step"] = visible.visible(outcome.step[:80])
    if outcome.kind is Kind.SIGNALLED and outcome.signal is not None:
        document["signal"] = outcome.signal
    return document


def _told(case: Case, base: dict[str, object], words: Words, messages: Messages) -> Told:
    document = error_texts.document(base, words, messages, case.policy.max_output_bytes, case.roots())
    return Told(_text(document), document, "error", words)


def _result(case: Case, messages: Messages) -> object:
    """What the tool printed, read and redacted. Raises _Refused."""
    outcome = case.outcome
    size = max(outcome.stdout_total, len(outcome.stdout))
    if size > len(outcome.stdout) or size > _READ_BYTES:
        raise _Refused(
            Words(
                "result_too_large",
                f"The tool printed {size:,} bytes; at most {_READ_BYTES:,} bytes of JSON are read. It was refused unread.",
                _narrow(case),
                "result",
            ),
            size=size,
        )
    try:
        parsed = strict_json.parse(outcome.stdout)
    except strict_json.NotJson as problem:
        raise _not_json(case, problem, messages) from None
    result, found = case.redactor.value(parsed)
    case.counts.update(found)
    if WITHHELD in found:
        raise _Refused(error_texts.UNCHECKED)
    return result


def _not_json(case: Case, problem: strict_json.NotJson, messages: Messages) -> _Refused:
    printed = case.stdout()
    said = visible.visible(problem.words(case.masked))
    if case.status() == "error":
        words = error_texts.tool_failed(
            case.outcome.exit_code, messages.text or printed, case.roots(), has_result=False
        )
    else:
        words = error_texts.not_json(said, printed, case.outcome.exit_code, case.roots())
    if len(printed.strip()) <= _WHOLE_EXCERPT or WITHHELD in case.counts:
        return _Refused(words)
    handle = case.outputs.keep(visible.visible(printed), case.tool.name)
    more = f"{words.remedy} All that it printed: read_output with handle {handle}."
    return _Refused(Words(words.code, words.message, more, words.category), handle)


def _with_result(case: Case, base: dict[str, object], status: str, messages: Messages) -> Told:
    result, words = base["result"], None
    document = dict(base)
    if status == "error":
        words = error_texts.tool_failed(
            base["exit_code"], messages.text, case.roots(), has_result=result is not None
        )
        if not (isinstance(result, dict) and "error" in result):
            document["error"] = {"code": words.code, "message": words.message, "remedy": words.remedy}
    if messages.text:
        document["messages"] = messages.tail(MAX_MESSAGES, case.roots())
    text = _text(document)
    size = _content_bytes(text)
    if size > case.room():
        raise _too_large(case, result, size)
    return Told(text, document, status, words)


def _content_bytes(text: str) -> int:
    """Of the content on the wire: the text, escaped, and the structured copy, which is that very text."""
    return len(orjson.dumps(text)) + len(text.encode())


def _too_large(case: Case, result: object, size: int) -> _Refused:
    handle = case.outputs.keep(_stored(result), case.tool.name, JSON)
    where, node = _largest(result)
    part = f"{where}[0:10]" if isinstance(node, list) else where
    words = Words(
        "result_too_large",
        f"The result is {size:,} bytes on the wire, where it stands as text and as structure; the limit is "
        f"{case.room():,} bytes (max_output_bytes = {case.policy.max_output_bytes:,}, less what is said about the call). "
        f"It was refused, not cut. Largest part: {where}, {json_path.kind(node)}, {len(orjson.dumps(node)):,} bytes.",
        f"Read parts of it: read_output with handle {handle} and json_path, such as {part}. {_narrow(case)}",
        "result",
    )
    return _Refused(words.mapped(lambda text: case.ours(visible.visible(text))), handle, size)


def _narrow(case: Case) -> str:
    """What can make the result smaller."""
    names = ", ".join(list(case.tool.params)[:_NAMES])
    asked = f"Narrow the call by its arguments ({names}), or ask" if names else "Ask"
    return f"{asked} the operator to raise max_output_bytes."


def _largest(document: object) -> tuple[str, object]:
    """(path, node) of the part that makes the document large: the member or element that is more than half, and so on."""
    where, node = "$", document
    for _ in range(_EXPLAINED_LEVELS):
        size, segment, child = max(_sizes(node), default=(0, "", None), key=lambda part: part[0])
        if 2 * size < len(orjson.dumps(node)) or len(segment) > _SEGMENT:
            break
        where, node = where + segment, child
    return where, node


def _sizes(node: object) -> Iterator[tuple[int, str, object]]:
    """(bytes, segment of a path, child) of each child."""
    match node:
        case dict():
            for name, child in node.items():
                yield (
                    len(orjson.dumps(child)),
                    json_path.member(name) if len(name) <= _SEGMENT else name,
                    child,
                )
        case list():
            for index, child in enumerate(node):
                yield len(orjson.dumps(child)), f"[{index}]", child
        case _:
            return


def _stored(result: object) -> str:
    """As it is kept: lines where that does not make it too long."""
    lines = orjson.dumps(result, option=orjson.OPT_INDENT_2)
    return visible.escaped((lines if len(lines) <= _INDENTED_BYTES else orjson.dumps(result)).decode())


def _text(document: dict[str, object]) -> str:
    """The document as text; characters that would not be seen are written as escapes."""
    return visible.escaped(orjson.dumps(document).decode())
