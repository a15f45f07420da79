"""Plans that report: what a tool was refused is named, every call ends as in a normal cage, and nothing hangs."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyseccomp
import pytest

from policies.syscalls import names
from runner.prepare import compiled_filters
from sandbox import abi, filters, ladder, planning, spawn
from sandbox import host as hosts
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Denials, Limits, Outcome, Profile
from tests.live import rungs
from tests.live.cage import LIMITS, PYTHON, Cage, outside, said
from tests.live.test_death import gone, until, workers

WEAKEST = ladder.NAMES[-1]
KEEPER = filters.keeper_filter([*names("keeper"), *names("keeper", "reporting")], reporting=True)


class Pair(Cage):
    """The same cage twice: "python" is a normal plan, "asks" one that reports."""

    def __init__(self, profile: Profile) -> None:
        launcher, compiled = spawn.launcher(), compiled_filters()
        self.host = hosts.probe(launcher)
        normal = planning.make(profile, self.host, compiled, WEAKEST)
        asks = dataclasses.replace(planning.reporting(normal, compiled, KEEPER), name="asks")
        self.plans = {"python": normal, "asks": asks}
        self.supervisor = Supervisor(launcher)
        self.supervisor.register(self.plans.values())
        self._runner = asyncio.Runner()
        self._runner.run(self._attach())

    def both(self, code: str) -> Outcome:
        """The reporting call's outcome; the normal one has ended in the same way and with the same words."""
        normal, found = self.call("python", code), self.call("asks", code)
        assert normal.denials == Denials()
        for field in ("kind", "exit_code", "signal", "stdout", "stderr"):
            assert getattr(found, field) == getattr(normal, field), (found, normal)
        assert found.attestation is not None
        assert found.attestation["reports"] is True
        return found


def pair(root: Path, **changes: Any) -> Pair:
    profile = Profile("python", (PYTHON, "-I", "-S", "-c"), str(root), limits=LIMITS)
    return Pair(dataclasses.replace(profile, **changes))


@pytest.fixture(scope="module", params=["full", "container", "masked-proc"])
def host(request: pytest.FixtureRequest) -> Iterator[str]:
    """The usual host, one without namespaces, one without a /proc inside."""
    with rungs.on_host(rungs.HERE if request.param == "full" else request.param):
        yield request.param


@pytest.fixture(scope="module")
def strict(host: str, place: Path) -> Iterator[Pair]:
    made = pair(place / "root")
    yield made
    made.close()


@pytest.fixture(scope="module")
def many(host: str, place: Path) -> Iterator[Pair]:
    made = pair(place / "root", processes="any")
    yield made
    made.close()


def calls(outcome: Outcome) -> dict[str, tuple[int, str]]:
    """Refused system calls: name -> (how often, the key that would allow it)."""
    return {filters.name_of(one.number): (one.count, one.key) for one in outcome.denials.calls}


def files(outcome: Outcome, below: str) -> dict[tuple[str, str], tuple[str, int]]:
    """Refused files whose path starts with `below`: (operation, path) -> (why, how often)."""
    found = [one for one in outcome.denials.files if one.path.startswith(below)]
    return {(one.operation, one.path): (one.why, one.count) for one in found}


TRY = """\
import errno, os
def attempt(use):
    try:
        use()
        print("ok")
    except OSError as problem:
        print(errno.errorcode[problem.errno])
"""


def attempts(*uses: str, **values: Path | str) -> str:
    """A program that tries each use and says which errno it met."""
    lines = [f"{name} = {str(value)!r}" for name, value in values.items()]
    return TRY + "\n".join([*lines, *(f"attempt(lambda: {use})" for use in uses)])


# ---- what is reported ------------------------------------------------------------------------------------------------


def test_a_tool_that_is_refused_nothing_has_an_empty_list(strict: Pair, place: Path) -> None:
    found = strict.both(attempts("open('inside.txt').read()", "os.stat('inside.txt')", "open('none')"))
    assert said(found).split() == ["ok", "ok", "ENOENT"]  # what the host does not have either was not refused
    assert found.denials.calls == ()
    assert files(found, str(place)) == {}
    assert found.denials.more == 0


