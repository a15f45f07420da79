"""KE: the ways into the kernel that are more than one call: other call tables, arguments, programs, namespaces."""

from __future__ import annotations

from sandbox import abi
from sandbox.battery import kernel_calls, rungs
from sandbox.battery.case import ANOTHER, Case, blocked
from sandbox.battery.changed import PROGRAMS_AT, SHELF
from sandbox.battery.program import finds, raw, value

_GROUP = "kernel"
_NO = blocked("EPERM")
_IN = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
# mov eax, NUMBER; int 0x80; ret
_PAGE = (
    "import ctypes, mmap\nm = mmap.mmap(-1, 4096, flags=0x22, prot=7)\n"
    "m.write(bytes.fromhex('b8%02x000000cd80c3'))\n"
    "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()"
)
_COPY = "f = os.open(mine + 'x', os.O_CREAT | os.O_WRONLY, 0o700)\nos.write(f, open('/bin/echo', 'rb').read())\nos.close(f)\n"
_NAMELESS = (
    "f = os.open(temp, os.O_TMPFILE | os.O_RDWR, 0o700)\nos.write(f, open('/bin/echo', 'rb').read())\n"
    "name = '/proc/self/fd/%d' % os.open('/proc/self/fd/%d' % f, os.O_RDONLY)\nos.close(f)\nos.execv(name, ['echo', 'WORKED'])"
)
_BY_LOADER = (
    "import sys\nos.execv({loader}, ['x', os.path.realpath(sys.executable), '-I', '-S', '-c', "
    '\'try: open(%r).read()\\nexcept OSError as e: print("BLOCKED", e.errno)\\nelse: print("WORKED")\' % {outside}])'
)
_PATHS = (
    "/proc/sysrq-trigger", "/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/modules", "/proc/sys", "/proc/fs",
    "/proc/irq", "/proc/acpi", "/proc/scsi", "/proc/bus", "/proc/config.gz", "/proc/iomem", "/proc/kpagecount",
    "/sys/kernel/uevent_helper", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/firmware", "/sys/fs/cgroup",
)  # fmt: skip
_IOCTLS = (
    0x5412, 0x541C, 0x5423, 0x540E, 0x5410, 0x5422, 0x5402, 0x5414, 0x540B, 0x540A, 0x5452,
    0x40086602, 0x80086601, 0x40049409, 0x4020940D, 0xC0189436, 0x401C5820, 0x125F, 0x1261, 0x1272, 0x8912, 0x8914, 0x89A2,
    0x4B32, 0x4B3A, 0x4B4B, 0x5606, 0x560B, 0x5600, 0x2201, 0x5385, 0xAE01, 0x5411,
)  # fmt: skip
_PRCTLS = (
    1,
    4,
    6,
    8,
    14,
    22,
    24,
    26,
    28,
    29,
    33,
    35,
    36,
    38,
    41,
    43,
    45,
    47,
    50,
    53,
    55,
    57,
    59,
    62,
    65,
    0x59616D61,
)
_FCNTLS = (8, 10, 15, 1024, 1026, 1031, 1036)
# Calls from 424 on, without those that a tool may make: see policies/syscalls/tool.toml.
_NEW = tuple(set(range(424, abi.NEWEST_KNOWN + 1)) - {424, 434, 435, 436, 437, 439, 441, 444, 445, 446, 449})
_SWEEP = "each(errno.EPERM, lambda n: call({sys_%s}, %s), %r)"


def _in(kind: str) -> Case:
    on = rungs.USER if kind == "user" else {**rungs.NAMESPACES, **rungs.PROC}
    return Case(
        f"KE-01-in-{kind}", _GROUP, f"is in the front's {kind} namespace",
        value(f"os.readlink('/proc/self/ns/{kind}')"), (ANOTHER,), on=on,
    )  # fmt: skip


def _killed(number: str, sentence: str, attempt: str, needs: tuple[str, ...] = ()) -> Case:
    return Case(number, _GROUP, sentence, attempt, ("KILLED 31",), needs=needs)


