"""Names: is this the name of a secret, and how sure is that?

Runs in the front; pure functions over bytes. Knows nothing of where a name was found. Names decide more than shapes:
most secrets have no recognisable form, nearly all stand next to a name that says what they are.
"""

from __future__ import annotations

import re
from typing import Literal

Level = Literal["", "password", "secret", "token", "weak"]

MAX_NAME = 64  # bytes of a name that count, its last ones
_WORD = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PASSWORD = (b"password", b"passwd", b"passphrase", b"passcode", b"pwd")
_PASSES = frozenset(
    b"pass pw psk bindpw rootpw dbpass userpass rootpass adminpass smtppass mailpass ftppass httppass authpass basicpass "
    b"keypass storepass sshpass bindpass mypass requirepass masterauth proxypass dbpw userpw".split()
)
_TOKEN = (
    b"token",
    b"apikey",
    b"appkey",
    b"accesskey",
    b"secretkey",
    b"privatekey",
    b"authkey",
    b"accountkey",
    b"masterkey",
    b"signingkey",
    b"encryptionkey",
    b"credential",
    b"credentials",
    b"cookie",
    b"sessionid",
    b"sessionkey",
    b"bearer",
)
KEY_OWNERS = frozenset(
    b"api access secret private auth signing encryption master shared account storage service subscription client app "
    b"application license webhook deploy admin bot integration personal rest sdk server function functions unseal "
    b"recovery hmac jwt fernet decryption sas consumer gateway ingest write wallet validator wif".split()
)
_PLAIN_KEYS = frozenset(
    b"cache primary public sort foreign partition idempotency object pub unique composite index map dict group hash "
    b"row lookup storage_key registry hot short arrow host_key ssh gpg kms rsa dsa ecdsa ed25519 project alert sym "
    b"translation i18n json data main any each no old new the a this by first last right left enter escape return "
    b"space tab ctrl control alt meta shift press down up restore key id config setting search session local state "
    b"node tree s3 redis queue event routing message metric label tag column field table prop property attr "
    b"publishable verification verifying verify host site sitekey instrumentation natural surrogate candidate turn mon".split()
)
_LAST_HARMLESS = frozenset(
    b"file path url uri name header length len ttl expiry expires expiration expire type policy algorithm alg id ref "
    b"hash count size limit min max hint label field prefix suffix format version provider backend store manager "
    b"endpoint dir directory mode enabled required valid status scope scopes index tokens env var usage reset hasher "
    b"at date time age timeout arn handler class method function parser digest fingerprint location placeholder title "
    b"description message text error strength score changed updated created rotation revision schema pattern regex "
    b"validator validators issuer audience generator factory request response rule rules".split()
)
# Cursors, locks and language-model tokens: hiding them breaks the next call, and they open nothing.
_HARMLESS_OWNERS = frozenset(
    b"next sync continuation page client change lock eos bos pad unk sep cls mask stop start end max min num total "
    b"prompt completion input output special cancellation cancel idempotency request concurrency resume cursor skip "
    b"sync_ reset_ csrf_param current prev previous last first bad unexpected syntax invalid design paging pagination "
    b"nextpage trace correlation fencing version marker position scroll copy product dedup deduplication starting color theme word "
    b"inference subword image audio cached reasoning thinking csrf xsrf authenticity antiforgery verification public "
    b"publishable pub push device registration fcm form".split()
)
_QUALIFIERS = frozenset(
    b"prod dev test live staging value val raw data str string old new current bedrock ext base primary secondary plain "
    b"plaintext content default hex b64 base64 bytes orig original master".split()
)
_VERBS = (
    b"export",
    b"list",
    b"import",
    b"delete",
    b"recv",
    b"search",
    b"edit",
    b"send",
)  # --export-secret-keys ID
_SECRET_HARMLESS_OWNERS = frozenset(b"image pull no top".split())


def level(name: bytes) -> Level:
    """How secret a value under `name` is; "" when the name says nothing. Only the last 64 bytes count."""
    name = name[-MAX_NAME:]
    words = [
        word.lower() for word in _WORD.findall(name[2:] if name.startswith(b"-D") else name)
    ]  # java -Dname=value
    while words and (words[-1].isdigit() or (len(words) > 1 and words[-1] in _QUALIFIERS)):
        words.pop()
    if not words or words[-1] in _LAST_HARMLESS:
        return ""
    last, owner = words[-1], words[-2] if len(words) > 1 else b""
    if last.endswith(_PASSWORD) or last in _PASSES:
        return "password"
    if last in (b"secret", b"secrets") or last.endswith(b"secret"):
        return "" if owner in _SECRET_HARMLESS_OWNERS else "secret"
    if last.endswith((b"key", b"keys", b"token")) and (b"public" in words or words[0] in _VERBS):
        return ""
    if last == b"key" or (last == b"keys" and owner in KEY_OWNERS):
        return _key_level(owner)
    if last.endswith(_TOKEN):
        return "" if owner in _HARMLESS_OWNERS or last[:-5] in _HARMLESS_OWNERS else "token"
    if last in (b"auth", b"authorization", b"session", b"pat") or last.endswith(b"authorization"):
        return "token"
    return ""


def _key_level(owner: bytes) -> Level:
    if not owner or owner.isdigit() or owner in _PLAIN_KEYS:
        return ""
    return "token" if owner in KEY_OWNERS else "weak"
