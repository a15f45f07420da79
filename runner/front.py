"""The conductor: one handler per event, straight lines, no decision that is not somebody else's.

Runs in the front, on one thread. One call walks: protocol -> here -> tool.call -> supervisor -> results (redaction) ->
protocol. What a tool printed reaches a client through `results` alone; what a catalog says of its
tools is masked in `listing`.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from policies.errors import nearest
from policies.policy import Policy
from runner import listing, read_output, repeats, results
from runner.admission import Admission, MachineBusy
from runner.calllog import CallLog
from runner.case import content_room
from runner.catalog.catalog import Catalog
from runner.catalog.tools import Tool
from runner.mcp.messages import (
    CallTool,
    Cancel,
    Event,
    ListResources,
    ListResourceTemplates,
    ListTools,
    ReadResource,
    Reply,
    Request,
    ToolResult,
)
from runner.mcp.protocol import Protocol
from runner.outputs import HandleRefused, Outputs
from runner.pace import GivenUp, Pace, TooFast, TooMany
from runner.redaction.engine import Redactor
from sandbox.errors import Refused
from sandbox.root import Root
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Kind, Outcome

MAX_WAITING = 64  # calls that wait for a free worker; more are refused at once, with the way out
_PROGRESS_FIRST, _PROGRESS_EVERY = 1.0, 5.0  # seconds; clients with an idle clock reset it on progress
_INTERNAL_ERROR = -32603
_LARGE_OUTPUT = 32 * 1024  # bytes from which on redaction can take some tens of milliseconds


@dataclass(frozen=True, slots=True)
class Parts:
    """What the conductor conducts. All made before, by `serve` or by a test."""

    policy: Policy
    root: Root
    protocol: Protocol
    supervisor: Supervisor
    redactor: Redactor
    outputs: Outputs
    log: CallLog
    write: Callable[[bytes], None]
    admission: Admission


class Front:
    """Handles events until `stop`. `catalog` becomes known when the catalogs have described themselves."""

    def __init__(self, parts: Parts, catalog: Awaitable[Catalog]) -> None:
        self._parts = parts
        self._catalog: asyncio.Task[Catalog] = asyncio.ensure_future(_result_of(catalog))
        self._pace = Pace(parts.policy.max_calls_per_minute)
        self._repeats = repeats.Repeats()
        self._let_in: set[int] = set()  # numbers of requests that the rate allowed
        self._room = content_room(parts.policy.max_output_bytes)
        self._workers = asyncio.Semaphore(parts.policy.max_concurrent_calls)  # first come, first served
        self._waiting = 0
        self._listed: list[dict[str, object]] | None = None
        self._preparing = asyncio.Lock()
        self._tasks: dict[Request, asyncio.Task[None]] = {}

    @property
    def catalog(self) -> asyncio.Task[Catalog]:
        """Ends with the catalog, or with the Refused that ends the server."""
        return self._catalog

    def handle(self, event: Event) -> None:
        """Answer now, or start a task that will."""
        match event:
            case Reply(data):
                self._parts.write(data)
            case Cancel(request):
                task = self._tasks.get(request)
                if task is not None:
                    task.cancel()
            case ListTools(request):
                self._list(request)
            case CallTool(request):
                self._start(request, lambda: self._call_tool(event))
            case ListResources(request):
                self._parts.write(self._parts.protocol.resources(request, self._parts.outputs.listing()))
            case ListResourceTemplates(request):
                self._parts.write(self._parts.protocol.resource_templates(request, read_output.TEMPLATES))
            case ReadResource(request):
                self._read_resource(event)

    async def stop(self, grace: float = 0.0) -> None:
        """Let calls in flight end within `grace` seconds, then cancel them: their workers are killed."""
        tasks = list(self._tasks.values())
        if tasks and grace:
            await asyncio.wait(tasks, timeout=grace)
        for task in (*self._tasks.values(), self._catalog):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
        self._parts.log.close()

    # ---- one request -------------------------------------------------------------------------------------------------

    def _start(self, request: Request, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(self._guarded(request, work))
        self._tasks[request] = task
        # not in the task itself: one that is cancelled before its first step runs nothing of it
        task.add_done_callback(lambda _ended: self._tasks.pop(request, None))

    async def _guarded(self, request: Request, work: Callable[[], Awaitable[None]]) -> None:
        """A bug answers "internal error" and shows on stderr; it never leaves a request without an answer."""
        try:
            await work()
        except Exception as problem:  # noqa: BLE001 - the last resort of one request
            if isinstance(problem, Refused) and self._catalog.done():
                return  # the catalog was refused: the server is about to end with the reason
            self._parts.log.bug(traceback.extract_tb(sys.exc_info()[2]), sys.exc_info()[0])
            self._parts.write(self._parts.protocol.refuse(request, _INTERNAL_ERROR, "internal error"))

    def _list(self, request: Request) -> None:
        """At once when the list is known: a client that asks without reading is then held back like any other."""
        if self._listed is not None:
            self._parts.write(self._parts.protocol.tools(request, self._listed))
        else:
            self._start(request, lambda: self._list_tools(request))

    async def _list_tools(self, request: Request) -> None:
        catalog = await asyncio.shield(self._catalog)
        if self._listed is None:
            self._listed = listing.offered(catalog, self._parts.redactor)
        self._parts.write(self._parts.protocol.tools(request, self._listed))

    async def _call_tool(self, event: CallTool) -> None:
        catalog = await asyncio.shield(self._catalog)
        tool = catalog.get(event.name)
        if tool is None and not (event.name == read_output.NAME and read_output.is_offered(catalog)):
            near = nearest(event.name, [*catalog.by_name, read_output.NAME])
            self._parts.write(self._parts.protocol.unknown_tool(event.request, event.name, near))
            return
        begun = time.monotonic()
        try:
            result, outcome = await self._answer(event, tool)
        except asyncio.CancelledError:
            ended = Outcome(Kind.CANCELLED) if event.request.number in self._let_in else GivenUp("given up")
            self._parts.log.ended(event.name, ended, 0, time.monotonic() - begun)
            raise
        finally:
            self._let_in.discard(event.request.number)
        data = self._parts.protocol.result(event.request, result)
        self._parts.write(data)
        redactions = result.meta.get("redactions")
        masked = sum(redactions.values()) if isinstance(redactions, dict) else 0
        self._parts.log.ended(event.name, outcome, len(data), time.monotonic() - begun, masked)

    async def _answer(
        self, event: CallTool, tool: Tool | None
    ) -> tuple[ToolResult, Outcome | Refused | None]:
        try:
            answer = await (self._read_output(event) if tool is None else self._tried(event, tool))
        except Refused as refused:
            result = self._refusal(refused)
            times = self._repeats.count(event.name, event.arguments, refused.code, time.monotonic())
            return results.again(result) if times >= repeats.SHORT_FROM else result, refused
        self._repeats.let_in(event.name, event.arguments)
        return answer

    def _refusal(self, refused: Refused) -> ToolResult:
        match refused:
            case TooFast():
                return results.too_fast(refused.limit, refused.wait)
            case TooMany():
                return results.too_many(MAX_WAITING)
            case MachineBusy():
                return results.machine_busy(refused)
            case _:
                policy = self._parts.policy
                return results.refusal(
                    refused, self._parts.redactor, *filter(None, (policy.root_at, policy.root))
                )

    async def _read_output(self, event: CallTool) -> tuple[ToolResult, None]:
        """A page of stored output. Raises Refused."""
        self._let(event)
        outputs, given = self._parts.outputs, event.arguments
        if outputs.is_large((given or {}).get("handle"), _LARGE_OUTPUT):
            return await asyncio.to_thread(read_output.answer, outputs, given, self._room), None
        return read_output.answer(outputs, given, self._room), None

    async def _tried(self, event: CallTool, tool: Tool) -> tuple[ToolResult, Outcome]:
        """A call of a tool. Raises Refused where it was not tried."""
        self._let(event)
        call = tool.call(event.arguments, self._parts.root)
        if self._waiting >= MAX_WAITING:
            raise TooMany("too many calls")
        outcome = await self._run(event.request, call)
        if len(outcome.stdout) + len(outcome.stderr) < _LARGE_OUTPUT:
            return self.result_of(tool, outcome), outcome
        async with self._preparing:  # a large one takes seconds; pings and cancellations go on meanwhile
            return await asyncio.to_thread(self.result_of, tool, outcome), outcome

    def _let(self, event: CallTool) -> None:
        """Count the call against the rate. Raises TooFast."""
        self._pace.take(time.monotonic())
        self._let_in.add(event.request.number)

    def result_of(self, tool: Tool, outcome: Outcome) -> ToolResult:
        """What a client is told about an outcome; the one way from a tool's bytes to a client."""
        parts = self._parts
        return results.to_result(tool, outcome, parts.redactor, parts.outputs, parts.policy)

    async def _run(self, request: Request, call: Call) -> Outcome:
        reporting = None
        if (
            request.progress_token is not None
        ):  # also while it waits: clients reset their idle clock on progress
            reporting = asyncio.ensure_future(self._report_progress(request))
        try:
            await self._take_turn()
            try:
                async with self._parts.admission.place(call.plan):
                    return await self._parts.supervisor.run(call)
            finally:
                self._workers.release()
        finally:
            if reporting is not None:
                reporting.cancel()

    async def _take_turn(self) -> None:
        self._waiting += 1
        try:
            await self._workers.acquire()
        finally:
            self._waiting -= 1

    async def _report_progress(self, request: Request) -> None:
        begun = time.monotonic()
        pause = _PROGRESS_FIRST
        while True:
            await asyncio.sleep(pause)
            pause = _PROGRESS_EVERY
            seconds = time.monotonic() - begun
            message = f"{seconds:.0f} s since the call was received"
            self._parts.write(self._parts.protocol.progress(request, round(seconds, 3), None, message))

    def _read_resource(self, event: ReadResource) -> None:
        protocol = self._parts.protocol
        try:
            contents = read_output.contents(self._parts.outputs, event.uri, self._room)
        except HandleRefused as refused:
            self._parts.write(protocol.resource_missing(event.request, event.uri, refused.message))
        else:
            self._parts.write(protocol.resource(event.request, [contents]))


async def _result_of(catalog: Awaitable[Catalog]) -> Catalog:
    return await catalog
