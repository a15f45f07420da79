"""Serving one client over stdio, from the start of the front to its end: the order of start-up stands here.

    launcher started (by the caller) -> policy -> plans -> registered and sealed -> event loop -> lock-down -> first byte

Discovery and the handshake are answered by the protocol alone; what calls need is made when the first one needs it, at
latest after 50 ms, because clients give a server little time for its first answer and little patience afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Literal

from runner import __version__, config, lockdown
from runner.config import Config
from runner.flags import Flags
from runner.mcp import stdio
from runner.mcp.lines import Oversized
from runner.mcp.messages import Reply, ServerInfo
from runner.mcp.protocol import Protocol
from runner.mcp.stderr import QuietStderr
from runner.prepare import Prepared, prepare
from sandbox import host, syscalls
from sandbox.errors import Refused
from sandbox.spawn import Launcher
from sandbox.supervisor import Supervisor

if TYPE_CHECKING:
    from runner.calllog import JsonLog
    from runner.catalog.catalog import Catalog
    from runner.front import Front

_EOF_GRACE = 0.5  # seconds for calls in flight when the input ends; clients that kill after 20 ms need none
_FLUSH_SECONDS = 1.0
_FRONT_SECONDS = 0.05
_LARGE_BLOCK = 1 << 20  # bytes; a large result is a dozen blocks of 8 MiB and more while it is prepared
_SPARE_WORKERS = (
    4  # workers that wait, caged, for the next call: a few MiB each, and a call starts in 2 ms instead of 10
)


def serve(flags: Flags, launcher: Launcher, source: int, sink: int) -> int:
    """Serve until the input ends, a signal comes, or the launcher dies. Returns the exit code; raises Refused."""
    syscalls.return_large_blocks(_LARGE_BLOCK)
    supervisor = Supervisor(launcher, spare=_SPARE_WORKERS)
    try:
        settings = config.read(flags)
        prepared = prepare(settings.policy, host.probe(launcher))
        supervisor.register(prepared.plans.values())
        return asyncio.run(_Server(settings, prepared, supervisor).run(source, sink))
    finally:
        supervisor.close()


def instructions(settings: Config) -> str:
    """What a model is told about this server; key facts first, because clients cut."""
    return (
        f"{settings.policy.name}: read-only tools, each call in its own sandbox without network. Paths are inside the "
        "root folder and relative to it. A result starts with its status; outcome 'unknown' means that the tool may "
        "have run: do not repeat it blindly. Shortened output has a handle: read more with read_output."
    )


class _Server:
    """One connection."""

    def __init__(self, settings: Config, prepared: Prepared, supervisor: Supervisor) -> None:
        self._settings, self._prepared, self._supervisor = settings, prepared, supervisor
        info = ServerInfo(settings.policy.name, __version__, "Toolcage")
        self._protocol = Protocol(info, instructions(settings))
        self._stderr = QuietStderr()
        self._front: Front | None = None
        self._json_log: JsonLog | None = None

    async def run(self, source: int, sink: int) -> int:
        """From the event loop to the end."""
        loop = asyncio.get_running_loop()
        ending = _Ending()
        self._ending, self._writer = ending, stdio.Writer(loop, sink, on_broken=ending.broken)
        if self._settings.log_json:
            from runner.calllog import JsonLog

            self._json_log = JsonLog(self._settings.log_json)
        gone = self._supervisor.attach(loop)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, ending.now)
        lockdown.lock(lockdown.program(), landlock=self._prepared.host.landlock > 0)
        reader = stdio.Reader(loop, source, self._line, ending.at_eof)
        self._writer.watch(on_full=reader.pause, on_drained=reader.resume)
        loop.call_later(_FRONT_SECONDS, self._the_front)
        lost, ended = asyncio.ensure_future(gone.wait()), ending.waiter()
        await asyncio.wait({lost, ended}, return_when=asyncio.FIRST_COMPLETED)
        reader.close()
        lost.cancel()
        await self._stop(_EOF_GRACE if ending.gently or gone.is_set() else 0.0)
        if gone.is_set():
            self._stderr.line(
                "toolcage: the launcher ended unexpectedly; calls in flight were answered as unknown"
            )
        return int(gone.is_set())

    def _line(self, line: bytes | Oversized) -> None:
        protocol = self._protocol
        for event in protocol.oversized() if isinstance(line, Oversized) else protocol.receive(line):
            if isinstance(event, Reply):
                self._writer.write(event.data)
            else:
                self._the_front().handle(event)

    def _the_front(self) -> Front:
        """Make the conductor once; from then on the catalogs describe themselves."""
        if self._front is None:
            from runner import describing
            from runner.admission import Admission
            from runner.calllog import CallLog
            from runner.front import Front, Parts
            from runner.outputs import Outputs
            from runner.redaction.engine import Redactor

            policy = self._settings.policy
            for name in self._settings.secrets.unmasked:
                self._stderr.line(
                    f"toolcage: the value of {name} cannot be masked in results (too short, or an ordinary word)"
                )
            log = CallLog(self._stderr.line, self._json_log, policy.digest)
            secrets = self._settings.secrets
            redactor = Redactor(secrets.values, rules=secrets.rules)
            admission = Admission.of(
                policy, self._prepared.plans, self._settings.runtime_dir, self._stderr.line
            )
            parts = Parts(policy, self._prepared.root, self._protocol, self._supervisor, redactor, Outputs(), log,
                          self._writer.write, admission)  # fmt: skip
            catalog = describing.catalog(self._prepared.tools, policy.catalogs, self._supervisor, redactor)
            self._front = Front(parts, catalog)
            self._front.catalog.add_done_callback(self._ending.refused)
            # after the catalog's first step, which asks for a cage: this runs while others build it
            asyncio.get_running_loop().call_soon(admission.look)
        return self._front

    async def _stop(self, grace: float) -> None:
        if self._front is not None:
            await self._front.stop(grace)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._writer.drained(), _FLUSH_SECONDS)
        self._writer.close()
        if self._ending.problem is not None:
            raise self._ending.problem


class _Ending:
    """Why and how the server ends."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.gently = False
        self.problem: Refused | None = None

    def waiter(self) -> asyncio.Task[Literal[True]]:
        """Ends when the server shall end."""
        return asyncio.ensure_future(self._event.wait())

    def now(self) -> None:
        """A signal."""
        self._event.set()

    def broken(self, _fault: OSError) -> None:
        """Nobody reads our answers any more."""
        self._event.set()

    def at_eof(self) -> None:
        """The client has closed our input; its last requests may still be answered."""
        self.gently = True
        self._event.set()

    def refused(self, task: asyncio.Task[Catalog]) -> None:
        """A catalog that cannot be offered ends the server like a policy that cannot."""
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, Refused):
            self.problem = problem
            self._event.set()
