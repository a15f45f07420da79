"""System calls, sockets, signals and privileges from inside a call. Each probe is tried outside first, by errno."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.cage import Cage, outside, probe, said

X86 = platform.machine() == "x86_64"
# name -> (x86-64 number, arm64 number, arguments that do no harm). Outside they answer something else than EPERM/ENOSYS
# from a filter: most get a bad pointer or a bad descriptor.
CALLS: dict[str, tuple[int, int, str]] = {
    "socket": (41, 198, "1, 1, 0"),
    "socketpair": (53, 199, "1, 1, 0, 1"),
    "connect": (42, 203, "-1, 0, 0"),
    "bind": (49, 200, "-1, 0, 0"),
    "sendmsg": (46, 211, "-1, 0, 0"),
    "ptrace": (101, 117, "2, 999999, 0, 0"),
    "process_vm_readv": (310, 270, "os.getpid(), 1, 1, 1, 1, 0"),
    "unshare": (272, 97, "0"),
    "setns": (308, 268, "-1, 0"),
    "keyctl": (250, 219, "0x7fff, 0, 0, 0, 0"),
    "add_key": (248, 217, "1, 1, 0, 0, 0"),
    "request_key": (249, 218, "1, 1, 0, 0"),
    "io_uring_setup": (425, 425, "1, 0"),
    "io_uring_enter": (426, 426, "-1, 0, 0, 0, 0, 0"),
    "memfd_create": (319, 279, "1, 0"),
    "open_tree": (428, 428, "-1, 1, 0"),
    "name_to_handle_at": (303, 264, "-1, 1, 1, 1, 0"),
    "splice": (275, 76, "-1, 0, -1, 0, 1, 0"),
    "personality": (135, 92, "0xffffffff"),
    "prctl_set_dumpable": (157, 167, "4, 1, 0, 0, 0"),
    "fanotify_init": (300, 262, "0xffff, 0"),
    "userfaultfd": (323, 282, "0xffff"),
    "pidfd_getfd": (438, 438, "-1, 0, 0"),
    "kcmp": (312, 272, "os.getpid(), os.getpid(), 99, 0, 0"),
    "execveat": (322, 281, "-1, 1, 0, 0, 0"),
    "sched_setscheduler": (144, 119, "0, 99, 0"),
    "setpriority": (141, 140, "9, 0, 0"),
    "prlimit_of_another": (302, 261, "os.getppid(), 7, 0, 0"),
    "process_madvise": (440, 440, "-1, 0, 0, 0, 0"),
    "set_mempolicy": (238, 237, "99, 0, 0"),
    "clock_adjtime": (305, 266, "0, 1"),
    "ioctl_tiocsti": (16, 29, "0, 0x5412, 1"),
    "ioctl_tiocsti_high_bits": (16, 29, "0, 0x5412 | 1 << 32, 1"),
    "mount": (165, 40, "1, 1, 1, 0, 0"),
    "chroot": (161, 51, "1"),
    "bpf": (321, 280, "99, 0, 0"),
    "perf_event_open": (298, 241, "1, 0, -1, -1, 0"),
    "mknod": (259, 33, "-1, 1, 0, 0"),
    "setuid_bit": (268, 53, "-1, 1, 0o4755"),
}
RAW = """\
import ctypes, errno, os
call = ctypes.CDLL(None, use_errno=True).syscall
result = call({number}, {arguments})
print(result if result >= 0 else errno.errorcode[ctypes.get_errno()])
"""
# Refused outside as well when not root, by the kernel's own capability check: no control there.
NEEDS_ROOT = {
    "mount",
    "chroot",
    "bpf",
    "perf_event_open",
    "clock_adjtime",
    "fanotify_init",
    "process_vm_readv",
}


def raw(name: str) -> str:
    x86, arm, arguments = CALLS[name]
    return RAW.format(number=x86 if X86 else arm, arguments=arguments)


@pytest.mark.parametrize("name", CALLS)
def test_call_is_refused_by_the_filter(held: Cage, name: str) -> None:
    assert said(held.call("python", raw(name))) == "EPERM"
    if os.geteuid() == 0 or name not in NEEDS_ROOT:
        assert outside(raw(name)) not in ("EPERM", "ENOSYS"), name


@pytest.mark.parametrize("number", [470, 500, 1000])
def test_calls_newer_than_the_list_do_not_exist(held: Cage, number: int) -> None:
    code = RAW.format(number=number, arguments="0")
    assert said(held.call("python", code)) == "ENOSYS"
    assert (
        said(held.call("python", RAW.format(number=39 if X86 else 172, arguments=""))) == "2"
    )  # getpid does


def test_clone3_does_not_exist_and_threads_work(held: Cage) -> None:
    assert said(held.call("python", RAW.format(number=435, arguments="0, 0"))) == "ENOSYS"
    assert outside(RAW.format(number=435, arguments="0, 0")) != "ENOSYS"
    code = "import threading\nt = threading.Thread(target=print, args=('ran',))\nt.start()\nt.join()"
    assert said(held.call("python", code)) == "ran"


@pytest.mark.parametrize("flag", [0x10000000, 0x00020000, 0x40000000, 0x20000000])
def test_clone_cannot_make_namespaces(many: Cage, flag: int) -> None:
    number = 56 if X86 else 220
    code = f"import ctypes, errno, os\nr = ctypes.CDLL(None, use_errno=True).syscall({number}, {flag} | 17, 0, 0, 0, 0)\nif r == 0: os._exit(0)\nprint('made' if r > 0 else errno.errorcode[ctypes.get_errno()])"
    assert said(many.call("python", code)) == "EPERM"
    if os.geteuid() == 0 or flag == 0x10000000:
        assert outside(code) == "made"
    assert said(many.call("python", code.replace(str(flag), "0"))) == "made"


@pytest.mark.x86_only
def test_32_bit_calls_kill_the_process(held: Cage) -> None:
    machine_code = "b8 14 00 00 00 cd 80 c3"  # mov eax, 20 (getpid); int 0x80; ret
    code = (
        "import ctypes, mmap\n"
        f"b = bytes.fromhex('{machine_code}')\n"
        "m = mmap.mmap(-1, 4096, flags=0x22, prot=7)\nm.write(b)\n"
        "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nprint('ran', f() > 0)"
    )
    assert outside(code) == "ran True"
    outcome = held.call("python", code)
    assert (outcome.kind, outcome.signal) == ("signalled", 31), outcome


@pytest.mark.x86_only
def test_x32_calls_kill_the_process(held: Cage) -> None:
    code = RAW.format(number=0x40000000 + 39, arguments="")
    assert outside(code) == "ENOSYS"
    outcome = held.call("python", code)
    assert (outcome.kind, outcome.signal) == ("signalled", 31), outcome


FAMILIES = [1, 2, 10, 16, 17, 38, 40, 44]  # UNIX INET INET6 NETLINK PACKET ALG VSOCK XDP


@pytest.mark.parametrize("family", FAMILIES)
def test_no_socket_of_any_family(held: Cage, family: int) -> None:
    body = f"import _socket\n_socket.socket({family}, _socket.SOCK_DGRAM if {family} != 38 else 5, 0)"
    assert said(held.call("python", probe(body))) == "BLOCKED EPERM"
    if family in (1, 2, 10, 16):
        assert outside(probe(body)) == "WORKED"


def test_the_front_cannot_be_signalled(held: Cage) -> None:
    body = f"import os\nos.kill({os.getpid()}, 0)"
    assert outside(probe(body)) == "WORKED"
    assert said(held.call("python", probe(body))) == "BLOCKED ESRCH"
    # The keeper is pid 1: Landlock's signal scope refuses where it exists, and an init ignores the signal anyhow.
    assert said(held.call("python", probe("import os\nos.kill(1, 9)"))) in {"BLOCKED EPERM", "WORKED"}


def test_kill_all_reaches_nobody(held: Cage) -> None:
    assert (
        said(
            held.call("python", probe("import os, signal\nsignal.signal(15, signal.SIG_IGN)\nos.kill(0, 15)"))
        )
        == "WORKED"
    )
    answer = said(held.call("python", probe("import os\nos.kill(-1, 9)")))
    assert answer == "BLOCKED ESRCH"  # the keeper is pid 1, and nobody else is there


def test_no_process_can_be_started(held: Cage, many: Cage) -> None:
    body = "import os\npid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)"
    assert said(many.call("python", probe(body))) == "WORKED"
    assert said(held.call("python", probe(body))) == "BLOCKED EPERM"


def test_no_other_program_can_replace_the_tool(held: Cage, many: Cage) -> None:
    body = "import os\nos.execv('/bin/echo', ['echo', 'WORKED'])"
    assert said(many.call("python", probe(body))) == "WORKED"
    assert said(held.call("python", probe(body))) == "BLOCKED EACCES"


def test_a_program_in_tmp_cannot_be_started(many: Cage) -> None:
    body = (
        "import os, shutil\nshutil.copy('/bin/true', '/tmp/true')\nos.chmod('/tmp/true', 0o755)\n"
        "os.posix_spawn({!r}, ['true'], {{}})"
    )
    assert said(many.call("python", probe(body.format("/tmp/true")))) == "BLOCKED EACCES"
    assert said(many.call("python", probe(body.format("/bin/true")))) == "WORKED"


def test_set_user_id_programs_gain_nothing(many: Cage) -> None:
    code = "import os\nprint(open('/proc/self/status').read())"
    status = dict(
        line.split(":\t", 1) for line in said(many.call("python", code)).splitlines() if ":\t" in line
    )
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert {int(status[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert "NoNewPrivs:\t1" not in outside(code)


def test_host_name_and_ids_say_nothing(held: Cage) -> None:
    code = "import os\nprint(os.uname().nodename, os.getuid(), os.getgid(), os.getpid())"
    assert said(held.call("python", code)) == "toolcage 1000 1000 2"
    assert outside(code).split()[0] != "toolcage"


def test_no_terminal_and_no_core(held: Cage) -> None:
    code = "import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))"
    assert said(held.call("python", code)) == "(1, 1)"  # one byte is no core, and no helper is started for it
    assert said(held.call("python", probe("open('/dev/tty')"))) == "BLOCKED ENOENT"


def test_memory_that_nobody_owns_is_refused(held: Cage) -> None:
    body = "import mmap\nmmap.mmap(-1, 1 << 20)"  # shared and anonymous
    assert outside(probe(body)) == "WORKED"
    assert said(held.call("python", probe(body))) == "BLOCKED EPERM"
    assert said(held.call("python", probe("import mmap\nmmap.mmap(-1, 1 << 20, flags=0x22)"))) == "WORKED"
    assert said(held.call("python", probe("open('/dev/zero')"))) == "BLOCKED ENOENT"


def test_a_lease_cannot_block_the_host(held: Cage, place: Path) -> None:
    body = f"import fcntl\nf = open({str(place / 'root/inside.txt')!r})\nfcntl.fcntl(f, 1024, 1)"  # F_SETLEASE F_WRLCK
    assert outside(probe(body)) == "WORKED"
    assert said(held.call("python", probe(body))) == "BLOCKED EPERM"


def test_abstract_unix_sockets_of_the_host_are_out_of_reach(held: Cage) -> None:
    name = f"toolcage-test-{os.getpid()}"
    listener = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.bind('\\0'+sys.argv[1])\ns.listen()\nprint('up',flush=True)\nsys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", listener, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        body = f"import _socket\ns = _socket.socket(_socket.AF_UNIX, 1)\ns.connect('\\0{name}')"
        assert outside(probe(body)) == "WORKED"
        assert said(held.call("python", probe(body))) == "BLOCKED EPERM"
        assert process.stdin is not None
        process.stdin.close()
