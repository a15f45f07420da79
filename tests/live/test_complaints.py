"""What users of other sandboxes met, tried on every rung that this host can be brought to. docs/trust.md has the rows."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from glob import glob
from pathlib import Path

import psutil
import pytest

from sandbox import cgroupfs, elf, ladder, spawn
from sandbox.supervisor import Supervisor
from sandbox.types import Profile
from tests.live import rungs, test_presets, test_propagation
from tests.live.cage import LIMITS, PYTHON, ROOT, Cage, cage, outside, probe, said
from tests.live.rungs import HOSTS, on_host
from tests.live.test_death import gone, running, until
from tests.live.test_kernel import FAMILIES, X86, raw
from tests.live.test_presets import ONLY_THE_CAGE, Stage, harmless, stage

WEAKEST = ladder.NAMES[-1]
NOT_THERE = {"BLOCKED ENOENT", "BLOCKED EACCES"}
READ_ONLY = {"BLOCKED EROFS", "BLOCKED EACCES", "BLOCKED EPERM"}
# Files that a program on the host obeys later; half of them exist in the root folder before a call.
OBEYED = (".git/config", ".mcp.json", ".bashrc", ".claude/settings.json", ".git/hooks/pre-commit",
          ".vscode/tasks.json", ".gitconfig", "AGENTS.md")  # fmt: skip
CONFIGURED = OBEYED[:3]
TRAPPED = ("git_status", "git_blame")  # the tools of the preset at which most of the repository's traps aim


def at(host: str) -> AbstractContextManager[object]:
    return on_host(host)


@dataclass(frozen=True)
class Lent:
    """A root folder with files of every kind, and what lies beside it."""

    root: Path
    beside: Path

    def snapshot(self) -> list[tuple[str, int, int, int]]:
        """Names, modes, sizes and times of everything in the root."""
        found = []
        for path in sorted(self.root.rglob("*")):
            seen = path.lstat()
            found.append((str(path), seen.st_mode, seen.st_size, seen.st_mtime_ns))
        return found


@pytest.fixture(scope="module")
def lent(place: Path) -> Iterator[Lent]:
    folder = place / "complaints"
    root = folder / "root"
    (root / "sub").mkdir(parents=True)
    (root / "inside.txt").write_text("inside\n")
    for name in CONFIGURED:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("# mine\n")
    (root / "private").write_text("x")
    (root / "private").chmod(0)
    (root / "line\nbreak").write_text("x")
    os.close(os.open(os.fsencode(root) + b"/latin-\xe9", os.O_CREAT | os.O_WRONLY))
    (root / "nowhere").symlink_to("/nowhere/at/all")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(root / "socket"))
        (folder / "outside.txt").write_text("outside\n")
        (folder / "link").symlink_to("a-name-that-says-much")
        yield Lent(root, folder)


@pytest.fixture(params=["here", *sorted(HOSTS)], scope="module")
def somewhere(request: pytest.FixtureRequest) -> Iterator[str]:
    with at(request.param):
        yield request.param


@pytest.fixture(scope="module")
def held(somewhere: str, lent: Lent) -> Iterator[Cage]:
    command, root = (PYTHON, "-I", "-S", "-c"), str(lent.root)
    profiles = (
        Profile("none", command, root, limits=LIMITS),
        Profile("any", command, root, limits=LIMITS, processes="any"),
        Profile("listed", command, root, limits=LIMITS, processes=("/bin/true",)),
        Profile("pairs", command, root, limits=LIMITS, socket_pairs=True),
        Profile("reading", command, root, limits=LIMITS, read_only=("/etc/alternatives",)),
    )
    with cage(lent.root, *profiles, floor=WEAKEST) as made:
        yield made


@pytest.fixture(scope="module")
def apart(held: Cage) -> bool:
    """Whether a call has a file system and a process table of its own."""
    return held.host.namespaces != "none"


# ---- files -----------------------------------------------------------------------------------------------------------


def planting(root: Path) -> str:
    return (
        f"import errno, os\nfor name in {OBEYED!r}:\n    path = {str(root)!r} + '/' + name\n    try:\n"
        "        os.makedirs(os.path.dirname(path), exist_ok=True)\n"
        "        with open(path, 'a') as file: file.write('x')\n        print('WORKED')\n"
        "    except OSError as e: print('BLOCKED', errno.errorcode[e.errno])"
    )


def test_what_the_host_obeys_later_can_be_neither_planted_nor_changed(
    held: Cage, lent: Lent, tmp_path: Path
) -> None:
    assert outside(planting(tmp_path)).splitlines() == ["WORKED"] * len(OBEYED)
    before = lent.snapshot()
    answers = said(held.call("python", planting(lent.root))).splitlines()
    assert len(answers) == len(OBEYED)
    assert set(answers) <= READ_ONLY
    assert lent.snapshot() == before


def test_odd_files_in_the_root_stop_nothing(held: Cage, lent: Lent) -> None:
    listing = "import os\nprint(len(os.listdir(b'.')), open('inside.txt').read())"
    assert said(held.call("python", listing)).split() == [str(len(os.listdir(lent.root))), "inside"]


@pytest.mark.parametrize("folder", ["..", "sub/../..", "/"])
def test_a_working_folder_above_the_root_opens_nothing(held: Cage, lent: Lent, folder: str) -> None:
    """The policy names the folder; this is what a front that was taken over could say."""
    names = ("outside.txt", str(lent.beside / "outside.txt")[1:])
    program = probe(
        f"import os\nfor name in {names!r}:\n    try: os.close(os.open(name, 0))\n"
        "    except FileNotFoundError: continue\n    break\nelse: raise OSError(2, '')"
    )
    for above in (str(lent.beside), "/"):
        assert outside(f"import os\nos.chdir({above!r})\n{program}") == "WORKED"
    outcome = held.call("python", program, cwd=folder)
    assert (outcome.kind, outcome.step) == ("setup_failed", "cwd") or said(outcome) in NOT_THERE


def test_what_is_lost_is_lost_and_no_more(held: Cage, lent: Lent, apart: bool) -> None:
    """Names, sizes and link targets of other files: only where the rung says so. Their contents: never."""
    path, link = str(lent.beside / "outside.txt"), str(lent.beside / "link")
    for attempt in (f"os.stat({path!r})", f"os.readlink({link!r})"):
        program = probe(f"import os\n{attempt}")
        assert outside(program) == "WORKED"
        assert said(held.call("python", program)) == ("BLOCKED ENOENT" if apart else "WORKED")
    assert said(held.call("python", probe(f"open({path!r}).read()"))) in NOT_THERE
    assert any("names, sizes" in sentence for sentence in held.plans["python"].lost) is not apart


@pytest.mark.parametrize(
    "path",
    [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/random/boot_id",
        "/sys/kernel/uevent_seqnum",
        "/dev/zero",
    ],
)
def test_settings_of_the_kernel_and_other_devices_cannot_be_opened(held: Cage, path: str) -> None:
    assert outside(probe(f"import os\nos.open({path!r}, os.O_RDONLY)")) == "WORKED"
    for flags in (os.O_RDONLY, os.O_WRONLY):  # nothing is written, whatever the answer
        assert said(held.call("python", probe(f"import os\nos.open({path!r}, {flags})"))) in NOT_THERE


def test_cgroups_cannot_be_opened(held: Cage) -> None:
    """release_agent, and everything else by which a cgroup can be left."""
    names = [name for kind in ("release_agent", "cgroup.procs") for name in sorted(glob(f"/sys/fs/cgroup/**/{kind}", recursive=True))]  # fmt: skip
    path = next(name for name in (*names, "/sys/kernel/uevent_seqnum") if os.access(name, os.R_OK))
    assert outside(probe(f"import os\nos.open({path!r}, os.O_RDONLY)")) == "WORKED"
    for flags in (os.O_RDONLY, os.O_WRONLY):
        assert said(held.call("python", probe(f"import os\nos.open({path!r}, {flags})"))) in NOT_THERE


def test_the_program_that_runs_cannot_be_overwritten(held: Cage, tmp_path: Path) -> None:
    """Neither by its name nor by /proc/self/exe, which a runtime that comes by would start."""
    copy = tmp_path / "program"
    shutil.copy(PYTHON, copy)
    copy.chmod(0o755)
    assert outside(probe(f"import os\nos.open({str(copy)!r}, os.O_WRONLY)")) == "WORKED"
    for path in ("/proc/self/exe", os.path.realpath(PYTHON), "/proc/1/exe"):
        answer = said(held.call("python", probe(f"import os\nos.open({path!r}, os.O_WRONLY)")))
        assert answer in READ_ONLY | NOT_THERE, (path, answer)


def test_a_file_that_a_tool_wrote_is_no_code(held: Cage, apart: bool, tmp_path: Path) -> None:
    """Without mounts it can be mapped, which is why that rung does not promise it; started it is nowhere."""
    write = "import mmap, os, shutil\npath = os.environ['TMPDIR'] + '/program'\nshutil.copyfile('/bin/true', path)\n"
    mapped = probe(f"{write}mmap.mmap(os.open(path, os.O_RDONLY), 4096, flags=2, prot=5)")
    assert outside(mapped, env={"TMPDIR": str(tmp_path)}) == "WORKED"
    assert said(held.call("python", mapped)) == ("BLOCKED EPERM" if apart else "WORKED")
    started = probe(f"{write}os.execv(path, ['true'])")
    assert said(held.call("any", started)) == "BLOCKED EACCES"


# ---- what a call inherits --------------------------------------------------------------------------------------------


def test_descriptors_that_a_client_left_open_are_not_inside(somewhere: str, lent: Lent) -> None:
    count = "import os\nfound = []\nfor n in range(1024):\n    try: found.append((n, os.fstat(n).st_ino)[0])\n    except OSError: pass\nprint(found)"
    low = os.open(lent.beside, os.O_RDONLY | os.O_DIRECTORY)
    high = os.dup2(low, 200, inheritable=True)
    os.set_inheritable(low, True)
    try:
        control = os.posix_spawn(PYTHON, [PYTHON, "-c", f"import os\nos.fstat({low})\nos.fstat({high})"], {})
        assert os.waitpid(control, 0)[1] == 0
        with cage(lent.root, floor=WEAKEST) as made:
            assert said(made.call("python", count)) == "[0, 1, 2]"
    finally:
        os.close(low)
        os.close(high)


def test_calls_leave_no_descriptor_also_when_they_fail(held: Cage) -> None:
    front, launcher = psutil.Process(), psutil.Process(held.supervisor.launcher_pid)
    held.call("python", "pass")
    before = front.num_fds(), launcher.num_fds()
    for _ in range(5):
        assert said(held.call("python", "print('ran')")) == "ran"
        failed = held.call("python", "print('ran')", cwd="nowhere")
        assert (failed.kind, failed.step, failed.stdout) == ("setup_failed", "cwd", b"")
    assert (front.num_fds(), launcher.num_fds()) == before


def test_keys_of_the_session_are_out_of_reach(held: Cage) -> None:
    program = f"import ctypes\nif ctypes.CDLL(None, use_errno=True).syscall({250 if X86 else 219}, 0, -3, 0, 0, 0) < 0: raise OSError(ctypes.get_errno(), '')"
    assert outside(probe(program)) == "WORKED"
    outcome = held.call("python", probe(program))
    assert said(outcome) == "BLOCKED EPERM"
    assert outcome.attestation is not None
    apart = (
        outcome.attestation["rung"] != "no-namespaces"
    )  # where the filter around us may refuse keys altogether
    assert outcome.attestation["keyring"] == "fresh" or (
        not apart and "refuses" in str(outcome.attestation["keyring"])
    )


@pytest.mark.parametrize("code", [0x5412, 0x541C, 0x5412 | 1 << 32, 0x541C | 1 << 32, 0x5412 | 1 << 63])
def test_nothing_is_typed_into_a_terminal(held: Cage, code: int) -> None:
    """TIOCSTI and TIOCLINUX; the kernel looks at the low half of the code only."""
    program = probe(
        "import ctypes, os\nend = os.pipe()[0]\n"
        f"if ctypes.CDLL(None, use_errno=True).syscall({16 if X86 else 29}, end, ctypes.c_ulong({code}), 1) < 0:\n"
        "    raise OSError(ctypes.get_errno(), '')"
    )
    assert outside(program) == "BLOCKED ENOTTY"  # the kernel was asked
    assert said(held.call("python", program)) == "BLOCKED EPERM"


def test_no_process_of_a_call_has_kernel_uid_0(somewhere: str, lent: Lent) -> None:
    with cage(lent.root, floor=WEAKEST, processes="any") as made:

        async def work(supervisor: Supervisor) -> set[int]:
            task, processes = await running(supervisor)
            ids = {number for process in processes for number in (*process.uids(), *process.gids())}
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert gone(processes)
            return ids

        found = made.run(work)
        assert psutil.Process(made.supervisor.launcher_pid).uids().real == os.geteuid()
    assert 0 not in found
    assert ROOT or found == {os.geteuid(), os.getegid()}


# ---- system calls ----------------------------------------------------------------------------------------------------


@pytest.mark.x86_only
def test_a_foreign_call_ends_the_process_and_not_one_thread(held: Cage) -> None:
    program = (
        "import ctypes, mmap, threading\nm = mmap.mmap(-1, 4096, flags=0x22, prot=7)\n"
        "m.write(bytes.fromhex('b814000000cd80c3'))\n"  # mov eax, 20 (getpid); int 0x80; ret
        "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
        "t = threading.Thread(target=f)\nt.start()\nt.join()\nprint('went on')"
    )
    assert outside(program) == "went on"
    outcome = held.call("python", program)
    assert (outcome.kind, outcome.signal, outcome.stdout) == ("signalled", 31, b""), outcome


def test_calls_newer_than_the_list_do_not_exist(held: Cage) -> None:
    code = "import ctypes, errno\ncall = ctypes.CDLL(None, use_errno=True).syscall\nprint('made' if call({}) >= 0 else errno.errorcode[ctypes.get_errno()])"
    for number in (470, 500, 1000):
        assert said(held.call("python", code.format(number))) == "ENOSYS"
    assert said(held.call("python", code.format(39 if X86 else 172))) == "made"  # getpid


def test_a_lease_cannot_block_the_host(held: Cage, lent: Lent) -> None:
    body = f"import fcntl\nf = open({str(lent.root / 'inside.txt')!r})\nfcntl.fcntl(f, 1024, 1)"
    assert outside(probe(body)) == "WORKED"
    assert said(held.call("python", probe(body))) == "BLOCKED EPERM"


@pytest.mark.parametrize(
    "call", ["ptrace", "process_vm_readv", "unshare", "pidfd_getfd", "mknod", "execveat"]
)
def test_calls_at_others_are_refused(held: Cage, call: str) -> None:
    for plan in ("python", "any", "pairs"):
        assert said(held.call(plan, raw(call))) == "EPERM"
    assert call == "process_vm_readv" or outside(raw(call)) not in ("EPERM", "ENOSYS")


VICTIM = """\
import os, signal
numbers = {signal.SIGURG, signal.SIGRTMIN}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print("up", flush=True)
while True: print(int(signal.sigwait(numbers)), flush=True)  # the lower number comes first
"""


@pytest.mark.parametrize("plan", ["none", "any", "listed"])
def test_a_signal_to_everybody_reaches_nobody_else(held: Cage, plan: str) -> None:
    """The victim runs under the worker's own kernel id. SIGURG: ignored by whoever has not asked for it."""
    seen = held.call(plan, "print('x')").attestation
    assert seen is not None
    words = [PYTHON, "-I", "-S", "-c", VICTIM]
    user = int(str(seen["kernel_uid"])) if ROOT else None
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, user=user) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "up\n"
        for target in (-1, victim.pid):
            body = f"import os, signal\nsignal.signal(signal.SIGURG, signal.SIG_IGN)\nos.kill({target}, signal.SIGURG)"
            answer = said(held.call(plan, probe(body)))
            # for -1 the kernel counts who was there, and tells nothing of those that it refused
            assert answer in ("BLOCKED ESRCH", "BLOCKED EPERM", *(["WORKED"] if target == -1 else [])), answer
        for control in (signal.SIGRTMIN, signal.SIGURG):
            victim.send_signal(control)
            assert victim.stdout.readline() == f"{int(control)}\n"
        victim.kill()


