"""Errors as documents and as text: code, message, remedy, within a size, without paths outside the root.

Runs in the front; pure. Takes redacted text only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from runner import visible
from runner.wording import Words
from sandbox.types import Kind

MAX_ERROR = 4000  # characters; some clients cut an error there
MAX_MESSAGES = 4000  # characters of stderr in a JSON document
_EXCERPT, _LINES = 800, 6  # of what a tool printed, in our own messages
_LOOKED_AT = 8192  # characters at either end of what was printed, in which the excerpt is looked for
_UNFINISHED = 4096
_OUTSIDE = "<path outside the root>"
_QUOTED = re.compile(r"(?<!\w)(?P<quote>['\"`])(?:file:)?/[^'\"`\n]+(?P=quote)")
_PATH = re.compile(
    r"(?:file:/+|(?<=:)/(?!/)|(?<=<)/(?!\w+>)|(?:(?<=\W-[A-Za-z])|(?<=^-[A-Za-z]))/|(?<![\w/.~:<-])(?:~[\w.-]*)?/+)"
    r"[^\s'\"`<>|;,:()\[\]{}]*[^\s'\"`<>|;,:()\[\]{}.!?]",
    re.MULTILINE,
)

UNCHECKED = Words(
    "redaction_incomplete",
    "The result could not be checked for secrets within its bounds, so it is withheld.",
    "Narrow the call so that it returns less.",
    "result",
)


def decoded(data: bytes, total: int, kind: Kind) -> str:
    """Bytes of a tool as text, invalid UTF-8 as U+FFFD.

    Where the tool did not come to its own end (kind), or was the capture cut (total > len), an unfinished last line goes, of
    a long one its last _UNFINISHED bytes: half a secret has no form to be recognised by.
    """
    is_whole = kind is Kind.EXITED and total <= len(data)
    if is_whole or not data or data.endswith(b"\n"):
        return data.decode("utf-8", "replace")
    kept = data[: max(data.rfind(b"\n", -_UNFINISHED) + 1, len(data) - _UNFINISHED)]
    end = "" if kept.endswith(b"\n") or not kept else "\n"
    return f"{kept.decode('utf-8', 'replace')}{end}[the unfinished last line, {len(data) - len(kept):,} bytes of it, is left out]"


def relative(text: str, roots: Iterable[str]) -> str:
    """`text` with paths in a root made relative to it, and other absolute paths (also ~/x and file:/x) left out."""
    for root in roots:
        if len(root) > 1:
            inside = f"(?<![\\w.@+~/-]){re.escape(root)}(?:/(?P<more>(?=[\\w.@+~-]))|/?(?![\\w.@+~-]))"
            text = re.sub(inside, lambda hit: "." if hit["more"] is None else "", text)
    text = _QUOTED.sub(lambda hit: f"{hit['quote']}{_OUTSIDE}{hit['quote']}", text)
    return _PATH.sub(_OUTSIDE, text)


@dataclass(frozen=True, slots=True)
class Messages:
    """What a tool printed to stderr: redacted, visible, whole."""

    text: str

    def tail(self, limit: int, roots: Iterable[str]) -> str:
        """The end of it, with the number of bytes before; at most `limit` characters."""
        if len(self.text) <= limit:
            shown = relative(self.text, roots)
            return shown if len(shown) <= limit else visible.cut_tail(shown, limit)
        end = visible.cut_tail(self.text, limit - 60)
        lost = len(self.text[: len(self.text) - len(end)].encode("utf-8", "replace"))
        shown = visible.cut_tail(relative(end, roots), limit - 60)
        return f"[… {lost:,} bytes not shown …]\n{shown}"


def excerpt(text: str, roots: Iterable[str]) -> str:
    """The first lines of what was printed; the last of a traceback or a usage text, which says what is wrong."""
    head, end = visible.visible(text[:_LOOKED_AT]), visible.visible(text[-_LOOKED_AT:])
    lines = [line.rstrip() for line in head.split("\n") if line.strip()]
    if lines and lines[0].startswith(("Traceback (", "usage:", "Usage:")):
        lines = [line.rstrip() for line in end.split("\n") if line.strip()][-1:]
    shown = visible.cut_head("\n".join(lines[:_LINES]), _EXCERPT).rstrip("\n")
    return relative(shown, roots)


def not_json(problem: str, printed: str, exit_code: int | None, roots: Iterable[str]) -> Words:
    """Words for a JSON tool whose output is not one JSON document."""
    said = excerpt(printed, roots)
    begins = f" It printed:\n{said}" if said else ""
    return Words(
        "result_not_json",
        f"The tool ended with exit code {exit_code}, but its output is not one JSON document: {problem}.{begins}",
        "This way of calling it does not give JSON; try other arguments or another tool.",
        "result",
    )


def tool_failed(exit_code: object, printed: str, roots: Iterable[str], *, has_result: bool) -> Words:
    """Words for a bad exit code; the tool's own first lines say why, or its result does."""
    said = excerpt(printed, roots)
    why = f":\n{said}" if said else "; its result says why." if has_result else " and said nothing about why."
    where = "result" if has_result and not said else "message"
    return Words(
        "tool_failed",
        f"The tool failed with exit code {exit_code}{why}",
        f"Correct the arguments as the {where} says and call again.",
    )


def document(
    base: dict[str, object], words: Words, messages: Messages, cap: int, roots: Iterable[str]
) -> dict[str, object]:
    """`base` with an error member and the tail of the messages; as JSON at most MAX_ERROR characters and `cap` bytes."""
    room = min(MAX_ERROR, cap)
    most = len(words.message)
    made: dict[str, object] = {}
    for keep, advice, tail in (
        (most, 600, 2000),
        (most, 600, 500),
        (most, 600, 0),
        (300, 400, 0),
        (120, 200, 0),
    ):
        error = {
            "code": words.code,
            "message": _cut(words.message, keep),
            "remedy": _cut(words.remedy, advice),
        }
        made = {**base, "error": error}
        if tail and messages.text:
            made["messages"] = messages.tail(tail, roots)
        if len(visible.escaped(orjson.dumps(made).decode()).encode()) <= room:
            break
    return made


def plain(first: str, words: Words, limit: int) -> str:
    """First line, message, remedy; at most `limit` characters, or 400 where that is less."""
    remedy = _cut(visible.visible(words.remedy), min(600, limit // 2))
    message = _cut(visible.visible(words.message), max(limit - len(first) - len(remedy) - 20, 80))
    return "\n".join(part for part in (first, message, f"What to do: {remedy}" if remedy else "") if part)


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters of it, with a mark where something is missing."""
    return text if len(text) <= limit else visible.cut_head(text, max(limit - 4, 0)).rstrip("\n") + " […]"
