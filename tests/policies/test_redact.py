from __future__ import annotations

import typing

import pytest

from policies import model, redact
from policies.errors import BadKeyError
from policies.load import decode
from policies.model import RedactRule
from runner.redaction import custom

HEAD = '[server]\nname = "x"\nroot = "."\n'


def test_rules_are_read() -> None:
    document = decode(
        (HEAD + '[[redact.rules]]\nkind = "acme"\nprefix = ["acme_"]\nmin_length = 20\n').encode(), "p.toml"
    )
    assert document.redact.rules == (RedactRule(kind="acme", prefix=("acme_",), min_length=20),)
    assert redact.rules(document.redact.rules) == document.redact.rules


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        (RedactRule(kind="acme"), "redact.rules[0]"),
        (RedactRule(kind="acme", prefix=("ab",), min_length=20, max_length=19), "redact.rules[0].max_length"),
        (RedactRule(kind="secret-value", prefix=("ab",)), "redact.rules[0].kind"),
    ],
)
def test_rules_that_say_nothing_or_too_much(rule: RedactRule, key: str) -> None:
    with pytest.raises(BadKeyError) as refused:
        redact.rules([rule])
    assert refused.value.key == key


def test_the_number_of_prefixes_has_a_bound() -> None:
    many = [RedactRule(kind="acme", prefix=tuple(f"p{a}{b}_" for b in range(10))) for a in range(21)]
    assert redact.rules(many[:20])
    with pytest.raises(BadKeyError):
        redact.rules(many)


@pytest.mark.parametrize(
    "line",
    [
        'regex = "a+"',
        'prefix = [" a"]',
        'prefix = ["a"]',
        'characters = "any"',
        "min_length = 2",
        'words = ["a b"]',
    ],
)
def test_nothing_but_the_declared_keys_and_bounds(line: str) -> None:
    from policies.errors import PolicyRefused

    with pytest.raises(PolicyRefused):
        decode((HEAD + f'[[redact.rules]]\nkind = "acme"\n{line}\n').encode(), "p.toml")


def test_policy_and_engine_name_the_same_sets_of_characters() -> None:
    assert typing.get_args(model.RedactCharacters) == custom.CHARACTERS
