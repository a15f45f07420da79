"""Secrets whose form is more than one run of characters: JWTs, passwords in URLs, webhooks, .pgpass.

Runs in the front; pure over bytes. Each function is called at an anchor and answers (span or nothing, how far it has
looked), so that nothing is looked at twice.
"""

from __future__ import annotations

import base64
import binascii
import re

from runner.redaction import pem
from runner.redaction.logins import LOGINS, is_in_url
from runner.redaction.spans import Found, Shape, Span
from runner.redaction.worth import is_drawn_word, is_password, is_token

_ALNUM = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


def opens_token(text: bytes, start: int) -> bool:
    """Whether a token may begin here: not inside a word, but after a literal \\n or %3D."""
    if start == 0 or text[start - 1] not in _ALNUM:
        return start < 2 or text[start - 1] != 43 or text[start - 2] not in _ALNUM  # "a+": inside base64
    if start >= 2 and text[start - 2 : start] in (b"\\n", b"\\t", b"\\r"):
        return True
    return (
        start >= 3
        and text[start - 3] == 37
        and all(byte in b"0123456789abcdefABCDEF" for byte in text[start - 2 : start])
    )


_DOTTED = re.compile(rb"[A-Za-z0-9_.=-]*+").match
_LINE_REST = re.compile(rb"[\"']?\\?\r?\n[ \t>|+#*\"']{0,32}+([A-Za-z0-9_.=-]{16,}+)").match


def _jwt(text: bytes, start: int, end: int) -> Found:
    run = _DOTTED(text, end)
    stop = run.end() if run else end
    parts = text[start:stop].split(b".", 5)
    if len(parts) < 3 and (rest := _LINE_REST(text, stop)):  # wrapped by a terminal or a mail program
        parts = (text[start:stop] + rest[1]).split(b".", 5)
        while rest is not None and len(parts) < 3:
            stop, rest = rest.end(), _LINE_REST(text, rest.end())
            parts = [*parts[:-1], *(parts[-1] + rest[1]).split(b".", 5)] if rest else parts
        stop = rest.end() if rest is not None else stop
    if len(parts) < 3 or len(parts[0]) < 12 or len(parts[1]) < 8 or not opens_token(text, start):
        return None, stop
    if not (parts[1].startswith(b"eyJ") or len(parts) >= 5 or len(parts[2]) >= 20):
        return None, stop
    return Span(start, start + len(text[start:stop].rstrip(b".")), "jwt"), stop


_AUTHORITY = re.compile(rb"""[^\s/?#"'<>`\\\xff]{1,1024}+""").match
_LOOSE = re.compile(rb"""[^\s"'<>`\\@\xff]{1,200}+@[A-Za-z0-9.-]{3,}""").match


def _url_password(text: bytes, _start: int, end: int) -> Found:
    run = _AUTHORITY(text, end)
    if not run:
        return None, end
    login, found, _ = run.group().rpartition(b"@")
    seen = run.end()
    if not found:  # a password with a slash, a question mark or a number sign in it
        loose = _LOOSE(text, end) if b":" in run.group() and text[seen : seen + 1] in b"/?#" else None
        login = loose.group().rpartition(b"@")[0] if loose else b""
        if not re.match(rb"[A-Za-z0-9_.-]{0,64}:(?![0-9]{1,5}(?:[/?#]|$))", login):
            return None, seen
        seen = loose.end() if loose else seen
    user, between, password = login.partition(b":")
    if not between:  # https://token@host
        if is_token(user, 20) and not user.islower():
            return Span(end, end + len(user), "url-password"), seen
        return None, seen
    # postgres:postgres and guest:guest are what documents and containers begin with
    if password == user or not is_in_url(password) or b"," in user:
        return None, seen
    stop = end + len(login)
    return Span(stop - len(password), stop, "url-password"), seen


_WEBHOOK_PATH = re.compile(rb"[A-Za-z0-9_/.@:-]{16,300}+").match
_SCHEME = b"https://"


