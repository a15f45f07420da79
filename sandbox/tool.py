"""The tool's own process from its fork to execve: the last three steps, then the call's words, then the program.

SECURITY: everything between the fork and execve is our code. It proves its steps to the keeper and then waits, caged,
until the keeper says what to run; the program that it becomes holds descriptors 0, 1 and 2 and nothing else.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import signal
import socket
from dataclasses import dataclass
from typing import NoReturn

from sandbox import abi, syscalls, wire
from sandbox.plan import Plan
from sandbox.steps import descriptors, signals

_FACTS_LIMIT = 64 * 1024
_TEMP = "/tmp"  # noqa: S108 - as plans call it
_NICE = 5  # below the keeper, which has to see in time what the tool uses
_EXEC, _FACTS, _DOOR = 3, 4, 5  # descriptors in the tool's process; all close on execve


class ToolFailed(Exception):
    """A step in the tool's process failed."""

    def __init__(self, step: str, errno: int, detail: str) -> None:
        super().__init__(detail)
        self.step, self.errno, self.detail = step, errno, detail


@dataclass(frozen=True, slots=True)
class Started:
    """The keeper's ends: pid, pidfd and pipes of a tool that waits to be told what to run.

    door: the socket through which its filter's listener comes, where the plan reports (sandbox.denials); else -1.
    """

    pid: int
    pidfd: int
    stdin: int
    stdout: int
    stderr: int
    words: int
    facts: int
    door: int = -1


def fork(plan: Plan, scratch: str, procs: tuple[int, ...]) -> Started:
    """Fork the tool's process. It applies its steps and waits; `facts` says how that went.

    scratch: the temporary folder where it is not /tmp inside, else "". procs: descriptors of the cgroups to enter.
    """
    pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(5)]
    stdin, stdout, stderr, words, facts_pipe = pipes
    door = tuple(link.detach() for link in socket.socketpair()) if plan.reports else ()
    ends = (stdin[0], stdout[1], stderr[1], words[0], facts_pipe[1], *door[1:])
    keeper, pid = os.getpid(), os.fork()
    if pid == 0:
        _become(_placed(plan, scratch), keeper, procs, ends)
    for descriptor in ends:
        os.close(descriptor)
    keys = (stdin[1], stdout[0], stderr[0], words[1], facts_pipe[0], *door[:1])
    return Started(pid, os.pidfd_open(pid), *keys)


def facts(started: Started) -> dict[str, object]:
    """What the tool's process read back from the kernel. Raises ToolFailed when a step failed or it died."""
    found = wire.read_frame(started.facts, _FACTS_LIMIT)
    if found is None:
        raise ToolFailed("tool", 0, "the tool's process died while it was being confined")
    _raise_failure(found)
    return found


def go(started: Started, call: dict[str, object]) -> None:
    """Tell the tool what to run."""
    wire.write_all(started.words, wire.frame({"argv": call["argv"], "cwd": call["cwd"]}))


def begun(started: Started) -> None:
    """Returns when execve has succeeded. Raises ToolFailed when it has not; after another error it may have."""
    os.close(started.words)
    failure = wire.read_frame(started.facts, _FACTS_LIMIT)
    os.close(started.facts)
    if failure is not None:
        _raise_failure(failure)
        raise ToolFailed("exec", 0, "the tool's process said something unexpected")


def _raise_failure(document: dict[str, object]) -> None:
    failed = document.get("failed")
    if isinstance(failed, list):
        raise ToolFailed(str(failed[0]), int(failed[1]), str(failed[2]))


def _placed(plan: Plan, scratch: str) -> Plan:
    """The plan with its temporary folder where this call has it."""
    if not scratch:
        return plan
    moved = tuple(
        (name, scratch + value[len(_TEMP) :] if value == _TEMP or value.startswith(_TEMP + "/") else value)
        for name, value in plan.environment
    )
    return dataclasses.replace(plan, environment=moved, landlock=plan.landlock.moved(scratch))


