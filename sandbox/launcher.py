"""The launcher: forks one worker per call. Started once by the front, with `python -I -S`, one thread, empty environment.

SECURITY: it knows plans, which the front registers before it reads the first client byte, and nothing else: no secrets,
no client data (arguments travel in a pipe from the front to the worker, unread here). A front that has been taken over
can ask only for plans that exist. When the front goes away, its socket ends, the launcher ends, and the kernel ends the
workers (parent-death signal, and their pid namespaces with them).
When Toolcage runs as root this process is root as well: it makes the id-mapped trees and hands each worker a kernel id
of its own. It never runs anything as root besides these system calls.
"""

from __future__ import annotations

import array
import contextlib
import dataclasses
import gc
import json
import os
import select
import signal
import socket
import struct
import time
from dataclasses import dataclass, field

from sandbox import abi, probing, syscalls, wire, worker
from sandbox.errors import WireError
from sandbox.groups import Groups, find
from sandbox.plan import Plan, from_json
from sandbox.scratch import Scratch
from sandbox.slots import Slots, StepFailed
from sandbox.steps.identity import base, write_maps
from sandbox.tree import end_orphans
from sandbox.wire import Message, Packet
from sandbox.worker import Given, Place

_MAX_PLANS = 1024
_END_SECONDS = 2.0  # for keepers that end their tools themselves; then they are killed
_MAX_WORKERS = 72  # more than a policy allows calls (64) and the front keeps staged (4)


@dataclass
class Worker:
    """A call in flight."""

    call: int
    pid: int
    place: Place


@dataclass
class State:
    """All that the launcher knows. `workers` by pidfd."""

    link: socket.socket
    slots: Slots
    groups: Groups
    scratch: Scratch = field(default_factory=Scratch)
    reaper: bool = False  # without pid namespaces what a dead keeper leaves behind becomes ours
    plans: list[Plan] = field(default_factory=list)
    sealed: bool = False
    workers: dict[int, Worker] = field(default_factory=dict)


def main(descriptor: int) -> None:
    """Serve the front on `descriptor` until it goes away."""
    syscalls.close_range(descriptor + 1, 2**31 - 1)  # what the client's process left open for us
    # it ends when the front does, and leaves nothing
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # already a session leader
        os.setsid()
    # no parent-death signal: the socket's end comes as surely, and then there is time to leave nothing behind
    link = socket.socket(fileno=descriptor)
    link.set_inheritable(False)
    facts = probing.look(_base())
    try:
        groups = find(os.getppid())
    except OSError as problem:  # trouble, not a weaker host: the front refuses to serve
        groups = Groups("none", str(problem.strerror))
        told = ("cgroup", "cgroup", problem.errno or 0, str(problem.strerror))
        facts = dataclasses.replace(facts, works=False, refused=(*facts.refused, told))
    with contextlib.closing(groups):
        _run(link, groups, facts)


def _run(link: socket.socket, groups: Groups, facts: probing.Facts) -> None:
    alive_reader, alive_writer = os.pipe2(os.O_CLOEXEC)
    slots = Slots(alive_reader, alive_writer, facts.base)
    state = State(link, slots, groups, reaper=facts.namespaces == "none")
    if state.reaper:
        syscalls.prctl(abi.PR_SET_CHILD_SUBREAPER, 1)
    gc.freeze()  # what exists now is never collected, so that workers do not copy its pages
    gc.disable()
    poller = select.poll()
    poller.register(link.fileno(), select.POLLIN)
    told = {**facts.as_json(), "cgroup": groups.kind, "cgroup_why": groups.why}
    try:
        _send(state, Message(Packet.HOST, payload=json.dumps(told).encode()))
        while True:
            for ready, _events in poller.poll():
                if ready == link.fileno():
                    if not _serve(state, poller):
                        return
                else:
                    _reap(state, poller, ready)
    except ConnectionError:
        return  # the front went away while something was said to it
    finally:
        _end(state)


def _base() -> int:
    """First kernel id of the workers when this is root."""
    if os.geteuid() != 0:
        return 0
    with open("/proc/self/uid_map", "rb") as file:
        return base(file.read().decode("ascii"), os.getpid())


def _serve(state: State, poller: select.poll) -> bool:
    """Handle one packet; False when the front is gone or does not keep to the protocol."""
    try:
        data, ancillary, flags, _ = state.link.recvmsg(wire.PACKET_LIMIT + 1, socket.CMSG_SPACE(2 * 4))
    except ConnectionError:
        return False
    descriptors = _received(ancillary)
    if not data or flags & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
        return False
    try:
        _handle(state, poller, wire.unpack(data), descriptors)
    except (WireError, ConnectionError):
        return False
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return True


def _handle(state: State, poller: select.poll, message: Message, descriptors: list[int]) -> None:
    match message.type:
        case Packet.REGISTER if not state.sealed and len(state.plans) < _MAX_PLANS:
            _register(state, message)
        case Packet.SEAL:
            state.sealed = True
        case Packet.CALL if state.sealed and len(descriptors) == 2 and message.plan < len(state.plans):
            _start(state, poller, message, descriptors)
        case Packet.KILL:
            for pidfd, running in state.workers.items():
                if running.call == message.call:
                    _stop(state, pidfd)
        case _:
            raise WireError(f"{message.type.name} is not allowed now")


