"""Tokens that are valid in form, made while the tests run: none stands in the repository."""

from __future__ import annotations

import base64
import random
import re
import string

from runner.redaction.rule import Rule

_LETTERS = string.ascii_letters + string.digits
_MEMBERS = {
    "hex": string.digits + "abcdef",
    "hexdash": string.digits + "abcdef",
    "upper": string.ascii_uppercase + "234567",
    "lower": string.ascii_lowercase + string.digits,
    "digit": string.digits,
    "x": "x",
}
_DRAWN = re.compile(r"<([a-z0-9]+):(\d+)>")


def drawn(charset: str, length: int, seed: int = 7) -> str:
    """`length` characters of a class; no long repeats, and every kind of character that the class has."""
    source = random.Random(f"{charset}{length}{seed}")
    members = _MEMBERS.get(charset, _LETTERS)
    text = [source.choice(members) for _ in range(length)]
    wanted = [
        c
        for group in (string.digits, string.ascii_lowercase, string.ascii_uppercase)
        if (c := [m for m in members if m in group])
    ]
    for place, group in enumerate(wanted[:length]):
        text[place] = source.choice(group)
    return "".join(text)


def made(template: str, seed: int = 7) -> str:
    """A template of rule.py or structures.py with something drawn in each of its places."""
    places = iter(range(seed * 1000, seed * 1000 + 1000))

    def place(found: re.Match[str]) -> str:
        kind, length, own = found[1], int(found[2]), next(places)
        if kind == "pem":
            return "\n".join(drawn("base64", 64, own + 100 * line) for line in range(length))
        if kind == "b64":
            raw = random.Random(own).randbytes(length)
            return base64.b64encode(raw).decode()[: length - 2] + ("==" if length % 4 == 0 else "")
        if kind == "basic":
            return base64.b64encode(f"user:{drawn('alnum', 14, own)}".encode()).decode()
        if kind == "encoded":
            return base64.b64encode(f"token: {github(own)}\n".encode()).decode()
        return drawn(kind, length, own)

    return _DRAWN.sub(place, template)


def token(rule: Rule, anchor: str, seed: int = 7) -> str:
    """A token that `rule` describes, with one of its anchors, after a word that the rule asks for."""
    front = f"{rule.words[0]} " if rule.words else ""
    return front + made(rule.form.replace(rule.anchors[0], anchor, 1), seed)


def github(seed: int = 7) -> str:
    """A GitHub token."""
    return "ghp_" + drawn("alnum", 36, seed)


def private_key(lines: int = 12) -> str:
    """A private key block."""
    body = "\n".join(drawn("base64", 64, number) for number in range(lines))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
