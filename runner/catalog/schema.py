"""JSON Schema of a tool's parameters, in the subset that every client and model accepts.

Flat object, no null, no combinators, no type lists (they are dropped or refused by model APIs): what they would say
is in the description and is checked by arguments.py. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from policies.params import (
    AnyParam,
    BooleanParam,
    EnumParam,
    GroupTable,
    IntegerParam,
    ListParam,
    NumberParam,
    PathParam,
    StringParam,
)

Schema = dict[str, object]


def of(params: Mapping[str, AnyParam]) -> Schema:
    """The inputSchema of a tool."""
    schema: Schema = {
        "type": "object",
        "properties": {name: of_param(param) for name, param in params.items()},
    }
    if required := [name for name, param in params.items() if param.required]:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


def of_param(param: AnyParam) -> Schema:
    """The schema of one parameter, without members that say nothing."""
    schema = _of_type(param)
    if param.description:
        schema["description"] = param.description
    if param.default is not None:
        schema["default"] = list(param.default) if isinstance(param.default, tuple) else param.default
    return schema


def _of_type(param: AnyParam) -> Schema:
    match param:
        case StringParam():
            schema: Schema = {"type": "string", "maxLength": param.max_length}
            return schema if param.pattern is None else {**schema, "pattern": f"^(?:{param.pattern})$"}
        case PathParam():
            return {"type": "string"}
        case IntegerParam():
            return {"type": "integer", "minimum": param.min, "maximum": param.max}
        case NumberParam():
            bounds = {"minimum": param.min, "maximum": param.max}
            return {"type": "number", **{key: bound for key, bound in bounds.items() if bound is not None}}
        case BooleanParam():
            return {"type": "boolean"}
        case EnumParam():
            return {"type": _enum_type(param), "enum": list(param.values)}
        case ListParam():
            return {"type": "array", "items": of_param(param.items), "maxItems": param.max_items}


def _enum_type(param: EnumParam) -> str:
    if isinstance(param.values[0], str):
        return "string"
    return "integer" if all(isinstance(value, int) for value in param.values) else "number"


def group_sentences(groups: Iterable[GroupTable]) -> list[str]:
    """What a schema cannot say in this subset, for the description."""
    return [
        f"Give {'exactly' if group.required else 'at most'} one of: {', '.join(group.params)}."
        for group in groups
        if len(group.params) > 1
    ]
