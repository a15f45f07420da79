"""One worker, seen from the front: two pipes, the launcher's words about it, deadlines, one Outcome.

A small state machine: asked for, attested, told what to run, reported, ended. A worker may be asked for before there is
a call for it (it is *staged*); it is used once and never again. The result is released only when the report is complete
AND the launcher has said that the whole process tree is gone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import secrets
from collections.abc import Callable

from sandbox import attest, outcome, wire
from sandbox.errors import WireError
from sandbox.plan import Plan
from sandbox.types import Call, Outcome

# Deadlines nest, so that an inner one always answers first: tool (wall_seconds) < keeper < front < client.
SETUP_SECONDS = 10.0  # from the request to the attestation; a cage takes milliseconds, a loaded host longer
GRACE_SECONDS = 5.0  # from the tool's wall limit to the report
KILL_SECONDS = 5.0  # from a kill to the launcher's word that all are gone
_CHUNK = 1 << 18
_BEFORE_THE_PROGRAM = ("go", "cwd", "exec")  # steps after the attestation at which the program has not begun


class Flight:
    """See the module. `kill` asks the launcher to kill the worker's tree; `done` ends with the Outcome."""

    def __init__(self, plan: Plan, loop: asyncio.AbstractEventLoop, kill: Callable[[], None]) -> None:
        self._plan, self._loop, self._kill = plan, loop, kill
        self.done: asyncio.Future[Outcome] = loop.create_future()
        self.proven: asyncio.Future[None] = loop.create_future()
        self._token = secrets.token_hex(16)
        self._frames = wire.Frames(plan.limits.output_mb * (1 << 20) * 4 // 3 + wire.REPORT_SLACK)
        self._go_writer, self._report_reader = -1, -1
        self._keeper = 0
        self._early: dict[str, object] | None = None
        self._attestation: dict[str, object] | None = None
        self._call: Call | None = None
        self._told = False
        self._to_send = memoryview(b"")
        self._result: Outcome | None = None
        self._report_over, self._tree_gone = False, False
        self._timer: asyncio.TimerHandle | None = None

    # ---- what the supervisor does ------------------------------------------------------------------------------------

    def open_pipes(self) -> tuple[int, int]:
        """Make the pipes; returns the worker's ends, which the caller closes after sending them. OSError: EMFILE."""
        go_reader, self._go_writer = os.pipe2(os.O_CLOEXEC)
        try:
            self._report_reader, report_writer = os.pipe2(os.O_CLOEXEC)
        except OSError:
            os.close(go_reader)
            raise
        os.set_blocking(self._go_writer, False)
        os.set_blocking(self._report_reader, False)
        self._loop.add_reader(self._report_reader, self._readable)
        self._arm(SETUP_SECONDS, "the cage was not ready in time")
        return go_reader, report_writer

    def begin(self, call: Call) -> None:
        """Give the worker its call, once; it is told as soon as its cage is proven."""
        self._call = call
        if self._attestation is not None:
            self._tell(call)

    def dismiss(self) -> None:
        """The worker is not needed after all: it reads the end of its pipe and ends."""
        self._close_go()
        self._arm(KILL_SECONDS, "the worker did not go")

    async def outcome(self) -> Outcome:
        """Wait for the end. When cancelled, kill the tree, wait until it is gone, and pass the cancellation on."""
        try:
            return await asyncio.shield(self.done)
        except asyncio.CancelledError:
            self._settle(outcome.cancelled(started=self._told))
            self._kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self.done), KILL_SECONDS)
            raise

    def close(self) -> None:
        """Give everything back; safe to call twice."""
        if self._timer is not None:
            self._timer.cancel()
        self._close_go()
        self._close_report()

    # ---- what the launcher says --------------------------------------------------------------------------------------

    def started(self, keeper: int) -> None:
        """The launcher has forked the keeper, which has this pid on the host."""
        self._keeper = keeper
        if self._early is not None:
            self._attested(self._early)

    def ended(self) -> None:
        """The launcher has reaped the keeper: the tree is gone. What the pipe still holds is read first."""
        self._tree_gone = True
        while self._read():
            pass
        self._close_report()
        self._finish()

    def failed(self, payload: bytes) -> None:
        """The launcher could not start a worker."""
        try:
            self._settle(outcome.failed(wire.parse(payload)))
        except WireError as problem:
            self._settle(outcome.not_started(str(problem)))
        self._over()

    def refused(self, reason: str) -> None:
        """The request never reached the launcher."""
        self._settle(outcome.not_started(reason))
        self._over()

    def lost(self) -> None:
        """The launcher is gone; the kernel kills its workers, but nobody says when."""
        if self._told:
            self._settle(outcome.unknown("The launcher ended during the call", self._attestation))
        else:
            self._settle(outcome.not_started("the launcher has ended"))
        self._over()

    # ---- what the worker says ----------------------------------------------------------------------------------------

    def _readable(self) -> None:
        self._read()
        self._finish()

    def _read(self) -> bool:
        """Take what is in the report pipe; False when there is nothing more now."""
        if self._report_over:
            return False
        try:
            data = os.read(self._report_reader, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            if self._frames.pending:
                self._worthless("the report was cut short")
            self._close_report()
            return False
        try:
            for document in self._frames.feed(data):
                self._document(document)
        except WireError as problem:
            self._worthless(str(problem))
        return not self._report_over

    def _document(self, document: dict[str, object]) -> None:
        match document:
            case {"failed": {"step": step, **rest}} if self._result is None:
                if self._told and step not in _BEFORE_THE_PROGRAM:
                    raise WireError(f"the keeper failed at step {step}")
                self._settle(outcome.failed({"step": step, **rest}))
            case {"attested": dict(facts)} if self._attestation is None and self._early is None:
                self._attested(facts)
            case {"report": details} if self._told and self._attestation is not None and self._result is None:
                self._settle(outcome.reported(details, self._token, self._plan, self._attestation))
            case _:
                raise WireError("a report that was not asked for")

    def _attested(self, facts: dict[str, object]) -> None:
        """Compare with the plan, ask the kernel, and only then say what to run."""
        self._early = facts
        if not self._keeper:
            return  # the launcher's word is still on its way
        difference = attest.compare(facts, self._plan)
        seen = False
        if not difference:
            difference, seen = attest.look(self._keeper, self._plan)
        if difference:
            self._settle(outcome.failed({"step": "attestation", "errno": 0, "detail": difference}))
            self._kill()
            return
        self._attestation = {
            **facts,
            "seen_from_outside": seen,
            "plan": self._plan.digest,
            "rung": self._plan.rung,
            "lost": list(self._plan.lost),
        }
        if self._timer is not None:
            self._timer.cancel()
        self.proven.set_result(None)
        if self._call is not None:
            self._tell(self._call)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _tell(self, call: Call) -> None:
        if self._go_writer < 0 or self._result is not None:
            return  # the worker ended meanwhile, and its end says how
        self._told = True
        self._arm(self._plan.limits.wall_seconds + GRACE_SECONDS, "no report came in time")
        words = {
            "token": self._token,
            "argv": list(call.argv),
            "cwd": call.cwd,
            "stdin": base64.b64encode(call.stdin).decode(),
        }
        self._to_send = memoryview(wire.frame(words))
        self._loop.add_writer(self._go_writer, self._send)
        self._send()

    def _send(self) -> None:
        try:
            while self._to_send:
                self._to_send = self._to_send[os.write(self._go_writer, self._to_send) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._to_send = memoryview(b"")
            self._told = False  # a keeper acts on whole words only
        self._close_go()

    def _worthless(self, reason: str) -> None:
        """Something came that an honest worker does not send: whatever came before does not count either."""
        self._result = (
            outcome.unknown(reason, self._attestation) if self._told else outcome.not_started(reason)
        )
        self._close_report()
        self._kill()

    def _settle(self, result: Outcome) -> None:
        if self._result is None:
            self._result = result

    def _over(self) -> None:
        self._tree_gone = True
        self._close_report()
        self._finish()

    def _finish(self) -> None:
        if self.done.done() or not (self._tree_gone and self._report_over):
            return
        if self._result is None:
            reason = "the worker ended without a report"
            self._result = (
                outcome.unknown(reason, self._attestation) if self._told else outcome.not_started(reason)
            )
        self.done.set_result(self._result)

    def _arm(self, seconds: float, reason: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._late, reason)

    def _late(self, reason: str) -> None:
        self._worthless(reason)
        self._timer = self._loop.call_later(KILL_SECONDS, self.lost)

    def _close_go(self) -> None:
        if self._go_writer >= 0:
            self._loop.remove_writer(self._go_writer)
            os.close(self._go_writer)
            self._go_writer = -1

    def _close_report(self) -> None:
        self._report_over = True
        if self._report_reader >= 0:
            self._loop.remove_reader(self._report_reader)
            os.close(self._report_reader)
            self._report_reader = -1
