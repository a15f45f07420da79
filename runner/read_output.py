"""The built-in tool `read_output`: pages stored output. Models do not follow resource links, so there is a tool as well.

Front. Reads the store of this process only; starts nothing. MCP server/tools, server/resources.
"""

from __future__ import annotations

from collections.abc import Mapping

from runner.catalog.catalog import Catalog
from runner.mcp.messages import ToolResult
from runner.outputs import URI_PREFIX, HandleRefused, Outputs
from sandbox.errors import Refused

NAME = "read_output"
TEMPLATES: tuple[dict[str, object], ...] = (
    {
        "uriTemplate": URI_PREFIX + "{handle}",
        "name": "output",
        "title": "Stored output",
        "description": "The whole output of an earlier call, for as long as it is kept.",
        "mimeType": "text/plain",
    },
)
_PAGE_CHARS, _MAX_PAGE_CHARS = 8_000, 10_000


class ReadRefused(Refused):
    """Arguments of read_output that cannot be used."""

    code = "argument_refused"


def is_offered(catalog: Catalog) -> bool:
    """Only text tools store output; a tool that never has anything to read is not advertised."""
    return any(tool.output == "text" for tool in catalog)


def definition() -> dict[str, object]:
    """The tool object of tools/list."""
    return {
        "name": NAME,
        "title": "Read stored output",
        "description": (
            "Reads more of an output that was shortened: give the handle from that result. By offset and limit in "
            "characters, or the last lines with tail, or only lines that contain grep. Handles live 15 minutes."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "handle": {"type": "string", "maxLength": 100, "description": "out_… from a result"},
                "offset": {"type": "integer", "minimum": 0, "description": "first character, default 0"},
                "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_PAGE_CHARS},
                "grep": {
                    "type": "string",
                    "maxLength": 200,
                    "description": "plain text that a line must contain",
                },
                "tail": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 1000,
                    "description": "only the last lines",
                },
            },
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


def answer(outputs: Outputs, arguments: Mapping[str, object] | None) -> ToolResult:
    """One page. Raises Refused (ReadRefused, HandleRefused)."""
    given = dict(arguments or {})
    unknown = sorted(set(given) - {"handle", "offset", "limit", "grep", "tail"})
    if unknown:
        raise ReadRefused(
            f"read_output has no argument {unknown[0][:40]!r}", "give handle, offset, limit, grep or tail"
        )
    handle, grep = _text(given, "handle", ""), _text(given, "grep", None)
    offset, limit = _whole(given, "offset", 0, None), _whole(given, "limit", 1, _MAX_PAGE_CHARS)
    tail = _whole(given, "tail", 1, 1000)
    page = outputs.read(handle or "", offset or 0, limit or _PAGE_CHARS, grep=grep, tail=tail)
    return ToolResult(page.shown())


def contents(outputs: Outputs, uri: str) -> dict[str, object] | None:
    """The whole output behind a resource URI, or None when there is none (any more)."""
    if not uri.startswith(URI_PREFIX):
        return None
    try:
        text = outputs.whole(uri.removeprefix(URI_PREFIX))
    except HandleRefused:
        return None
    return {"uri": uri, "mimeType": "text/plain", "text": text}


def _text(given: Mapping[str, object], name: str, default: str | None) -> str | None:
    value = given.get(name, default)
    if value is not None and not isinstance(value, str):
        raise ReadRefused(f"{name} is not text", "give it as a string")
    return value[:200] if value else value


def _whole(given: Mapping[str, object], name: str, low: int, high: int | None) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < low
        or (high is not None and value > high)
    ):
        bound = f"from {low} to {high}" if high is not None else f"of at least {low}"
        raise ReadRefused(f"{name} is not a whole number {bound}", f"give a number {bound}")
    return value