def _webhook(text: bytes, start: int, end: int) -> Found:
    """An address that is itself the permission to post."""
    path = _WEBHOOK_PATH(text, end)
    if not path or not any(is_token(part, 16) or is_drawn_word(part) for part in path.group().split(b"/")):
        return None, path.end() if path else end
    host = text[start:end].partition(b".")
    kind = {b"hooks": "slack-webhook", b"discord": "discord-webhook", b"discordapp": "discord-webhook"}
    at = start - len(_SCHEME) if text[max(0, start - len(_SCHEME)) : start] == _SCHEME else start
    stop = end + len(path.group().rstrip(b".:-"))
    return Span(at, stop, kind.get(host[0], "webhook")), path.end()


_DISCORD = re.compile(rb"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_-])").finditer
_DISCORD_ID = re.compile(rb"[MNO][A-Za-z0-9]{22,27}\Z").search


def discord_tokens(text: bytes) -> list[Span]:
    """Bot tokens of Discord: the user id in base64, a time, a signature. Their form has no literal part but its dots."""
    spans: list[Span] = []
    for hit in _DISCORD(text):
        owner = _DISCORD_ID(text, max(0, hit.start() - 28), hit.start())
        if owner and opens_token(text, owner.start()) and is_token(hit.group()[8:], 27):
            spans.append(Span(owner.start(), hit.end(), "discord-token"))
    return spans


_JWK_VALUE = re.compile(rb"[A-Za-z0-9_-]{22,2048}+").match
_JWK_BYTES = 800


def _jwk(text: bytes, start: int, end: int) -> Found:
    """The private member of a JSON Web Key (RFC 7517): "d", or "k" of a symmetric one."""
    value = _JWK_VALUE(text, end)
    if not value:
        return None, end
    if b'"kty"' not in text[max(0, start - _JWK_BYTES) : value.end() + _JWK_BYTES]:
        return None, value.end()
    return Span(end, value.end(), "private-key"), value.end()


_AWS_SECRET = re.compile(
    rb"""["']?[\s,;:|]{1,8}(?:["']?[A-Za-z_ -]{0,32}["']?[ \t]?[=:,][ \t]{0,4})?["']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"""
).match


def aws_secret(text: bytes, end: int) -> Span | None:
    """The secret half that stands behind an AWS key id which ends at `end`."""
    found = _AWS_SECRET(text, end)
    if not found or not is_token(found[1]) or found[1].islower() or found[1].isupper():
        return None
    return Span(*found.span(1), "aws-secret-key")


_PGPASS = re.compile(
    rb"([^:\s\xff]{1,100}+):([^:\s\xff]{1,100}+):((?:\\.|[^\s\\\xff]){4,200}+)[ \t]*(?:\r?\n|\Z)"
).match


def _pgpass(text: bytes, start: int, end: int) -> Found:
    """host:port:database:user:password, a line of .pgpass."""
    front = text[max(0, start - 256) : start]
    host = front[front.rfind(b"\n") + 1 :]
    fields = _PGPASS(text, end)
    if not fields or b" " in host or b"/" in host or not is_password(fields[3]):
        return None, end
    if fields[1].isdigit() and fields[2].isdigit():
        return None, end  # passwd(5), shadow(5): numbers of user and group, days
    return Span(fields.start(3), fields.end(3), "password"), fields.end()


def is_basic(value: bytes) -> bool:
    """Whether base64 text is a `user:password` pair (RFC 7617)."""
    try:
        decoded = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and all(32 <= byte != 127 for byte in decoded)


SHAPES: dict[str, Shape] = {
    **LOGINS,
    "private-key": pem.private_key,
    "private-key-end": pem.private_key_end,
    "putty-key": pem.putty_key,
    "jwt": _jwt,
    "url-password": _url_password,
    "webhook": _webhook,
    "jwk": _jwk,
    "pgpass": _pgpass,
}
