"""Runs the controls of the battery, and looks at processes from outside: what the kernel says of them, and who is left.

Front side of `verify`. A process is found by a word in its program's text that no other process has; only such a
process is ever ended from here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
from collections.abc import Callable, Iterator, Mapping

from runner.verify_site import python
from sandbox.attest import odd, status_of
from sandbox.division import CALL
from sandbox.types import Kind, Outcome

_CONTROL_SECONDS = 60.0
_AGAIN = 0.01
_OUTPUT = 200
_READY = "ready"  # the name that a program takes when it is to be looked at
_GROWTH_MB = (
    32  # of this process while a call floods it: far more than a call may leave, far less than it sends
)
_COMMAND = ("-I", "-S", "-c")


def marked(text: str, word: str) -> str:
    """A program with a word in it by which its processes are known."""
    return f"{text}# {word}\n"


async def control(text: str, temp: str, *, word: str = "") -> str:
    """Run a program as a plain child of this process and read its answer. With a word: are its processes left?"""
    process = await asyncio.create_subprocess_exec(
        python(), *_COMMAND, text, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL if word else asyncio.subprocess.PIPE,
        env={"TOOLCAGE_CANARY": "1", "TMPDIR": temp},
    )  # fmt: skip
    output = b""
    try:
        if word:
            await asyncio.wait_for(process.wait(), _CONTROL_SECONDS)
        else:
            output, _ = await asyncio.wait_for(process.communicate(), _CONTROL_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return "no answer in time"
    if word:
        return left(word, children=True)
    if process.returncode and process.returncode < 0:
        return f"KILLED {-process.returncode}"
    return last(output) or f"no answer, exit code {process.returncode}"


def answer(outcome: Outcome) -> str:
    """What an attempt in a worker came to, in one line."""
    if outcome.kind is Kind.SIGNALLED:
        return f"KILLED {outcome.signal}"
    if outcome.kind is Kind.EXITED and outcome.exit_code == 0:
        return last(outcome.stdout) or "no answer"
    if outcome.kind is Kind.EXITED:
        return f"exit code {outcome.exit_code}: {last(outcome.stderr)}"
    return f"ENDED {outcome.kind}" + (f": {outcome.detail}" if outcome.detail else "")


def last(output: bytes) -> str:
    """The last line, as far as it is shown."""
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_OUTPUT] if lines else ""


def left(word: str, *, children: bool = False) -> str:
    """Whether processes with this word are left. They are ended, since they belong to the battery.

    children: one may have become a child of this process (CLONE_PARENT), which nobody else waits for.
    """
    pids = list(_with(word))
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
    return f"RUNS {len(pids)}" if pids else "GONE"


async def seen(
    word: str, look: str, running: asyncio.Future[Outcome] | asyncio.Future[str], *, bounding: bool
) -> str:
    """What the kernel says of the process with this word (looks: tool, cgroup) or of its parent (keeper), once it is ready.

    running: the run of its program. bounding: whether the bounding set has to be empty.
    """
    while not running.done():
        for pid in _with(word):
            with contextlib.suppress(OSError):
                if status_of(str(pid))["Name"] == _READY:
                    return "SEEN " + (_LOOKS[look](pid, bounding) or "confined")
        await asyncio.sleep(_AGAIN)
    ended = running.result()
    return f"it ended before it was seen: {ended if isinstance(ended, str) else answer(ended)}"


def peak_mb() -> int:
    """Peak memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def flat(before: int, found: str) -> str:
    """`found`, unless this process has grown since its peak was `before`."""
    return found if (grown := peak_mb() - before) < _GROWTH_MB else f"GREW {grown} MiB"


def _threads(pid: int, bounding: bool) -> str:
    found: set[str] = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        status = status_of(f"{pid}/task/{thread}")
        found |= {f"{key} {status.get(key)}" for key in odd(status, bounding=bounding)}
    return ", ".join(sorted(found))


def _guard(pid: int, bounding: bool) -> str:
    """Besides its threads: files of a process that lets nobody look (PR_SET_DUMPABLE) belong to root in /proc."""
    keeper = int(status_of(str(pid))["PPid"])
    is_open = str(os.stat(f"/proc/{keeper}/environ").st_uid) in status_of(str(keeper))["Uid"].split()
    return ", ".join(filter(None, (_threads(keeper, bounding), "open to others" if is_open else "")))


def _counted(pid: int, _bounding: bool) -> str:
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        return "" if f"/{CALL}" in file.read() else "in no cgroup of its own"


def _with(word: str) -> Iterator[int]:
    """Processes, not zombies, whose program has the word."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                if marked("", word).encode() + b"\0" in file.read():  # the end of its program, not a mention
                    yield int(name)


_LOOKS: Mapping[str, Callable[[int, bool], str]] = {
    "tool": _threads,
    "keeper": _guard,
    "cgroup": _counted,
}
