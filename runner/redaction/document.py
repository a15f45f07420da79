"""Parsed JSON as a flat list of strings, and back: what redaction needs to see a whole document at once.

Runs in the front; pure. Iterative, with a bound on depth and on nodes. Never changes the document it was given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from runner.redaction.keys import MAX_NAME, Level, level
from runner.redaction.spans import VALUE_KIND
from runner.redaction.worth import worth_hiding

MAX_DEPTH = 64
MAX_NODES = 200_000
Slot = tuple["dict[str, object] | list[object]", "str | int"]

_NAMES = ("name", "key", "Name", "Key", "variable", "field", "ParameterKey", "header", "env")
_VALUES = ("value", "Value", "val", "ParameterValue", "default", "content")


class DocumentTooDeep(Exception):
    """Nested more than MAX_DEPTH, or more than MAX_NODES members. The document must be withheld."""


@dataclass(slots=True)
class Flat:
    """A copy of a document with its strings listed.

    holder   one-member list around the copy.
    slots    where each string of `strings` belongs: (container, key or index).
    objects  every JSON object, children after parents; their keys are listed in `strings` behind the values.
    hidden   number of values by kind that were replaced because of the name they stand under.
    """

    holder: list[object] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    objects: list[dict[str, object]] = field(default_factory=list)
    hidden: dict[str, int] = field(default_factory=dict)

    def rebuild(self, strings: list[str]) -> object:
        """The copy with its strings replaced by `strings` (same order and number)."""
        for (container, where), text in zip(self.slots, strings[: len(self.slots)], strict=True):
            container[where] = text  # type: ignore[index]
        keys = iter(strings[len(self.slots) :])
        for entry in self.objects:
            members = list(entry.items())
            renamed = [next(keys) for _ in members]
            if any(new != old for new, (old, _) in zip(renamed, members, strict=True)):
                entry.clear()
                for new, (_, value) in zip(renamed, members, strict=True):
                    entry[_free(entry, new)] = value
        return self.holder[0]


def _free(entry: dict[str, object], name: str) -> str:
    """Two hidden keys must not become one member."""
    if name not in entry:
        return name
    number = 2
    while f"{name}#{number}" in entry:
        number += 1
    return f"{name}#{number}"


def listed(document: object, skip: frozenset[str], numbers: frozenset[str]) -> list[str] | None:
    """All strings and keys of `document`, when no value in it stands under a secret name and no number holds one of the
    known `numbers`; else None: see `flatten`.

    The fast way for the usual document: nothing is copied. Raises DocumentTooDeep, TypeError.
    """
    strings: list[str] = []
    names = _Names(skip)
    layer: list[object] = [document]
    nodes = 0
    for _ in range(MAX_DEPTH + 2):
        if not layer:
            return strings
        below: list[object] = []
        nodes += len(layer)
        for item in layer:
            if isinstance(item, str):
                strings.append(item)
            elif isinstance(item, dict | list):
                if not names.are_plain(item):
                    return None
                below += _members(item, strings)
            elif item is not None and _is_known(item, numbers):
                return None
        if nodes > MAX_NODES:
            break
        layer = below
    raise DocumentTooDeep


def _members(item: dict[str, object] | list[object], strings: list[str]) -> Iterable[object]:
    """What an object or a list holds; the keys of an object go to `strings`."""
    if isinstance(item, list):
        return item
    strings += item
    return item.values()


class _Names:
    """Names of one document: which of them are plain is looked up once."""

    def __init__(self, skip: frozenset[str]) -> None:
        self._skip = skip
        self._levels: dict[str, Level] = {}
        self._plain: set[str] = set()

    def are_plain(self, item: dict[str, object] | list[object]) -> bool:
        """Whether no name in an object or in a pair of strings is a secret one."""
        if isinstance(item, list):
            return len(item) != 2 or not self._of_pair(item)
        if item.keys() <= self._plain:
            return True
        for key in item.keys() - self._plain:
            if _level(key, self._levels, self._skip):
                return False
            if key not in _VALUES:
                self._plain.add(key)
        return not _pair_level(item, self._levels, self._skip)

    def _of_pair(self, item: list[object]) -> Level:
        """["X-Api-Key", "…"]: a name and its value."""
        name, value = item
        if isinstance(name, str) and isinstance(value, str) and len(name) <= MAX_NAME:
            return _level(name, self._levels, self._skip)
        return ""


def flatten(document: object, skip: frozenset[str], numbers: frozenset[str]) -> Flat:
    """Copy and list `document`, secret values and known `numbers` replaced whole. Raises DocumentTooDeep, TypeError."""
    flat = Flat([None])
    levels: dict[str, Level] = {}
    work: list[tuple[object, dict[str, object] | list[object], str | int, int, Level]] = [
        (document, flat.holder, 0, 0, "")
    ]
    nodes = 0
    while work:
        item, container, where, depth, found = work.pop()
        nodes += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise DocumentTooDeep
        if isinstance(item, dict):
            copy: dict[str, object] = dict.fromkeys(item)
            container[where] = copy  # type: ignore[index]
            flat.objects.append(copy)
            pair = _pair_level(item, levels, skip)
            for key, value in item.items():
                own = pair if pair and key in _VALUES else _level(key, levels, skip)
                work.append((value, copy, key, depth + 1, own))
        elif isinstance(item, list):
            copies: list[object] = [None] * len(item)
            container[where] = copies  # type: ignore[index]
            own = found
            for index, value in enumerate(item):
                if (
                    index
                    and isinstance(item[index - 1], str)
                    and (len(item) == 2 or item[index - 1][:1] == "-")
                ):
                    name = item[index - 1][:128]
                    own = found or _level(name, levels, skip)
                work.append((value, copies, index, depth + 1, own))
                own = found
        else:
            container[where] = _leaf(item, found, flat, (container, where), numbers)  # type: ignore[index]
    for entry in flat.objects:
        flat.strings.extend(entry)
    return flat


def _level(key: str, levels: dict[str, Level], skip: frozenset[str]) -> Level:
    if key not in levels:
        levels[key] = "" if key.lower() in skip else level(key.encode("utf-8", "surrogatepass"))
    return levels[key]


def _pair_level(item: dict[str, object], levels: dict[str, Level], skip: frozenset[str]) -> Level:
    """{"name": "DB_PASSWORD", "value": "…"}: the name is a value too."""
    for member in _NAMES:
        name = item.get(member)
        if isinstance(name, str) and len(name) <= 128 and any(value in item for value in _VALUES):
            return _level(name, levels, skip)
    return ""


def _is_known(item: object, numbers: frozenset[str]) -> bool:
    """Whether the digits of a number hold a known one. Raises TypeError for what is none, nor true or false."""
    if not isinstance(item, int | float):
        raise TypeError(f"no JSON value: {type(item).__name__}")
    return bool(numbers) and any(digits in repr(item) for digits in numbers)


def _leaf(item: object, found: Level, flat: Flat, slot: Slot, numbers: frozenset[str]) -> object:
    if isinstance(item, str):
        if found and worth_hiding(found, item.encode("utf-8", "surrogatepass"), sure=True):
            item = _hide(flat, found)
        flat.slots.append(slot)
        flat.strings.append(item)
        return item
    if item is None:
        return None
    if _is_known(item, numbers):
        return _hide(flat, VALUE_KIND)
    # A whole number under a password's name is a PIN; under a token's name it is a count or an index.
    if found == "password" and isinstance(item, int) and abs(item) > 999:
        return _hide(flat, found)
    return item


def _hide(flat: Flat, found: str) -> str:
    kind = found if found != "weak" else "key"
    flat.hidden[kind] = flat.hidden.get(kind, 0) + 1
    return f"[REDACTED:{kind}]"
