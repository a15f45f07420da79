"""Results shaped for a revision: which members exist there, which must. Pure; front process; never raises on content.

The tables name the revision that brought a member. Revisions are ISO dates, so `since <= revision` is the whole rule.
Tables are allow-lists: a member they do not name is not sent, and neither is a null (one null member makes Claude Code
and Gemini CLI drop the whole tool list).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import orjson

from runner.mcp import eras, jsonrpc
from runner.mcp.messages import ServerInfo, ToolResult
from runner.visible import escaped

Json = dict[str, object]

FIRST, SECOND, THIRD, FOURTH = eras.LEGACY[::-1]

SERVER_MEMBERS: Final = MappingProxyType({"name": FIRST, "version": FIRST, "title": THIRD})

TOOL_MEMBERS: Final = MappingProxyType(
    {
        "name": FIRST,
        "description": FIRST,
        "inputSchema": FIRST,
        "annotations": SECOND,
        "title": THIRD,
        "outputSchema": THIRD,
        "_meta": THIRD,
        "icons": FOURTH,
    }
)

RESOURCE_MEMBERS: Final = MappingProxyType(
    {
        "uri": FIRST,
        "uriTemplate": FIRST,
        "name": FIRST,
        "description": FIRST,
        "mimeType": FIRST,
        "size": FIRST,
        "annotations": FIRST,
        "title": THIRD,
        "_meta": THIRD,
        "icons": FOURTH,
    }
)

CONTENTS_MEMBERS: Final = MappingProxyType(
    {"uri": FIRST, "mimeType": FIRST, "text": FIRST, "blob": FIRST, "_meta": THIRD}
)

STRUCTURED_SINCE: Final = THIRD
PROGRESS_MESSAGE_SINCE: Final = SECOND

CAPABILITIES: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType({"tools": {}, "resources": {}})

# How long a modern client may keep an answer, in ms. The lists cannot change while the process lives; "private"
# because another user's server has another policy. Stored output may expire at any time.
LIST_TTL_MS: Final = 300_000

MAX_RESULT_DEPTH: Final = 200  # orjson writes 254 levels; a result stands a few levels deep in its message


def _members(item: Mapping[str, object], since: Mapping[str, str], revision: str) -> Json:
    return {
        key: value
        for key, value in item.items()
        if value is not None and key in since and since[key] <= revision
    }


def finished(revision: str, server: ServerInfo, body: Json) -> Json:
    """Any result, completed by what the modern era wants on each one: resultType and serverInfo."""
    if revision != eras.MODERN:
        return body
    own = body.get("_meta")
    meta: Json = {eras.SERVER_INFO_KEY: server_info(revision, server)}
    if isinstance(own, dict):
        meta |= own
    return body | {"resultType": "complete", "_meta": meta}


def cached(revision: str, body: Json, ttl_ms: int) -> Json:
    """The cache hints that the modern era requires on lists, reads and discovery. ttl_ms is at least 0."""
    if revision != eras.MODERN:
        return body
    return body | {"ttlMs": max(0, ttl_ms), "cacheScope": "private"}


def server_info(revision: str, server: ServerInfo) -> Json:
    """MCP `Implementation`."""
    item = {"name": server.name, "version": server.version, "title": server.title}
    return _members(item, SERVER_MEMBERS, revision)


def introduction(instructions: str) -> Json:
    """What discovery and the handshake have in common; a client reads whichever of the two it used."""
    body: Json = {"capabilities": dict(CAPABILITIES)}
    return body | {"instructions": instructions} if instructions else body


def tool_list(revision: str, definitions: Iterable[Mapping[str, object]]) -> Json:
    """tools/list, one page, order as given."""
    return {"tools": [_tool(revision, definition) for definition in definitions]}


def _tool(revision: str, definition: Mapping[str, object]) -> Json:
    tool = _members(definition, TOOL_MEMBERS, revision)
    schema = tool.get("outputSchema")
    # One output schema that is not an object makes the TypeScript SDK reject the whole list; legacy forbids it.
    if revision != eras.MODERN and isinstance(schema, dict) and schema.get("type") != "object":
        del tool["outputSchema"]
    return tool


def resource_list(revision: str, key: str, items: Iterable[Mapping[str, object]]) -> Json:
    """resources/list (key "resources") or resources/templates/list (key "resourceTemplates"), one page."""
    return {key: [_members(item, RESOURCE_MEMBERS, revision) for item in items]}


def contents(revision: str, items: Iterable[Mapping[str, object]]) -> Json:
    """resources/read: items of {uri, mimeType?, text | blob (base64)}. A text is cleaned like a tool's text."""
    read = [_members(item, CONTENTS_MEMBERS, revision) for item in items]
    for item in read:
        text = item.get("text")
        if isinstance(text, str):
            item["text"] = jsonrpc.clean(text)
    return {"contents": read}


def call_result(revision: str, result: ToolResult) -> Json:
    """tools/call: always exactly one text block. What JSON cannot carry becomes an isError result that says so."""
    body: Json = {"content": _one_text(result.text), "isError": bool(result.is_error)}
    try:
        if result.meta:
            body["_meta"] = {eras.CALL_KEY: _written(result.meta)}
        if result.structured is not None and revision >= STRUCTURED_SINCE:
            body["structuredContent"] = _written(result.structured)
    except _UnsendableError as fault:
        text = f"The call ended, but its result cannot be sent as JSON: {fault}. Ask for less, or for plain text."
        body |= {"content": _one_text(text), "isError": True}
    return body


def _one_text(text: str) -> list[Json]:
    return [{"type": "text", "text": jsonrpc.clean(text)}]


class _UnsendableError(Exception):
    """A value that cannot be written as JSON; the message says why, in words for the model."""


def _written(value: Json) -> orjson.Fragment:
    """The value as ready JSON, so that it is written once and a fault is known before the message is begun."""
    try:
        data = orjson.dumps(value)
    except TypeError as fault:  # ints beyond 64 bits, lone surrogates, keys that are no strings, 254 levels
        raise _UnsendableError(jsonrpc.shown(str(fault), 120)) from None
    if jsonrpc.nests_deeper(data, MAX_RESULT_DEPTH):
        raise _UnsendableError(f"it nests deeper than {MAX_RESULT_DEPTH} levels")
    # A separator of lines other than LF inside a string cuts the message in two for a client that cuts there.
    return orjson.Fragment(escaped(data.decode()))