def test_a_socket(strict: Pair) -> None:
    code = attempts("_socket.socket(2, 1, 0)", "_socket.socket(1, 1, 0)", "_socket.socketpair()").replace(
        "import errno", "import _socket, errno"
    )
    found = strict.both(code)
    assert said(found).split() == ["EPERM"] * 3
    assert calls(found) == {"socket": (2, ""), "socketpair": (1, "socket_pairs")}
    assert outside(code).split() == ["ok"] * 3


def test_a_process(strict: Pair, many: Pair) -> None:
    code = attempts("os.waitpid(os.fork() or os._exit(0), 0)")
    found = strict.both(code)
    assert said(found) == "EPERM"
    assert calls(found) == {"clone": (1, "processes")}
    allowed = many.both(code)
    assert said(allowed) == "ok"
    assert calls(allowed) == {}


def test_no_key_allows_a_namespace(many: Pair, host: str) -> None:
    code = TRY + (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.syscall(CLONE, 0x10000011, 0, 0, 0, 0) < 0: print(errno.errorcode[ctypes.get_errno()])\nelse: os._exit(0)"
    )
    number = filters.numbers(["clone"])
    found = many.both(code.replace("CLONE", str(next(iter(number)))))
    assert said(found) == "EPERM"
    # there a filter around Toolcage refuses it first: what that does is not seen
    assert calls(found) == ({} if host == "container" else {"clone": (1, "")})


USES = [  # (use, operation, path, why in namespaces, why without; "" is: not reported)
    ("open(OUTSIDE)", "read", "OUTSIDE", "missing", "not-lent"),
    ("os.stat('../outside.txt')", "look", "OUTSIDE", "missing", ""),
    ("os.listdir('/')", "read", "/", "not-lent", "not-lent"),
    ("open('new', 'w')", "create", "ROOT/new", "read-only", "read-only"),
    ("open(ROOT + '/inside.txt', 'r+')", "write", "ROOT/inside.txt", "read-only", "read-only"),
    ("os.mkdir('folder')", "create", "ROOT/folder", "read-only", "read-only"),
    ("os.symlink('x', 'link')", "create", "ROOT/link", "read-only", "read-only"),
    ("os.link('inside.txt', 'hard')", "create", "ROOT/hard", "read-only", "read-only"),
    ("os.rename('inside.txt', 'other')", "remove", "ROOT/inside.txt", "read-only", "read-only"),
    ("os.execv('/bin/echo', ['echo'])", "start", os.path.realpath("/bin/echo"), "not-a-program", "not-a-program"),
    ("os.execv(PLACE + '/none', ['x'])", "start", "PLACE/none", "missing", ""),
    ("os.open('inside.txt/x', os.O_CREAT | os.O_WRONLY)", "create", "ROOT/inside.txt/x", "", ""),  # ENOTDIR
    ("os.mkdir('inside.txt')", "create", "ROOT/inside.txt", "", ""),  # EEXIST
    ("os.unlink('none')", "remove", "ROOT/none", "read-only", ""),  # EROFS, ENOENT
    ("open('inside.txt')", "read", "ROOT/inside.txt", "", ""),
    ("os.open('inside.txt', os.O_PATH)", "look", "ROOT/inside.txt", "", ""),
    ("open(TMP + '/new', 'w').write('x')", "create", "TMP/new", "", ""),
    ("os.rename(TMP + '/new', TMP + '/newer')", "create", "TMP/newer", "", ""),
    ("os.truncate(TMP + '/newer', 0)", "write", "TMP/newer", "", ""),
    ("os.unlink(TMP + '/newer')", "remove", "TMP/newer", "", ""),
    ("os.mkdir(TMP + '/folder')", "create", "TMP/folder", "", ""),
    ("os.open(TMP, os.O_TMPFILE | os.O_RDWR)", "write", "TMP", "", ""),
    ("open('/dev/null', 'w')", "write", "/dev/null", "", ""),
    ("os.stat('/usr')", "look", "/usr", "", ""),
    ("os.chdir('/usr')", "look", "/usr", "", ""),
]  # fmt: skip
GOOD = ("ok", "EEXIST", "ENOENT", "ENOTDIR")


