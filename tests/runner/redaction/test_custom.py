"""The operator's own rules: prefix, key words, characters, length."""

from __future__ import annotations

import pytest

from policies.model import RedactRule
from runner.redaction import custom
from runner.redaction.engine import Redactor
from tests.runner.redaction.tokens import drawn

SECRET = drawn("lower", 24)


def redact(text: str, **rule: object) -> tuple[str, dict[str, int]]:
    return Redactor((), rules=custom.rules([RedactRule(kind="acme", **rule)])).text(text)  # type: ignore[arg-type]


def test_a_prefix_and_a_length() -> None:
    text = f"a acme_{SECRET} b acme_short c"
    assert (
        redact(text, prefix=("acme_",), characters="lower-digits", min_length=20)[0]
        == "a [REDACTED:acme] b acme_short c"
    )
    assert redact(text, prefix=("acme_",), characters="lower-digits", min_length=20, max_length=22)[1] == {}
    assert Redactor(()).text(text) == (text, {})  # the control: no built-in rule


def test_a_prefix_that_counts_only_after_a_word() -> None:
    near, far = f"acme key: id-{SECRET}", f"other: id-{SECRET}"
    rule = {"prefix": ("id-",), "words": ("ACME",), "characters": "lower-digits"}
    assert redact(near, **rule)[0] == "acme key: [REDACTED:acme]"
    assert redact(far, **rule)[0] == far


def test_words_alone() -> None:
    rule = {"words": ("badge",), "characters": "digits", "min_length": 8, "max_length": 10}
    assert redact("Badge no. 12345678, ok", **rule)[0] == "Badge no. [REDACTED:acme], ok"
    assert redact("BADGE: 1234567890", **rule)[0] == "BADGE: [REDACTED:acme]"
    for text in ("badge 1234567", "badge 12345678901", "number 12345678", "badge" + " " * 80 + "12345678"):
        assert redact(text, **rule)[0] == text


@pytest.mark.parametrize("characters", custom.CHARACTERS)
def test_every_set_of_characters_has_a_meaning(characters: str) -> None:
    out, counts = redact("acme_" + "0123456789" * 2, prefix=("acme_",), characters=characters)
    assert (out, counts) == ("[REDACTED:acme]", {"acme": 1})


def test_own_rules_can_be_exempt_like_any_kind() -> None:
    own = Redactor((), rules=custom.rules([RedactRule(kind="acme", prefix=("acme_",))]))
    text = f"acme_{SECRET}"
    assert own.text(text)[1] == {"acme": 1}
    assert own.exempting(frozenset({"acme"})).text(text) == (text, {})
