"""A launcher, keepers and tools that have nothing but cgroups, in processes of their own. Used by test_cgroup.

`main` reads orders, one JSON object a line, and answers each with one. A call has a keeper in a user, pid and cgroup
namespace of its own, with a kernel id of its own when this is root; the tool goes into the leaf by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sandbox import abi, division, groups, syscalls
from sandbox.steps.cgroup import Cgroup, Leaf

ROOT = os.geteuid() == 0
TOOL_UID = 1_879_047_999 if ROOT else os.geteuid()
TOOL_GID = TOOL_UID if ROOT else os.getegid()
INSIDE = 1000
FLAGS = abi.CLONE_NEWUSER | abi.CLONE_NEWPID | abi.CLONE_NEWCGROUP
SOURCE = Path(__file__).resolve().parent.parent.parent
START = "import sys; sys.path.append(sys.argv[1]); from tests.live.grouped import main; main()"
FRONT = "import os, subprocess, sys; os.read(0, 1); sys.exit(subprocess.call(sys.argv[1:]))"
WORDS = [sys.executable, "-I", "-S", "-c", START, str(SOURCE)]


class Launcher:
    """Our end of one. Its front is this process, or with `front` a process in between, which waits for `begin`."""

    def __init__(self, *, front: bool = False) -> None:
        words = [sys.executable, "-I", "-S", "-c", FRONT, *WORDS] if front else WORDS
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self) -> None:
        """Let the front start the launcher."""
        self._say("")

    def ask(self, order: str, **more: object) -> Any:
        """One order and its answer."""
        self._say(json.dumps({"order": order, **more}))
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, program: str, *, memory: int = 64 << 20, processes: int = 16) -> dict[str, Any]:
        """Run a Python program in a leaf of its own."""
        found: dict[str, Any] = self.ask("call", program=program, memory=memory, processes=processes)
        return found

    def end(self) -> None:
        """Close its input and wait; a launcher that is told nothing else closes its groups."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def kill(self) -> None:
        """As when the machine's out-of-memory killer takes it: nothing is closed."""
        self.process.kill()
        self.end()

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


def main() -> None:
    """Serve until the input ends. Orders: find, way, call, leaf, close, where, open."""
    made: list[groups.Groups] = []
    with ExitStack() as undo:
        for line in sys.stdin:
            order = json.loads(line)
            print(json.dumps(_answer(order, made, undo)), flush=True)
        for group in made:
            group.close()


def _answer(order: dict[str, Any], made: list[groups.Groups], undo: ExitStack) -> object:
    match order["order"]:
        case "find":
            made.append(groups.find(os.getppid()))
            return [made[0].kind, made[0].why]
        case "way":
            return _go(order, undo)
        case "undo":
            undo.close()
        case "call":
            return _call(made[0], order)
        case "leaf":
            leaf = made[0].leaf(order["number"], Cgroup(made[0].kind, 64 << 20, 16))
            assert leaf is not None
            leaf.close()
        case "close":
            made.pop().close()
        case _:
            assert order["order"] == "where"
    return {"where": Path("/proc/self/cgroup").read_text(), "open": len(os.listdir("/proc/self/fd"))}


def _go(order: dict[str, Any], undo: ExitStack) -> list[object]:
    """One way of the division alone, with controllers that this host can give."""
    way = getattr(division, order["way"])
    with ExitStack() as here:
        try:
            way(os.getppid(), here, tuple(order["needed"]))
        except OSError as problem:
            return [problem.errno, problem.strerror]
        undo.push(here.pop_all())
    return [0, ""]


def _call(made: groups.Groups, order: dict[str, Any]) -> dict[str, Any]:
    wanted = Cgroup(made.kind, order["memory"], order["processes"])
    leaf = made.leaf(order.get("number", 1), wanted)
    assert leaf is not None
    mapped_reader, mapped_writer = os.pipe()
    report_reader, report_writer = os.pipe()
    pid, pidfd = syscalls.spawn(FLAGS)
    if pid == 0:
        _keep(wanted, leaf, (mapped_reader, report_writer), order["program"])
    for descriptor in (mapped_reader, report_writer):
        os.close(descriptor)
    if not ROOT:
        Path(f"/proc/{pid}/setgroups").write_text("deny")
    Path(f"/proc/{pid}/gid_map").write_text(f"{INSIDE} {TOOL_GID} 1")
    Path(f"/proc/{pid}/uid_map").write_text(f"{INSIDE} {TOOL_UID} 1")
    os.write(mapped_writer, b"1")
    leaf.close()
    with open(report_reader, encoding="utf-8") as file:
        report: dict[str, Any] = json.loads(file.read())
    os.waitpid(pid, 0)
    for descriptor in (mapped_writer, pidfd):
        os.close(descriptor)
    made.remove(leaf)
    return report


def _keep(wanted: Cgroup, leaf: Leaf, ends: tuple[int, int], program: str) -> None:
    """The keeper: lets the tool in, proves it, waits for it, counts, ends the rest, reports."""
    try:
        os.read(ends[0], 1)
        os.setresgid(INSIDE, INSIDE, INSIDE)
        os.setresuid(INSIDE, INSIDE, INSIDE)
        entered, go = os.pipe(), os.pipe()
        tool = os.fork()
        if tool == 0:
            _become(wanted, leaf, (entered[1], go[0]), program)
        os.close(entered[1])
        told = json.loads(os.read(entered[0], 4096))
        report: dict[str, Any] = {"told": told, "proven": wanted.prove(leaf, tool)}
        os.write(go[1], b"1")
        report["status"] = os.waitpid(tool, 0)[1]
        counted = leaf.counters.read()
        report["left"] = sum(len(os.pread(procs, 4096, 0).split()) for procs in leaf.procs)
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        report["counted"] = {name: getattr(counted, name) for name in counted.__slots__}
    except BaseException as problem:  # noqa: BLE001 - it must not go on into the launcher's code
        report = {"problem": repr(problem)}
    os.write(ends[1], json.dumps(report).encode())
    os._exit(0)


def _become(wanted: Cgroup, leaf: Leaf, ends: tuple[int, int], program: str) -> None:
    try:
        facts = wanted.apply(leaf.procs)
        facts["kernel_uid"] = int(Path("/proc/self/uid_map").read_text().split()[1])
        facts["closed"] = [name for name in leaf.procs if not os.path.exists(f"/proc/self/fd/{name}")]
        facts["lines"] = Path("/proc/self/cgroup").read_text()
        os.write(ends[0], json.dumps(facts).encode())
        os.read(ends[1], 1)
        python = next(path for path in ("/usr/bin/python3", "/bin/python3") if os.path.exists(path))
        os.execve(python, [python, "-I", "-S", "-c", program], {})
    except BaseException as problem:  # noqa: BLE001 - it must not go on into the keeper's code
        os.write(ends[0], json.dumps({"problem": repr(problem)}).encode())
    finally:
        os._exit(99)
