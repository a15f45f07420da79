"""Tokens that are valid in form, made while the tests run: none stands in the repository."""

from __future__ import annotations

import random
import string

from runner.redaction.rules import Rule

_MEMBERS = {
    "alnum": string.ascii_letters + string.digits,
    "word": string.ascii_letters + string.digits,
    "dash": string.ascii_letters + string.digits,
    "dot": string.ascii_letters + string.digits,
    "base64": string.ascii_letters + string.digits,
    "path": string.ascii_letters + string.digits,
    "hex": string.digits + "abcdef",
    "hexdash": string.digits + "abcdef",
    "upper": string.ascii_uppercase + "234567",
    "lower": string.ascii_lowercase + string.digits,
    "money": string.ascii_letters + string.digits,
    "tilde": string.ascii_letters + string.digits,
    "digit": string.digits,
}


def drawn(charset: str, length: int, seed: int = 7) -> str:
    """`length` characters of a class; no long repeats, and every kind of character that the class has."""
    source = random.Random(f"{charset}{length}{seed}")
    members = _MEMBERS[charset]
    text = [source.choice(members) for _ in range(length)]
    wanted = [
        c
        for group in (string.digits, string.ascii_lowercase, string.ascii_uppercase)
        if (c := [m for m in members if m in group])
    ]
    for place, group in enumerate(wanted[:length]):
        text[place] = source.choice(group)
    return "".join(text)


def token(rule: Rule, anchor: str, seed: int = 7) -> str:
    """A token that `rule` describes."""
    front = drawn(rule.before[0], max(rule.before[1], 1), seed) if rule.before else ""
    length = rule.least + 3 if not rule.most else rule.most
    return front + anchor + drawn(rule.charset, length, seed)


def github(seed: int = 7) -> str:
    """A GitHub token."""
    return "ghp_" + drawn("alnum", 36, seed)


def private_key(lines: int = 12) -> str:
    """A private key block."""
    body = "\n".join(drawn("base64", 64, number) for number in range(lines))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
