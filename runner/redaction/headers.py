"""Credentials in headers of HTTP: Authorization and its schemes, Cookie and Set-Cookie, `Bearer x` anywhere.

Runs in the front; pure over bytes. Called where a key word stands; answers None when the place is none of its business.
"""

from __future__ import annotations

import re

from runner.redaction.grammar import SCHEMES
from runner.redaction.shapes import is_basic
from runner.redaction.spans import Span
from runner.redaction.worth import is_gap, is_token

_AFTER = re.compile(rb"(?:[ \t]{1,8}|%20|\+)[\"']?([A-Za-z0-9._~+/=|:-]{4,8192}+)").match
_HEADER = re.compile(
    rb"""[\\"'`\]]{0,4}[ ]?(?P<op>:|=>?|,|[ ])[ ]{0,4}(?:b|u)?[\\"'`]{0,4}
    (?:(?P<scheme>[A-Za-z][A-Za-z0-9-]{1,24})(?:[ ]{1,4}|%20|\+|:[ ]))?(?:token=|key=)?[\\"']{0,2}
    (?P<value>[^\s"'\\,;`<>)}\xff]{6,8192}+)""", re.VERBOSE
).match  # fmt: skip
_COOKIES = re.compile(
    rb"""[\\"'`\]]{0,4}[ ]?(?::|=>?|,|[ ])[ ]{0,4}(?:b|u)?[\\"'`]{0,4}(?=[\w!#$%&'*.^|~+-]{1,64}=)"""
).match
_COOKIE = re.compile(rb"""(?P<name>[\w!#$%&'*.^|~+-]{1,64})=(?P<value>[^\s;,"'\\\xff]{0,512}+)""").match
_NEXT = re.compile(rb";[ ]{0,2}").match
_ATTRIBUTES = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite", b"version", b"priority"))
_TRACKERS = re.compile(
    rb"(?:_ga|_gid|_gat|_fbp|_hj|__utm|ajs_|amp_|optimizely|locale|lang|theme|tz|timezone|consent|cookieconsent|country|currency|ab_)"
).match
_COOKIE_NAMES = (b"cookie", b"set-cookie", b"x-cookie", b"http_cookie", b"document.cookie")
_MAX_COOKIES = 40


def special(text: bytes, lowered: bytes, start: int, end: int) -> list[Span] | None:
    """Spans of credentials at the name text[start:end], [] when it is such a place without a secret; None: look for a pair."""
    word = lowered[start:end]
    if word.endswith(b"cookie") and word.lstrip(b"-") in _COOKIE_NAMES:
        return _cookies(text, end)
    if word in (b"authorization", b"proxy-authorization", b"x-authorization", b"http_authorization"):
        return _authorization(text, end)
    if word in (b"bearer", b"basic"):
        span = _scheme(text, lowered, word, start, end)
        return [span] if span else None
    return None


def _scheme(text: bytes, lowered: bytes, word: bytes, start: int, end: int) -> Span | None:
    """`Bearer x` and `Basic x` (RFC 6750, 7617) outside of a header."""
    found = _AFTER(text, end)
    if not found or is_gap(found[1]):
        return None
    if word == b"basic":
        return Span(*found.span(1), "basic-credentials") if is_basic(found[1]) else None
    header = b"auth" in lowered[max(0, start - 32) : start]
    return Span(*found.span(1), "bearer-token") if is_token(found[1], 8 if header else 16) else None


def _authorization(text: bytes, end: int) -> list[Span] | None:
    header = _HEADER(text, end)
    if not header:
        return None
    value, scheme = header["value"], (header["scheme"] or b"").lower()
    if is_gap(value) or b"credential=" in value.lower():
        return []
    if header["op"] == b" " and scheme and scheme not in SCHEMES:
        return None  # prose: "the Authorization Server Metadata"
    if scheme == b"basic":
        known = is_basic(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4))
        return [Span(*header.span("value"), "basic-credentials")] if known else []
    if scheme == b"bearer" and is_token(value, 8):
        return [Span(*header.span("value"), "bearer-token")]
    return [Span(*header.span("value"), "token")] if is_token(value, 12) else []


def _cookies(text: bytes, end: int) -> list[Span] | None:
    opening = _COOKIES(text, end)
    if not opening:
        return None
    spans: list[Span] = []
    at = opening.end()
    for _ in range(_MAX_COOKIES):
        pair = _COOKIE(text, at)
        if not pair:
            break
        name, value = pair["name"].lower(), pair["value"]
        if name not in _ATTRIBUTES and not _TRACKERS(name) and is_token(value, 12):
            spans.append(Span(*pair.span("value"), "cookie"))
        gap = _NEXT(text, pair.end())
        if not gap:
            break
        at = gap.end()
        if text[at : at + 8].lower() in (b"httponly", b"secure") or text[at : at + 6].lower() == b"secure":
            break
    return spans
