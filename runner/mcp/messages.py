"""What the protocol core and the front tell each other: frozen events, frozen values.

Used in the front process only. Nothing here parses, writes or decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Id: TypeAlias = str | int
"""A JSON-RPC id or a progress token. 1 and "1" are two ids; 0 and "" are ids like any other, so test `is None`."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Who this server says it is (MCP `Implementation`). `title` reaches only revisions that know it."""

    name: str
    version: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the client that waits for its answer. Hashable; the key of everything about it.

    revision        the MCP revision that the answer must be shaped for, one of `eras.SUPPORTED`.
    progress_token  what progress notifications must carry; None when the client wants none.
    number          unique for the life of the process. A client may use an id again once it was answered; this tells
                    a late answer for the first use from the answer for the second.
    batch           the batch that the answer is collected in (the protocol's own bookkeeping).
    """

    id: Id
    revision: str
    progress_token: Id | None = None
    number: int = 0
    batch: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ListTools:
    """tools/list. Answer with `Protocol.tools`."""

    request: Request


@dataclass(frozen=True, slots=True)
class CallTool:
    """tools/call. Answer with `Protocol.result` or `Protocol.unknown_tool`. arguments is None when absent."""

    request: Request
    name: str
    arguments: dict[str, object] | None


@dataclass(frozen=True, slots=True)
class ListResources:
    """resources/list. Answer with `Protocol.resources`."""

    request: Request


@dataclass(frozen=True, slots=True)
class ListResourceTemplates:
    """resources/templates/list. Answer with `Protocol.resource_templates`."""

    request: Request


@dataclass(frozen=True, slots=True)
class ReadResource:
    """resources/read. Answer with `Protocol.resource` or `Protocol.resource_missing`."""

    request: Request
    uri: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """The client gave up a tools/call in flight: stop its work. The request is forgotten, no answer can be sent."""

    request: Request


@dataclass(frozen=True, slots=True)
class Reply:
    """Bytes to write now, framing newline included: what the protocol answers by itself."""

    data: bytes


Event: TypeAlias = (
    ListTools | CallTool | ListResources | ListResourceTemplates | ReadResource | Cancel | Reply
)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gives back to the client.

    text        the one text block; any str, a lone surrogate becomes "?".
    structured  a JSON object, or None; left out for revisions before 2025-06-18. Never the only place of a fact.
    is_error    the call failed, was refused or is unknown; the text says what to do next.
    meta        our own facts about the call, sent as `_meta["io.github.toolcage/call"]`; left out when empty.
    """

    text: str
    structured: dict[str, object] | None = None
    is_error: bool = False
    meta: dict[str, object] = field(default_factory=dict)