def _register(state: State, message: Message) -> None:
    try:
        plan = from_json(json.loads(message.payload))
    except (ValueError, TypeError, KeyError, RecursionError) as problem:
        raise WireError(f"plan: {problem}") from None
    try:
        if plan.identity.slots and plan.in_namespaces:
            state.slots.hold(plan)
    except OSError as problem:
        _send(state, _failed(message.call, "mounts", problem))
        return
    state.plans.append(plan)
    _send(state, Message(Packet.REGISTERED, len(state.plans) - 1, message.call))


def _start(state: State, poller: select.poll, message: Message, descriptors: list[int]) -> None:
    plan = state.plans[message.plan]
    place = Place()
    try:
        if len(state.workers) >= _MAX_WORKERS:
            raise BlockingIOError(11, f"{_MAX_WORKERS} workers are running")
        place.slot = state.slots.take({running.place.slot for running in state.workers.values()})
        _prepare(state, plan, message.call, place)
        pid, pidfd = _spawn(state, plan, place, descriptors)
    except OSError as problem:
        _clear(state, place)
        _send(
            state,
            _failed(message.call, problem.step if isinstance(problem, StepFailed) else "mounts", problem),
        )
        return
    finally:
        place.close()
    state.workers[pidfd] = Worker(message.call, pid, place)
    poller.register(pidfd, select.POLLIN)
    _send(state, Message(Packet.STARTED, message.plan, message.call, struct.pack("!I", pid)))


def _prepare(state: State, plan: Plan, call: int, place: Place) -> None:
    """What a worker needs that only the launcher can make."""
    if not plan.in_namespaces:
        place.scratch = state.scratch.make(call, *state.slots.ids(place.slot))
    elif plan.identity.slots:
        place.trees = state.slots.trees(plan, place.slot)
    try:
        place.leaf = state.groups.leaf(call, plan.cgroup)
    except OSError as problem:
        raise StepFailed("cgroup", problem) from None


def _spawn(state: State, plan: Plan, place: Place, descriptors: list[int]) -> tuple[int, int]:
    """Clone a keeper into its namespaces and map its ids. A keeper that cannot be mapped is killed."""
    ready: tuple[int, ...] = ()
    ids = state.slots.ids(place.slot)
    try:
        ready = ready_reader, ready_writer = os.pipe2(os.O_CLOEXEC)
        pid, pidfd = syscalls.spawn(probing.FLAGS[plan.identity.namespaces])
        if pid == 0:
            go, report = descriptors
            worker.main(plan, Given(go, report, state.slots.alive, ready_reader, ids, place))
        try:
            if plan.identity.namespaces == "user":
                write_maps(pid, *ids, slots=plan.identity.slots)
            os.write(ready_writer, b"1")
        except OSError as problem:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(pidfd)
            raise StepFailed("identity", problem) from None
        return pid, pidfd
    except StepFailed:
        raise
    except OSError as problem:
        raise StepFailed("namespaces", problem) from None
    finally:
        for descriptor in ready:
            os.close(descriptor)


def _reap(state: State, poller: select.poll, pidfd: int) -> None:
    """A keeper is gone, and with pid 1 every process of its namespace: the kernel has reaped them before it.

    Without a pid namespace a keeper ends them itself; those of one that was killed are ended here.
    """
    running = state.workers.pop(pidfd)
    poller.unregister(pidfd)
    _, status = os.waitpid(running.pid, 0)
    os.close(pidfd)
    _clear(state, running.place)
    _send(state, Message(Packet.ENDED, 0, running.call, struct.pack("!i", status)))


def _clear(state: State, place: Place) -> None:
    """What a worker may have left: processes (where no namespace holds them), its temporary folder, its cgroup."""
    if state.reaper:
        end_orphans(frozenset(str(running.pid) for running in state.workers.values()))
    if place.scratch:
        state.scratch.remove(place.scratch)
    state.groups.remove(place.leaf)


def _stop(state: State, pidfd: int) -> None:
    """Pid 1 of a namespace takes everything along; without one the keeper is asked to, by its handler."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGTERM if state.reaper else signal.SIGKILL)


def _end(state: State) -> None:
    """The front is gone: end all workers, wait for them, and leave nothing behind."""
    for pidfd in state.workers:
        _stop(state, pidfd)
    late = time.monotonic() + _END_SECONDS
    for pidfd, running in state.workers.items():
        if not select.select([pidfd], [], [], max(0.0, late - time.monotonic()))[0]:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.waitpid(running.pid, 0)
    if state.reaper:
        end_orphans(frozenset())
    state.scratch.close()


def _failed(call: int, step: str, problem: OSError) -> Message:
    document = {"step": step, "errno": problem.errno or 0, "detail": str(problem.strerror)[:500]}
    return Message(Packet.FAILED, 0, call, json.dumps(document).encode())


def _send(state: State, message: Message) -> None:
    state.link.send(wire.pack(message))


def _received(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers = array.array("i")
            numbers.frombytes(data[: len(data) // numbers.itemsize * numbers.itemsize])
            found += numbers
    for descriptor in found:
        os.set_inheritable(descriptor, False)
    return found
