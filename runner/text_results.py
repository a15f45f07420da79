"""The one text block of a text tool: status first, then head and tail of what it printed, and how to get the rest.

Runs in the front; pure but for the `keep` it is given. Redacts before it cuts and before it stores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from runner import error_texts, visible
from runner.redaction.engine import Redactor
from runner.wording import Words
from sandbox.types import Outcome

MAX_TEXT = 10_000  # characters; fits every client that was measured
_MARK = 120  # characters set aside for the line that says what is missing
_HEAD_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Room:
    """What the block says and may take. status: "ok", "findings", "error"; words: for outcomes that are no exit."""

    status: str
    words: Words | None
    limit: int

    @property
    def characters(self) -> int:
        """Of the whole block."""
        return min(self.limit, error_texts.MAX_ERROR) if self.status == "error" else self.limit


def block(  # one call's facts, used once
    outcome: Outcome,
    room: Room,
    redactor: Redactor,
    counts: Counter[str],
    keep: Callable[[str], str],
    root: str,
) -> str:
    """The text. `keep` stores the whole and returns its handle; called only when something is left out."""
    full, short, frames_lost = _printed(outcome, redactor, counts)
    about = ""
    if room.words is not None:
        said = error_texts.plain("", room.words, room.characters - 200)
        about = error_texts.relative(said.lstrip("\n"), root)
    space = room.characters - len(about) - 200
    cut = len(short) > max(space, 0)
    handle = keep(full) if full and (cut or frames_lost) else None
    first = _first_line(outcome, room, handle)
    body = _head_and_tail(short, max(space - _MARK, 0), handle) if cut else short
    body = body or ("" if room.words else "(no output)")
    return "\n".join(part for part in (first, about, body) if part)


def _printed(outcome: Outcome, redactor: Redactor, counts: Counter[str]) -> tuple[str, str, bool]:
    """(the whole, the same without redrawn and repeated lines, whether redrawn lines were lost)."""
    texts: list[str] = []
    for data, total in ((outcome.stdout, outcome.stdout_total), (outcome.stderr, outcome.stderr_total)):
        text, found = redactor.text(error_texts.decoded(data, total))
        counts.update(found)
        texts.append(text)
    whole = [visible.visible(text) for text in texts]
    frames = [visible.visible(visible.last_frames(text)) for text in texts]
    short = [visible.joined_repeats(text) for text in frames]
    return _with_stderr(whole, outcome), _with_stderr(short, outcome), frames != whole


def _with_stderr(texts: list[str], outcome: Outcome) -> str:
    out, messages = texts[0].rstrip("\n"), texts[1].rstrip("\n")
    if not messages:
        return out
    size = max(outcome.stderr_total, len(outcome.stderr))
    return f"{out}\n[stderr, {size:,} bytes]\n{messages}" if out else f"[stderr, {size:,} bytes]\n{messages}"


def _first_line(outcome: Outcome, room: Room, handle: str | None) -> str:
    size = max(outcome.stdout_total, len(outcome.stdout)) + max(outcome.stderr_total, len(outcome.stderr))
    if room.words is not None:
        parts = [room.words.code, "error"]
    else:
        parts = [f"exit {outcome.exit_code}", room.status]
    parts.append(f"{size:,} bytes")
    if handle:
        parts.append(f"handle {handle} (read_output)")
    return " · ".join(parts)


def _head_and_tail(text: str, space: int, handle: str | None) -> str:
    head = visible.cut_head(text, int(space * _HEAD_SHARE))
    tail = visible.cut_tail(text[len(head) :], space - len(head))
    missing = len(text[len(head) : len(text) - len(tail)].encode("utf-8", "replace"))
    rest = f"; read_output with handle {handle}" if handle else ""
    return f"{head.rstrip(chr(10))}\n[… {missing:,} bytes not shown{rest} …]\n{tail}"
