"""policies.template: a placeholder is a whole word or the end of a flag, nothing else."""

from __future__ import annotations

import pytest

from policies.template import Word, fixed_part, parse


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("plain", Word("plain")),
        ("{path}", Word("", "path")),
        ("--flag={path}", Word("--flag=", "path")),
        ("--lines=+{n}", Word("--lines=+", "n")),
        ("-L{n}", Word("-L", "n")),
        ("{{path}}", Word("{path}")),
        ("HEAD@{1}", Word("HEAD@{1}")),
        ("%(refname)", Word("%(refname)")),
        (".a | {b: .c}", Word(".a | {b: .c}")),
    ],
)
def test_words(text: str, word: Word) -> None:
    assert parse(text) == word


@pytest.mark.parametrize(
    "text", ["a{path}", "{a}{b}", "--{flag}=x", "--f={a}b", "{a}:{b}", "{{a}}{b}", "-ab{c}"]
)
def test_other_places_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        parse(text)


def test_the_fixed_part_ends_at_the_first_placeholder() -> None:
    assert fixed_part(["p", "sub", "{a}", "--", "{b}"]) == (
        ("p", "sub"),
        (Word("", "a"), Word("--"), Word("", "b")),
    )
    assert fixed_part(["p", "sub"]) == (("p", "sub"), ())
