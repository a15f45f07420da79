"""Names and values: is this the name of a secret, and is that a value worth hiding?

Runs in the front; pure functions over bytes. Knows nothing of where a name was found. Names decide more than shapes:
most secrets have no recognisable form, nearly all stand next to a name that says what they are.
"""

from __future__ import annotations

import re
from typing import Literal

Level = Literal["", "password", "secret", "token", "weak"]

_WORD = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD = (b"password", b"passwd", b"passphrase", b"passcode", b"pwd", b"pass")
_TOKEN = (
    b"token",
    b"apikey",
    b"accesskey",
    b"secretkey",
    b"privatekey",
    b"authkey",
    b"accountkey",
    b"credential",
    b"credentials",
    b"cookie",
    b"sessionid",
    b"bearer",
)
_KEY_OWNERS = frozenset(
    b"api access secret private auth signing encryption master shared account storage service subscription client app "
    b"application license webhook deploy admin bot integration personal rest sdk server host function".split()
)
_PLAIN_KEYS = frozenset(
    b"cache primary public sort foreign partition idempotency object pub unique composite index map dict group hash "
    b"row lookup storage_key registry hot short arrow host_key ssh gpg kms rsa dsa ecdsa ed25519 project alert sym "
    b"translation i18n json data main any each no old new the a this by first last right left enter escape return "
    b"space tab ctrl control alt meta shift press down up restore key id config setting search session local state "
    b"node tree s3 redis queue event routing message metric label tag column field table prop property attr".split()
)
_LAST_HARMLESS = frozenset(
    b"file path url uri name header length len ttl expiry expires expiration expire type policy algorithm alg id ref "
    b"hash count size limit min max hint label field prefix suffix format version provider backend store manager "
    b"endpoint dir directory mode enabled required valid status scope scopes index tokens env var usage reset hasher "
    b"at date time age timeout arn handler class method function parser digest fingerprint".split()
)
# Cursors, locks and language-model tokens: hiding them breaks the next call, and they open nothing.
_HARMLESS_TOKENS = (
    b"next sync continuation page client change lock eos bos pad unk sep cls mask stop start end max min num total "
    b"prompt completion input output special cancellation cancel idempotency request concurrency resume cursor skip "
    b"sync_ reset_ csrf_param current prev previous last first bad unexpected syntax invalid design"
).split()
_HARMLESS_OWNERS = frozenset(_HARMLESS_TOKENS)
_QUALIFIERS = frozenset(
    b"prod dev test live staging value val raw data str string old new current bedrock ext".split()
)


def level(name: bytes) -> Level:
    """How secret a value under `name` is; "" when the name says nothing. Only the last 64 bytes count."""
    words = [word.lower() for word in _WORD.findall(name[-64:])]
    while words and (words[-1].isdigit() or (len(words) > 1 and words[-1] in _QUALIFIERS)):
        words.pop()
    if not words or words[-1] in _LAST_HARMLESS:
        return ""
    last, owner = words[-1], words[-2] if len(words) > 1 else b""
    if last.endswith(_PASSWORD):
        return "" if last in (b"bypass", b"compass", b"encompass", b"surpass") else "password"
    if last in (b"secret", b"secrets") or last.endswith(b"secret"):
        return "secret"
    if last == b"key" or (last == b"keys" and owner in _KEY_OWNERS):
        return _key_level(owner)
    if last.endswith(_TOKEN):
        return "" if owner in _HARMLESS_OWNERS or last[:-5] in _HARMLESS_OWNERS else "token"
    if last in (b"auth", b"authorization", b"session", b"pat") or last.endswith(b"authorization"):
        return "token"
    return ""


def _key_level(owner: bytes) -> Level:
    if not owner or owner in _PLAIN_KEYS:
        return ""
    return "token" if owner in _KEY_OWNERS else "weak"


