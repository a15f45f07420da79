"""The parameter types of a tool: one frozen struct each, told apart by the key `type`.

Pure data. What a value may be is decided in values.py, where it may stand in a command in check.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

SAFE_INT = 2**53 - 1  # the largest integer that every JSON reader keeps exact
MAX_PATH = 4096  # PATH_MAX of Linux

ParamName = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]{0,39}\Z")]
Text = Annotated[str, Meta(max_length=500)]


def doc(meaning: str, example: str = "") -> Meta:
    """A field's line in docs/policy.md."""
    return Meta(description=meaning, examples=[example] if example else None)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One TOML table. Unknown keys are errors: a misspelt restriction must not be silently absent."""


class Param(Table, frozen=True, kw_only=True):
    """What every parameter has."""

    description: Annotated[Text, doc("What the client reads about it.", '"Only commits of this author"')] = ""
    required: Annotated[bool, doc("The call is refused without it.", "true")] = False


class StringParam(Param, frozen=True, kw_only=True, tag_field="type", tag="string"):
    """One line of text. Refused always: NUL and text that is not valid Unicode."""

    default: Annotated[str | None, doc("Used when the client gives none.", '"HEAD"')] = None
    max_length: Annotated[int, doc("Longest value in characters.", "100"), Meta(ge=1, le=20000)] = 1000
    pattern: Annotated[
        Annotated[str, Meta(max_length=200)] | None,
        doc("Regular expression the whole value must match.", "'[a-z]{1,20}'"),
    ] = None
    multiline: Annotated[bool, doc("Line breaks are allowed.", "true")] = False
    allow_at: Annotated[bool, doc('A leading "@" is allowed; many tools read it as a file.', "true")] = False


class IntegerParam(Param, frozen=True, kw_only=True, tag_field="type", tag="integer"):
    """A whole number."""

    default: Annotated[int | None, doc("Used when the client gives none.", "20")] = None
    min: Annotated[int, doc("Smallest value.", "1"), Meta(ge=-SAFE_INT, le=SAFE_INT)] = -SAFE_INT
    max: Annotated[int, doc("Largest value.", "500"), Meta(ge=-SAFE_INT, le=SAFE_INT)] = SAFE_INT


class NumberParam(Param, frozen=True, kw_only=True, tag_field="type", tag="number"):
    """A finite decimal number."""

    default: Annotated[float | None, doc("Used when the client gives none.", "0.5")] = None
    min: Annotated[float | None, doc("Smallest value.", "0")] = None
    max: Annotated[float | None, doc("Largest value.", "1")] = None


class BooleanParam(Param, frozen=True, kw_only=True, tag_field="type", tag="boolean"):
    """A switch: the placeholder becomes `flag` when true and disappears when false."""

    flag: Annotated[
        str,
        doc("The flag that is given when true.", '"--stat"'),
        Meta(pattern=r"\A--?[A-Za-z0-9][A-Za-z0-9=_.,:+-]*\Z"),
    ]
    default: Annotated[bool | None, doc("Used when the client gives none.", "true")] = None


class EnumParam(Param, frozen=True, kw_only=True, tag_field="type", tag="enum"):
    """One of a fixed list of values, all text or all numbers."""

    values: Annotated[
        tuple[str | int | float, ...],
        doc("The allowed values.", '["short", "full"]'),
        Meta(min_length=1, max_length=200),
    ]
    default: Annotated[str | int | float | None, doc("Used when the client gives none.", '"short"')] = None


class PathParam(Param, frozen=True, kw_only=True, tag_field="type", tag="path"):
    """A file or folder beneath the root. Given to the tool relative to its folder and never starting with "-"."""

    default: Annotated[str | None, doc("Used when the client gives none.", '"."')] = None
    kind: Annotated[Literal["any", "file", "folder"], doc("What it must be.", '"file"')] = "any"
    must_exist: Annotated[bool, doc("Refused unless it exists.", "false")] = True


Scalar = StringParam | IntegerParam | NumberParam | EnumParam | PathParam


class ListParam(Param, frozen=True, kw_only=True, tag_field="type", tag="list"):
    """Several values of one type: one word each, or one `--flag=value` each."""

    items: Annotated[
        Scalar, doc("What each item is: one of the types above but boolean.", '{ type = "path" }')
    ]
    default: Annotated[
        tuple[str | int | float, ...] | None, doc("Used when the client gives none.", '["src"]')
    ] = None
    max_items: Annotated[int, doc("Most items of one call.", "20"), Meta(ge=1, le=50)] = 50


AnyParam = StringParam | IntegerParam | NumberParam | BooleanParam | EnumParam | PathParam | ListParam


class GroupTable(Table, frozen=True, kw_only=True):
    """Parameters that exclude each other."""

    params: Annotated[
        tuple[ParamName, ...],
        doc("At most one of these may be given.", '["text", "file"]'),
        Meta(min_length=1),
    ]
    required: Annotated[bool, doc("Exactly one must be given.", "true")] = False
