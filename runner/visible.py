"""Tool text made safe to show: what would move a cursor, hide or reverse text becomes something that is seen.

Runs in the front; pure. Works on redacted text only: redaction looks through escape sequences, this makes them plain.
"""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]")
_PLACEHOLDER_MAX = 52
_LINE_SEARCH = 200  # characters given up to cut at the end of a line


def visible(text: str) -> str:
    """Every control, bidirectional, zero-width and tag character shown: ESC as ␛, others as <U+202E>.

    Line feeds and tabs stay; CR LF becomes LF.
    """
    return _UNSEEN.sub(_shown, text.replace("\r\n", "\n"))


def _shown(hit: re.Match[str]) -> str:
    code = ord(hit.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"


def last_frames(text: str) -> str:
    """Progress that redraws its line with carriage returns, reduced to what stood there last."""
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def joined_repeats(text: str) -> str:
    """Runs of three and more identical lines as one line and a count."""
    out: list[str] = []
    run = 0
    previous: str | None = None
    for line in [*text.split("\n"), None]:
        if line is not None and line == previous:
            run += 1
            continue
        if previous is not None:
            out.append(previous)
            if run == 1:
                out.append(previous)
            elif run > 1:
                out.append(f"[the line above {run} more times]")
        previous, run = line, 0
    return "\n".join(out)


def cut_head(text: str, limit: int) -> str:
    """The first `limit` characters or a little less: whole lines where possible, never part of a placeholder."""
    if len(text) <= limit:
        return text
    end = outside(text, max(0, limit))
    line = text.rfind("\n", max(0, end - _LINE_SEARCH), end)
    return text[: line + 1] if line > 0 else text[:end]


def cut_tail(text: str, limit: int) -> str:
    """The last `limit` characters or a little less, as in `cut_head`."""
    if len(text) <= limit:
        return text
    start = len(text) - max(0, limit)
    if (before := outside(text, start)) < start:
        start = text.index("]", before) + 1
    line = text.find("\n", start, start + _LINE_SEARCH)
    return text[line + 1 :] if 0 <= line < len(text) - 1 else text[start:]


def outside(text: str, position: int) -> int:
    """`position`, or the start of the placeholder that it would cut."""
    begin = text.rfind("[REDACTED:", max(0, position - _PLACEHOLDER_MAX), position + 9)
    if begin < 0 or begin >= position:
        return position
    hit = _PLACEHOLDER.match(text, begin)
    return begin if hit and hit.end() > position else position
