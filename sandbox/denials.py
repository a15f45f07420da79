"""Reports what a tool was refused: the keeper is asked by the tool's filter, answers as the plan's own filter decides, and
notes what it saw. Runs in the keeper of a plan that was made for it, and in no other.

SECURITY: nothing is decided here. A call that the filter of the plan refuses is answered with its errno; one that it allows
goes on in the kernel, where Landlock and the mounts decide as always. The number and the arguments of a call are the
kernel's copy; paths are the tool's memory, which it can change meanwhile: they serve the report and nothing else.
seccomp_unotify(2), Linux 5.5.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import select
import socket
import struct
from collections import Counter
from dataclasses import dataclass
from typing import TypeVar

from sandbox import abi, procfs, syscalls
from sandbox.judging import Lent
from sandbox.plan import Plan
from sandbox.tree import Tree
from sandbox.types import MAX_ENTRIES, MAX_PATH

MAX_TEXT = 40 * 1024  # of all files as JSON, so that a report with full output still fits into its frame
_NOTIFICATION = struct.Struct("=QII64s")  # id, pid, flags, struct seccomp_data
_DATA = struct.Struct("=iIQ6Q")  # number, architecture, instruction, arguments
_REFUSED = abi.SECCOMP_RET_ERRNO | 1  # EPERM
_Key = TypeVar("_Key")


class Filter:
    """A program of classic BPF over struct seccomp_data, as libseccomp writes them."""

    def __init__(self, program: str) -> None:
        code = base64.b64decode(program)
        self._rows = list(struct.iter_unpack("@HBBI", code))

    def decides(self, data: bytes) -> int:
        """What the kernel would do, SECCOMP_RET_*. What cannot be understood is refused."""
        position, register, memory = 0, 0, [0] * 16
        while position < len(self._rows):
            code, yes, no, value = self._rows[position]
            position += 1
            match code:
                case 0x20:
                    register = int.from_bytes(data[value : value + 4], "little")
                case 0x05:
                    position += value
                case 0x15 | 0x25 | 0x35 | 0x45:
                    position += yes if _holds(code, register, value) else no
                case 0x54:
                    register &= value
                case 0x02:
                    memory[value] = register
                case 0x60:
                    register = memory[value]
                case 0x06:
                    return int(value)
                case _:
                    break
        return _REFUSED


def _holds(code: int, register: int, value: int) -> bool:
    if code == 0x15:
        return register == value
    if code == 0x45:
        return bool(register & value)
    return register > value if code == 0x25 else register >= value


@dataclass(frozen=True, slots=True)
class _Process:
    """The process that asks, by its pid as the keeper's pid namespace has it (sandbox.judging.Asking)."""

    pid: int
    tree: Tree
    plan: Plan

    def text(self, address: int) -> str | None:
        """A path in its memory, None when there is none."""
        try:
            data = syscalls.read_memory(self.pid, address, MAX_PATH)  # the kernel takes no longer one
        except OSError:
            return None
        end = data.find(b"\0")
        return os.fsdecode(data[:end]) if end >= 0 else None

    def number(self, address: int) -> int:
        """Eight bytes of its memory, 0 when they are not there."""
        try:
            return int.from_bytes(syscalls.read_memory(self.pid, address, 8), "little")
        except OSError:
            return 0

    def folder(self, descriptor: int) -> str | None:
        """The path of an open folder, or of its working folder."""
        low = descriptor & 0xFFFFFFFF
        place = "cwd" if low == abi.AT_FDCWD & 0xFFFFFFFF else f"fd/{low}"
        try:
            return os.readlink(f"{self._name()}/{place}", dir_fd=self.tree.proc)
        except OSError:
            return None

    def _name(self) -> str:
        """In the keeper's proc: its own knows the pid; the host's, seen from a pid namespace, has another one."""
        if self.tree.own or not self.plan.in_namespaces:
            return str(self.pid)
        names = self.tree.names()
        return next((name for name in names if _inner(self.tree.proc, name) == self.pid), "gone")


