"""The front's side of the cage: registers plans with the launcher, turns a Call into an Outcome. Only I/O and order.

Everything that is decided here is decided by `attest` and `outcome`, which are pure. No signal is sent from here and no
process started: the launcher does both, on request.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Iterable

from sandbox import wire
from sandbox.errors import HostRefused, WireError
from sandbox.flight import Flight
from sandbox.plan import Plan
from sandbox.spawn import Launcher
from sandbox.types import Call, Outcome
from sandbox.wire import Message, Packet

_REGISTER_SECONDS = 20.0
_REGISTER_BATCH = 16  # plans on their way at once; their answers must fit into the socket's buffer


class LauncherGone(Exception):
    """The launcher has ended. Calls in flight have been answered as unknown; no further call can be made."""


class Supervisor:
    """One launcher and the calls in flight. `register` before the loop serves clients, then `attach`."""

    def __init__(self, launcher: Launcher) -> None:
        self._plans: dict[str, tuple[int, Plan]] = {}
        self._flights: dict[int, Flight] = {}
        self._next_call = 1
        self._link: socket.socket | None = launcher.link
        self.launcher_pid = launcher.pid
        self._gone = asyncio.Event()

    def register(self, plans: Iterable[Plan]) -> None:
        """Register all plans, once, and seal. Raises HostRefused when the launcher cannot hold one."""
        link = self._the_link()
        link.settimeout(_REGISTER_SECONDS)
        waiting = list(plans)
        while waiting:
            batch, waiting = waiting[:_REGISTER_BATCH], waiting[_REGISTER_BATCH:]
            for plan in batch:
                link.send(wire.pack(Message(Packet.REGISTER, payload=json.dumps(plan.as_json()).encode())))
            for plan in batch:
                self._plans[plan.name] = (self._registered(link, plan), plan)
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

    def _registered(self, link: socket.socket, plan: Plan) -> int:
        answer = self._answer(link)
        if answer.type is not Packet.REGISTERED:
            detail = json.loads(answer.payload).get("detail", "")
            raise HostRefused(
                f"plan {plan.name}: {detail}", "start again; if it persists, run: toolcage doctor"
            )
        return answer.plan

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