def test_the_loader_may_load_another_program_which_gains_nothing(held: Cage) -> None:
    """`ld.so PROGRAM` reads a program instead of starting it, so no list of programs stops it. The cage is the bound."""
    loader = elf.read(os.path.realpath(PYTHON)).loader
    inner = probe("import os\npid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)")
    words = [loader, PYTHON, "-I", "-S", "-c", f"print('loaded')\n{inner}"]
    program = f"import os\nos.execv({loader!r}, {words!r})"
    assert outside(program).split("\n") == ["loaded", "WORKED"]
    assert said(held.call("python", program)).split("\n") == ["loaded", "BLOCKED EPERM"]


def test_no_socket_of_any_family_with_any_setting(held: Cage) -> None:
    program = (
        "import _socket, errno\nfor family in {families!r}:\n    try:\n        _socket.socket(family, {kind}, 0)\n"
        "        print('WORKED')\n    except OSError as e: print('BLOCKED', errno.errorcode[e.errno])"
    )
    every = program.format(families=FAMILIES, kind=1)
    for plan in ("none", "any", "pairs"):
        assert set(said(held.call(plan, every)).splitlines()) == {"BLOCKED EPERM"}
    assert set(outside(program.format(families=[1, 2, 10], kind=1)).splitlines()) == {"WORKED"}


