"""A known value is found however it was quoted, wrapped or typed on its way out."""

from __future__ import annotations

import csv
import html
import io
import shlex
import subprocess
from collections.abc import Callable
from xml.sax import saxutils

import pytest

from runner.redaction.engine import Redactor
from runner.redaction.values import SecretValue

ODD = "pX'9k\"w2$7&Qf<Rt\\5z"
LONG = "Zq7Kp2Vw9Xr4Tn8Bm3Lc6Hd1"
DIGITS = "8403175926"
KNOWN = Redactor(
    (SecretValue("DB_PASSWORD", ODD), SecretValue("MY_TOKEN", LONG), SecretValue("PIN_TOKEN", DIGITS))
)
HIDDEN = "[REDACTED:secret-value]"


def _csv(value: str) -> str:
    file = io.StringIO()
    csv.writer(file).writerow(["a", value, 1])
    return file.getvalue()


def _bash(value: str) -> str:
    done = subprocess.run(
        ["bash", "-c", 'printf %q "$1"', "bash", value], capture_output=True, text=True, check=True
    )
    return done.stdout


FORMS: dict[str, Callable[[str], str]] = {
    "csv": _csv,
    "sql": lambda value: f"SET PASSWORD '{value.replace(chr(39), chr(39) * 2)}';",
    "shlex": shlex.quote,
    "bash %q": _bash,
    "xml": saxutils.escape,
    "xml attribute": saxutils.quoteattr,
    "xml apostrophe": lambda value: saxutils.escape(value, {"'": "&apos;", '"': "&quot;"}),
    "html": html.escape,
    "html, quotes kept": lambda value: html.escape(value, quote=False),
    "html of go": lambda value: html.escape(value).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "python": repr,
}


@pytest.mark.parametrize("form", FORMS)
def test_quoting(form: str) -> None:
    written = FORMS[form](ODD)
    shown, counts = KNOWN.text(f"before {written} after\n")
    assert counts == {"secret-value": 1}, shown
    assert "9k" not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after\n")


@pytest.mark.parametrize("at_break", ["\n", "\n+", "\n-", "\n> ", "\\\n", "\\\r\n    ", "\n| ", "\n  "])
def test_wrapping(at_break: str) -> None:
    for place in (3, 12, 20):
        shown, counts = KNOWN.text(f"+a {LONG[:place]}{at_break}{LONG[place:]} b\n+c\n")
        assert counts == {"secret-value": 1}, shown
        assert LONG[:place] not in shown
        assert LONG[place:] not in shown


def test_numbers_of_a_document() -> None:
    document = {
        "n": 8403175926,
        "deep": [{"x": [-8403175926, 8403175926.5]}],
        "s": DIGITS,
        "other": [1, 2.5, True, None],
    }
    shown, counts = KNOWN.value(document)
    assert shown == {
        "n": HIDDEN, "deep": [{"x": [HIDDEN, HIDDEN]}], "s": HIDDEN, "other": [1, 2.5, True, None],
    }  # fmt: skip
    assert counts == {"secret-value": 4}
    assert document["n"] == 8403175926
    assert KNOWN.value(8403175926) == (HIDDEN, {"secret-value": 1})
    harmless = {"n": 8403175927, "when": 1764547200, "big": 2**63, "half": 0.5}
    assert KNOWN.value(harmless) == (harmless, {})


def test_a_document_that_is_too_deep_for_its_numbers_is_withheld() -> None:
    deep: object = 8403175926
    for _ in range(100):
        deep = [deep]
    shown, counts = KNOWN.value(deep)
    assert counts == {"withheld": 1}
    assert DIGITS not in str(shown)
