"""Encoded text in text: runs of base64 and hex that decode to something readable, to be searched for secrets too.

Runs in the front; pure over bytes. Decides by a few characters of each run, so that hashes and images cost little, and
decodes no more than it was given.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

_RUN = re.compile(rb"[A-Za-z0-9+/_-]{24,}+={0,2}").finditer
_MORE = re.compile(
    rb"[\"']?[ \t]{0,8}\\?\r?\n[ \t>|+#\"']{0,32}+([A-Za-z0-9+/_-]{1,4096}+={0,2})(?=[\s\"'\\]|\Z)"
).match
_HEX = re.compile(rb"(?:[2-7][0-9a-fA-F]|0[9aAdD]){12,}+\Z").match
# The first of four base64 characters holds the six high bits of a byte: these stand for ASCII text.
_LEADS = b"IJKLMNOPQRSTUVWXYZabcdefCD"
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_READABLE = bytes([9, 10, 13, *range(32, 127)])
_WRAPPED_FROM = 40  # shorter lines are not wrapped base64
_BINARY = 0.02  # share of other bytes, as in a binary wrapper around text


class Encoded(NamedTuple):
    """A run and what it says."""

    start: int
    end: int
    content: bytes


def runs(text: bytes) -> list[Encoded]:
    """Every run that decodes to readable text, rising."""
    found: list[Encoded] = []
    position = 0
    for hit in _RUN(text):
        start, end = hit.span()
        if start < position or text[start:end:4][:16].translate(None, _LEADS):
            if start >= position and _HEX(text, start, end):
                found.append(
                    Encoded(start, end, bytes.fromhex(text[start : end - (end - start) % 2].decode("ascii")))
                )
            continue
        run = text[start:end]
        if _HEX(run):
            found.append(Encoded(start, end, bytes.fromhex(run[: len(run) & ~1].decode("ascii"))))
            continue
        if len(run) >= _WRAPPED_FROM:
            run, end = _unwrapped(text, run, end)
            position = end
        content = _decoded(run)
        if content is not None:
            found.append(Encoded(start, end, content))
    return found


def _unwrapped(text: bytes, run: bytes, end: int) -> tuple[bytes, int]:
    """The run with the lines that follow it, while they are full ones."""
    pieces, width = [run], len(run)
    while not run.endswith(b"=") and (more := _MORE(text, end)):
        piece = more[1]
        if len(piece) > width or (len(piece) < width and b"-" in piece):
            break
        pieces.append(piece)
        end = more.end(1)
        run = piece
        if len(piece) < width:
            break
    return b"".join(pieces), end


def _decoded(run: bytes) -> bytes | None:
    body = run.rstrip(b"=").translate(_URL_SAFE)
    body = body[: len(body) - 1] if len(body) % 4 == 1 else body
    try:
        content = base64.b64decode(body + b"=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    others = content.translate(None, _READABLE)
    if len(others) <= len(content) * _BINARY:
        return content
    try:
        content.decode()
    except UnicodeDecodeError:
        return None
    return content if min(others) >= 0x80 else None