def test_a_pair_of_sockets_reaches_nothing_but_itself(held: Cage) -> None:
    pair = "import _socket\na, b = _socket.socketpair(1, 1, 0)\n"
    assert said(held.call("pairs", f"{pair}a.send(b'hi')\nprint(b.recv(2))")) == "b'hi'"
    assert said(held.call("none", probe(pair))) == "BLOCKED EPERM"
    for then in ("a.bind(b'\\0toolcage-x')", "a.sendmsg([b'x'], [(1, 1, b'\\0\\0\\0\\0')])"):
        assert outside(probe(pair + then)) == "WORKED"
        assert said(held.call("pairs", probe(pair + then))) == "BLOCKED EPERM"


# ---- who dies, and what is mounted meanwhile -------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["here", *(name for name in sorted(HOSTS) if HOSTS[name][1] != WEAKEST)])
def test_launcher_and_keeper_may_die_together(lent: Lent, host: str) -> None:
    """What a tool has left in the background ends with its keeper, whoever could have ended it is dead as well."""
    with at(host), cage(lent.root, floor=WEAKEST, processes="any") as made:

        async def work(supervisor: Supervisor) -> str:
            task, processes = await running(supervisor)
            keeper = next(p for p in processes if p.ppid() == supervisor.launcher_pid)
            launcher = psutil.Process(supervisor.launcher_pid)
            launcher.suspend()
            keeper.kill()
            launcher.kill()
            outcome = await task
            await until(lambda: gone([launcher, *processes]), 30.0)  # seconds, on a machine that is busy
            return str(outcome.kind)

        assert made.run(work) == "unknown"


