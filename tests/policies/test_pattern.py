"""policies.pattern: patterns that could take exponential time on a client's text never reach a server."""

from __future__ import annotations

import pytest

from policies import pattern


@pytest.mark.parametrize(
    "text",
    [
        "[a-z]+",
        r"[0-9]{4}-[0-9]{2}",
        "a|b",
        "(?:ab|c)d",
        "(?:abc){2,3}",
        r"\(x\)*",
        "[(*+]+x",
        "[]a]+",
        "(?:a+)?b",
        r"a\+b+",
    ],
)
def test_simple_patterns_are_accepted(text: str) -> None:
    assert pattern.problem(text, 1000) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(", "not a regular expression"),
        ("(a+)+", "exponential"),
        ("(?:a*)*", "exponential"),
        ("(?:a|aa)+", "exponential"),
        ("((a?b?)c)*", "exponential"),
        ("(?:a+){2}", "exponential"),
        ("(?:a{1,5}){1,9}", "exponential"),
        ("a*a*a*a*b", "ways"),
        ("[a-z]{0,999}[a-z]{0,999}[a-z]{0,999}!", "ways"),
        ("a?" * 28 + "a" * 28, "ways"),
        (r"(a)\1", "back-reference"),
        ("(?i)a", "only the plain group"),
        ("(?=a)a", "only the plain group"),
        ("(?P<x>a)", "only the plain group"),
        (r"a\Z", "anchor"),
    ],
)
def test_dangerous_patterns_are_refused(text: str, words: str) -> None:
    problem = pattern.problem(text, 1000)
    assert problem is not None
    assert words in problem