def _die_with_keeper(keeper: int) -> None:
    """Where no pid namespace does it. The check comes after: the keeper may have ended before the signal was asked for.

    The keeper's own handler would end the call from here.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    syscalls.prctl(abi.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(0)


class _Step:
    """The name of the step in progress."""

    name = "cgroup"


def _become(plan: Plan, keeper: int, procs: tuple[int, ...], ends: tuple[int, ...]) -> NoReturn:
    step, facts_end = _Step(), ends[4]
    try:
        plan.cgroup.apply(procs)  # before anything is used that it counts
        step.name = "descriptors"
        facts_end = _duplicate_above(facts_end)  # where _arrange overwrites nothing; it closes it at its end
        _arrange(ends)
        facts_end = _FACTS
        os.write(_FACTS, wire.frame(_confine(plan, keeper, step)))
        step.name = "go"
        words = wire.read_frame(_EXEC, wire.GO_LIMIT)
        if words is None:
            os._exit(0)
        step.name = "cwd"
        _enter(plan, str(words["cwd"]))
        step.name = "exec"
        _execute(plan, words["argv"])
    except OSError as problem:
        code, detail = problem.errno or 0, str(problem.strerror or problem)
    except BaseException as problem:  # noqa: BLE001 - a bug here must not go on into the keeper's code
        code, detail = 0, f"{type(problem).__name__}: {problem}"
    try:
        os.write(facts_end, wire.frame({"failed": [step.name, code, detail[:500]]}))
    finally:
        os._exit(127)


def _confine(plan: Plan, keeper: int, step: _Step) -> dict[str, object]:
    """The tool's last steps in their order. Returns the facts that were read back."""
    step.name = "limits"
    if not plan.in_namespaces:
        _die_with_keeper(keeper)
    os.nice(_NICE)
    found = plan.resources.apply()
    step.name = "landlock"
    found.update(plan.landlock.apply())
    step.name = "seccomp"
    if plan.only_self:
        found.update(signals.only_self())
    found.update(
        plan.seccomp.apply_asking(plan.reports.door, _DOOR) if plan.reports else plan.seccomp.apply()
    )
    return found


def _enter(plan: Plan, folder: str) -> None:
    """The working folder, below the root. Where the root is the host's own, no link may lead out of it."""
    if plan.in_namespaces:
        os.chdir(os.path.join(plan.root_at, folder))
        return
    root = os.open(plan.root_at, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(root)
    if (plan.root_at, found.st_dev, found.st_ino) not in plan.landlock.known:
        raise PermissionError(1, "the root folder is not what was there at start-up")
    if not os.access(plan.root_at, os.R_OK | os.X_OK):
        raise PermissionError(13, "the worker's own user cannot read the root folder")
    os.fchdir(
        syscalls.openat2(
            root,
            os.fsencode(folder),
            os.O_PATH | os.O_DIRECTORY,
            abi.RESOLVE_BENEATH | abi.RESOLVE_NO_MAGICLINKS,
        )
    )


def _execute(plan: Plan, tail: object) -> NoReturn:
    if not isinstance(tail, list) or not all(isinstance(word, str) for word in tail):
        raise ValueError("argv is not a list of words")
    argv = [*plan.command, *tail]
    os.execve(plan.command[0], [os.fsencode(word) for word in argv], dict(plan.environment))  # noqa: S606


def _arrange(ends: tuple[int, ...]) -> None:
    """Pipes to 0, 1, 2, ... by way of high numbers, so that none is overwritten before it is moved; the rest is closed."""
    os.setsid()
    high = [_duplicate_above(descriptor) for descriptor in ends]
    for number, descriptor in enumerate(high):
        os.dup2(descriptor, number, inheritable=number < 3)
    descriptors.close_all_but(range(len(ends)))


def _duplicate_above(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64)
