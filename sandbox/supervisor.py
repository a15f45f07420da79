"""The front's side of the cage: registers plans with the launcher, turns a Call into an Outcome. Only I/O and order.

Everything that is decided here is decided by `attest` and `outcome`, which are pure. No signal is sent from here and no
process started: the launcher does both, on request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterable
from typing import Any

from sandbox import wire
from sandbox.errors import HostRefused, WireError
from sandbox.flight import Flight
from sandbox.plan import Plan
from sandbox.spawn import Launcher
from sandbox.types import Call, Outcome
from sandbox.wire import Message, Packet

_REGISTER_SECONDS = 20.0
_KILL_AGAIN = 0.02
_REGISTER_BATCH = 16  # plans on their way at once; their answers must fit into the socket's buffer


class LauncherGone(Exception):
    """The launcher has ended. Calls in flight have been answered as unknown; no further call can be made."""


class Supervisor:
    """One launcher and its workers. `register` before the loop serves clients, then `attach`.

    spare: how many workers may be kept staged: caged, attested, waiting for a call of a plan that was used before. A
    call that finds one starts without waiting for a cage.
    """

    def __init__(self, launcher: Launcher, spare: int = 0) -> None:
        self._plans: dict[str, tuple[int, Plan]] = {}
        self._flights: dict[int, Flight] = {}
        self._staged: dict[str, Flight] = {}
        self._spare = spare
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
                with contextlib.suppress(ConnectionError):  # it has ended; the wait for its answer says so
                    link.send(
                        wire.pack(Message(Packet.REGISTER, payload=json.dumps(plan.as_json()).encode()))
                    )
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
        flight = self._staged.pop(call.plan, None) or self._ask(call.plan)
        flight.begin(call)
        try:
            return await flight.outcome()
        finally:
            self._stage(call.plan)

    async def prove(self) -> None:
        """Build one cage, up to its attestation. Raises HostRefused with the step that this host cannot do."""
        plan = next(iter(self._plans))
        flight = self._ask(plan)
        waited: set[asyncio.Future[Any]] = {flight.proven, flight.done}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if flight.done.done():
            problem = flight.done.result()
            raise HostRefused(
                f"{problem.step}: {problem.detail}",
                "run toolcage doctor: it says what that step needs on this host",
            )
        if self._spare:
            self._staged[plan] = flight
        else:
            flight.dismiss()

    def close(self) -> None:
        """End the launcher, and with it every worker, by closing the socket."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _ask(self, plan_name: str) -> Flight:
        """Ask the launcher for a worker."""
        index, plan = self._plans[plan_name]
        number, self._next_call = self._next_call, self._next_call + 1
        flight = Flight(plan, asyncio.get_running_loop(), lambda: self._kill(number))
        self._flights[number] = flight
        flight.done.add_done_callback(lambda _done: self._ended(number, plan_name))
        if self._link is None:
            flight.lost()
            return flight
        try:
            go, report = flight.open_pipes()
        except OSError as problem:
            flight.refused(f"no pipe for the worker ({problem.strerror})")
            return flight
        try:
            socket.send_fds(self._link, [wire.pack(Message(Packet.CALL, index, number))], [go, report])
        except OSError as problem:
            flight.refused(f"the launcher does not take calls ({problem.strerror})")
        finally:
            os.close(go)
            os.close(report)
        return flight

    def _ended(self, number: int, plan: str) -> None:
        flight = self._flights.pop(number)
        flight.close()
        if self._staged.get(plan) is flight:
            del self._staged[plan]

    def _stage(self, plan: str) -> None:
        """Have a worker ready for the next call of a plan that was just used; the longest unused one gives way."""
        if self._spare == 0 or self._link is None or plan in self._staged:
            return
        if len(self._staged) >= self._spare:
            self._staged.pop(next(iter(self._staged))).dismiss()
        self._staged[plan] = self._ask(plan)

    def _kill(self, number: int) -> None:
        if self._link is None or number not in self._flights:
            return
        loop = asyncio.get_running_loop()
        try:
            self._link.send(wire.pack(Message(Packet.KILL, call=number)))
        except BlockingIOError:  # the launcher is busy; it reads in order, and so does this
            loop.call_later(_KILL_AGAIN, self._kill, number)
        except OSError:
            self._lost(loop)

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
            return  # it was given up, and answered without the launcher's word
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
        except (TimeoutError, ConnectionError):
            data = b""
        if not data:
            raise HostRefused("the launcher did not start", "its own words stand above on stderr")
        return wire.unpack(data)

    def _the_link(self) -> socket.socket:
        if self._link is None:
            raise LauncherGone
        return self._link
