"""The operator's own rules, from the policy's [[redact.rules]]: prefix or key words, characters, length. No expressions.

Runs in the front at start-up; pure. A rule of a policy is a rule like the built-in ones and costs as little.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from runner.redaction.rule import Rule

GAP = 64  # bytes between a key word and the run that belongs to it
_CHARSETS = {
    "letters-digits": "alnum",
    "letters-digits-_": "word",
    "letters-digits-_-": "dash",
    "letters-digits-_-.": "dot",
    "base64": "base64",
    "hex": "hexes",
    "digits": "digit",
    "upper-digits": "upper",
    "lower-digits": "lower",
}
CHARACTERS = tuple(_CHARSETS)  # the words of policies.model


class RuleFacts(Protocol):
    """What is needed of a rule in a policy: policies.model.RedactRule."""

    @property
    def kind(self) -> str: ...
    @property
    def prefix(self) -> tuple[str, ...]: ...
    @property
    def words(self) -> tuple[str, ...]: ...
    @property
    def characters(self) -> str: ...
    @property
    def min_length(self) -> int: ...
    @property
    def max_length(self) -> int: ...


def rules(tables: Iterable[RuleFacts]) -> tuple[Rule, ...]:
    """Rules of the engine for rules of a policy, in their order."""
    return tuple(_rule(number, table) for number, table in enumerate(tables))


def _rule(number: int, table: RuleFacts) -> Rule:
    cases = [case for word in table.words for case in (word, word.lower(), word.upper(), word.capitalize())]
    anchors = table.prefix or tuple(dict.fromkeys(cases))
    return Rule(
        id=f"policy-{number}",
        kind=table.kind,
        why="A rule of the policy.",
        anchors=anchors,
        charset=_CHARSETS[table.characters],
        form=anchors[0],
        least=table.min_length,
        most=table.max_length,
        need="",
        words=tuple(word.lower() for word in table.words) if table.prefix else (),
        gap=0 if table.prefix else GAP,
        strict=True,
    )
