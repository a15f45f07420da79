"""The launcher in which one chosen call fails, as SQLite tests itself: the n-th one, for n = 1, 2, 3, ...

Runs in the launcher of a test and in the workers it clones, in place of `sandbox.launcher.main`; `Fault` is also the
test's side. What shall fail stands in a page of memory that all of them share, so that a worker can still say that the
fault was met when every file and descriptor is out of its reach. Imports nothing but the standard library and sandbox.
"""

from __future__ import annotations

import fcntl
import functools
import mmap
import os
import resource
import signal
import struct
import time
from collections.abc import Callable
from typing import Any

from sandbox import launcher, slots, syscalls, tool, worker
from sandbox.plan import Plan
from sandbox.steps import identity
from sandbox.wire import Message

# Where a call is made. start: the launcher until its plans are sealed. launcher: while it starts one worker. holder: the
# process that holds a user namespace. keeper: until it reads the call. run: from then on. tool: until execve.
PLACES = ("nowhere", "start", "launcher", "holder", "keeper", "run", "tool")
KERNEL, LIBC = 0, 1  # doors: sandbox.syscalls, and what the interpreter offers itself
_RECORD = struct.Struct(
    "=5i32s32s"
)  # place, door, n, errno, times met, only calls of this name, name of the one met
_ASTRAY = 512  # offset of a byte: a fork of the launcher ran on into the launcher's code
_HOLDER_SECONDS = 2.0
LIBC_CALLS: tuple[tuple[Any, str], ...] = (
    (os, "open read write pwrite pipe2 fork pidfd_open setsid nice dup2 set_inheritable set_blocking"),
    (os, "setgroups setresgid setresuid mkdir chmod fchmod symlink chdir fchdir statvfs execve"),
    (fcntl, "fcntl"),
    (resource, "setrlimit getrlimit"),
    (signal, "signal pthread_sigmask"),
)


class Fault:
    """The shared page, as a file at `path` that exists and has the size of a page."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.page = mmap.mmap(descriptor, mmap.PAGESIZE)
        os.close(descriptor)

    def set(self, place: str, n: int, code: int, *, door: int = KERNEL, only: str = "") -> None:
        """Let the n-th call at `place` fail with errno `code`; with `only`, the n-th of that name."""
        _RECORD.pack_into(self.page, 0, PLACES.index(place), door, n, code, 0, only.encode(), b"")
        self.page[_ASTRAY] = 0

    @property
    def met(self) -> str:
        """The name of the call that was made to fail, or "" when no call was."""
        *_, times, _only, name = _RECORD.unpack_from(self.page)
        return bytes(name).rstrip(b"\0").decode() if times else ""

    @property
    def astray(self) -> bool:
        """Whether a fork of the launcher has run on into the launcher's code."""
        return self.page[_ASTRAY] != 0


class Injector:
    """One per process: a fork has a copy, and counts from zero when it enters its own place."""

    def __init__(self, fault: Fault) -> None:
        self._page = fault.page
        self._here, self._count = "start", 0

    def enter(self, here: str) -> None:
        """From now on calls belong to that place."""
        self._here, self._count = here, 0

    def wants(self, here: str) -> bool:
        """Whether the fault is to happen there."""
        place, *_ = _RECORD.unpack_from(self._page)
        return PLACES[place] == here

    def met(self, door: int, name: str) -> None:
        """Count a call; raises OSError in its place when it is the one."""
        place, wanted, n, code, times, only, _ = _RECORD.unpack_from(self._page)
        only = only.rstrip(b"\0")
        if PLACES[place] != self._here or door != wanted or (only and only != name.encode()):
            return
        self._count += 1
        if self._count == n:
            _RECORD.pack_into(self._page, 0, place, wanted, n, code, times + 1, only, name.encode())
            raise OSError(code, f"injected into {name}")

    def wrap(self, module: Any, name: str, door: int) -> None:
        """Count the calls of `module.name`."""
        inner = getattr(module, name)

        @functools.wraps(inner)
        def counted(*arguments: Any, **named: Any) -> Any:
            # syscalls._invoke serves many calls: the name of the call is its first argument
            self.met(door, arguments[0] if name == "_invoke" else name)
            return inner(*arguments, **named)

        setattr(module, name, counted)

    def at(self, module: Any, name: str, here: str, after: str = "") -> None:
        """Calls belong to place `here` from the start of `module.name`, and to `after` when it has returned."""
        inner: Callable[..., Any] = getattr(module, name)

        @functools.wraps(inner)
        def entered(*arguments: Any) -> Any:
            self.enter(here)
            found = inner(*arguments)
            self.enter(after or here)
            return found

        setattr(module, name, entered)


def main(descriptor: int, path: str) -> None:
    """The launcher, with the fault that the file at `path` describes."""
    fault = Fault(path)
    injector = Injector(fault)
    injector.wrap(syscalls, "_invoke", KERNEL)
    injector.wrap(syscalls, "spawn", KERNEL)
    for module, names in LIBC_CALLS:
        for name in names.split():
            injector.wrap(module, name, LIBC)
    _forget_namespaces(injector)
    _wait_for_the_holder(injector, fault)
    _watch_forks(fault)
    injector.at(launcher, "_start", "launcher", "nowhere")
    injector.at(slots, "_hold_namespace", "holder")
    injector.at(worker, "main", "keeper")
    injector.at(tool, "go", "run")
    injector.at(tool, "_become", "tool")
    launcher.main(descriptor)


def _forget_namespaces(injector: Injector) -> None:
    """User namespaces are made once and kept, and so is what cannot be mapped; a fault needs a call that tries."""
    inner = slots.Slots.trees

    def trees(self: slots.Slots, plan: Plan, slot: int) -> dict[str, int]:
        if injector.wants("launcher") or injector.wants("holder"):
            for held in self._maps.values():
                os.close(held)
            self._maps.clear()
        self._without_idmap.clear()
        return inner(self, plan, slot)

    slots.Slots.trees = trees  # type: ignore[method-assign]


def _wait_for_the_holder(injector: Injector, fault: Fault) -> None:
    """A holder is ended as soon as its namespace is taken; one that shall fail is given the time to."""

    def write_map(pid: int, name: str, text: str) -> None:
        deadline = time.monotonic() + _HOLDER_SECONDS
        while injector.wants("holder") and not fault.astray and time.monotonic() < deadline:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
            os.sched_yield()
        identity.write_map(pid, name, text)

    slots.write_map = write_map  # type: ignore[attr-defined]


def _watch_forks(fault: Fault) -> None:
    """Only the launcher itself speaks on its socket."""
    inner, pid = launcher._send, os.getpid()

    def send(state: launcher.State, message: Message) -> None:
        if os.getpid() != pid:
            fault.page[_ASTRAY] = 1
        inner(state, message)

    launcher._send = send