def test_files_as_the_kernel_decided(strict: Pair, host: str, place: Path) -> None:
    """All at once; each must have ended as the report says, and as in the normal cage."""
    code = attempts(
        *(use[0] for use in USES), OUTSIDE=place / "outside.txt", PLACE=place, ROOT=place / "root"
    )
    found = strict.both(code.replace("import errno, os", "import errno, os\nTMP = os.environ['TMPDIR']"))
    wanted = {}
    for (use, operation, path, apart, shared), met in zip(USES, said(found).split(), strict=True):
        why = shared if host == "container" else apart
        real = path.replace("OUTSIDE", f"{place}/outside.txt").replace("PLACE", str(place))
        if why:
            wanted[operation, real.replace("ROOT", f"{place}/root")] = (why, 1)
            assert met in (("ENOENT",) if why == "missing" else ("EROFS", "EACCES", "EPERM", "EXDEV")), use
        else:
            assert met in GOOD, (use, met)
    assert files(found, str(place)) == {
        key: value for key, value in wanted.items() if key[1].startswith(str(place))
    }
    assert wanted.items() <= files(found, "/").items()
    assert not [path for _, path in files(found, "/") if path.startswith(("/dev", "/usr/lib"))]


def test_modes_and_links(strict: Pair, host: str, place: Path) -> None:
    """A file that its owner keeps to himself, links that lead away, what belongs to the process that asks."""
    root = place / "root"
    uses = ("os.stat('away')", "open('/proc/self/status')", "os.chmod('inside.txt', 0o600)", "open('bare')",
            "os.open('away', os.O_NOFOLLOW)", "open(TMP, 'w')", "os.chmod(TMP, 0o400)")  # fmt: skip
    code = attempts(*uses).replace(
        "import errno, os", "import errno, os\nTMP = os.environ['TMPDIR'] + '/own'"
    )
    link, bare = root / "away", root / "bare"
    link.symlink_to("/nowhere/at/all")
    bare.write_text("x")
    bare.chmod(0)
    try:
        found = strict.both(code)
    finally:
        link.unlink()
        bare.unlink()
    answers, seen = said(found).split(), files(found, "/")
    shared = host == "container"
    assert answers == [
        "ENOENT",
        {"full": "ok", "container": "EACCES", "masked-proc": "ENOENT"}[host],
        "EPERM" if shared else "EROFS",
        "EACCES",
        "ELOOP",
        "ok",
        "EPERM" if shared else "ok",
    ]
    assert (("look", "/nowhere/at/all") in seen) != shared
    if host != "full":
        assert seen["read", "/proc/self/status"] == ("not-lent" if shared else "missing", 1)
    if shared:  # there the filter refuses it
        assert calls(found) == {"chmod": (2, "")}
    else:
        changes = [key for key in seen if key[0] == "change"]
        assert changes == [("change", str(root / "inside.txt"))]
    assert seen["read", str(bare)] == ("permission", 1)
    assert not [path for _, path in seen if path.endswith("own")]


def test_what_the_tools_own_process_does_before_the_program_is_not_listed(strict: Pair) -> None:
    """Only the program's own opens: the dynamic loader is the first to ask."""
    found = strict.call("asks", "pass")
    assert found.exit_code == 0
    assert not [one for one in found.denials.files if one.operation == "start"]
    assert found.denials.calls == ()


# ---- the decisions are the same ----------------------------------------------------------------------------------------

RAW = """\
import ctypes, errno, sys
call = ctypes.CDLL(None, use_errno=True).syscall
def raw(*words):
    result = call(*(ctypes.c_long(word) for word in words))
    return "ok" if result >= 0 else errno.errorcode[ctypes.get_errno()]
"""


def test_every_harmless_number_ends_the_same_way(strict: Pair, host: str) -> None:
    """All numbers with arguments that are good for nothing, but those that end, stop or wait, and the two that belong to
    the kernel's probes: no filter sees them, and they end the process (x86-64, Linux 6.14).
    """
    others = {**names("tool"), **names("tool", "conditional")}.keys() - {
        "execve",
        "openat",
        "stat",
        "rename",
        "fcntl",
    }
    skip = {335, 336, *filters.numbers(others)}
    work = f"for n in range(470):\n if n not in {skip}: print(n, raw(n, -1, -1, -1, -1, -1, -1))"
    code = RAW + work
    found = strict.both(code)
    refused = [line.split()[0] for line in said(found).splitlines() if line.endswith("EPERM")]
    assert len(refused) > 150
    by_the_host = len(rungs._CONTAINER.split()) if host == "container" else 0  # its filter does not tell us
    assert sum(one.count for one in found.denials.calls) + found.denials.more >= len(refused) - by_the_host


