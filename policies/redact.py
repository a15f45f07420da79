"""Checks of the policy's own redaction rules that no type can express. Pure; read in the front at start-up."""

from __future__ import annotations

from collections.abc import Iterable

from policies.errors import BadKeyError, join
from policies.model import RedactRule

MAX_PREFIXES = 200  # of all rules together
# Kinds that nothing may be exempt from or mixed with.
RESERVED = frozenset({"secret-value", "private-key", "withheld"})


def rules(tables: Iterable[RedactRule]) -> tuple[RedactRule, ...]:
    """The rules, each checked. Raises BadKeyError that names the rule."""
    checked = tuple(tables)
    for number, rule in enumerate(checked):
        key = f"redact.rules[{number}]"
        if not rule.prefix and not rule.words:
            raise BadKeyError(
                key, "it has neither a prefix nor words", "say how such a secret begins, or after which words"
            )
        if rule.max_length and rule.max_length < rule.min_length:
            raise BadKeyError(
                join(key, "max_length"),
                f"{rule.max_length} is less than min_length {rule.min_length}",
                "raise it, or 0 for any length",
            )
        if rule.kind in RESERVED:
            raise BadKeyError(
                join(key, "kind"), f'"{rule.kind}" is the server\'s own kind', "choose another word"
            )
    if sum(len(rule.prefix) + len(rule.words) for rule in checked) > MAX_PREFIXES:
        raise BadKeyError(
            "redact.rules",
            f"more than {MAX_PREFIXES} prefixes and words together",
            "join rules that are alike",
        )
    return checked
