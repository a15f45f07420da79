"""KE: system calls that a tool has no use for, with arguments that do no harm where nothing stops them."""

from __future__ import annotations

import platform

from sandbox.battery.case import Case, blocked

_GROUP = "kernel"
_X86 = platform.machine() == "x86_64"
# id -> (name, x86-64 number, arm64 number, arguments, refused outside as well unless root)
_CALLS: tuple[tuple[str, str, int, int, str, bool], ...] = (
    ("KE-01-unshare", "unshare", 272, 97, "0", False),
    ("KE-01-setns", "setns", 308, 268, "-1, 0", False),
    ("KE-02-io_uring", "io_uring_setup", 425, 425, "1, 0", False),
    ("KE-02-userfaultfd", "userfaultfd", 323, 282, "0xffff", False),
    ("KE-02-bpf", "bpf", 321, 280, "99, 0, 0", True),
    ("KE-02-perf", "perf_event_open", 298, 241, "1, 0, -1, -1, 0", True),
    ("KE-02-keyctl", "keyctl", 250, 219, "0x7fff, 0, 0, 0, 0", False),
    ("KE-02-add_key", "add_key", 248, 217, "1, 1, 0, 0, 0", False),
    ("KE-03-ptrace", "ptrace", 101, 117, "2, 999999, 0, 0", False),
    ("KE-03-pidfd_getfd", "pidfd_getfd", 438, 438, "-1, 0, 0", False),
    ("KE-03-kcmp", "kcmp", 312, 272, "os.getpid(), os.getpid(), 99, 0, 0", False),
    ("KE-03-madvise", "process_madvise", 440, 440, "-1, 0, 0, 0, 0", False),
    ("KE-04-mount", "mount", 165, 40, "1, 1, 1, 0, 0", True),
    ("KE-04-chroot", "chroot", 161, 51, "1", True),
    ("KE-04-open_tree", "open_tree", 428, 428, "-1, 1, 0", False),
    ("KE-05-personality", "personality", 135, 92, "0xffffffff", False),
    ("KE-05-fanotify", "fanotify_init", 300, 262, "0xffff, 0", True),
    ("KE-05-handle", "name_to_handle_at", 303, 264, "-1, 1, 1, 1, 0", False),
    ("KE-05-clock", "clock_adjtime", 305, 266, "0, 1", True),
    ("KE-09-memfd", "memfd_create", 319, 279, "1, 0", False),
    ("KE-09-execveat", "execveat", 322, 281, "-1, 1, 0, 0, 0", False),
    ("KE-10-mknod", "mknodat", 259, 33, "-1, 1, 0, 0", False),
    ("KE-12-splice", "splice", 275, 76, "-1, 0, -1, 0, 1, 0", False),
    ("KE-12-dumpable", "prctl(PR_SET_DUMPABLE)", 157, 167, "4, 1, 0, 0, 0", False),
)
RAW = (
    "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "if libc.syscall({number}, {arguments}) < 0: raise OSError(ctypes.get_errno(), '')"
)


def raw(x86: int, arm: int, arguments: str) -> str:
    """Statements that make one system call by number."""
    return RAW.format(number=x86 if _X86 else arm, arguments=arguments)


_PAGE = (
    "import ctypes, mmap\nm = mmap.mmap(-1, 4096, flags=0x22, prot=7)\n"
    "m.write(bytes.fromhex('b814000000cd80c3'))\n"
    "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()"
)
CASES = (
    *(
        Case(number, _GROUP, f"calls {name}", raw(x86, arm, words), blocked("EPERM"), privileged=privileged)
        for number, name, x86, arm, words, privileged in _CALLS
    ),
    Case("KE-01-clone3", _GROUP, "calls clone3", raw(435, 435, "0, 0"), blocked("ENOSYS")),
    Case("KE-06-int80", _GROUP, "makes a 32-bit call", _PAGE, ("KILLED 31",), needs=("x86",)),
    Case(
        "KE-06-x32", _GROUP, "makes an x32 call", raw(0x40000000 + 39, 0, "0"), ("KILLED 31",), needs=("x86",)
    ),
    Case(
        "KE-09-exec", _GROUP, "replaces itself by another program",
        "os.execv('/bin/echo', ['echo', 'WORKED'])", blocked("EACCES"), needs=("alone",),
    ),
    Case(
        "KE-09-tmp", _GROUP, "starts a program that it wrote itself",
        "import shutil\nname = {temp} + '/echo-' + str(os.getpid())\nshutil.copy('/bin/echo', name)\n"
        "os.chmod(name, 0o755)\nos.execv(name, ['echo', 'WORKED'])", blocked("EACCES"),
    ),
    Case("KE-11-nnp", _GROUP, "may gain privileges by a set-user-id program",
        "if 'NoNewPrivs:\\t1' in open('/proc/self/status').read(): raise OSError(1, '')", blocked("EPERM")),
    Case("KE-11-caps", _GROUP, "has a capability, or may have one",
        "text = open('/proc/self/status').read()\n"
        "if int(text.split('CapBnd:')[1].split()[0], 16) == 0: raise OSError(1, '')", blocked("EPERM")),
)  # fmt: skip
