"""Checks messages of the server against the published JSON schema of their revision; a client made of plain dicts."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import orjson
from jsonschema import Draft7Validator, Draft202012Validator

from runner.mcp import eras
from runner.mcp.messages import Cancel, Event, Reply, Request, ServerInfo
from runner.mcp.protocol import Protocol

SCHEMAS = Path(__file__).parents[2] / "data" / "mcp-schemas"
SERVER = ServerInfo("toolcage", "0.1.0", "Toolcage")
INSTRUCTIONS = "Tools that cannot hurt you."
ALL = eras.SUPPORTED


@functools.cache
def _schema(revision: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{revision}.json").read_text())
    return schema


@functools.cache
def validator(revision: str, definition: str) -> Any:
    schema = _schema(revision)
    key = "$defs" if "$defs" in schema else "definitions"
    cls = Draft202012Validator if "2020-12" in schema["$schema"] else Draft7Validator
    return cls({"$schema": schema["$schema"], key: schema[key], "$ref": f"#/{key}/{definition}"})


def check(revision: str, message: Any, result: str | None = None) -> None:
    """The message is one of that revision; its result, if it has one, is a `result` (name of a definition)."""
    if isinstance(message, list):
        assert revision in eras.BATCHING
        for member in message:
            check(revision, member, result)
        return
    if message.get("id", 0) is None and "error" in message:
        assert revision not in eras.ID_MAY_BE_ABSENT
        message = message | {"id": 0}  # JSON-RPC wants null, the schemas of old revisions have none
    validator(revision, "JSONRPCMessage").validate(message)
    if result is not None:
        assert "result" in message, message
        validator(revision, result).validate(message["result"])
    if "result" in message:
        for key in ("resultType", "ttlMs", "cacheScope"):
            assert revision == eras.MODERN or key not in message["result"]
    if message.get("error", {}).get("code") == -32022:
        assert revision == eras.MODERN
        validator(revision, "UnsupportedProtocolVersionError").validate(message)
    if "method" in message:
        validator(revision, "ServerNotification").validate(message)


def read(data: bytes) -> Any:
    """Written bytes as JSON: exactly one line."""
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    return orjson.loads(data)


def line(message: object) -> bytes:
    return orjson.dumps(message)


def request(method: str, id_: object = 1, params: object = None) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": id_, "method": method}
    return body if params is None else body | {"params": params}


def envelope(version: object = eras.MODERN, **more: object) -> dict[str, object]:
    return {eras.VERSION_KEY: version, eras.CAPABILITIES_KEY: {}} | more


def modern(method: str, id_: object = 1, **params: object) -> dict[str, Any]:
    return request(method, id_, {"_meta": envelope()} | params)


def initialize(version: object = eras.NEWEST_LEGACY, id_: object = 0) -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    return request("initialize", id_, {"protocolVersion": version, "capabilities": {}, "clientInfo": client})


class Client:
    """Talks to one Protocol in one revision. Every reply is checked against the schema of that revision."""

    def __init__(self, revision: str | None) -> None:
        self.revision = revision
        self.protocol = Protocol(SERVER, INSTRUCTIONS)
        if revision is not None and revision != eras.MODERN:
            self.reply(initialize(revision))

    def ask(self, method: str, id_: object = 1, **params: object) -> dict[str, Any]:
        """A request of this client's revision."""
        if self.revision == eras.MODERN:
            return modern(method, id_, **params)
        return request(method, id_, params) if params else request(method, id_)

    def events(self, message: object) -> list[Event]:
        events = self.protocol.receive(line(message))
        for event in events:
            if isinstance(event, Reply):
                self.checked(event.data)
        return events

    def event(self, message: object) -> Any:
        [event] = self.events(message)
        assert not isinstance(event, Reply), event
        return event

    def reply(self, message: object, result: str | None = None) -> Any:
        [event] = self.events(message)
        assert isinstance(event, Reply)
        return self.checked(event.data, result)

    def error(self, message: object) -> tuple[int, object]:
        """(code, id) of the error that answers; "absent" for an error without id."""
        answer = self.reply(message)
        return answer["error"]["code"], answer.get("id", "absent")

    def call(self, id_: object = 1, name: str = "t", meta: dict[str, object] | None = None) -> Request:
        message = self.ask("tools/call", id_, name=name, arguments={})
        if meta:
            message["params"]["_meta"] = message["params"].get("_meta", {}) | meta
        found: Request = self.event(message).request
        return found

    def cancel(self, id_: object) -> list[Event]:
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}
        return self.events(message)

    def checked(self, data: bytes, result: str | None = None) -> Any:
        message = read(data)
        if self.revision is not None:
            check(self.revision, message, result)
        return message


def replies(events: list[Event]) -> list[bytes]:
    return [event.data for event in events if isinstance(event, Reply)]


def cancels(events: list[Event]) -> list[Request]:
    return [event.request for event in events if isinstance(event, Cancel)]
