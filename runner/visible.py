"""Tool text made safe to show: what would move a cursor, hide or reverse text becomes something that is seen.

Runs in the front; pure. Works on redacted text only: redaction looks through escape sequences, this makes them plain.
"""

from __future__ import annotations

import functools
import re

# All of the Unicode categories Cc, Cf, Cs, Zl and Zp but line feed, tab and the Arabic and Kaithi signs that are drawn,
# and what has another category but no ink: fillers, variation selectors, tags.
_UNSEEN = (
    (0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160),
    (0x17B4, 0x17B5), (0x180B, 0x180E), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xD800, 0xDFFF), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF9, 0xFFFB), (0x13430, 0x13438),
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]")
_PLACEHOLDER_MAX = 52
_WORTH_JOINING = 200
_LINE_SEARCH = 200  # characters given up to cut at the end of a line
_NOTHING_DRAWN = re.compile(r"(?:\x1b\[[0-9;?]*[A-Za-z]|[ \t])*")
_REPEATED = re.compile(r"^(.*+)\n(?:\1\n){2,}+", re.MULTILINE)  # possessive: else 80 bytes of memory for each


def visible(text: str) -> str:
    """Every control, bidirectional, zero-width and tag character shown: ESC as ␛, others as <U+202E>.

    Line feeds and tabs stay; CR LF becomes LF.
    """
    return text.replace("\r\n", "\n").translate(_signs())


@functools.cache
def _signs() -> dict[int, str]:
    return {code: _sign(code) for first, last in _UNSEEN for code in range(first, last + 1)}


def _sign(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"


def escaped(document: str) -> str:
    """JSON text with characters that are not seen written as \\u escapes (RFC 8259, section 7); it means the same.

    Also the line separators at which some readers of lines cut: U+0085, U+2028, U+2029.
    """
    return document.translate(_escapes())


@functools.cache
def _escapes() -> dict[int, str]:
    """JSON itself has no raw characters below U+0020; line feeds between its tokens stay."""
    return {code: _escape(code) for code in _signs() if code >= 0x20}


def _escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def last_frames(text: str) -> str:
    """Progress that redraws its line with carriage returns, reduced to what stood there last and a count.

    A last state that draws nothing (blanks, "erase the line") is no state.
    """
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(_last_frame(line) if "\r" in line else line for line in lines)


def _last_frame(line: str) -> str:
    line = line.strip("\r")
    end = len(line)
    while (begin := line.rfind("\r", 0, end)) >= 0 and _NOTHING_DRAWN.fullmatch(line, begin + 1, end):
        end = begin
    if begin < 0:
        return "" if _NOTHING_DRAWN.fullmatch(line, 0, end) else line[:end]
    before = line.count("\r", 0, begin) + 1
    return f"{line[begin + 1 : end]} [redrawn {f'{before:,} times' if before > 1 else 'once'}]"


def joined_repeats(text: str) -> str:
    """Runs of identical lines as one line and a count, where that saves at least _WORTH_JOINING characters: the lines of a
    file count for whoever edits it.
    """
    short = _REPEATED.sub(_counted, f"{text}\n")
    return short[:-1]


def _counted(hit: re.Match[str]) -> str:
    line = hit.group(1)
    times = (hit.end() - hit.start()) // (len(line) + 1) - 1
    joined = f"{line}\n[the line above {times:,} more times]\n"
    return joined if len(hit[0]) - len(joined) >= _WORTH_JOINING else hit[0]


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
    hit = PLACEHOLDER.match(text, begin)
    return begin if hit and hit.end() > position else position
