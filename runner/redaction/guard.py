"""Keeps placeholders from coming back: a model that writes "[REDACTED:…]" into a call would destroy what it stands for.

Runs in the front, on a client's arguments before a call is made of them; pure. There is no way back from a placeholder
to its text, and none is offered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sandbox.errors import Refused

PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]|\[WITHHELD: this output")
_MAX_VALUES = 100_000  # the protocol bounds a message long before


class PlaceholderRefused(Refused):
    """An argument holds a placeholder."""

    code = "redacted_argument"


def check(arguments: object) -> None:
    """Raises PlaceholderRefused when a key or a string of `arguments`, however deep, holds a placeholder."""
    if not isinstance(arguments, Mapping):
        return  # refused for its type by those who look at types
    for name, value in arguments.items():
        found = _placeholder([name, value])
        if found:
            raise PlaceholderRefused(
                f'argument "{name}" holds {found}, which stands for text that was hidden from you: '
                "with it the call would not do what it says",
                "leave that part out, or ask the person whose secret it is to make this change",
            )


def _placeholder(work: list[object]) -> str | None:
    for _ in range(_MAX_VALUES):
        if not work:
            break
        item = work.pop()
        if isinstance(item, str):
            if "[" in item and (found := PLACEHOLDER.search(item)):
                return found.group().replace("[WITHHELD: this output", "[WITHHELD]")
        elif isinstance(item, Mapping):
            work += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            work += item
    return None
