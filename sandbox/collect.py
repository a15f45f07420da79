"""The keeper's loop while the tool runs: pump the pipes, watch limits, reap, and end the whole tree before reporting.

Waits for the tool's own process, not for the end of its pipes: a daemon that holds a pipe open is killed, not awaited.
"""

from __future__ import annotations

import base64
import contextlib
import os
import select
import time
from typing import TYPE_CHECKING

from sandbox.meter import Meter
from sandbox.plan import Plan
from sandbox.sample import Temp
from sandbox.tool import Started
from sandbox.types import Kind

if TYPE_CHECKING:
    from sandbox.denials import Reporter

_MIB = 1 << 20
# Seconds between samples: dense at first, for tools that live milliseconds. A sample that costs more than a tenth of the
# period makes the next one wait, but not longer than the longest.
_FIRST_PERIOD, _PERIOD, _LONGEST_PERIOD = 0.001, 0.01, 0.1
_CHUNK = 1 << 16


class Collector:
    """One tool's run. Made before the keeper's filter is on, `run` after."""

    def __init__(
        self, plan: Plan, started: Started, meter: Meter, alive: int, reporter: Reporter | None = None
    ) -> None:
        self._limits = plan.limits
        self._meter = meter
        self._started = started
        self._alive = alive
        self._reporter = reporter
        self._room = plan.limits.output_mb * _MIB
        self._kept = {started.stdout: bytearray(), started.stderr: bytearray()}
        self._totals = {started.stdout: 0, started.stderr: 0}
        self._input = memoryview(b"")
        self._status: int | None = None
        self._stopped: Kind | None = None
        self._poller = select.poll()
        for descriptor in (started.stdout, started.stderr):
            os.set_blocking(descriptor, False)
            self._poller.register(descriptor, select.POLLIN)
        os.set_blocking(started.stdin, False)
        self._poller.register(started.pidfd, select.POLLIN)
        self._poller.register(alive, 0)  # a hang-up is always reported
        if reporter:
            self._poller.register(reporter.listener, select.POLLIN)

    def run(self, call: dict[str, object]) -> dict[str, object]:
        """Until the tool ends or is stopped. Returns the report; everything else in the namespace is dead by then."""
        begun = time.monotonic()
        self._input = memoryview(base64.b64decode(str(call["stdin"])))
        self._feed()
        deadline = begun + self._limits.wall_seconds
        next_sample = begun
        while self._status is None and self._stopped is None:
            now = time.monotonic()
            if now >= deadline:
                self._stopped = Kind.TIMED_OUT
                break
            if now >= next_sample:
                before = time.thread_time()
                self._stopped = self._meter.look() or self._stopped
                period = min(_PERIOD, max(_FIRST_PERIOD, (now - begun) / 8))
                # processor time, not the clock: a tool that slows the machine must not buy itself fewer looks
                next_sample = now + min(max(period, 10 * (time.thread_time() - before)), _LONGEST_PERIOD)
            wait = min(deadline, next_sample) - time.monotonic()
            self._pump(max(0.0, wait))
            self._reap()
        wall = time.monotonic() - begun
        self._end_tree()
        temp = self._meter.temp()
        self._stopped = self._meter.finish() or self._stopped or self._meter.overfull(temp)
        return self._report(call, wall, temp)

    def _pump(self, seconds: float) -> None:
        for descriptor, events in self._poller.poll(seconds * 1000 + 1):
            if descriptor == self._alive:  # the launcher is gone
                self._meter.tree.end()  # in a pid namespace our death alone would do
                os._exit(0)
            elif descriptor == self._started.stdin:
                self._feed()
            elif descriptor in self._kept:
                self._read(descriptor)
            elif (
                self._reporter and descriptor == self._reporter.listener and not self._reporter.answer(events)
            ):
                self._poller.unregister(descriptor)

    def _feed(self) -> None:
        """Write what the pipe takes; close it when all is written or nobody reads."""
        stdin = self._started.stdin
        try:
            while self._input:
                self._input = self._input[os.write(stdin, self._input) :]
        except BlockingIOError:
            self._poller.register(stdin, select.POLLOUT)
            return
        except BrokenPipeError:
            self._input = memoryview(b"")
        with contextlib.suppress(KeyError):
            self._poller.unregister(stdin)
        os.close(stdin)

    def _read(self, descriptor: int) -> bool:
        """Take what is there. False at the end of the pipe, or when nothing is there now."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._poller.unregister(descriptor)
            return False
        self._totals[descriptor] += len(data)
        take = data[: self._room]
        self._room -= len(take)
        self._kept[descriptor] += take
        if len(take) < len(data):
            self._stopped = self._stopped or Kind.TOO_MUCH_OUTPUT
            return False
        return True

    def _reap(self) -> None:
        """Children of the tool that it left behind become ours; only the tool's own status matters."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._started.pid:
                    self._status = status

    def _end_tree(self) -> None:
        """When this process is alone, take what is left in the pipes: nobody can write any more."""
        ended = self._meter.tree.end()
        if self._status is None:
            self._status = ended.get(self._started.pid)
        for descriptor in self._kept:
            with contextlib.suppress(OSError, KeyError):
                while self._read(descriptor):
                    pass

    def _report(self, call: dict[str, object], wall: float, temp: Temp) -> dict[str, object]:
        stdout, stderr = self._started.stdout, self._started.stderr
        return {
            "token": call["token"],
            "status": self._status,
            "stopped": self._stopped,
            "usage": {
                "wall_seconds": round(wall, 4),
                "cpu_seconds": round(self._meter.cpu, 4),
                "memory_bytes": self._meter.memory,
                "processes": max(self._meter.processes, 1),
                "open_files": self._meter.open_files,
                "tmp_bytes": temp.used,
            },
            "temp_full": temp.full,
            "file_at_limit": temp.file_at_limit,
            "stdout": base64.b64encode(self._kept[stdout]).decode(),
            "stderr": base64.b64encode(self._kept[stderr]).decode(),
            "stdout_total": self._totals[stdout],
            "stderr_total": self._totals[stderr],
            **(self._reporter.report() if self._reporter else {}),
        }
