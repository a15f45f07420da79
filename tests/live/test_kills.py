"""Somebody dies at a random moment: keeper, tool or launcher. The call is answered truly, nothing stays, the next works.

TOOLCAGE_KILLS is the number of rounds, TOOLCAGE_SEED the seed; a failure says both.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import select
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox import spawn
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Outcome, Profile
from tests.live.cage import LIMITS, Cage, said
from tests.live.census import RAN, Mark, settled, steady, tagged
from tests.live.test_death import until

ROUNDS = int(os.environ.get("TOOLCAGE_KILLS", "150"))
SEED = int(os.environ.get("TOOLCAGE_SEED", "20240229"))
WHO = ("keeper", "keeper", "tool", "tool", "launcher")
SPAN = 0.016  # seconds; a call takes about that long from the request to its outcome
ENDS = {
    "keeper": {"exited", "setup_failed", "unknown"},
    "tool": {"exited", "setup_failed", "signalled"},
    "launcher": {"exited", "setup_failed", "unknown"},
}


@dataclass(frozen=True)
class Blow:
    """Who is hit, when (seconds after the request, and after the victim was seen), and whether the program takes long."""

    who: str
    delay: float
    pause: float
    long: bool

    @classmethod
    def choose(cls, chance: random.Random) -> Blow:
        delay, pause = chance.choice(((SPAN, 0), (0, SPAN)))
        return cls(
            chance.choice(WHO), chance.uniform(0, delay), chance.uniform(0, pause), chance.random() < 0.25
        )


class Scene:
    """A launcher, whose processes can be told from all others by a tag, with `spare` workers that wait."""

    def __init__(self, root: Path, mark: Mark, tag: str, spare: int) -> None:
        self.tag, self.spare, self.hit = tag, spare, False
        profile = Profile("sh", ("/bin/sh", "-c"), str(root), limits=LIMITS, processes="any")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spawn, "_START", f"{spawn._START}  # {tag}")
            self.cage = Cage([profile])
        self.cage.supervisor._spare = spare
        mark.set()
        assert said(self.cage.call("sh", RAN)) == "ran"
        self.usual = self.cage._runner.run(steady(self.cage.supervisor, spare))

    @property
    def launcher(self) -> int:
        return self.cage.supervisor.launcher_pid

    def round(self, blow: Blow, mark: Mark) -> Outcome:
        """One call with one death in it."""
        mark.set()
        self.hit = False
        return self.cage._runner.run(self._round(blow))

    async def _round(self, blow: Blow) -> Outcome:
        code = f"{RAN}; {'exec sleep 60' if blow.long else ':'} # {self.tag}"
        over = threading.Event()
        # a thread, so that the front itself may be anywhere in its work when it happens
        thread = threading.Thread(target=self._strike, args=(blow, over))
        task = asyncio.ensure_future(self.cage.supervisor.run(Call("sh", (code,))))
        thread.start()
        try:
            return await asyncio.wait_for(task, 30)
        finally:
            over.set()
            thread.join()

    def _strike(self, blow: Blow, over: threading.Event) -> None:
        """Kill when the time has come and there is somebody to kill; or nobody, when the call is over before."""
        time.sleep(blow.delay)
        while not over.is_set():
            victims = [self.launcher]
            if blow.who != "launcher":
                victims = children(self.launcher)
            if blow.who == "tool":
                victims = [tool for keeper in victims for tool in children(keeper)]
            if victims:
                time.sleep(blow.pause)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victims[-1], signal.SIGKILL)
                    self.hit = True
                    return

    def goes_on(self, mark: Mark) -> None:
        """The next call works. Only a worker that was waiting for it, and was hit, may fail it: nothing ran then."""
        for _ in range(self.spare if self.hit else 0):
            mark.set()
            if self.cage.call("sh", RAN).kind != "setup_failed":
                break
            assert mark.kept
        mark.set()
        assert said(self.cage.call("sh", RAN)) == "ran"
        assert not mark.kept
        self.cage._runner.run(settled(self.launcher, self.usual))

    def end(self) -> None:
        """Close it, and see that nothing of it exists any more."""
        self.cage.close()
        asyncio.run(until(lambda: not tagged(self.tag)))


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()]
    except OSError:
        return []


def judge(blow: Blow, outcome: Outcome, mark: Mark) -> None:
    """Whatever is said is true."""
    assert outcome.kind in ENDS[blow.who], outcome
    if outcome.kind == "exited":
        assert said(outcome) == "ran"
        assert not mark.kept
    elif outcome.kind == "setup_failed":
        assert mark.kept, "the program ran, and it is said that it did not"
        assert "not started" in outcome.detail
    elif outcome.kind == "signalled":
        assert outcome.signal == signal.SIGKILL
    else:
        assert "before you repeat" in outcome.detail


class Play:
    """Rounds, with a new launcher whenever one was killed."""

    def __init__(self, root: Path, spare: int) -> None:
        self._root, self._spare, self.mark, self._scenes = root, spare, Mark(root), 0
        self.scene = self._open()

    def _open(self) -> Scene:
        self._scenes += 1
        return Scene(
            self._root, self.mark, f"tc-kills-{os.getpid()}-{self._spare}-{self._scenes}", self._spare
        )

    def round(self, blow: Blow) -> Outcome:
        outcome = self.scene.round(blow, self.mark)
        judge(blow, outcome, self.mark)
        if blow.who == "launcher" and self.scene.hit:
            self.scene.end()
            self.scene = self._open()
        self.scene.goes_on(self.mark)
        return outcome

    def end(self) -> None:
        self.scene.end()
        self.mark.close()


@pytest.mark.parametrize("spare", [0, 1], ids=["fresh", "staged"])
def test_deaths_at_random_moments(place: Path, spare: int) -> None:
    chance, ends = random.Random(SEED + spare), Counter[str]()
    play = Play(place / "root", spare)
    try:
        for n in range(1, ROUNDS // 2 + 1):
            blow = Blow.choose(chance)
            try:
                outcome = play.round(blow)
            except AssertionError as problem:
                problem.add_note(f"seed {SEED}, round {n}, {blow}")
                raise
            ends[f"{blow.who} {outcome.kind}"] += 1
    finally:
        play.end()
    print("ends:", sorted(ends.items()))


def test_a_worker_that_died_while_it_waited_never_had_the_call(place: Path) -> None:
    """The front has not been told of the death yet: words that nobody can read have started nothing."""
    play = Play(place / "root", 1)

    async def work(supervisor: Supervisor) -> Outcome:
        (keeper,) = children(supervisor.launcher_pid)
        ended = os.pidfd_open(keeper)
        signal.pidfd_send_signal(ended, signal.SIGKILL)
        poller = select.poll()
        poller.register(ended, select.POLLIN)
        poller.poll(5000)  # the loop does not turn meanwhile
        os.close(ended)
        return await supervisor.run(Call("sh", (RAN,)))

    play.mark.set()
    outcome = play.scene.cage.run(work)
    assert play.mark.kept
    play.scene.goes_on(play.mark)
    play.end()
    assert outcome.kind == "setup_failed", outcome
