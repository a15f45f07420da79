from __future__ import annotations

from runner.repeats import FORGET_SECONDS, SHORT_FROM, Repeats


def test_the_same_call_is_counted_whatever_the_order_of_its_members() -> None:
    repeats = Repeats()
    assert repeats.count("t", {"a": 1, "b": [1]}, "argument_refused", 0) == 1
    assert repeats.count("t", {"b": [1], "a": 1}, "argument_refused", 1) == 2
    assert repeats.count("t", {"a": 1, "b": [1]}, "argument_refused", 2) == SHORT_FROM


def test_another_tool_argument_or_reason_is_another_call() -> None:
    repeats = Repeats()
    for tool, arguments, code in (
        ("t", {"a": 1}, "x"), ("t", {"a": 1}, "y"), ("u", {"a": 1}, "x"), ("t", {"a": "1"}, "x"), ("t", {"a": True}, "x"),
        ("t", {}, "x"), ("t", {"a": [1]}, "x"), ("t", {"a": None}, "x"),
    ):  # fmt: skip
        assert repeats.count(tool, arguments, code, 0) == 1
    assert repeats.count("t", None, "x", 0) == 2  # no arguments are the empty object


def test_a_call_that_was_let_in_begins_anew() -> None:
    repeats = Repeats()
    repeats.let_in("t", {"a": 1})
    assert [repeats.count("t", {"a": 1}, "rate_limited", 0) for _ in range(3)] == [1, 2, 3]
    repeats.let_in("t", {"a": 2})
    assert repeats.count("t", {"a": 1}, "rate_limited", 0) == 4
    repeats.let_in("t", {"a": 1})
    assert repeats.count("t", {"a": 1}, "rate_limited", 0) == 1


def test_a_refusal_long_ago_does_not_count() -> None:
    repeats = Repeats()
    assert [repeats.count("t", {}, "x", now) for now in (0, FORGET_SECONDS - 1, 2 * FORGET_SECONDS - 1)] == [
        1,
        2,
        1,
    ]


def test_it_remembers_little_and_no_arguments() -> None:
    repeats = Repeats()
    for n in range(10_000):
        repeats.count("t", {"n": n, "secret": "k4o9pM324jHOoPWvMmgG"}, "x", 0)
    assert len(repeats._seen) == 128
    assert "k4o9" not in repr(vars(repeats))