CASES = (
    *kernel_calls.CASES,
    *(_in(kind) for kind in _IN),
    _killed("KE-06-int80", "makes a 32-bit call", _PAGE % 20, ("x86",)),
    _killed("NE-09-int80", "makes a socket by a 32-bit call", _PAGE % 102, ("x86",)),
    _killed("KE-06-x32", "makes an x32 call", "call(0x40000000 + 39)", ("x86",)),
    _killed("KE-06-huge", "makes a call of a huge number", "call(0x7fffffff)"),
    Case("KE-07", _GROUP, "adds a filter that asks a process of its own", raw("seccomp", "1, 8, 1"), _NO),
    Case("KE-07-prctl", _GROUP, "adds a filter of its own by prctl", raw("prctl", "22, 2, 1, 0, 0"), _NO),
    Case(
        "KE-09-exec", _GROUP, "replaces itself by another program", "os.execv('/bin/echo', ['echo', 'WORKED'])",
        blocked("EACCES"), needs=("alone",), on=rungs.SCOPE,
    ),
    Case(
        "KE-09-tmp", _GROUP, "starts a program that it wrote itself", _COPY + "os.execv(mine + 'x', ['echo', 'WORKED'])",
        blocked("EACCES"), needs=("starts",),
    ),
    Case(
        "KE-09-script", _GROUP, "starts a script that it wrote itself",
        "f = os.open(mine + 'x', os.O_CREAT | os.O_WRONLY, 0o700)\nos.write(f, b'#!/bin/echo WORKED\\n')\nos.close(f)\n"
        "os.execv(mine + 'x', ['x'])", blocked("EACCES"), control=_COPY + "os.execv(mine + 'x', ['echo', 'WORKED'])", needs=("starts",),
    ),
    Case("KE-09-nameless", _GROUP, "starts a program without a name", _NAMELESS, blocked("EACCES"), needs=("starts",), on=rungs.PROC),
    Case(
        "KE-09-map", _GROUP, "maps a file that it wrote itself as code, as the loader would",
        "import mmap\nf = os.open(mine + 'x', os.O_CREAT | os.O_RDWR)\nos.write(f, bytes(4096))\nmmap.mmap(f, 4096, flags=2, prot=5)",
        _NO, needs=("starts",), on={"no-namespaces": "the temporary folder of this rung is not mounted by Toolcage"},
    ),
    Case(
        "KE-09-loader", _GROUP, "lets the loader start a program, which then reads a file beside the root folder",
        _BY_LOADER, ("BLOCKED 2",), needs=("loader",), aims=("{outside}",), on={"no-namespaces": ("BLOCKED 13",)},
    ),
    Case(
        "KE-09-root", _GROUP, "starts a program of the root folder", "os.execv({root} + '/program', ['x'])",
        blocked("EACCES"), control="os.execv('/bin/echo', ['echo', 'WORKED'])", needs=("own_root", "alone"),
    ),
    Case(
        "KE-09-shelf", _GROUP, "starts a program that is mounted and that Landlock does not know",
        f"os.execv({PROGRAMS_AT!r} + '/program', ['x'])", blocked("EACCES"), control="os.execv('/bin/echo', ['echo', 'WORKED'])",
        cage=SHELF, on=rungs.LANDLOCK,
    ),
    Case(
        "KE-10", _GROUP, "looks for doors into the kernel below /proc and /sys",
        f"each(errno.ENOENT, os.lstat, {_PATHS!r})", blocked("ENOENT"), on=rungs.NAME,
    ),
    Case(
        "KE-10-write", _GROUP, "writes into its own /proc", "os.close(os.open('/proc/self/comm', os.O_WRONLY))",
        blocked("EROFS"), on=rungs.PROC,
    ),
    Case("KE-11-nnp", _GROUP, "may gain privileges by a set-user-id program", finds("status('NoNewPrivs') != '1'", "EPERM"), _NO, on=rungs.PROC),
    Case(
        "KE-11-caps", _GROUP, "has a capability, or may have one",
        finds("any(int(status('Cap' + name), 16) for name in ('Inh', 'Prm', 'Eff', 'Bnd', 'Amb'))", "EPERM"), _NO, on=rungs.PROC,
    ),
    Case(
        "KE-11-bits", _GROUP, "would have capabilities again as root (securebits)", finds("call({sys_prctl}, 27, 0, 0, 0, 0) != 0xcf", "EPERM"),
        _NO, needs=("bounding",),
    ),
    Case(
        "KE-12-ioctl", _GROUP, "asks its descriptors for anything else than a few questions (ioctl)",
        _SWEEP % ("ioctl", "n[0], n[1], 1", [(fd, code | high) for fd in (0, 1, 2) for code in _IOCTLS for high in (0, 1 << 32)]), _NO,
        control=raw("ioctl", "0, 0x5412, 1"),
    ),
    Case(
        "KE-12-ioctl-file", _GROUP, "asks a file for anything else than a few questions (ioctl)",
        "f = os.open(mine + 'x', os.O_CREAT | os.O_RDWR)\n" + _SWEEP % ("ioctl", "f, n, 1", _IOCTLS), _NO,
        control="f = os.open(mine + 'x', os.O_CREAT | os.O_RDWR)\n" + raw("ioctl", "f, 0x5412, 1"),
    ),
    Case(
        "KE-12-ioctl-device", _GROUP, "asks a device how much there is to read (ioctl)",
        "import fcntl\nfcntl.ioctl(os.open('/dev/null', os.O_RDONLY), 0x541B, bytes(4))", blocked("EACCES"), needs=("landlock_ioctl",),
        on=rungs.SCOPE,
    ),
    Case(
        "KE-12-prctl", _GROUP, "changes what a process may change of itself (prctl)", _SWEEP % ("prctl", "n, 99, 0, 0, 0", _PRCTLS), _NO,
        control=raw("prctl", "4, 99, 0, 0, 0"),
    ),
    Case(
        "KE-12-fcntl", _GROUP, "takes leases, notices and larger pipes (fcntl)",
        "f = os.open('/dev/null', os.O_RDONLY)\n" + _SWEEP % ("fcntl", "f, n, 1 << 30", _FCNTLS), _NO,
        control="f = os.open('/dev/null', os.O_RDONLY)\n" + raw("fcntl", "f, 1026, 0"),
    ),
    Case(
        "KE-14", _GROUP, "starts a process that is not its child (CLONE_PARENT)",
        "if call({sys_clone}, 0x8000 | 17, 0, 0, 0, 0) == 0: os._exit(0)", _NO, control="os.waitpid(child(int), 0)", needs=("alone",),
    ),
    Case(
        "KE-15", _GROUP, "makes any call from 424 on that nobody listed",
        f"each(errno.EPERM, lambda n: call(n, -1, -1, -1, -1, -1, -1), {_NEW!r})", _NO,
        control=raw("unshare", "0"),
    ),
    Case(
        "KE-15-newest", _GROUP, "makes calls newer than the list",
        f"each(errno.ENOSYS, lambda n: call(n, -1, -1, -1, -1, -1, -1), range({abi.NEWEST_KNOWN + 1}, {abi.NEWEST_KNOWN + 51}))",
        blocked("ENOSYS"), control=raw("unshare", "0"),
    ),
)  # fmt: skip
