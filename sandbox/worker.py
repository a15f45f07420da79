"""The keeper: pid 1 of one call's namespaces, where the host has them. Builds the cage, proves it, starts the tool, collects, reports, dies.

SECURITY: it runs as the inside user, without privileges from the step of that name on, and under a filter of its own
before it reads the call. It alone holds the report pipe; the tool holds nothing but its three standard pipes. When the
keeper dies for any reason, the kernel kills everything in its pid namespace; without one it is the reaper of all that the
tool starts, and ends it before it ends itself. There is no way back: a step that fails is reported by name and the
keeper exits; nothing is retried with less.
"""

from __future__ import annotations

import dataclasses
import os
import select
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from sandbox import abi, collect, syscalls, tool, wire
from sandbox.meter import Meter
from sandbox.plan import Plan
from sandbox.steps import descriptors, mounts
from sandbox.steps.cgroup import Leaf
from sandbox.steps.identity import namespaces
from sandbox.steps.landlock import SIGNALS_SINCE
from sandbox.tree import Tree, cannot_signal, children_of

if TYPE_CHECKING:
    from sandbox.denials import Reporter

_FAILED_EXIT = 70  # EX_SOFTWARE; only the launcher sees it


@dataclass(slots=True)
class Place:
    """What the launcher makes for one worker: its slot, its trees by target (as root), its temporary folder (where the
    call has no file system of its own), its cgroup (where there are any).
    """

    slot: int = -1
    trees: dict[str, int] = field(default_factory=dict)
    scratch: str = ""
    leaf: Leaf | None = None

    def descriptors(self) -> tuple[int, ...]:
        """All that are open."""
        return (*self.trees.values(), *(self.leaf.descriptors() if self.leaf else ()))

    def close(self) -> None:
        """The launcher's copies: the worker has its own."""
        for descriptor in self.descriptors():
            os.close(descriptor)
        self.trees = {}


@dataclass(frozen=True, slots=True)
class Given:
    """From the launcher: descriptors of the go pipe, the report pipe, the launcher's liveness and "maps are written"; the
    ids outside; the place.
    """

    go: int
    report: int
    alive: int
    ready: int
    ids: tuple[int, int]
    place: Place


class Step:
    """The name of the step in progress, so that a failure can be reported by name."""

    name = "descriptors"


def main(plan: Plan, given: Given) -> NoReturn:
    """One call, from an unmapped clone to the report. Never returns."""
    step = Step()
    try:
        _run(plan, given, step)
        os._exit(0)
    except tool.ToolFailed as problem:
        _report_failure(given.report, problem.step, problem.errno, problem.detail)
    except OSError as problem:
        _report_failure(given.report, step.name, problem.errno or 0, str(problem.strerror or problem))
    except BaseException as problem:  # noqa: BLE001 - a bug here must not go on into the launcher's code
        _report_failure(given.report, step.name, 0, f"{type(problem).__name__}: {problem}")
    os._exit(_FAILED_EXIT)


def _run(plan: Plan, given: Given, step: Step) -> None:
    reporting = _reporting() if plan.reports else None
    facts, tree, oom_score = _confine(plan, given, step)
    step.name = "tool"
    place, leaf = given.place, given.place.leaf
    started = tool.fork(plan, place.scratch, leaf.procs if leaf else ())
    os.pwrite(oom_score, b"500", 0)  # the tool keeps 1000: it goes first, and the keeper can still report
    os.close(oom_score)
    reporter = reporting(plan, tree, place.scratch, started.door) if reporting else None
    if reporter:
        reporter.until(started.facts)
    facts.update(tool.facts(started))
    step.name = "cgroup"
    facts.update(plan.cgroup.prove(leaf, started.pid))
    meter = Meter(plan.limits, tree, place.scratch, leaf.counters if leaf else None)
    collector = collect.Collector(plan, started, meter, given.alive, reporter)
    step.name = "keeper_seccomp"
    plan.keeper_seccomp.apply()
    wire.write_all(given.report, wire.frame({"attested": facts}))
    step.name = "go"
    call = wire.read_frame(given.go, wire.GO_LIMIT)
    if call is None:
        os._exit(0)
    os.close(given.go)
    step.name = "exec"
    tool.go(started, call)
    step.name = "collect"  # from here on the program may have run
    if reporter:
        reporter.until(started.facts)
    tool.begun(started)
    report = collector.run(call)
    wire.write_all(given.report, wire.frame({"report": report}))