@pytest.mark.root_only
@pytest.mark.parametrize("host", ["no-userns", "masked-proc", "no-landlock"])
def test_mounts_stay_apart_on_weaker_rungs(place: Path, host: str) -> None:
    script = test_propagation.SCRIPT.replace("with cage(root, profile)", f"with on_host({host!r}), cage(root, profile, floor={WEAKEST!r})")  # fmt: skip
    assert "on_host" in script
    target = place / f"propagation-{host}"
    target.mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "shared", sys.executable, "-c",
         f"from tests.live.rungs import on_host\n{script}", str(target)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("held\n", 0), done.stderr


# ---- settings and hosts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", ["none", "any", "listed", "pairs", "reading"])
def test_a_setting_opens_what_it_says_and_nothing_else(
    held: Cage, lent: Lent, tmp_path: Path, plan: str
) -> None:
    """Each of these plans loosens one layer; what the other layers keep is tried with each."""

    def program(root: Path, beside: Path) -> str:
        return (
            f"import _socket, errno, os\nroot, beside = {str(root)!r}, {str(beside)!r}\nfor attempt in (\n"
            "    lambda: os.open(beside + '/outside.txt', os.O_RDONLY),\n"
            "    lambda: os.open(root + '/new', os.O_CREAT | os.O_WRONLY),\n"
            "    lambda: os.chmod(root + '/inside.txt', 0o600),\n"
            "    lambda: _socket.socket(2, 1, 0),\n"
            f"    lambda: os.kill({os.getpid()}, 0),\n"
            f"    lambda: os.open('/proc/{os.getpid()}/environ', os.O_RDONLY),\n"
            "):\n    try: attempt(); print('WORKED')\n"
            "    except OSError as e: print('BLOCKED', errno.errorcode[e.errno])"
        )

    for name in ("inside.txt", "outside.txt"):
        (tmp_path / name).write_text("control\n")
    assert outside(program(tmp_path, tmp_path)).splitlines() == ["WORKED"] * 6
    before = lent.snapshot()
    answers = said(held.call(plan, program(lent.root, lent.beside))).splitlines()
    assert len(answers) == 6
    assert "WORKED" not in answers
    assert lent.snapshot() == before