def test_a_path_that_is_none(strict: Pair) -> None:
    number = next(iter(filters.numbers(["openat"])))
    found = strict.both(RAW + f"print(raw({number}, -100, 8, 0, 0), raw({number}, -100, -9, 0, 0))")
    assert said(found) == "EFAULT EFAULT"
    assert [
        (one.path, one.operation, one.count) for one in found.denials.files if one.why == "unreadable"
    ] == [("", "read", 2)]


def test_the_tool_has_neither_the_door_nor_the_listener(place: Path) -> None:
    """sendmsg is refused also where a tool has sockets, and nothing more is open than in a normal cage."""
    number = next(iter(filters.numbers(["sendmsg"])))
    made = pair(place / "root", socket_pairs=True)
    code = RAW + (
        "import os, _socket\na, b = _socket.socketpair()\n"
        f"print(raw({number}, a.fileno(), 0, 0, 0, 0, 0), raw({number}, 5, 0, 0, 0, 0, 0))\n"
        "held = []\nfor n in range(200):\n try: os.fstat(n); held.append(n)\n except OSError: pass\nprint(held)"
    )
    try:
        found = made.both(code)
    finally:
        made.close()
    assert said(found).splitlines() == ["EPERM EPERM", "[0, 1, 2, 3, 4]"]  # the pair are two
    assert calls(found) == {"sendmsg": (2, "")}


@pytest.mark.parametrize(("interrupts", "answers"), [(False, {"EPERM"}), (True, {"EPERM", "EINTR"})])
def test_signals_while_it_asks(strict: Pair, interrupts: bool, answers: set[str]) -> None:
    """A handler that runs a thousand times a second. With SA_RESTART nothing changes; without, a call may answer EINTR."""
    number = next(iter(filters.numbers(["socket"])))
    code = RAW + (
        "import signal\nhits = []\nsignal.signal(14, lambda *_: hits.append(1))\n"
        f"signal.siginterrupt(14, {interrupts})\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
        f"found = {{raw({number}, 1, 1, 0) for _ in range(3000)}}\nsignal.setitimer(signal.ITIMER_REAL, 0)\n"
        "print(*sorted(found), bool(hits))"
    )
    found = strict.call("asks", code)
    *seen, handled = said(found).split()
    assert handled == "True"
    assert "EPERM" in seen
    assert set(seen) <= answers
    assert calls(found)["socket"][0] >= 2000


# ---- many at once ------------------------------------------------------------------------------------------------------


def test_threads(strict: Pair) -> None:
    code = (
        "import _socket, os, threading\n"
        "def work(n):\n"
        " for i in range(40):\n"
        "  try: _socket.socket(1, 1, 0)\n"
        "  except PermissionError: pass\n"
        "  try: open(f'/nowhere/{n}')\n"
        "  except OSError: pass\n"
        "  open('inside.txt').close()\n"
        "all = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n"
        "[one.start() for one in all]; [one.join() for one in all]; print('done')"
    )
    found = strict.both(code)
    assert said(found) == "done"
    assert calls(found) == {"socket": (320, "")}
    if "no-namespaces" not in strict.plans["asks"].rung:  # there nothing is missing that the host has
        seen = files(found, "/nowhere/")
        assert seen == {("read", f"/nowhere/{n}"): ("missing", 40) for n in range(8)}


