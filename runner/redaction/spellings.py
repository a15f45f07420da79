"""Every common form in which a known secret may be printed. Runs in the front, once before the first use; pure."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from runner.redaction.values import SecretValue, is_maskable

_SPECIAL = re.compile(r"[^\w@%+=:,./-]", re.ASCII)
_CASED_FROM = 12  # characters from which a value is looked for in lower and in upper case too


def literals(values: Iterable[SecretValue]) -> dict[bytes, tuple[bool, bool]]:
    """Every form to look for -> (is its first, is its last character shared with what stands beside it).

    Base64 mixes a value's first and last bits with its neighbours' (RFC 4648); those characters differ from text to
    text, are not part of the form, and are hidden with it.
    """
    forms: dict[bytes, tuple[bool, bool]] = {}
    for secret in values:
        if is_maskable(secret.value):
            for form in _plain_forms(secret.value):
                forms.setdefault(form, (False, False))
            for form, first, last in _base64_forms(secret.value.encode("utf-8", "surrogatepass")):
                forms.setdefault(form, (first, last))
    return forms


def _plain_forms(value: str) -> Iterator[bytes]:
    raw = value.encode("utf-8", "surrogatepass")
    yield raw
    if len(value) >= _CASED_FROM and not value.isalpha():
        yield from (raw.lower(), raw.upper())
    escaped = value
    for _ in range(3):  # JSON in JSON in JSON: logs of requests that carry documents
        escaped = _json_inside(escaped)
        yield escaped.encode("utf-8", "surrogatepass")
    for escaped in (_json_inside(value, ascii_only=True), _json_inside(_json_inside(value, ascii_only=True))):
        yield escaped.encode()
    for safe in ("", "/"):
        percent = quote(raw, safe=safe)
        yield percent.encode()
        yield re.sub("%[0-9A-F]{2}", lambda code: code.group().lower(), percent).encode()
    yield quote_plus(raw).encode()
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield raw.hex(":").encode()
    yield raw.hex(" ").encode()
    for quoted in _quoted(value):
        yield quoted.encode("utf-8", "surrogatepass")


def _quoted(value: str) -> Iterator[str]:
    """As CSV, SQL and YAML, shells, XML and HTML, and Python write it inside of quotes."""
    yield repr(value)[1:-1]
    yield value.replace('"', '""')
    yield value.replace("'", "''")
    yield value.replace("'", "'\\''")
    yield value.replace("'", "'\"'\"'")  # shlex.quote
    yield _SPECIAL.sub(r"\\\g<0>", value)  # printf %q of bash
    yield re.sub(r'(["\\$`])', r"\\\1", value)  # in double quotes of a shell
    escaped = html.escape(value, quote=False)
    for apostrophe in ("'", "&#x27;", "&#39;", "&#039;", "&apos;"):
        for quote_mark in ('"', "&quot;", "&#34;"):
            yield escaped.replace('"', quote_mark).replace("'", apostrophe)


def _json_inside(value: str, *, ascii_only: bool = False) -> str:
    table = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    out = "".join(table.get(char, char if char >= " " else f"\\u{ord(char):04x}") for char in value)
    if not ascii_only:
        return out
    units = (char if char < "\x7f" else char.encode("utf-16-be", "surrogatepass") for char in out)
    return "".join(
        unit if isinstance(unit, str) else re.sub("(....)", r"\\u\1", unit.hex()) for unit in units
    )


def _base64_forms(raw: bytes) -> Iterator[tuple[bytes, bool, bool]]:
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + raw)
        lead = (0, 2, 3)[shift]
        partial = (shift + len(raw)) % 3
        body = text[lead : len(text.rstrip(b"=")) - (1 if partial else 0)]
        for form in {body, body.replace(b"+", b"-").replace(b"/", b"_")}:
            yield form, shift > 0, partial > 0