def test_presets_are_safe_in_the_worst_repository(somewhere: str) -> None:
    """Of the hostile repository of test_presets: git runs nothing, changes nothing and reads nothing outside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_presets, "Cage", functools.partial(Cage, floor=WEAKEST))
        made: Iterator[Stage] = stage(ONLY_THE_CAGE)
        worst = next(made)
        try:
            tried = [example for _, example in test_presets.ALL if example.tool in TRAPPED]
            for example in tried:
                harmless(worst, example)
            worst.sample.git("status", hostile=True)  # the control: it does its harm outside
            assert worst.sample.ran.exists()
        finally:
            assert next(made, None) is None
    assert len(tried) > 10


ODD = """
os.makedirs(ODD + "/folder", exist_ok=True)
open(ODD + "/namespace", "a").close()
for name in (" a b", "line\\nbreak", "back\\\\slash", "tab\\t", "dash - dash"):
    os.makedirs(ODD + "/" + name, exist_ok=True)
    must(libc.mount(b"none", os.fsencode(ODD + "/" + name), b"tmpfs", 0, None))
must(libc.mount(b"/proc/self/ns/uts", os.fsencode(ODD + "/namespace"), None, 0x1000, None))
must(libc.mount(b"/usr", os.fsencode(ODD + "/folder"), None, 0x1000 | 0x4000, None))
assert any(line.split(" ")[3].startswith("uts:[") for line in open("/proc/self/mountinfo"))
"""


def test_a_host_with_odd_mounts_is_no_weaker_host(place: Path) -> None:
    """Names with spaces and line breaks, roots that are no paths (nsfs), a second name for a system folder."""
    root = place / f"odd-{os.urandom(4).hex()}"
    root.mkdir()
    (root / "inside.txt").write_text("inside\n")
    (root / "covered").mkdir()
    prelude = rungs._IN_A_MOUNT_NAMESPACE.format(source=b"none", target=os.fsencode(root / "covered"), kind=b"tmpfs", flags=0)  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawn, "_START", rungs._USUAL)
        with cage(root) as made:
            usual = made.host
        patch.setitem(rungs.HOSTS, "odd", (f"{prelude}\nODD = {str(root)!r}\n{ODD}", ""))
        with on_host("odd"), cage(root) as made:
            assert (made.host.rung, made.host.missing) == (usual.rung, usual.missing)
            assert said(made.call("python", "print(open('inside.txt').read())")) == "inside"
            assert "dash - dash" in said(made.call("python", "import os\nprint(os.listdir('.'))"))


def test_lines_of_mountinfo_that_do_not_fit_are_passed_over() -> None:
    good = b"36 35 0:31 /a\\040b /sys/fs/cgroup\\134x rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw"
    odd = (
        b"", b"garbage", b"1 2 3", b"36 35 0:31 / /x rw", b"36 35 0:31 / /x rw - cgroup2", b"\xff\xfe - cgroup2 a b c",
        b"4026 35 0:4 mnt:[4026531841] /run/ns rw shared:1 - nsfs nsfs rw",
        b"40 35 0:31 / /mnt/wslg/distro rw,relatime shared:2 - ext4 /dev/sdc rw,discard",
    )  # fmt: skip
    assert cgroupfs.mounts(b"\n".join(odd)) == ()
    [found] = cgroupfs.mounts(b"\n".join((*odd, good, *odd)))
    assert (found.root, found.point) == ("/a b", "/sys/fs/cgroup\\x")
