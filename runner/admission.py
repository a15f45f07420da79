"""How many calls may run on this machine at once, and how much memory they may use together, over all servers of a user.

Runs in the front; stops no call that runs. Every client starts servers of its own, so a bound of each server alone
bounds nothing. A call is counted with what it may use at most (memory and temporary folder), from before its worker is
told what to run until the worker is gone. Workers that only wait for a call are not counted, nor what servers do while
they start.

Waiting is in order, over all servers: a call goes when it fits beside what runs and what has waited longer, so a large
call is not overtaken for ever by small ones. There is nothing to be woken by (F_OFD_SETLKW would block a thread that
nobody can cancel), so who waits asks again, 2 ms later at first and every 20 ms in the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from policies.policy import Policy
from runner.places import MAX_PLACES, Places, folders, open_shared
from sandbox.errors import Refused
from sandbox.plan import Plan

WAIT_SECONDS = 5.0  # with the 45 s of a call this stays below the 60 s after which some clients give up
CALLS_PER_PROCESSOR = (
    4  # more of them, all busy, could not get their 30 s of processor time within 45 s by far
)
MEMORY_PERCENT = 75  # the rest is for the desktop and for what the host caches
# Below this not even an ordinary call has room: a cage, an interpreter and some files take 20 to 50 MiB. Deliberately
# not the limit of the call, which it seldom reaches: a desktop with little memory available would become unusable, and
# if it is reached all the same, the kernel ends the tool first (its oom_score_adj is 1000).
LEAST_AVAILABLE_MB = 64
_FIRST_PAUSE, _LAST_PAUSE, _GROWTH = 0.002, 0.02, 1.5  # seconds
_MIB = 1 << 20
_SHOWN = 5

Bound = Literal["max_machine_calls", "max_machine_memory_mb", "available_memory_mb"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """`calls` at once, `memory_mb` that they may use together, `least_available_mb` of the machine below which none
    starts (MiB), `wait_seconds` that one waits for room.
    """

    calls: int
    memory_mb: int
    least_available_mb: int = LEAST_AVAILABLE_MB
    wait_seconds: float = WAIT_SECONDS


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why a call cannot run now, or ever. need: MiB that it may use. current: of the bound, without this call."""

    bound: Bound
    limit: int
    current: int
    need: int

    @property
    def is_lasting(self) -> bool:
        """It would not fit if it were alone."""
        return self.bound == "max_machine_memory_mb" and self.need > self.limit


class MachineBusy(Refused):
    """There was no room on this machine for a call, for as long as it could wait (`waited`, seconds)."""

    code = "machine_busy"

    def __init__(self, shortage: Shortage, waited: float) -> None:
        super().__init__(f"no room: {shortage.bound}")
        self.shortage, self.waited = shortage, waited
        if shortage.is_lasting:
            self.code = "machine_too_small"


def needs(plans: Mapping[str, Plan]) -> dict[str, int]:
    """MiB that a call of each plan may use: memory, and the temporary folder, which is memory too."""
    return {name: plan.limits.memory_mb + plan.limits.tmp_mb for name, plan in plans.items()}


