"""The built-in tool `read_output`: pages stored output. Models do not follow resource links, so there is a tool as well.

Front. Reads the store of this process only; starts nothing. MCP server/tools, server/resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from policies.errors import nearest
from policies.values import shown
from runner import json_path
from runner.catalog.catalog import Catalog
from runner.mcp.messages import ToolResult
from runner.outputs import URI_PREFIX, Cut, Outputs
from sandbox.errors import Refused

NAME = "read_output"
TEMPLATES: tuple[dict[str, object], ...] = (
    {
        "uriTemplate": URI_PREFIX + "{handle}",
        "name": "output",
        "title": "Stored output",
        "description": "The whole output of an earlier call, for as long as it is kept.",
    },
)
_PAGE_CHARS, _MAX_PAGE_CHARS = 8_000, 10_000
_MAX_HANDLE, _MAX_GREP, _MAX_TAIL = 100, 200, 1000
_PROPERTIES: Mapping[str, dict[str, object]] = MappingProxyType(
    {
        "handle": {"type": "string", "maxLength": _MAX_HANDLE, "description": "out_… from a result"},
        "offset": {"type": "integer", "minimum": 0, "description": "first character, default 0"},
        "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_PAGE_CHARS},
        "grep": {
            "type": "string",
            "maxLength": _MAX_GREP,
            "description": "plain text that a line must contain",
        },
        "tail": {"type": "integer", "minimum": 1, "maximum": _MAX_TAIL, "description": "only the last lines"},
        "json_path": {
            "type": "string",
            "maxLength": json_path.MAX_PATH,
            "description": "only this part of stored JSON: $.items[0].name, $['a b'], [-1], [0:10], [*]",
        },
    }
)


class ReadRefused(Refused):
    """Arguments of read_output that cannot be used."""

    code = "argument_refused"


def is_offered(catalog: Catalog) -> bool:
    """Where there is a tool there may be something to read; where there is none, it is not advertised."""
    return len(catalog) > 0


def definition() -> dict[str, object]:
    """The tool object of tools/list."""
    return {
        "name": NAME,
        "title": "Read stored output",
        "description": (
            "Reads more of an output that was shortened or refused for its size: give the handle from that result. By "
            "offset and limit in characters, or the last lines with tail, or only lines that contain grep, or the part "
            "of a JSON document at json_path. Handles live 15 minutes."
        ),
        "inputSchema": {
            "type": "object",
            "properties": dict(_PROPERTIES),
            "required": ["handle"],
            "additionalProperties": False,
        },
        "annotations": {
            "title": "Read stored output",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def answer(outputs: Outputs, arguments: Mapping[str, object] | None, room: int = 1 << 20) -> ToolResult:
    """One page, of at most `room` bytes on the wire. Raises Refused (ReadRefused, HandleRefused, and of the path)."""
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    for name in given:
        if name not in _PROPERTIES:
            near = nearest(name, _PROPERTIES)
            meant = f'did you mean "{near}"? ' if near else ""
            raise ReadRefused(
                f"unknown argument {shown(name)}: `{NAME}` has no such argument",
                f"{meant}allowed: {', '.join(_PROPERTIES)}",
            )
    handle = _text(given, "handle", _MAX_HANDLE)
    if handle is None:
        raise ReadRefused(
            'argument "handle" is missing', "give the handle that stands in the result: out_..."
        )
    path = _text(given, "json_path", json_path.MAX_PATH)
    if path is not None and not given.keys().isdisjoint(("grep", "tail")):
        raise ReadRefused(
            "json_path excludes grep and tail: what it selects is one line of JSON",
            "give json_path with offset and limit, or grep and tail without json_path",
        )
    cut = Cut(
        offset=_whole(given, "offset", 0, None) or 0,
        limit=_whole(given, "limit", 1, _MAX_PAGE_CHARS) or _PAGE_CHARS,
        grep=_text(given, "grep", _MAX_GREP),
        tail=_whole(given, "tail", 1, _MAX_TAIL),
        path=path,
        room=room,
    )
    return ToolResult(outputs.read(handle, cut).shown())


def contents(outputs: Outputs, uri: str, room: int = 1 << 20) -> dict[str, object]:
    """The whole output behind a resource URI, of at most `room` bytes on the wire. Raises HandleRefused."""
    text, mime = outputs.whole(uri.removeprefix(URI_PREFIX), room)
    return {"uri": uri, "mimeType": mime, "text": text}


def _text(given: Mapping[str, object], name: str, longest: int) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ReadRefused(f"{name} is not text", f"give {name} as a string")
    if len(value) > longest:
        raise ReadRefused(
            f"{name} must be at most {longest} characters, is {len(value):,}", f"give a shorter {name}"
        )
    return value


def _whole(given: Mapping[str, object], name: str, low: int, high: int | None) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one kind of number: 3.0 is 3
    bound = f"from {low} to {high}" if high is not None else f"of at least {low}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise ReadRefused(
            f"{name} is not a whole number {bound}", f"give {name} as a number {bound}, without quotes"
        )
    if value < low or (high is not None and value > high):
        nearest_allowed = low if value < low else high
        raise ReadRefused(
            f"{name} must be {bound}, is {value}", f"the nearest that is allowed is {nearest_allowed}"
        )
    return value