def test_a_tree_of_processes(many: Pair, place: Path) -> None:
    code = (
        "import os, _socket\n"
        "def work(depth):\n"
        " try: _socket.socket(1, 1, 0)\n"
        " except PermissionError: pass\n"
        " try: open('deep%d' % depth, 'w')\n"
        " except OSError: pass\n"
        " if depth:\n"
        "  children = []\n"
        "  for _ in range(2):\n"
        "   pid = os.fork()\n"
        "   if pid == 0: work(depth - 1); os._exit(0)\n"
        "   children.append(pid)\n"
        "  [os.waitpid(pid, 0) for pid in children]\n"
        "work(3)\n"
        "pid = os.posix_spawn('/bin/sh', ['sh', '-c', 'cd /usr; : >made'], {})\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    found = many.both(code)
    assert said(found) in ("1", "2")
    assert calls(found) == {"socket": (15, "")}
    wanted = {("create", f"{place}/root/deep{3 - n}"): ("read-only", 2**n) for n in range(4)}
    assert files(found, str(place)) == wanted
    if many.plans["asks"].has_proc or not many.plans["asks"].in_namespaces:
        assert files(found, "/usr/made") == {
            ("create", "/usr/made"): ("read-only", 1)
        }  # the shell's own folder


def test_processes_that_are_killed_while_they_ask(many: Pair) -> None:
    """Children that do nothing but ask are killed at any moment, a hundred times; the tool ends by itself."""
    code = (
        "import os, signal, _socket\n"
        "for n in range(100):\n"
        " pid = os.fork()\n"
        " if pid == 0:\n"
        "  while True:\n"
        "   try: _socket.socket(1, 1, 0)\n"
        "   except PermissionError: pass\n"
        "   try: open('/nowhere')\n"
        "   except OSError: pass\n"
        " for _ in range(n % 7): os.stat('inside.txt')\n"
        " os.kill(pid, signal.SIGKILL)\n"
        " os.waitpid(pid, 0)\n"
        "print('done')"
    )
    found = many.call("asks", code)
    assert said(found) == "done"
    assert found.denials.more == 0


SPIN = (
    "import threading, _socket\n"
    "def spin():\n"
    " while True:\n"
    "  try: _socket.socket(1, 1, 0)\n"
    "  except PermissionError: pass\n"
    "  try: open('/nowhere')\n"
    "  except OSError: pass\n"
    "[threading.Thread(target=spin).start() for _ in range(4)]\n"
)


def test_the_wall_limit_ends_a_tool_that_never_stops_asking(host: str, place: Path) -> None:
    made = pair(place / "root", limits=Limits(wall_seconds=0.7, cpu_seconds=20, memory_mb=256, processes=32))
    try:
        begun = time.monotonic()
        found = made.call("asks", SPIN)
        assert (found.kind, found.limit) == ("timed_out", "wall_seconds")
        assert time.monotonic() - begun < 10
        assert calls(found)["socket"][0] > 10
        assert said(made.call("asks", "print('next')")) == "next"
    finally:
        made.close()


def test_the_processor_limit_ends_it_too(place: Path) -> None:
    made = pair(place / "root", limits=Limits(wall_seconds=30, cpu_seconds=1, memory_mb=256, processes=32))
    try:
        found = made.call("asks", SPIN + "while True: pass")
        assert found.kind == "out_of_cpu_time"
        assert calls(found)["socket"][0] > 10
    finally:
        made.close()


def test_a_call_that_is_cancelled_while_it_asks_is_gone(strict: Pair) -> None:
    launcher = strict.supervisor.launcher_pid

    async def cancel(supervisor: Supervisor) -> None:
        call = asyncio.ensure_future(supervisor.run(Call("asks", (SPIN,))))
        await until(lambda: any(process.num_threads() > 4 for process in workers(launcher)))
        processes = workers(launcher)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert gone(processes)

    strict.run(cancel)
    assert said(strict.call("asks", "print('next')")) == "next"


# ---- bounds ------------------------------------------------------------------------------------------------------------


def test_entries_are_bounded_and_the_rest_is_counted(strict: Pair) -> None:
    code = (
        "import os\n"
        "for n in range(700):\n"
        " try: open(f'made{n}', 'w')\n"
        " except OSError: pass\n"
        "try: open('made0', 'w')\n"
        "except OSError: print('done')"
    )
    found = strict.both(code)
    assert said(found) == "done"
    seen = found.denials
    assert len(seen.files) == 256
    assert sum(one.count for one in seen.files if "made" in one.path) + seen.more >= 701
    assert next(one for one in seen.files if one.path.endswith("/made0")).count == 2


def test_long_and_strange_paths_fit_into_a_report_with_full_output(place: Path) -> None:
    """Paths of 4,090 bytes that are no text, beside as much output as a report may carry."""
    made = pair(place / "root", limits=dataclasses.replace(LIMITS, output_mb=1))
    code = (
        "import os\n"
        "for n in range(40):\n"
        " try: os.mkdir(b'/' + b'\\xff\\x1b[31m/' * 580 + b'%d' % n)\n"
        " except OSError: pass\n"
        "os.write(1, b'x' * (1 << 20)) and None"
    )
    loop = "\nleft = (1 << 20)\n"
    code = code.replace(
        "os.write(1, b'x' * (1 << 20)) and None",
        loop + "while left: left -= os.write(1, b'x' * min(left, 65536))",
    )
    try:
        found = made.both(code)
    finally:
        made.close()
    assert (found.kind, found.exit_code, len(found.stdout)) == ("exited", 0, 1 << 20)
    strange = [one for one in found.denials.files if "\x1b" in one.path]
    assert found.denials.more + sum(one.count for one in strange) == 40
    assert sum(len(one.path) for one in found.denials.files) < 40 * 1024


# ---- where it cannot be done -------------------------------------------------------------------------------------------

LISTENED = """
import os
from sandbox import abi, syscalls
syscalls.prctl(abi.PR_SET_NO_NEW_PRIVS, 1)
os.dup2(syscalls.load_seccomp_with_listener(bytes.fromhex({!r})), 0)  # where the launcher leaves it open
""".format(struct.pack("@HBBI", 0x06, 0, 0, 0x7FFF0000).hex())


@contextmanager
def after(prelude: str) -> Iterator[None]:
    """Launchers that start meanwhile run `prelude` first."""
    path, main = rungs._USUAL.split("; from sandbox.launcher", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawn, "_START", f"{path}\n{prelude}\nfrom sandbox.launcher{main}")
        yield


@pytest.mark.parametrize(
    ("prelude", "words"),
    [
        (LISTENED, "listens to its calls already"),
        (rungs._without(calls={"seccomp": errno.EPERM}), "seccomp: Operation not permitted"),
        (rungs._without(calls={"sendmsg": errno.EPERM}), "sendmsg: Operation not permitted"),
    ],
)
def test_where_it_cannot_be_done_the_call_is_refused_in_words(place: Path, prelude: str, words: str) -> None:
    """A container's runtime may have a listener of its own, and the kernel permits one; or a filter. Normal calls work."""
    with after(prelude):
        made = pair(place / "root")
        try:
            assert said(made.call("python", "print('works')")) == "works"
            found = made.call("asks", "print('works')")
        finally:
            made.close()
    assert (found.kind, found.step) == ("setup_failed", "seccomp")
    assert words in found.detail


def test_where_memory_cannot_be_read_calls_are_still_named(place: Path) -> None:
    with after(rungs._without(calls={"process_vm_readv": errno.EPERM})):
        made = pair(place / "root")
        try:
            found = made.both("import _socket\n" + attempts("_socket.socket(1, 1, 0)", "open('/etc/shadow')"))
        finally:
            made.close()
    assert said(found).split() == ["EPERM", "ENOENT"]
    assert calls(found) == {"socket": (1, "")}
    assert {one.why for one in found.denials.files} == {"unreadable"}


def test_on_a_kernel_that_does_not_know_killable_waits(place: Path) -> None:
    """Before Linux 5.19 the flag is EINVAL, as it is here for a filter around the launcher."""
    built = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    built.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.ALLOW)
    flag = abi.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
    with_it = pyseccomp.Arg(1, pyseccomp.MASKED_EQ, flag, flag)
    built.add_rule(pyseccomp.ERRNO(errno.EINVAL), abi.NUMBERS["seccomp"], with_it)
    with after(rungs._FILTER.format(filters._export(built).hex())):
        made = pair(place / "root")
        try:
            found = made.both("import _socket\n" + attempts("_socket.socket(1, 1, 0)"))
        finally:
            made.close()
    assert (said(found), calls(found)) == ("EPERM", {"socket": (1, "")})
