"""All cases of the battery, in the order in which they are shown, and how they are chosen. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from sandbox.battery import (
    files_read,
    files_write,
    information,
    kernel,
    network,
    processes,
    resources,
    terminal,
)
from sandbox.battery.case import Case
from sandbox.errors import Refused

_MODULES = (
    files_read,
    files_write,
    network,
    kernel,
    processes,
    resources,
    information,
    terminal,
)
CASES: tuple[Case, ...] = tuple(case for module in _MODULES for case in module.CASES)


class UnknownCase(Refused):
    """A word that is neither the id of a case nor a group."""

    code = "unknown_case"


def chosen(words: Iterable[str]) -> tuple[Case, ...]:
    """The cases with these ids or groups; all without words. Raises UnknownCase."""
    wanted = {word.strip() for text in words for word in text.split(",") if word.strip()}
    known = {case.id for case in CASES} | {case.group for case in CASES}
    if unknown := sorted(wanted - known):
        groups = ", ".join(dict.fromkeys(case.group for case in CASES))
        near = difflib.get_close_matches(unknown[0].upper(), [case.id for case in CASES], 3, 0.5)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise UnknownCase(
            f"no case or group is called {unknown[0]!r}",
            f"{hint}groups: {groups}; `toolcage verify --list` prints all ids",
        )
    return tuple(case for case in CASES if not wanted or {case.id, case.group} & wanted)