class Reporter:
    """Hears and answers what a tool's filter asks. Made before the keeper's filter is on.

    door: the keeper's end of the socket through which the tool's process sends the listener; it is closed.
    """

    def __init__(self, plan: Plan, tree: Tree, scratch: str, door: int) -> None:
        if plan.reports is None:
            raise ValueError("the plan does not report")
        self._filter = Filter(plan.reports.decides)
        self._looser = [(key, Filter(program)) for key, program in plan.reports.looser]
        self._files = dict(plan.reports.files)
        self._lent = Lent(plan, scratch)
        self._plan, self._tree = plan, tree
        self._calls: Counter[tuple[int, str]] = Counter()
        self._uses: Counter[tuple[str, str, str]] = Counter()
        self._room, self._more = MAX_TEXT, 0
        self.listener = _received(door)

    def until(self, descriptor: int) -> None:
        """Answer until `descriptor` can be read. Until then it is our own code that asks: nothing of it is noted."""
        if self.listener < 0:  # the process ended before its filter was on
            return
        waiting, over = select.poll(), select.poll()
        for poller in (waiting, over):
            poller.register(descriptor, select.POLLIN)
        waiting.register(self.listener, select.POLLIN)
        while not over.poll(0):
            if any(ready == self.listener and events & select.POLLIN for ready, events in waiting.poll()):
                self._next(over)

    def answer(self, events: int) -> bool:
        """Answer one process that asks. False when no process is left that could."""
        if events & select.POLLIN:
            self._next(None)
        return bool(events & select.POLLIN) or not events & (select.POLLHUP | select.POLLERR)

    def report(self) -> dict[str, object]:
        """What was seen, for the report (sandbox.outcome)."""
        return {
            "denials": [
                {"call": number, "count": count, "key": key} for (number, key), count in self._calls.items()
            ],
            "files": [
                {"path": path, "operation": operation, "why": why, "count": count}
                for (path, operation, why), count in self._uses.items()
            ],
            "more": self._more,
        }

    def _next(self, begun: select.poll | None) -> None:
        """`begun`: ready once the program runs; None when it is known to."""
        try:
            number, pid, _, data = _NOTIFICATION.unpack(syscalls.notification(self.listener))
        except OSError as problem:
            if problem.errno == errno.ENOENT:  # its process was killed meanwhile
                return
            raise
        noted = begun is None or bool(begun.poll(0))
        decided = self._filter.decides(data)
        allowed = decided == abi.SECCOMP_RET_ALLOW
        if noted and allowed:
            self._note_file(number, pid, data)
        elif noted:
            self._note_call(data)
        refusal = decided & 0xFFFF if decided >> 16 == abi.SECCOMP_RET_ERRNO >> 16 else 1
        try:
            syscalls.answer_notification(self.listener, number, 0 if allowed else refusal or 1)
        except OSError as problem:
            if problem.errno != errno.ENOENT:  # it was killed while it waited
                raise

    def _note_call(self, data: bytes) -> None:
        number = _DATA.unpack(data)[0]
        allow = abi.SECCOMP_RET_ALLOW
        key = next((key for key, looser in self._looser if looser.decides(data) == allow), "")
        self._count(self._calls, (number, key), 0)

    def _note_file(self, number: int, pid: int, data: bytes) -> None:
        call, _, _, *arguments = _DATA.unpack(data)
        name = self._files.get(call)
        if name is None:
            return
        try:
            found = self._lent.refused(name, tuple(arguments), _Process(pid, self._tree, self._plan))
        except OSError:
            return
        # what was read under this pid was its own only if it still waits for the answer
        if found and syscalls.notification_holds(self.listener, number):
            path, operation, why = found
            self._count(self._uses, (path[:MAX_PATH], operation, why), len(json.dumps(path)) + 80)

    def _count(self, counts: Counter[_Key], key: _Key, size: int) -> None:
        if key not in counts:
            if len(counts) >= MAX_ENTRIES or size > self._room:
                self._more += 1
                return
            self._room -= size
        counts[key] += 1


def _inner(proc: int, name: str) -> int:
    """Its pid in its own namespace; 0 for a process that is gone."""
    try:
        return procfs.inner_pid(procfs.read(proc, f"{name}/status"))
    except OSError:
        return 0


def _received(door: int) -> int:
    """The listener; -1 when the tool's process ended before it had one."""
    with socket.socket(fileno=door) as link:
        data, descriptors, _, _ = socket.recv_fds(link, 1, 1)
    if not data or len(descriptors) != 1:
        return -1
    os.set_inheritable(descriptors[0], False)
    return descriptors[0]
