"""The catalog document that a command line program prints about itself: decoded strictly, within bounds.

Runs in the front on bytes that came from a caged describe command: foreign data. The format is docs/catalog.md. What
the document says decides which tools exist, so everything that is not understood is refused. Pure.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from runner.catalog.catalog import CatalogRefused

MAX_BYTES = 4 * 1024 * 1024
SCHEMA_VERSION = 1

_Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")]
_Flag = Annotated[str, Meta(pattern=r"\A(--?[A-Za-z0-9]|[A-Za-z])[A-Za-z0-9_-]{0,99}\Z")]
_Help = Annotated[str, Meta(max_length=4000)]
_Value = str | int | float | bool


class _Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A missing member means false, null or empty."""


class Flag(_Node, frozen=True, kw_only=True):
    """One option (name with dashes) or one positional."""

    name: _Flag
    type: Annotated[str, Meta(max_length=40)]
    positional: bool = False
    required: bool = False
    choices: Annotated[tuple[str | int | float, ...], Meta(max_length=500)] | None = None
    default: _Value | list[_Value] | None = None
    repeatable: bool = False
    value_optional: bool = False
    help: _Help | None = None


class Group(_Node, frozen=True, kw_only=True):
    """Flags that exclude each other."""

    required: bool = False
    flags: Annotated[tuple[_Flag, ...], Meta(max_length=100)]


class Command(_Node, frozen=True, kw_only=True):
    """One subcommand."""

    name: _Name
    help: _Help | None = None
    tags: Annotated[tuple[Annotated[str, Meta(max_length=40)], ...], Meta(max_length=20)]
    owner_only_flags: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    json: (
        Annotated[str, Meta(pattern=r"\A--[a-z][a-z0-9-]*( [A-Za-z0-9][A-Za-z0-9_-]*)?\Z", max_length=100)]
        | None
    ) = None
    everyday: bool = False
    flags: Annotated[tuple[Flag, ...], Meta(max_length=200)] = ()
    exclusive_groups: Annotated[tuple[Group, ...], Meta(max_length=50)] = ()
    note: _Help | None = None


class OwnerOnly(_Node, frozen=True, kw_only=True):
    """Commands ("approve") and flags ("publish --live") that only a person may use."""

    note: _Help | None = None
    commands: Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=2000)] = ()


class Document(_Node, frozen=True, kw_only=True):
    """The whole catalog."""

    catalog: Annotated[str, Meta(max_length=100)]
    schema_version: int
    tags: Annotated[tuple[Annotated[str, Meta(max_length=40)], ...], Meta(max_length=40)] = ()
    global_options: Annotated[tuple[Flag, ...], Meta(max_length=200)] = ()
    owner_only: OwnerOnly = OwnerOnly()
    commands: Annotated[tuple[Command, ...], Meta(max_length=2000)]


def decode(data: bytes, name: str) -> Document:
    """The document of catalog `name`. Raises CatalogRefused for anything but a whole, well-formed document."""
    remedy = "run the describe command of the policy by hand and compare it with docs/catalog.md"
    if len(data) > MAX_BYTES:
        raise CatalogRefused(f'catalog "{name}": the document is larger than {MAX_BYTES} bytes', remedy)
    try:
        document = msgspec.json.decode(data, type=Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = ascii(str(error))[1:-1][:300]  # may quote the document: foreign text
        raise CatalogRefused(f'catalog "{name}": not a catalog document: {problem}', remedy) from None
    if document.schema_version != SCHEMA_VERSION:
        found = document.schema_version
        raise CatalogRefused(f'catalog "{name}": schema_version is {found}, not {SCHEMA_VERSION}', remedy)
    names = [command.name for command in document.commands]
    if len(set(names)) != len(names):
        raise CatalogRefused(f'catalog "{name}": a command is listed twice', remedy)
    return document
