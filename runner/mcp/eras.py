"""The five MCP revisions as data: what each one serves, batches and leaves out.

Two rules: (1) nothing in this file runs, it is only read; (2) a method that is not in the table of an era is answered
with -32601 there, so what a table leaves out is refused by being left out: prompts/*, completion/complete,
logging/setLevel, resources/subscribe, subscriptions/listen and tasks/* (capabilities we do not advertise), and in the
modern era also initialize and ping (removed by revision 2026-07-28).

The router asks per MESSAGE which table holds, never per connection: Claude Code and Copilot CLI send server/discover and
then initialize on the same pipe, and a server that locks the era loses them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

MODERN = "2026-07-28"  # every request describes itself in params._meta; no handshake
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # `initialize` handshake; newest first
SUPPORTED = (MODERN, *LEGACY)
NEWEST_LEGACY = LEGACY[0]

# Batches are a MUST of 2025-03-26, plain JSON-RPC in 2024-11-05, and forbidden from 2025-06-18 on.
BATCHING = frozenset({"2025-03-26", "2024-11-05"})

# An error whose id could not be read: these schemas have no null id and let it be absent. The older ones are plain
# JSON-RPC, which wants null. Before any era is known it is null too: JSON-RPC is all that both sides share then.
ID_MAY_BE_ABSENT = frozenset({MODERN, "2025-11-25"})

# Keys of params._meta (modern requests) and of result._meta.
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"  # its presence makes a request modern
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
CALL_KEY = "io.github.toolcage/call"  # ours: reverse DNS, not in a reserved namespace

LOG_LEVELS = frozenset({"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})


class Does(enum.Enum):
    """What a request asks for. The first three are answered by the protocol itself, the others by the front."""

    DISCOVER = "discover"
    INITIALIZE = "initialize"
    PING = "ping"
    LIST_TOOLS = "list tools"
    CALL_TOOL = "call a tool"
    LIST_RESOURCES = "list resources"
    LIST_TEMPLATES = "list resource templates"
    READ_RESOURCE = "read a resource"


MODERN_METHODS: Mapping[str, Does] = MappingProxyType(
    {
        "server/discover": Does.DISCOVER,
        "tools/list": Does.LIST_TOOLS,
        "tools/call": Does.CALL_TOOL,
        "resources/list": Does.LIST_RESOURCES,
        "resources/templates/list": Does.LIST_TEMPLATES,
        "resources/read": Does.READ_RESOURCE,
    }
)

LEGACY_METHODS: Mapping[str, Does] = MappingProxyType(
    {
        "initialize": Does.INITIALIZE,  # again and again: the last one holds
        "ping": Does.PING,
        "tools/list": Does.LIST_TOOLS,
        "tools/call": Does.CALL_TOOL,
        "resources/list": Does.LIST_RESOURCES,
        "resources/templates/list": Does.LIST_TEMPLATES,
        "resources/read": Does.READ_RESOURCE,
    }
)

# A request without an envelope before any initialize. Everything else gets -32602 naming the versions, which every
# client takes for "a legacy server: send initialize".
BEFORE_HANDSHAKE: Mapping[str, Does] = MappingProxyType(
    {
        "initialize": Does.INITIALIZE,
        "ping": Does.PING,
    }
)


def negotiate(requested: str) -> str:
    """The revision an initialize result names: the requested one if it is a legacy one we serve, else our newest legacy.

    Never the modern one (the Python client raises on it) and never an error (clients then give up).
    """
    return requested if requested in LEGACY else NEWEST_LEGACY
