"""The front's side of the cage: starts the launcher, registers plans, turns a Call into an Outcome. Only I/O and order.

Everything that is decided here is decided by `attest` and `outcome`, which are pure. No signal is sent from here and no
process started after `start`: the launcher does both, on request.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
import struct
import sys
from collections.abc import Iterable

from sandbox import wire
from sandbox.errors import HostRefused, WireError
from sandbox.flight import Flight
from sandbox.plan import Plan
from sandbox.types import Call, Outcome
from sandbox.wire import Message, Packet

_LAUNCHER_FD = 3
_START = "import sys; sys.path.append(sys.argv[1]); from sandbox.launcher import main; main(int(sys.argv[2]))"
_REGISTER_SECONDS = 20.0


class LauncherGone(Exception):
    """The launcher has ended. Calls in flight have been answered as unknown; no further call can be made."""


class Supervisor:
    """One launcher and the calls in flight. `start` and `register` before the loop serves clients, then `attach`."""

    def __init__(self) -> None:
        self._plans: dict[str, tuple[int, Plan]] = {}
        self._flights: dict[int, Flight] = {}
        self._next_call = 1
        self._link: socket.socket | None = None
        self.launcher_pid = 0
        self._gone = asyncio.Event()

    def start(self) -> None:
        """Start the launcher: a fresh interpreter without environment, site packages or descriptors of ours."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * wire.PACKET_LIMIT)
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        # a high number first: posix_spawn's dup2 of a descriptor onto itself would keep it close-on-exec
        high = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, 10)
        self.launcher_pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", _START, package, str(_LAUNCHER_FD)],
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, 2, 1),
                (os.POSIX_SPAWN_DUP2, high, _LAUNCHER_FD),
            ],
        )
        for descriptor in (null, high):
            os.close(descriptor)
        theirs.close()
        self._link = ours

    def register(self, plans: Iterable[Plan]) -> None:
        """Register all plans, once, and seal. Raises HostRefused when the launcher cannot hold one."""
        link = self._the_link()
        link.settimeout(_REGISTER_SECONDS)
        for plan in plans:
            link.send(wire.pack(Message(Packet.REGISTER, payload=json.dumps(plan.as_json()).encode())))
            answer = self._answer(link)
            if answer.type is not Packet.REGISTERED:
                detail = json.loads(answer.payload).get("detail", "")
                raise HostRefused(
                    f"plan {plan.name}: {detail}", "start again; if it persists, run: toolcage doctor"
                )
            self._plans[plan.name] = (answer.plan, plan)
        link.send(wire.pack(Message(Packet.SEAL)))
        link.setblocking(False)

    def attach(self, loop: asyncio.AbstractEventLoop) -> asyncio.Event:
        """Listen to the launcher from now on. The event is set when it ends."""
        loop.add_reader(self._the_link().fileno(), self._heard, loop)
        return self._gone

    async def run(self, call: Call) -> Outcome:
        """One call. Never raises for what becomes of the tool; cancelling this coroutine kills the worker's tree."""
        index, plan = self._plans[call.plan]
        number, self._next_call = self._next_call, self._next_call + 1
        flight = Flight(call, plan, asyncio.get_running_loop(), lambda: self._kill(number))
        if self._link is None:
            return flight.launcher_gone()
        self._flights[number] = flight
        try:
            self._send_call(index, number, flight)
            return await flight.outcome()
        finally:
            self._flights.pop(number, None)
            flight.close()

    def close(self) -> None:
        """End the launcher, and with it every worker, by closing the socket."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _send_call(self, index: int, number: int, flight: Flight) -> None:
        go, report = flight.open_pipes()
        try:
            packet = wire.pack(Message(Packet.CALL, index, number))
            socket.send_fds(self._the_link(), [packet], [go, report])
        except OSError as problem:
            flight.refused(f"the launcher does not take calls ({problem.strerror})")
        finally:
            os.close(go)
            os.close(report)

    def _kill(self, number: int) -> None:
        if self._link is not None and number in self._flights:
            try:
                self._link.send(wire.pack(Message(Packet.KILL, call=number)))
            except OSError:
                self._lost(asyncio.get_running_loop())

    def _heard(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            data = self._the_link().recv(wire.PACKET_LIMIT + 1)
            message = wire.unpack(data) if data else None
        except BlockingIOError:
            return
        except (OSError, WireError):
            message = None
        if message is None:
            self._lost(loop)
            return
        flight = self._flights.get(message.call)
        if flight is None:
            return
        match message.type:
            case Packet.STARTED:
                flight.started(struct.unpack("!I", message.payload)[0])
            case Packet.ENDED:
                flight.ended()
            case Packet.FAILED:
                flight.failed(message.payload)
            case _:
                self._lost(loop)

    def _lost(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._link is not None:
            loop.remove_reader(self._link.fileno())
            self._link.close()
            self._link = None
        for flight in list(self._flights.values()):
            flight.lost()
        self._gone.set()

    def _answer(self, link: socket.socket) -> Message:
        try:
            data = link.recv(wire.PACKET_LIMIT + 1)
        except TimeoutError:
            data = b""
        if not data:
            raise HostRefused("the launcher did not start", "its own words stand above on stderr")
        return wire.unpack(data)

    def _the_link(self) -> socket.socket:
        if self._link is None:
            raise LauncherGone
        return self._link