def bounds(max_calls: int | None, max_memory_mb: int | None) -> Bounds:
    """Those of this machine, where the policy does not say others."""
    import psutil  # 8 ms, which the first answer to a client should not wait for

    calls = max_calls or min(CALLS_PER_PROCESSOR * (psutil.cpu_count() or 1), MAX_PLACES)
    return Bounds(calls, max_memory_mb or psutil.virtual_memory().total * MEMORY_PERCENT // 100 // _MIB)


def shortage(allowed: Bounds, others: Collection[int], need: int) -> Shortage | None:
    """What is missing for one more call beside the others, each given by the MiB that it may use."""
    if len(others) >= allowed.calls:
        return Shortage("max_machine_calls", allowed.calls, len(others), need)
    total = sum(others)
    if total + need > allowed.memory_mb:
        return Shortage("max_machine_memory_mb", allowed.memory_mb, total, need)
    return None


class Admission:
    """Lets calls in.

    needs   MiB by plan.
    find    gives the bounds, asked once, when they are first needed.
    chosen  the folder for the shared file, None for the usual one.
    say     takes one line for the operator.
    """

    def __init__(
        self,
        needs: Mapping[str, int],
        find: Callable[[], Bounds],
        chosen: str | None,
        say: Callable[[str], object],
    ) -> None:
        self._needs, self._find, self._say = needs, find, say
        self._folders = folders(chosen, os.geteuid())
        self._own_pipe: tuple[int, int] | None = None

    @classmethod
    def of(
        cls, policy: Policy, plans: Mapping[str, Plan], chosen: str | None, say: Callable[[str], object]
    ) -> Admission:
        """For the calls of a server's plans."""
        find = functools.partial(bounds, policy.max_machine_calls, policy.max_machine_memory_mb)
        return cls(needs(plans), find, chosen, say)

    @functools.cached_property
    def bounds(self) -> Bounds:
        """Of this machine."""
        return self._find()

    def look(self) -> None:
        """Find the bounds, and warn of tools that they never let run. For an idle moment before the first call."""
        limit = self.bounds.memory_mb
        never = [name for name, need in self._needs.items() if need > limit]
        if never:
            more = f" and {len(never) - _SHOWN} more" if len(never) > _SHOWN else ""
            self._say(
                f"toolcage: calls of {', '.join(never[:_SHOWN])}{more} are refused on this machine: each may use more than "
                f"{limit} MiB (max_machine_memory_mb); lower memory_mb or tmp_mb in their limits"
            )

    @contextlib.asynccontextmanager
    async def place(self, plan: str) -> AsyncIterator[None]:
        """A place for one call, held inside `async with`; waited for in order. Raises MachineBusy."""
        need = self._needs[plan]
        if need > self.bounds.memory_mb:
            raise MachineBusy(Shortage("max_machine_memory_mb", self.bounds.memory_mb, 0, need), 0.0)
        places = self._places()
        try:
            if places is not None:
                # OSError: the kernel has no memory for locks, and had some a moment ago
                with contextlib.suppress(OSError):
                    await self._wait(places, need)
            yield
        finally:
            if places is not None:
                places.close()

    def _places(self) -> Places | None:
        """This call's view of the shared file; of a file of this server alone where there can be none; or nothing."""
        try:
            return _usable(open_shared(self._folders))
        except OSError as problem:
            shared = problem
        try:
            if self._own_pipe is None:
                # once: a pipe is a file that needs no folder, and is locked like any other
                self._own_pipe = os.pipe2(os.O_CLOEXEC)
                self._say(
                    f"toolcage: {self._folders[-1]} cannot be used ({shared.strerror}): calls of other servers are "
                    "not counted, the bounds of this machine hold for this server alone"
                )
            return _usable(os.open(f"/proc/self/fd/{self._own_pipe[1]}", os.O_WRONLY | os.O_CLOEXEC))
        except OSError:
            return None  # max_concurrent_calls still holds

    async def _wait(self, places: Places, need: int) -> None:
        longest = self.bounds.wait_seconds
        missing = self._try(places, need, places.waiting(longest))
        if missing is None:
            return
        places.queue(need)
        begun, pause = time.monotonic(), _FIRST_PAUSE
        while missing is not None:
            await asyncio.sleep(pause)
            pause = min(pause * _GROWTH, _LAST_PAUSE)
            waited = time.monotonic() - begun
            is_over = waited >= longest  # then what runs decides, whoever came before
            missing = self._try(places, need, () if is_over else places.waiting(longest))
            if missing is not None and is_over:
                raise MachineBusy(missing, waited)
        places.leave_queue()

    def _try(self, places: Places, need: int, before: Collection[int]) -> Shortage | None:
        """Take a place if there is room beside what runs and who came before.

        SECURITY: the place is taken first and the others are counted then, so that of two who come at the same moment
        at least one sees the other. Both may step back; the order of the queue then decides.
        """
        running = places.running()
        missing = shortage(self.bounds, (*running.values(), *before), need)
        if missing is not None:
            return missing
        if not places.take(need, running):
            return Shortage("max_machine_calls", MAX_PLACES, MAX_PLACES, need)
        missing = shortage(self.bounds, places.running().values(), need) or self._exhausted(need)
        if missing is not None:
            places.give_back()
        return missing

    def _exhausted(self, need: int) -> Shortage | None:
        import psutil

        least = min(need, self.bounds.least_available_mb)
        available = psutil.virtual_memory().available // _MIB
        return None if available >= least else Shortage("available_memory_mb", least, available, need)


def _usable(descriptor: int) -> Places:
    """Raises OSError, with nothing left open, where the file cannot be locked (ENOLCK, EINVAL)."""
    places = Places(descriptor)
    try:
        places.running()
    except OSError:
        places.close()
        raise
    return places
