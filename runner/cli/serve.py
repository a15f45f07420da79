"""`toolcage serve`: the MCP server on stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from typing import Any, Literal

from runner import __version__, config, lockdown
from runner.calllog import CallLog, JsonLog
from runner.catalog.catalog import Catalog
from runner.cli import options as common
from runner.config import Config
from runner.describing import describe
from runner.front import Front, Parts
from runner.mcp import stdio
from runner.mcp.lines import Oversized
from runner.mcp.messages import ServerInfo
from runner.mcp.protocol import Protocol
from runner.mcp.stderr import QuietStderr
from runner.outputs import Outputs
from runner.prepare import Prepared, prepare
from runner.redaction.engine import Redactor
from sandbox import host
from sandbox.errors import Refused
from sandbox.supervisor import Supervisor

_EOF_GRACE = (
    0.5  # seconds for calls in flight when the input ends; some clients kill after 20 ms and need none
)
_FLUSH_SECONDS = 1.0
_EPILOG = """\
A client starts this command and talks to it over stdin and stdout (MCP, revisions 2024-11-05 to 2026-07-28).
Log lines (tool, outcome, exit code, bytes, milliseconds; never arguments or output) go to stderr.

  claude mcp add my-tools -- toolcage serve /absolute/policy.toml --root "$PWD"
"""


def add_to(verbs: Any) -> None:
    """Add this verb's parser."""
    parser = verbs.add_parser(
        "serve",
        help="serve a policy's tools to an MCP client over stdio",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common.add_policy(parser)
    parser.add_argument(
        "--max-output-bytes", type=int, metavar="N", help="largest result; a larger one is refused"
    )
    parser.add_argument("--max-calls-per-minute", type=int, metavar="N", help="calls in any 60 seconds")
    parser.add_argument("--log-json", metavar="FILE", help="append the call log to FILE as JSON lines")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until the input ends, a signal comes, or the launcher dies."""
    source, sink = stdio.claim_stdio()
    supervisor = Supervisor()
    supervisor.start()  # first: its interpreter starts while this one reads the policy
    try:
        settings = config.read(common.flags(options))
        prepared = prepare(settings.policy, host.probe())
        supervisor.register(prepared.plans.values())
        return asyncio.run(_serve(settings, prepared, supervisor, source, sink))
    finally:
        supervisor.close()


def instructions(settings: Config) -> str:
    """What a model is told about this server; key facts first, because clients cut."""
    return (
        f"{settings.policy.name}: read-only tools, each call in its own sandbox without network. Paths are inside the "
        "root folder and relative to it. A result starts with its status; outcome 'unknown' means that the tool may "
        "have run: do not repeat it blindly. Shortened output has a handle: read more with read_output."
    )


async def _serve(settings: Config, prepared: Prepared, supervisor: Supervisor, source: int, sink: int) -> int:
    loop = asyncio.get_running_loop()
    stderr = QuietStderr()
    policy = settings.policy
    log = CallLog(stderr.line, JsonLog(settings.log_json) if settings.log_json else None, policy.digest)
    for name in settings.unmasked:
        stderr.line(f"toolcage: the value of {name} is too short to be masked in results")
    ending = _Ending()
    protocol = Protocol(ServerInfo(policy.name, __version__, "Toolcage"), instructions(settings))
    writer = stdio.Writer(loop, sink, on_broken=ending.broken)
    parts = Parts(
        policy, prepared.root, protocol, supervisor, Redactor(settings.secrets), Outputs(), log, writer.write
    )
    gone = supervisor.attach(loop)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ending.now)
    lockdown.lock(lockdown.program())
    front = Front(parts, _catalog(settings, prepared, supervisor))
    front.catalog.add_done_callback(ending.refused)

    def on_line(line: bytes | Oversized) -> None:
        for event in protocol.oversized() if isinstance(line, Oversized) else protocol.receive(line):
            front.handle(event)

    reader = stdio.Reader(loop, source, on_line, ending.at_eof)
    writer.watch(on_full=reader.pause, on_drained=reader.resume)
    lost, ended = asyncio.ensure_future(gone.wait()), ending.waiter()
    await asyncio.wait({lost, ended}, return_when=asyncio.FIRST_COMPLETED)
    reader.close()
    await front.stop(_EOF_GRACE if ending.gently or gone.is_set() else 0.0)
    lost.cancel()
    await _flush(writer)
    if ending.problem is not None:
        raise ending.problem
    if gone.is_set():
        stderr.line("toolcage: the launcher ended unexpectedly; calls in flight were answered as unknown")
    return int(gone.is_set())


async def _catalog(settings: Config, prepared: Prepared, supervisor: Supervisor) -> Catalog:
    found = Catalog(prepared.tools)
    return found.merged(await describe(settings.policy.catalogs, supervisor))


async def _flush(writer: stdio.Writer) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(writer.drained(), _FLUSH_SECONDS)
    writer.close()


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
