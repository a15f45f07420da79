"""Errors as documents and as text: code, message, remedy, within a size, without paths outside the root.

Runs in the front; pure. Takes redacted text only.
"""

from __future__ import annotations

import re

import orjson

from runner import visible
from runner.wording import Words

MAX_ERROR = 4000  # characters; some clients cut an error there
_EXCERPT, _LINES = 800, 6  # of what a tool printed, in our own messages
_CUT_RUN = 4096
_PATH = re.compile(r"(?<![\w:/.~-])/(?:[\w.@+~-]+/)*[\w.@+~-]+")
_ESCAPABLE = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)

UNCHECKED = Words(
    "redaction_incomplete",
    "The result could not be checked for secrets within its bounds, so it is withheld.",
    "Narrow the call so that it returns less.",
)


def decoded(data: bytes, total: int) -> str:
    """Bytes of a tool as text, invalid UTF-8 as U+FFFD.

    If the capture was cut (total > len), its last unbroken run goes: half a secret has no form to be recognised by.
    """
    if total > len(data):
        kept = data[-_CUT_RUN:]
        run = len(kept) - max(kept.rfind(b" "), kept.rfind(b"\n"), kept.rfind(b"\t")) - 1
        data = data[: len(data) - run]
    return data.decode("utf-8", "replace")


def escaped(document: str) -> str:
    """JSON text with characters that are not seen written as \\u escapes; it means the same."""
    return _ESCAPABLE.sub(lambda hit: f"\\u{ord(hit.group()):04x}", document)


def relative(text: str, root: str) -> str:
    """`text` with paths in the root made relative to it, and other absolute paths left out."""
    if len(root) > 1:
        inside = f"(?<![\\w.@+~/-]){re.escape(root)}(?:/(?P<more>(?=[\\w.@+~-]))|/?(?![\\w.@+~-]))"
        text = re.sub(inside, lambda hit: "." if hit["more"] is None else "", text)
    return _PATH.sub("<path outside the root>", text)


def excerpt(text: str, root: str) -> str:
    """The first lines of what was printed; the last of a traceback or a usage text, which says what is wrong."""
    lines = [line.rstrip() for line in visible.visible(text).split("\n") if line.strip()]
    if lines and lines[0].startswith(("Traceback", "usage:", "Usage:")):
        lines = lines[-1:]
    shown = visible.cut_head("\n".join(lines[:_LINES]), _EXCERPT).rstrip("\n")
    return relative(shown, root)


def not_json(  # one call's facts, used once
    problem: str, printed: str, messages: str, exit_code: int | None, status: str, root: str
) -> Words:
    """Words for a JSON tool whose output is not one JSON document."""
    if status == "error":
        return tool_failed(exit_code, messages or printed, root, has_result=False)
    said = excerpt(printed, root)
    begins = f" It printed:\n{said}" if said else ""
    return Words(
        "result_not_json",
        f"The tool ended with exit code {exit_code}, but its output is not one JSON document: {problem}.{begins}",
        "This way of calling it does not give JSON; try other arguments or another tool.",
    )


def tool_failed(exit_code: object, messages: str, root: str, *, has_result: bool) -> Words:
    """Words for a bad exit code; the tool's own first lines say why, or its result does."""
    said = excerpt(messages, root)
    why = f":\n{said}" if said else "; its result says why." if has_result else " and said nothing about why."
    where = "result" if has_result and not said else "message"
    return Words(
        "tool_failed",
        f"The tool failed with exit code {exit_code}{why}",
        f"Correct the arguments as the {where} says and call again.",
    )


def document(base: dict[str, object], words: Words, messages: str, cap: int) -> dict[str, object]:
    """`base` with an error member and the tail of `messages`; as JSON at most MAX_ERROR characters and `cap` bytes."""
    room = min(MAX_ERROR, cap)
    message = words.message
    made: dict[str, object] = {}
    for keep, tail in ((len(message), 2000), (len(message), 500), (len(message), 0), (300, 0), (120, 0)):
        error = {"code": words.code, "message": visible.cut_head(message, keep), "remedy": words.remedy}
        made = {**base, "outcome": base["outcome"] if "exit_code" not in base else "error", "error": error}
        if tail and messages:
            made["messages"] = visible.cut_tail(messages, tail)
        if len(escaped(orjson.dumps(made).decode()).encode()) <= room:
            break
    return made


def plain(first: str, words: Words, limit: int) -> str:
    """First line, message, remedy; at most `limit` characters."""
    remedy = visible.cut_head(visible.visible(words.remedy), 600)
    room = limit - len(first) - len(remedy) - 40
    message = visible.cut_head(visible.visible(words.message), max(room, 80))
    cut = "" if message == visible.visible(words.message) else " […]"
    return "\n".join(
        part for part in (first, message + cut, f"What to do: {remedy}" if remedy else "") if part
    )