def _reporting() -> type[Reporter]:
    """Loaded for a plan that reports, and for no other; now, while the interpreter's files are within reach."""
    from sandbox.denials import Reporter

    return Reporter


def _confine(plan: Plan, given: Given, step: Step) -> tuple[dict[str, object], Tree, int]:
    """The keeper's steps in their order. Returns the facts that were read back, its tree and its oom_score_adj."""
    pipes = (given.go, given.report, given.alive, given.ready)
    descriptors.close_all_but((*pipes, *given.place.descriptors()))
    _null_standard_descriptors()
    descriptors.reset_signals()
    descriptors.start_session()
    step.name = "identity"
    if os.read(given.ready, 1) != b"1":
        raise BrokenPipeError(32, "the launcher went away")
    os.close(given.ready)
    oom_score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    os.write(oom_score, b"1000")
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    facts = plan.identity.apply(*given.ids)
    if plan.in_namespaces:
        facts["namespaces"] = namespaces(proc)
    _die_with_launcher(given.alive)
    if plan.in_namespaces:
        step.name = "mounts"
        facts.update(plan.mounts.apply(given.place.trees, proc))
    tree = _tree(plan, proc)
    step.name = "keyring"
    facts.update(plan.keyring.apply())
    step.name = "privileges"
    facts.update(plan.privileges.apply())
    if not plan.in_namespaces:
        step.name = "landlock"
        tree = _enclose(plan, given, tree)
    return facts, tree, oom_score


def _enclose(plan: Plan, given: Given, tree: Tree) -> Tree:
    """Without namespaces: a Landlock domain around the keeper and all that it starts, and the duty to end it.

    SECURITY: a signal to all (-1) must not leave that domain, or it would end everything that this user runs. So it is
    tried on the launcher first.
    """
    plan.landlock.moved(given.place.scratch).around("/proc").apply()
    bounded = plan.landlock.version >= SIGNALS_SINCE
    if bounded and not cannot_signal(os.getppid()):
        raise PermissionError(1, "the domain does not hold signals back")
    enclosed = dataclasses.replace(tree, bounded=bounded)

    def end(_number: int, _frame: object) -> None:
        enclosed.end()
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    syscalls.prctl(abi.PR_SET_PDEATHSIG, signal.SIGTERM)
    if _is_gone(given.alive):
        os._exit(0)
    return enclosed


def _tree(plan: Plan, proc: int) -> Tree:
    """How the processes of the call are found: in a proc of its own, or below this process in the host's."""
    if plan.has_proc and plan.in_namespaces:
        os.close(proc)
        return Tree(mounts.private_proc(), "1", own=True, bounded=os.getpid() == 1)
    found = Tree(proc, os.readlink("self", dir_fd=proc), own=False, bounded=os.getpid() == 1)
    children_of(proc, found.top)  # OSError when this kernel does not tell
    if not plan.in_namespaces:
        syscalls.prctl(abi.PR_SET_CHILD_SUBREAPER, 1)
    return found


def _null_standard_descriptors() -> None:
    """0, 1 and 2 were closed, so opening fills them in order."""
    for number in range(3):
        if os.open("/dev/null", os.O_RDWR) != number:
            raise OSError(9, "the standard descriptors are not free")
        os.set_inheritable(number, True)


def _die_with_launcher(alive: int) -> None:
    """The signal is cleared by a change of ids, so it is set after; the pipe tells whether it was too late.

    Until there is a tool; from then on a keeper whose death would not end it gets another signal (`_enclose`).
    """
    syscalls.prctl(abi.PR_SET_PDEATHSIG, signal.SIGKILL)
    if _is_gone(alive):
        os._exit(0)


def _is_gone(alive: int) -> bool:
    poller = select.poll()
    poller.register(alive, select.POLLHUP)
    return bool(poller.poll(0))


def _report_failure(report: int, step: str, code: int, detail: str) -> None:
    try:
        wire.write_all(report, wire.frame({"failed": {"step": step, "errno": code, "detail": detail[:500]}}))
    except OSError:
        os._exit(_FAILED_EXIT)
