"""What the processes say to each other: packets front <-> launcher, frames front <-> worker. No I/O policy here.

Packets travel on a SOCK_SEQPACKET pair: a fixed header, an opaque payload, descriptors beside it. Frames travel in
pipes: four bytes of length, big-endian, then JSON. Everything has a bound, and anything else is a WireError.
"""

from __future__ import annotations

import enum
import json
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sandbox.errors import WireError

VERSION = 1
_HEADER = struct.Struct("!BBHQ")  # version, type, plan index, call id
PACKET_LIMIT = (
    160 * 1024
)  # a plan with its filter and mounts is 10-40 KiB; the kernel's default send buffer is 208 KiB
GO_LIMIT = 8 * 1024 * 1024  # argv tail and stdin of one call
REPORT_SLACK = 64 * 1024  # a report besides its output


class Packet(enum.IntEnum):
    """Types of packets. REGISTER..KILL go to the launcher, REGISTERED..FAILED come from it."""

    REGISTER = 1  # payload: a plan as JSON; only before SEAL
    SEAL = 2  # no plan can be added any more
    CALL = 3  # descriptors: go pipe (read end), report pipe (write end)
    KILL = 4
    REGISTERED = 5
    STARTED = 6  # payload: host pid of the keeper
    ENDED = 7  # payload: wait status; every process of the call is gone
    HOST = 9  # payload: what the launcher found out about this host; its first packet
    FAILED = 8  # payload: {"step", "errno", "detail"}; nothing was started, or it is gone


@dataclass(frozen=True, slots=True)
class Message:
    """One packet. `plan` is the index in order of registration."""

    type: Packet
    plan: int = 0
    call: int = 0
    payload: bytes = b""


def pack(message: Message) -> bytes:
    """Bytes of a packet."""
    data = _HEADER.pack(VERSION, message.type, message.plan, message.call) + message.payload
    if len(data) > PACKET_LIMIT:
        raise WireError(f"packet of {len(data)} bytes, limit {PACKET_LIMIT}")
    return data


def unpack(data: bytes) -> Message:
    """Raises WireError for anything that `pack` does not write."""
    if not _HEADER.size <= len(data) <= PACKET_LIMIT:
        raise WireError(f"packet of {len(data)} bytes")
    version, kind, plan, call = _HEADER.unpack_from(data)
    if version != VERSION or kind not in Packet._value2member_map_:
        raise WireError(f"packet version {version}, type {kind}")
    return Message(Packet(kind), plan, call, data[_HEADER.size :])


def frame(document: Mapping[str, object]) -> bytes:
    """A length-prefixed JSON document for a pipe."""
    body = json.dumps(document, separators=(",", ":")).encode()
    return struct.pack("!I", len(body)) + body


def parse(body: bytes) -> dict[str, object]:
    """The JSON object in a frame's body. Raises WireError when it is not one."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise WireError(f"frame is not JSON: {type(problem).__name__}") from None
    if not isinstance(document, dict):
        raise WireError("frame is not an object")
    return document


class Frames:
    """Cuts a byte stream into frames. `limit` is the longest body in bytes; more is a WireError at once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, object]]:
        """Add bytes; yields the documents that became complete, before it raises WireError for what follows them."""
        self._buffer += data
        while len(self._buffer) >= 4:
            (length,) = struct.unpack_from("!I", self._buffer)
            if length > self._limit:
                raise WireError(f"frame of {length} bytes, limit {self._limit}")
            if len(self._buffer) < 4 + length:
                break
            body = bytes(self._buffer[4 : 4 + length])
            del self._buffer[: 4 + length]
            yield parse(body)

    @property
    def pending(self) -> bool:
        """Whether a frame has begun and is not complete."""
        return bool(self._buffer)


def read_frame(descriptor: int, limit: int) -> dict[str, object] | None:
    """Blocking read of one frame; None at a clean end. Raises WireError when it is cut or too long."""
    head = _read_exactly(descriptor, 4)
    if head is None:
        return None
    (length,) = struct.unpack("!I", head)
    if length > limit:
        raise WireError(f"frame of {length} bytes, limit {limit}")
    body = _read_exactly(descriptor, length)
    if body is None:
        raise WireError("frame without body")
    return parse(body)


def write_all(descriptor: int, data: bytes) -> None:
    """Blocking write of everything. OSError (EPIPE) when nobody reads any more."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read_exactly(descriptor: int, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        data = os.read(descriptor, count - len(parts))
        if not data:
            if parts:
                raise WireError("frame cut short")
            return None
        parts += data
    return bytes(parts)
