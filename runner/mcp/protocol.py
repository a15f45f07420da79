"""The MCP server side as a state machine without I/O: lines in, events out; answers in, bytes out. Front process.

Three rules: (1) no input raises; (2) every request gets exactly one answer, unless the client cancelled it, then none;
notifications and responses get none ever; (3) each message is judged by itself: one with an envelope in params._meta is
modern and stateless, one without is shaped for the revision of the last initialize. State is bounded: see inflight.py.

Any exception out of this class is a bug in it or in its caller, never the client's doing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runner.mcp import eras, jsonrpc, requests, shapes
from runner.mcp.eras import Does
from runner.mcp.inflight import MAX_BATCH_MEMBERS, InFlight
from runner.mcp.jsonrpc import RequestError
from runner.mcp.messages import Cancel, Event, Id, Reply, Request, ServerInfo, ToolResult

MAX_URI_CHARS = 256  # how much of a missing resource's URI comes back


@dataclass(frozen=True, slots=True)
class _Route:
    """Where a request belongs: its revision, what it asks for, its checked params and progress token."""

    revision: str
    does: Does
    params: requests.Params
    token: Id | None


class Protocol:
    """One client connection. Feed lines to `receive`; answer each event that carries a request exactly once.

    All answer functions return the bytes to write now, newline included: b"" when the request was cancelled or answered
    before, or when its batch still waits for others.
    """

    def __init__(self, server: ServerInfo, instructions: str) -> None:
        self._server = server
        self._instructions = instructions
        self._requests = InFlight()
        self._negotiated: str | None = None  # by the last initialize
        self._line_bytes = 0  # of the line in hand
        self._heard: str | None = None  # revision of the last request understood: shapes errors without an id

    # ---- in ----------------------------------------------------------------------------------------------------------

    def receive(self, line: bytes) -> list[Event]:
        """One line without its newline (a `\\r` at its end is fine). Lines of white space mean nothing."""
        if not line.strip():
            return []
        self._line_bytes = len(line)
        try:
            value = jsonrpc.decode(line)
        except jsonrpc.ParseError as fault:
            return self._complain(RequestError(jsonrpc.PARSE_ERROR, str(fault)))
        return self._receive_batch(value) if isinstance(value, list) else self._receive_one(value, None)

    def oversized(self) -> list[Event]:
        """A line beyond the transport's cap was skipped unread."""
        return self._complain(
            RequestError(jsonrpc.INVALID_REQUEST, "the message is too long and was skipped")
        )

    def _receive_batch(self, members: list[object]) -> list[Event]:
        if self._negotiated not in eras.BATCHING:
            return self._complain(
                RequestError(jsonrpc.INVALID_REQUEST, "batches are not part of this protocol version")
            )
        if not 0 < len(members) <= MAX_BATCH_MEMBERS:
            message = f"a batch must have 1 to {MAX_BATCH_MEMBERS} messages"
            return self._complain(RequestError(jsonrpc.INVALID_REQUEST, message))
        try:
            batch = self._requests.open_batch()
        except RequestError as fault:
            return self._complain(fault)
        events = [event for member in members for event in self._receive_one(member, batch)]
        return events + _reply(self._requests.close_batch(batch))

    def _receive_one(self, value: object, batch: int | None) -> list[Event]:
        try:
            message = jsonrpc.classify(value)
        except jsonrpc.MessageError as invalid:
            error = RequestError(jsonrpc.INVALID_REQUEST, str(invalid))
            return self._answer_now(
                invalid.id, batch, self._error(invalid.id, error, self._era_of(value, batch))
            )
        if message is None:
            return []
        if message.id is None:
            return self._notified(message)
        try:
            return self._requested(message, message.id, batch)
        except RequestError as fault:
            return self._answer_now(message.id, batch, jsonrpc.error(message.id, fault))

    def _notified(self, message: jsonrpc.Message) -> list[Event]:
        # Of all notifications only a cancellation means something to a server that asks nothing of its client.
        if message.method != "notifications/cancelled" or not isinstance(message.params, dict):
            return []
        id_ = message.params.get("requestId")
        cancelled = self._requests.cancel(id_) if jsonrpc.is_id(id_) else None
        if cancelled is None:
            return []
        request, is_call, completed_batch = cancelled
        return [*([Cancel(request)] if is_call else []), *_reply(completed_batch)]

    def _requested(self, message: jsonrpc.Message, id_: Id, batch: int | None) -> list[Event]:
        if self._requests.uses(id_):
            raise RequestError(jsonrpc.INVALID_REQUEST, "this id belongs to a request in flight")
        route = self._route(message, batch)
        # A ping is the same in every revision, so it says nothing about the client's.
        self._heard = self._heard if route.does is Does.PING else route.revision
        if route.does in (Does.DISCOVER, Does.INITIALIZE, Does.PING):
            return self._answer_now(id_, batch, jsonrpc.response(id_, self._own_result(route)))
        request = Request(id_, route.revision, route.token, self._requests.next_number(), batch)
        event = requests.event_for(route.does, request, route.params)
        self._requests.admit(request, is_call=route.does is Does.CALL_TOOL, size=self._line_bytes)
        return [event]

    def _route(self, message: jsonrpc.Message, batch: int | None) -> _Route:
        """Which era is this message? (The specification's versioning rules, per message.)"""
        params = requests.params_of(message)
        meta = requests.meta_of(params)
        if eras.VERSION_KEY in meta:
            if batch is not None:
                raise RequestError(jsonrpc.INVALID_REQUEST, f"batches are not part of {eras.MODERN}")
            requests.check_envelope(meta)
            revision, methods = eras.MODERN, eras.MODERN_METHODS
        elif self._negotiated is not None:
            revision, methods = self._negotiated, eras.LEGACY_METHODS
        elif message.method in eras.BEFORE_HANDSHAKE:
            revision, methods = eras.NEWEST_LEGACY, eras.BEFORE_HANDSHAKE
        else:
            raise requests.no_handshake()
        does = methods.get(message.method)
        if does is None:
            raise RequestError(jsonrpc.METHOD_NOT_FOUND, f"method not found: {jsonrpc.shown(message.method)}")
        if does is Does.INITIALIZE:
            if batch is not None:
                raise RequestError(jsonrpc.INVALID_REQUEST, "initialize must not be in a batch")
            revision = eras.negotiate(requests.requested_version(params))
        return _Route(revision, does, params, requests.progress_token(meta))

    def _own_result(self, route: _Route) -> shapes.Json:
        """What the protocol answers by itself. The one place where the negotiated revision changes."""
        if route.does is Does.PING:
            return {}
        body = shapes.introduction(self._instructions)
        if route.does is Does.INITIALIZE:
            self._negotiated = route.revision
            info = shapes.server_info(route.revision, self._server)
            return body | {"protocolVersion": route.revision, "serverInfo": info}
        body |= {"supportedVersions": list(eras.SUPPORTED)}
        return shapes.finished(
            route.revision, self._server, shapes.cached(route.revision, body, shapes.LIST_TTL_MS)
        )

    # ---- out: answers ------------------------------------------------------------------------------------------------

    def tools(self, request: Request, definitions: Iterable[Mapping[str, object]]) -> bytes:
        """Answers ListTools. Definitions as the newest revision has them; older ones get less. One page."""
        body = shapes.tool_list(request.revision, definitions)
        return self._result(request, shapes.cached(request.revision, body, shapes.LIST_TTL_MS))

    def result(self, request: Request, result: ToolResult) -> bytes:
        """Answers CallTool: also for refusals, time-outs and failures of the tool. Never raises on any content."""
        return self._result(request, shapes.call_result(request.revision, result))

    def resources(self, request: Request, items: Iterable[Mapping[str, object]]) -> bytes:
        """Answers ListResources. Items: {uri, name, title?, description?, mimeType?, size?}. One page, not cached."""
        body = shapes.resource_list(request.revision, "resources", items)
        return self._result(request, shapes.cached(request.revision, body, 0))

    def resource_templates(self, request: Request, items: Iterable[Mapping[str, object]]) -> bytes:
        """Answers ListResourceTemplates. Items: {uriTemplate, name, title?, description?, mimeType?}."""
        body = shapes.resource_list(request.revision, "resourceTemplates", items)
        return self._result(request, shapes.cached(request.revision, body, shapes.LIST_TTL_MS))

    def resource(self, request: Request, contents: Iterable[Mapping[str, object]], ttl_ms: int = 0) -> bytes:
        """Answers ReadResource. Items: {uri, mimeType?, text | blob}, at least one. ttl_ms: how long it stays true."""
        body = shapes.contents(request.revision, contents)
        if not body["contents"]:  # clients could not tell it from an empty resource
            return self.refuse(request, jsonrpc.INTERNAL_ERROR, "the resource has no contents")
        return self._result(request, shapes.cached(request.revision, body, ttl_ms))

    def resource_missing(self, request: Request, uri: str, why: str = "") -> bytes:
        """Answers ReadResource when there is no such resource (any more): -32602, in legacy revisions -32002."""
        message = f"resource not found: {why}" if why else "resource not found"
        code = jsonrpc.INVALID_PARAMS if request.revision == eras.MODERN else jsonrpc.LEGACY_RESOURCE_MISSING
        return self.refuse(request, code, message, {"uri": jsonrpc.shown(uri, MAX_URI_CHARS)})

    def unknown_tool(self, request: Request, name: str, near: str | None = None) -> bytes:
        """Answers CallTool when no tool has that name. near: the tool that was probably meant."""
        meant = f"; did you mean {near}?" if near else ""
        return self.refuse(request, jsonrpc.INVALID_PARAMS, f"unknown tool: {jsonrpc.shown(name)}{meant}")

    def refuse(
        self, request: Request, code: int, message: str, data: dict[str, object] | None = None
    ) -> bytes:
        """Answers any request with a JSON-RPC error. message: one short sentence. Data JSON cannot say is left out."""
        if not self._requests.holds(request):
            return b""
        return self._requests.settle(request, jsonrpc.error(request.id, RequestError(code, message, data)))

    def progress(self, request: Request, progress: float, total: float | None, message: str | None) -> bytes:
        """A progress notification; b"" unless the client asked for it, still waits, and the value is finite and rises."""
        value = _finite(progress)
        if request.progress_token is None or value is None or not self._requests.rises(request, value):
            return b""
        params: dict[str, object] = {"progressToken": request.progress_token, "progress": value}
        whole = _finite(total)
        if whole is not None:
            params["total"] = whole
        if message is not None and request.revision >= shapes.PROGRESS_MESSAGE_SINCE:
            params["message"] = jsonrpc.clean(message)
        return jsonrpc.notification("notifications/progress", params) + b"\n"

    # ---- out: the one way -------------------------------------------------------------------------------------------

    def _result(self, request: Request, body: shapes.Json) -> bytes:
        if not self._requests.holds(request):
            return b""
        finished = shapes.finished(request.revision, self._server, body)
        return self._requests.settle(request, jsonrpc.response(request.id, finished))

    def _answer_now(self, id_: Id | None, batch: int | None, answer: bytes) -> list[Event]:
        if batch is None:
            return _reply(answer + b"\n")
        self._requests.add(batch, id_, answer)
        return []

    def _era_of(self, value: object, batch: int | None) -> str | None:
        """For a message that is none: what it looks like, else what was heard last."""
        if batch is not None:
            return self._negotiated
        return eras.MODERN if requests.has_envelope(value) else self._heard

    def _complain(self, fault: RequestError) -> list[Event]:
        """An error about something that has no id."""
        return _reply(self._error(None, fault, self._heard) + b"\n")

    def _error(self, id_: Id | None, fault: RequestError, revision: str | None) -> bytes:
        return jsonrpc.error(id_, fault, null_id=revision not in eras.ID_MAY_BE_ABSENT)


def _reply(data: bytes) -> list[Event]:
    return [Reply(data)] if data else []


def _finite(number: float | None) -> float | None:
    """The number as a float that JSON has, else None (also for ints beyond the range of a float)."""
    try:
        return float(number) if number is not None and math.isfinite(number) else None
    except OverflowError:
        return None
