"""Where a decoding failed: walks raw TOML data beside the model and names the first key that is wrong.

Used only after msgspec has refused a document, so a good policy pays nothing for it. Pure; decides nothing by itself.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable

import msgspec

from policies.errors import BadKeyError, did_you_mean, join

_SEE = "see docs/policy.md"


def locate(raw: object, kind: object, where: str = "", top: Iterable[str] = ()) -> None:
    """Raise BadKeyError at the first place where `raw` does not fit `kind`; return when all fits.

    `top` are the keys of the document itself, to say so when one of them slipped below a [table] header.
    """
    bare = typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        _table(raw, bare, where, top)
    elif structs := _structs(bare):
        _tagged(raw, structs, where, top)
    elif typing.get_origin(bare) is dict and isinstance(raw, dict):
        key_kind, value_kind = typing.get_args(bare)
        for key, value in raw.items():
            _leaf(key, key_kind, join(where, key))
            locate(value, value_kind, join(where, key), top)
    elif typing.get_origin(bare) is tuple and isinstance(raw, list):
        for index, value in enumerate(raw):
            locate(value, typing.get_args(bare)[0], f"{where}[{index}]", top)
    _leaf(raw, kind, where)


def _structs(kind: object) -> dict[str, type[msgspec.Struct]]:
    """The members of a tagged union by their tag; empty for any other type."""
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return {}
    members = [m for m in typing.get_args(kind) if isinstance(m, type) and issubclass(m, msgspec.Struct)]
    return {str(m.__struct_config__.tag): m for m in members}


def _tagged(raw: object, structs: dict[str, type[msgspec.Struct]], where: str, top: Iterable[str]) -> None:
    words = ", ".join(f'"{tag}"' for tag in structs)
    if not isinstance(raw, dict):
        raise BadKeyError(
            where, f"must be a table, not {_shape(raw)}", f"write {{ type = ... }} with one of {words}"
        )
    if "type" not in raw:
        raise BadKeyError(join(where, "type"), "is missing", f"give one of {words}")
    tag = raw["type"]
    if not isinstance(tag, str) or tag not in structs:
        raise BadKeyError(
            join(where, "type"), "is not a type", f"give one of {words}{did_you_mean(str(tag), structs)}"
        )
    _table(raw, structs[tag], where, top)


def _table(raw: object, kind: type[msgspec.Struct], where: str, top: Iterable[str]) -> None:
    if not isinstance(raw, dict):
        raise BadKeyError(where, f"must be a table, not {_shape(raw)}", _SEE)
    tagged = ["type"] if kind.__struct_config__.tag_field else []
    allowed = [*kind.__struct_fields__, *tagged]
    for key in raw:
        if key not in allowed:
            raise BadKeyError(join(where, key), "unknown key", _fix(key, allowed, where, top))
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        if field.name in raw:
            _field(raw[field.name], hints[field.name], join(where, field.name), top)
        elif field.required:
            raise BadKeyError(join(where, field.name), "is missing", "it has no default; see docs/policy.md")


def _field(raw: object, hint: object, where: str, top: Iterable[str]) -> None:
    """As `locate`, with the field's own line of the reference as the fix where there is no better one."""
    try:
        locate(raw, hint, where, top)
    except BadKeyError as problem:
        notes = [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, msgspec.Meta)]
        if problem.key != where or problem.fix != _SEE or not notes:
            raise
        example = "".join(f" For example: {text}" for text in notes[0].examples or ())
        raise BadKeyError(where, problem.problem, f"{notes[0].description}{example}") from None


def _fix(key: str, allowed: list[str], where: str, top: Iterable[str]) -> str:
    if where and key in top:
        return f'"{key}" is a key of the file itself: move it above the first [table] header'
    return f"allowed here: {', '.join(allowed)}{did_you_mean(key, allowed)}"


def _leaf(raw: object, kind: object, where: str) -> None:
    try:
        msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        problem = str(error).replace("`", '"')
        raise BadKeyError(where, problem[:1].lower() + problem[1:], _SEE) from None


def _shape(raw: object) -> str:
    return {str: "text", list: "a list", bool: "true or false", int: "a number", float: "a number"}.get(
        type(raw), type(raw).__name__
    )
