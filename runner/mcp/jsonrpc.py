"""JSON-RPC 2.0 under MCP: bytes to one message, one message to bytes. Pure; front process.

Two rules: (1) no byte sequence raises anything but the three faults below; (2) nothing here knows a revision of MCP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeGuard

import orjson

from runner.mcp.messages import Id

PARSE_ERROR = -32700  # not JSON, not UTF-8, or nested too deep to be read safely
INVALID_REQUEST = -32600  # JSON, but no JSON-RPC message that is allowed here
METHOD_NOT_FOUND = -32601  # unknown, removed in this era, or its capability is not advertised
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022  # modern only
LEGACY_RESOURCE_MISSING = -32002  # legacy only; must not be sent in modern

# orjson reads 1,024 levels but writes only 254. 64 leaves room for an echo inside an answer; no tool schema comes near.
MAX_DEPTH = 64

# An id or token is kept while its request is in flight and comes back in every answer. Real ones are small numbers,
# UUIDs and names such as "server-discover-probe-1"; the cap bounds memory to 1,000 requests times this.
MAX_ID_CHARS = 1024

SHOWN_CHARS = 80  # how much of a client's word comes back in an error message

_BRACKETS_AS_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_ALL_BUT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


class ParseError(Exception):
    """The bytes are no acceptable JSON text: answer -32700."""


class MessageError(Exception):
    """JSON, but no JSON-RPC message: answer -32600 with `id`, which is None when it could not be read."""

    def __init__(self, message: str, id_: Id | None = None) -> None:
        super().__init__(message)
        self.id = id_


class RequestError(Exception):
    """A well-formed request that cannot be served: answer with this code, message (one sentence) and data."""

    def __init__(self, code: int, message: str, data: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True, slots=True)
class Message:
    """A request (`id` is set) or a notification (`id` is None). `params` is {} when absent, as sent otherwise."""

    method: str
    id: Id | None
    params: object


def nests_deeper(data: bytes, levels: int) -> bool:
    """Whether JSON text nests arrays and objects deeper than `levels`. Never recurses; C speed on hostile input.

    Text that is not balanced may be called deep as well: it is no JSON either way.
    """
    if data.count(b"[") + data.count(b"{") <= levels:
        return False
    # Escapes out first (pairs of backslashes before \"), then every second piece between quotes is outside strings.
    outside = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    brackets = b"".join(outside).translate(_BRACKETS_AS_ONE_KIND, _ALL_BUT_BRACKETS)
    for _ in range(levels):  # each round takes the innermost level away
        size = len(brackets)
        brackets = brackets.replace(b"[]", b"")
        if not brackets or len(brackets) == size:
            break
    return bool(brackets)


def decode(line: bytes) -> object:
    """One JSON text. Raises ParseError for anything else, also for a BOM, bytes that are not UTF-8, NaN and depth."""
    if nests_deeper(line, MAX_DEPTH):
        raise ParseError(f"the message is not JSON or nests deeper than {MAX_DEPTH} levels")
    try:
        value: object = orjson.loads(line)
    except orjson.JSONDecodeError:
        # Without orjson's own words: they quote positions, and in some versions the input.
        raise ParseError("the message is not JSON in UTF-8") from None
    return value


def is_id(value: object) -> TypeGuard[Id]:
    """A string or an integer, not too long. bool is an int for Python only; integers beyond 64 bits arrive as float."""
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARS
    return isinstance(value, int) and not isinstance(value, bool)


def classify(value: object) -> Message | None:
    """A JSON value as a message; None for a response, which a server that asks nothing has no use for.

    Raises MessageError. `params` is not judged here: whether it matters depends on what is asked.
    """
    if not isinstance(value, dict):
        raise MessageError("a message must be a JSON object")
    if "method" not in value and ("result" in value or "error" in value):
        return None
    id_ = value.get("id")
    if "id" in value and not is_id(id_):
        raise MessageError(
            f"id must be a string (at most {MAX_ID_CHARS} characters) or an integer of 64 bits"
        )
    if value.get("jsonrpc") != "2.0":
        raise MessageError('jsonrpc must be "2.0"', id_)
    method = value.get("method")
    if not isinstance(method, str):
        raise MessageError("method must be a string", id_)
    return Message(method, id_, value.get("params", {}))


def clean(text: str) -> str:
    """The same text with every lone surrogate (from os.fsdecode, say) as "?": orjson writes anything but those."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def shown(text: str, cap: int = SHOWN_CHARS) -> str:
    """A client's word made fit for one line of an error: capped; controls, bidi marks and surrogates as U+FFFD."""
    head = "".join(char if char.isprintable() else "\ufffd" for char in text[:cap])
    return head if len(text) <= cap else head + "\u2026"


def response(id_: Id, result: object) -> bytes:
    """A result as bytes, without newline. What JSON cannot say becomes an internal error: this never raises."""
    try:
        return orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": result})
    except TypeError:  # orjson.JSONEncodeError is one
        return error(id_, RequestError(INTERNAL_ERROR, "the answer cannot be written as JSON"))


def error(id_: Id | None, fault: RequestError, *, null_id: bool = False) -> bytes:
    """An error as bytes, without newline. Without an id the member is null or absent (see eras.ID_MAY_BE_ABSENT)."""
    body: dict[str, object] = {"code": fault.code, "message": clean(str(fault))}
    head: dict[str, object] = {"jsonrpc": "2.0"}
    if id_ is not None or null_id:
        head["id"] = id_
    if fault.data is None:
        return orjson.dumps(head | {"error": body})
    try:
        return orjson.dumps(head | {"error": body | {"data": fault.data}})
    except TypeError:
        return orjson.dumps(head | {"error": body})


def notification(method: str, params: dict[str, object]) -> bytes:
    """A notification as bytes, without newline. Raises TypeError for params that JSON cannot say."""
    return orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params})