_GAP = re.compile(
    rb"""(?xi)
    \$\{ | \$\( | \$\{\{ | \{\{ | \$[A-Za-z_]\w*$ | <[^>]*>?$ | %\w+%$ | @\w+@$ | \*+$ | x{3,}$ | \.{3,} | \[REDACTED
    | \[WITHHELD | \{\w+\}?$ | %s\b | !\w | (?:your|my|some|the)[_-] | (?:your|example|sample|dummy|fake|placeholder|change[_-]?me|todo)
    | (?:null|none|nil|true|false|undefined|void|yes|no|on|off|string|str|text|bytes|int|integer|boolean|bool|object
        |optional|required|password|passwd|pass|passphrase|secret|token|key|value|redacted|hidden|masked|masking
        |unset|empty|default|enabled|disabled|n/a)$
    | (?:os\.environ|process\.env|env\.|secrets\.|config\.|settings\.|self\.|this\.|request\.|req\.|args\.|vars?\.)
    | (?:arn:|sha(?:1|256|384|512)[:-]|data:|vault:|op://|ssm:|secretsmanager:|ref\+)
    """
)
_CODE = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*(?:\(|\[|\.[A-Za-z_][A-Za-z_]*(?:$|[.(\[])|::|->)")
_TYPE = re.compile(rb"(?:Key|Keys|Token|Tokens|Secret|Types?)$")  # the name of a class, not a value
_BRACKET = re.compile(rb"[()\[\]{}<>]")
_DIGIT = re.compile(rb"[0-9]")
_DATE = re.compile(rb"\d{4}-\d\d-\d\d(?:[T ]|$)")
_UUID = re.compile(rb"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$")
_HEX = re.compile(rb"[0-9a-fA-F]{24,}$")
_PART = re.compile(rb"[A-Z]?[a-z]{2,}[0-9]{0,3}$|[A-Z]{2,}[0-9]{0,2}$|[0-9]{1,4}$|[a-z][0-9]{1,3}$|$")
_SPLIT = re.compile(rb"[-_./:+ ]")
_PATH = re.compile(rb"(?:~|\.{1,2})?/[\w.-]+(?:/[\w.@-]*)+$|[A-Za-z][A-Za-z0-9+.-]*://")
_LETTERS = re.compile(rb"[A-Za-z_. -]*$")


def is_gap(value: bytes) -> bool:
    """True for what stands where a secret would: an example, a variable, a type name, an earlier placeholder."""
    head = value[:256]
    return not head or _GAP.match(head) is not None


def is_words(value: bytes) -> bool:
    """True for kebab, snake and dotted names: every part is a word or a small number."""
    return all(_PART.match(part) for part in _SPLIT.split(value[:256]))


def is_token(value: bytes, least: int = 16) -> bool:
    """True for what looks drawn at random: long, no spaces, digits among letters, not a path, date or name."""
    if len(value) < least or is_gap(value) or b" " in value:
        return False
    head = value[:256]
    if b"example" in head.lower() or _TYPE.search(head) or (len(value) < 40 and _BRACKET.search(head)):
        return False
    if _UUID.match(head):
        return True
    digits = any(48 <= byte <= 57 for byte in head)
    if _HEX.match(head):
        return digits and not head.isdigit()
    if not digits or head.isdigit() or _DATE.match(head) or _PATH.match(head) or _CODE.match(head):
        return False
    return not is_words(head)


def is_password(value: bytes, least: int = 4) -> bool:
    """True for a value with a digit or a symbol that is neither a gap, a path, a piece of code nor plain words."""
    if len(value) < least or is_gap(value):
        return False
    head = value[:256]
    if _LETTERS.match(head) or _PATH.match(head) or _CODE.match(head):
        return False
    return b"(" not in head or any(48 <= byte <= 57 for byte in head)


def worth_hiding(found: Level, value: bytes, *, sure: bool) -> bool:
    """The value test for a name of level `found`. `sure`: quoted name and value, so prose and code are unlikely."""
    value = value.rstrip(b",;")
    if found == "password":
        if sure and not is_gap(value):
            return not _PATH.match(value[:256]) and (
                b" " not in value or _DIGIT.search(value[:256]) is not None
            )
        return is_password(value)
    if found == "secret":
        return is_password(value, 8) and not is_words(value) and (sure or is_token(value, 12))
    if found == "token":
        return is_token(value, 12 if sure else 16)
    return found == "weak" and is_token(value, 20) and not value.islower()
