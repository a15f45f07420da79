"""The one text block of a text tool: status first, then head and tail of what it printed, and how to get the rest.

Runs in the front; pure but for the store. Redacts before it cuts and before it stores.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner import error_texts, visible
from runner.case import Case, Told
from runner.wording import Words
from sandbox.types import Kind, Outcome

MAX_TEXT = 10_000  # characters; fits every client that was measured
_MARK = 160  # characters set aside for the line that says what is missing
_FIRST_LINE = 200
_HEAD_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class _Printed:
    """full: all of it. short: the same without redrawn and repeated lines. longer: whether it has
    more bytes than the tool printed, since signs that cannot be seen are written out.
    """

    full: str
    short: str
    longer: bool


def tell(case: Case) -> Told:
    """What the client is told. The whole is stored only when something is left out."""
    printed = _printed(case)
    status, words = case.status(), case.words()
    if words is None and case.is_withheld():
        status, words = "error", error_texts.UNCHECKED
    limit = _characters(case, printed, status)
    about = error_texts.plain("", words, limit - _FIRST_LINE) if words else ""
    space = limit - len(about) - _FIRST_LINE
    cut = len(printed.short) > max(space, 0)
    handle = None
    if printed.full and (cut or printed.short != printed.full):
        handle = case.outputs.keep(printed.full, case.tool.name)
    body = _head_and_tail(printed, max(space - _MARK, 0), handle) if cut else printed.short
    body = body or ("" if words else "(no output)")
    first = _first_line(case.outcome, status, words, handle)
    return Told("\n".join(part for part in (first, about, body) if part), None, status, words, handle)


def _characters(case: Case, printed: _Printed, status: str) -> int:
    """Of the whole block: fits the clients, and max_output_bytes when every character is escaped."""
    longest = 2 if printed.short.isascii() else 4  # bytes of a visible character inside a JSON string
    most = error_texts.MAX_ERROR if status == "error" else MAX_TEXT
    return min(most, case.room() // longest)


def _printed(case: Case) -> _Printed:
    masked = [case.stdout(), case.stderr()]
    whole = [visible.visible(text) for text in masked]
    redrawn = any("\r" in text.replace("\r\n", "\n") for text in masked)
    frames = [visible.visible(visible.last_frames(text)) for text in masked] if redrawn else whole
    short = [visible.joined_repeats(text) for text in frames]
    longer = sum(map(_bytes, whole)) > _size(case.outcome)
    return _Printed(_with_stderr(whole, case.outcome), _with_stderr(short, case.outcome), longer)


def _with_stderr(texts: list[str], outcome: Outcome) -> str:
    out, messages = texts[0].rstrip("\n"), texts[1].rstrip("\n")
    if not messages:
        return out
    size = max(outcome.stderr_total, len(outcome.stderr))
    return f"{out}\n[stderr, {size:,} bytes]\n{messages}" if out else f"[stderr, {size:,} bytes]\n{messages}"


def _size(outcome: Outcome) -> int:
    return max(outcome.stdout_total, len(outcome.stdout)) + max(outcome.stderr_total, len(outcome.stderr))


def _first_line(outcome: Outcome, status: str, words: Words | None, handle: str | None) -> str:
    """ "exit 0 · ok · 12 bytes", "timed_out · error · 12 bytes"; a good exit code with an error says which error."""
    if outcome.kind is not Kind.EXITED:
        parts = [outcome.kind.value, "error"]
    elif words is not None:
        parts = [f"exit {outcome.exit_code}", f"error {words.code}"]
    else:
        parts = [f"exit {outcome.exit_code}", status]
    parts.append(f"{_size(outcome):,} bytes")
    if handle:
        parts.append(f"handle {handle} (read_output)")
    return " · ".join(parts)


def _head_and_tail(printed: _Printed, space: int, handle: str | None) -> str:
    text = printed.short
    head = visible.cut_head(text, int(space * _HEAD_SHARE))
    tail = visible.cut_tail(text[len(head) :], space - len(head))
    missing = _bytes(text[len(head) : len(text) - len(tail)])
    of = ", counted as they are shown," if printed.longer else ""
    rest = f"; read_output with handle {handle}" if handle else ""
    if handle and printed.full.startswith(head):
        rest += f", offset {len(head)}"
    end = "" if head.endswith("\n") or not head else "\n"
    return f"{head}{end}[… {missing:,} bytes{of} not shown{rest} …]\n{tail}"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
