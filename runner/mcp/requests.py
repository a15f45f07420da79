"""Requests read strictly: params and `_meta` to events. Pure; front process; never answers.

Every function raises jsonrpc.RequestError with -32602 for a member of the wrong shape and says which one. Members that the
specification does not name are ignored. Nothing here trusts clientInfo: behaviour never depends on who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from runner.mcp import eras, jsonrpc
from runner.mcp.eras import Does
from runner.mcp.messages import (
    CallTool,
    Event,
    Id,
    ListResources,
    ListResourceTemplates,
    ListTools,
    ReadResource,
    Request,
)

Params = dict[str, object]


def _bad(message: str, data: dict[str, object] | None = None) -> jsonrpc.RequestError:
    return jsonrpc.RequestError(jsonrpc.INVALID_PARAMS, message, data)


def params_of(message: jsonrpc.Message) -> Params:
    """The params object ({} when absent). A list, null or anything else is refused: MCP has only named params."""
    if not isinstance(message.params, dict):
        raise _bad("params must be an object")
    return message.params


def meta_of(params: Params) -> Params:
    """params._meta ({} when absent)."""
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        raise _bad("params._meta must be an object")
    return meta


def has_envelope(value: object) -> bool:
    """Whether any JSON value is a message of the modern era: its params._meta names a protocol version."""
    for key in ("params", "_meta"):
        value = value.get(key) if isinstance(value, dict) else None
    return isinstance(value, dict) and eras.VERSION_KEY in value


def progress_token(meta: Params) -> Id | None:
    """The token that progress must echo, or None. A token that could not be echoed exactly is refused."""
    if "progressToken" not in meta:
        return None
    token = meta["progressToken"]
    if not jsonrpc.is_id(token):
        raise _bad("params._meta.progressToken must be a string or an integer")
    return token


def check_envelope(meta: Params) -> None:
    """The `_meta` of a modern request: required keys first (-32602), then the version itself (-32022)."""
    requested = meta.get(eras.VERSION_KEY)
    if not isinstance(requested, str):
        raise _bad(f"params._meta['{eras.VERSION_KEY}'] must be a string")
    if not isinstance(meta.get(eras.CAPABILITIES_KEY), dict):
        raise _bad(f"params._meta['{eras.CAPABILITIES_KEY}'] must be an object")
    if requested != eras.MODERN:
        data: dict[str, object] = {"supported": list(eras.SUPPORTED), "requested": jsonrpc.shown(requested)}
        raise jsonrpc.RequestError(
            jsonrpc.UNSUPPORTED_VERSION, "this protocol version is not served in _meta", data
        )
    level = meta.get(eras.LOG_LEVEL_KEY)
    if eras.LOG_LEVEL_KEY in meta and not (isinstance(level, str) and level in eras.LOG_LEVELS):
        raise _bad(f"params._meta['{eras.LOG_LEVEL_KEY}'] is not a log level")


def no_handshake() -> jsonrpc.RequestError:
    """The answer to a bare request before any initialize: says both ways in."""
    message = (
        f"send initialize first, or put {eras.VERSION_KEY} and {eras.CAPABILITIES_KEY} into params._meta; "
        f"served versions: {', '.join(eras.SUPPORTED)}"
    )
    return _bad(message, {"supported": list(eras.SUPPORTED)})


def requested_version(params: Params) -> str:
    """protocolVersion of an initialize. Its other members are not needed and not judged (lenient on purpose)."""
    version = params.get("protocolVersion")
    if not isinstance(version, str):
        raise _bad("protocolVersion must be a string", {"supported": list(eras.LEGACY)})
    return version


def event_for(does: Does, request: Request, params: Params) -> Event:
    """The event of a request that the front answers."""
    return _READERS[does](request, params)


def _refuse_cursor(params: Params) -> None:
    # Every list is one page (many clients read only the first), so no cursor was ever given out.
    if "cursor" in params:
        raise _bad("unknown cursor: the list is one page")


def _list_tools(request: Request, params: Params) -> Event:
    _refuse_cursor(params)
    return ListTools(request)


def _call_tool(request: Request, params: Params) -> Event:
    name = params.get("name")
    if not isinstance(name, str):
        raise _bad("name must be a string")
    if "arguments" not in params:
        return CallTool(request, name, None)
    arguments = params["arguments"]
    if not isinstance(arguments, dict):
        raise _bad("arguments must be an object")
    return CallTool(request, name, arguments)


def _list_resources(request: Request, params: Params) -> Event:
    _refuse_cursor(params)
    return ListResources(request)


def _list_templates(request: Request, params: Params) -> Event:
    _refuse_cursor(params)
    return ListResourceTemplates(request)


def _read_resource(request: Request, params: Params) -> Event:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise _bad("uri must be a string")
    return ReadResource(request, uri)


_READERS: Mapping[Does, Callable[[Request, Params], Event]] = MappingProxyType(
    {
        Does.LIST_TOOLS: _list_tools,
        Does.CALL_TOOL: _call_tool,
        Does.LIST_RESOURCES: _list_resources,
        Does.LIST_TEMPLATES: _list_templates,
        Does.READ_RESOURCE: _read_resource,
    }
)
