"""Every call into the kernel fails once, at the place where it is made: no program starts, the step is named, nothing
stays, and the next call works.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.prepare import compiled_filters
from sandbox import host, planning, spawn
from sandbox.errors import HostRefused
from sandbox.supervisor import Supervisor
from sandbox.types import Outcome, Profile
from tests.live.cage import LIMITS, ROOT, Cage, said
from tests.live.census import RAN, Mark, settled, steady
from tests.live.faults import KERNEL, LIBC, Fault

CODE = errno.EIO  # none of these calls fails with it by itself, and nothing is tried again because of it
ENDLESS = 2000
START = "import sys; sys.path.append(sys.argv[1]); from tests.live.faults import main; main(int(sys.argv[2]), {path!r})"
STEPS = {
    "launcher": {"mounts", "namespaces", "identity", "cgroup"},
    "keeper": {
        "descriptors",
        "identity",
        "mounts",
        "keyring",
        "privileges",
        "tool",
        "cgroup",
        "keeper_seccomp",
        "go",
    },
    "tool": {"cgroup", "descriptors", "limits", "landlock", "seccomp", "go", "cwd", "exec"},
}


class Faulty:
    """A cage whose launcher can be told which call shall fail, a mark that shows whether the program ran."""

    def __init__(self, root: Path, path: str) -> None:
        self.fault, self.mark = Fault(path), Mark(root)
        self.cage = Cage([Profile("sh", ("/bin/sh", "-c"), str(root), limits=LIMITS)])
        self.works()
        self._usual = self.cage._runner.run(steady(self.cage.supervisor, 0))

    @property
    def launcher(self) -> int:
        return self.cage.supervisor.launcher_pid

    def call(self) -> Outcome:
        self.mark.set()
        return self.cage.call("sh", RAN)

    def works(self) -> None:
        """The control, and the proof that the fault before did no lasting harm."""
        self.fault.set("nowhere", 0, 0)
        assert said(self.call()) == "ran"
        assert not self.mark.kept

    def nothing_is_left(self) -> None:
        self.cage._runner.run(settled(self.launcher, self._usual))

    def close(self) -> None:
        self.cage.close()
        self.mark.close()


def page(folder: Path) -> str:
    path = folder / "fault"
    path.write_bytes(b"\0" * mmap.PAGESIZE)
    return str(path)


@pytest.fixture
def faulty(place: Path, tmp_path: Path) -> Iterator[Faulty]:
    path = page(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawn, "_START", START.format(path=path) + "  # stands in for sandbox.launcher")
        made = Faulty(place / "root", path)
    yield made
    made.close()


def each(faulty: Faulty, where: str, door: int, code: int = CODE) -> Iterator[tuple[str, Outcome]]:
    """(call that failed, outcome) for n = 1, 2, 3, ... until a call runs through undisturbed. Checks what is left."""
    for n in range(1, ENDLESS):
        faulty.fault.set(where, n, code, door=door)
        outcome = faulty.call()
        met = faulty.fault.met
        if not met:
            assert said(outcome) == "ran"
            return
        assert not faulty.fault.astray
        yield f"{where} {n} {met}", outcome
        faulty.works()
        faulty.nothing_is_left()
    raise AssertionError("no call ran undisturbed")


@pytest.mark.parametrize("door", [KERNEL, LIBC], ids=["kernel", "libc"])
@pytest.mark.parametrize("where", ["launcher", "keeper", "tool"])
def test_a_call_that_fails_before_the_program_is_a_failed_step(faulty: Faulty, where: str, door: int) -> None:
    seen: list[str] = []
    for what, outcome in each(faulty, where, door):
        if what.endswith(" mkdir") and outcome.kind == "exited":
            continue  # makedirs: the folder that could not be made was there
        assert outcome.kind == "setup_failed", (what, outcome)
        assert outcome.step in STEPS[where], (what, outcome)
        # a tool that cannot read its words is gone when the keeper writes them
        assert outcome.errno in ((CODE, errno.EPIPE) if what.endswith(" read") else (CODE,)), (what, outcome)
        assert "was not started" in outcome.detail, (what, outcome)
        assert not outcome.stdout, (what, outcome)
        assert faulty.mark.kept, f"{what}: the program ran"
        seen.append(what)
    assert seen
    print("calls that failed:", len(seen))


@pytest.mark.root_only
@pytest.mark.parametrize("code", [errno.EINVAL, errno.EOPNOTSUPP])
def test_a_tree_that_cannot_be_mapped_is_mounted_without_or_the_call_fails(faulty: Faulty, code: int) -> None:
    met = 0
    for what, outcome in each(faulty, "launcher", KERNEL, code):
        met += 1
        if outcome.kind == "setup_failed":
            assert (outcome.errno, faulty.mark.kept) == (code, True), (what, outcome)
        else:
            assert said(outcome) == "ran", (what, outcome)
    print("calls that failed:", met)
    assert met


@pytest.mark.parametrize("door", [KERNEL, LIBC], ids=["kernel", "libc"])
def test_a_call_that_fails_later_is_never_half_a_success(faulty: Faulty, door: int) -> None:
    """From the go on the program may have run: that is said, or the whole result comes."""
    met = 0
    for what, outcome in each(faulty, "run", door):
        met += 1
        if outcome.kind == "setup_failed":
            assert faulty.mark.kept, f"{what}: the program ran, and it is said that it did not"
        elif outcome.kind != "unknown":
            assert said(outcome) == "ran", what
    print("calls that failed:", met)
    assert met or door == KERNEL


@pytest.mark.parametrize(
    ("name", "code", "step"),
    [
        ("nice", errno.EPERM, "limits"),
        ("setrlimit", errno.EPERM, "limits"),
        ("chdir", errno.EACCES, "cwd"),
        ("execve", errno.EACCES, "exec"),
        ("execve", errno.ENOEXEC, "exec"),
        ("execve", errno.ENOMEM, "exec"),
    ],
)
def test_a_failure_in_the_tools_process_is_named(faulty: Faulty, name: str, code: int, step: str) -> None:
    faulty.fault.set("tool", 1, code, door=LIBC, only=name)
    outcome = faulty.call()
    assert faulty.fault.met == name
    assert (outcome.kind, outcome.step, outcome.errno) == ("setup_failed", step, code), outcome
    assert faulty.mark.kept
    faulty.works()
    faulty.nothing_is_left()


@pytest.mark.root_only
@pytest.mark.parametrize("n", [1, 2])
def test_a_namespace_holder_that_fails_ends_and_does_nothing_else(faulty: Faulty, n: int) -> None:
    """It is a fork of the launcher: an error must not send it on into the launcher's code."""
    faulty.fault.set("holder", n, CODE)
    outcome = faulty.call()
    assert faulty.fault.met
    assert not faulty.fault.astray, "a second launcher spoke to the front"
    assert outcome.kind in ("setup_failed", "exited"), (
        outcome
    )  # its namespace may have been taken before it ended
    assert faulty.mark.kept == (outcome.kind == "setup_failed")
    faulty.works()
    faulty.nothing_is_left()


def test_a_launcher_that_fails_at_its_start_is_refused(place: Path, tmp_path: Path) -> None:
    path = page(tmp_path)
    fault = Fault(path)
    profile = Profile("sh", ("/bin/sh", "-c"), str(place / "root"), limits=LIMITS)
    before = len(os.listdir("/proc/self/fd"))
    for n in range(1, ENDLESS):
        fault.set("start", n, CODE)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spawn, "_START", START.format(path=path) + "  # stands in for sandbox.launcher")
            started = spawn.launcher()
        supervisor = Supervisor(started)
        try:
            supervisor.register([planning.make(profile, host.probe(started), compiled_filters())])
        except HostRefused:
            assert fault.met
        else:
            assert not fault.met
            print("calls that failed:", n - 1)
            assert n > (5 if ROOT else 1)
            return
        finally:
            supervisor.close()
            os.waitpid(started.pid, 0)
            assert len(os.listdir("/proc/self/fd")) == before
