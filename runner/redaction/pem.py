"""Private keys in text: whole, cut at either end, and with something before every line. Runs in the front; pure."""

from __future__ import annotations

import re

from runner.redaction.spans import Found, Span

_KEY_HEAD = re.compile(
    rb"(?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----|OpenVPN Static key V1-----| KEY ----"
).match
_KEY_BODY = re.compile(
    rb"(?:(?:[ \t>|+*#-]|\\{1,4}[nrt]|\r?\n|,|\"|')*+"
    rb"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{0,200}+|[A-Za-z0-9+/=]++(?=\s|\\|[\"',-]|\Z)(?!\ [A-Za-z]{1,15}\ )))*+"
).match
_KEY_FOOT = re.compile(
    rb"(?:\s|\\{1,4}[nrt]|[>|+*#\"', ])*+-----END (?:[A-Z0-9 ]{0,64}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----"
).match
_KEY_CHARS = re.compile(rb"[A-Za-z0-9+/=]{16,}")


def private_key(text: bytes, start: int, end: int) -> Found:
    """A key from its first line on: plain, escaped, quoted, or cut off."""
    head = _KEY_HEAD(text, end)
    if not head:
        return None, end
    body = _KEY_BODY(text, head.end())
    stop = body.end() if body else head.end()
    longest = _KEY_CHARS.search(text, head.end(), stop)
    if (
        longest is None or stop - head.end() < 40
    ):  # prose that mentions the header, or something before every line
        return _prefixed_key(text, start, end, stop)
    foot = _KEY_FOOT(text, stop)
    return Span(start, foot.end() if foot else stop, "private-key"), foot.end() if foot else stop


_PUTTY = re.compile(
    rb"[0-9]{1,3}(?:\\{1,4}[rn]|\s){1,4}((?:[A-Za-z0-9+/=]{1,80}+(?:\\{1,4}[rn]|\s){0,4}+)+)"
).match


def putty_key(text: bytes, _start: int, end: int) -> Found:
    """The private half of a PuTTY key file, between its line count and its MAC."""
    lines = _PUTTY(text, end)
    if not lines:
        return None, end
    body = lines[1].removesuffix(b"Private").rstrip(b"\\rn \t\r\n")  # of the next line, Private-MAC
    stop = lines.start(1) + len(body)
    return (Span(lines.start(1), stop, "private-key") if len(body) >= 40 else None), stop


def _prefixed_key(text: bytes, start: int, end: int, stop: int) -> Found:
    """A key as grep, blame or a numbered listing shows it: with the same kind of prefix before every line."""
    line_end = text.find(b"\n", end, end + 200)
    count, edge = _key_lines(text, line_end, down=True) if line_end >= 0 else (0, 0)
    return (Span(start, edge, "private-key"), edge) if count >= 2 else (None, stop)


def private_key_end(text: bytes, start: int, end: int) -> Found:
    """The end of a key whose beginning is not shown, as `tail` prints it."""
    line_start = text.rfind(b"\n", 0, start)
    if not _KEY_HEAD(text, end) or line_start <= 0:
        return None, end
    count, edge = _key_lines(text, line_start, down=False)
    return (Span(edge, line_start, "private-key"), end) if count >= 2 else (None, end)


_KEY_LINES, _KEY_LINE_BYTES = 400, 1024
_BASE64_END = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="


def _key_lines(text: bytes, at: int, *, down: bool) -> tuple[int, int]:
    """(count, far edge) of the lines beside the line break `at` that end in base64, whatever stands before that."""
    count, edge, others = 0, at, 0
    for _ in range(_KEY_LINES):
        if (down and at >= len(text)) or (not down and at <= 0):
            break
        first, last = _line_below(text, at) if down else _line_above(text, at)
        line = text[first:last]
        if b"-----END" in line:
            edge = last
            break
        if b"\xff" in line or b"-----BEGIN" in line:
            break
        stripped = line.rstrip(b" \t\r")
        run = len(stripped) - len(stripped.rstrip(_BASE64_END))
        if run >= (1 if (count if down else not count) else 16):  # the last line of a key may be short
            count, edge = count + 1, last if down else first
        elif down and not count and others < 4:  # Proc-Type, DEK-Info, an empty line
            others += 1
        else:
            break
        at = last if down else first - 1
    return count, edge


def _line_below(text: bytes, at: int) -> tuple[int, int]:
    limit = at + 1 + _KEY_LINE_BYTES
    end = text.find(b"\n", at + 1, limit)
    return at + 1, min(len(text), limit) if end < 0 else end


def _line_above(text: bytes, at: int) -> tuple[int, int]:
    limit = max(0, at - _KEY_LINE_BYTES)
    start = text.rfind(b"\n", limit, at)
    return (limit if start < 0 else start + 1), at
