"""Compiles seccomp allow-lists to BPF. Runs in the front, at start-up; workers load the bytes as they are.

libseccomp (through pyseccomp) writes the decision tree; a short prologue of our own comes first, because libseccomp
cannot say "every number above this one": numbers newer than the list answer ENOSYS, so that a libc falls back. The
prologue also kills x32 calls, which share the architecture value of x86-64. seccomp(2), classic BPF: linux/filter.h.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sandbox import abi
from sandbox.errors import HostRefused

if TYPE_CHECKING:
    from pyseccomp import SyscallFilter

_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
_JUMP, _JUMP_IF_SET = 0x05, 0x45
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGUMENTS = 0, 4, 16
_LOW_32 = 0xFFFFFFFF  # the kernel uses only the low half of these arguments, so the filter must as well
_AF_UNIX, _SOCK_STREAM, _SOCKET_TYPE = 1, 1, 0xF  # beside the type stand SOCK_NONBLOCK and SOCK_CLOEXEC
_UNKNOWN_NAME = -1  # seccomp_syscall_resolve_name(3)
_SET_ID_BITS = 0o6000
_IOCTLS = {"FIONREAD": 0x541B, "FIONBIO": 0x5421, "FIONCLEX": 0x5450, "FIOCLEX": 0x5451, "TCGETS": 0x5401}
_IOCTLS_WINDOW = 0x5413  # TIOCGWINSZ
_NOTIFYING = (abi.SECCOMP_IOCTL_NOTIF_RECV, abi.SECCOMP_IOCTL_NOTIF_SEND, abi.SECCOMP_IOCTL_NOTIF_ID_VALID)
# F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK F_SETLKW, the F_OFD_* locks, F_DUPFD_CLOEXEC, F_GETPIPE_SZ,
# F_ADD_SEALS, F_GET_SEALS
_FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032, 1033, 1034)
_MAP_SHARED, _MAP_ANONYMOUS, _MAP_GROWSDOWN, _MAP_HUGETLB = 0x01, 0x20, 0x100, 0x40000
# What grows down is a stack, and RLIMIT_DATA does not count stacks.
_MAPPING_BITS = _MAP_SHARED | _MAP_ANONYMOUS | _MAP_GROWSDOWN | _MAP_HUGETLB
_MAPPINGS = (_MAP_ANONYMOUS, _MAP_SHARED, 0)  # private memory, a shared file, a private file
_LIMITS = tuple(number for number in range(16) if number != 4)  # all but RLIMIT_CORE
_PRCTLS = (
    abi.PR_SET_NAME,
    16,  # PR_GET_NAME
    abi.PR_GET_DUMPABLE,
    abi.PR_GET_SECCOMP,
    abi.PR_GET_NO_NEW_PRIVS,
    abi.PR_CAPBSET_READ,
    abi.PR_GET_SECUREBITS,
    0x53564D41,  # PR_SET_VMA: names of memory regions, set by glibc and Android allocators
)


def tool_filter(
    allowed: Iterable[str],
    *,
    processes: bool,
    socket_pairs: bool = False,
    denied: Collection[str] = frozenset(),
) -> bytes:
    """The filter of a tool. `processes`: whether it may start others; threads are always allowed.

    `denied`: names that are refused although they are allowed elsewhere, because no namespace bounds them here.

    `socket_pairs`: connected pairs of Unix stream sockets, as event loops use them to wake themselves. Such a pair has
    no address, cannot be given one (no bind, no connect, no address in sendto) and passes no descriptors (no sendmsg).
    """
    seccomp = _pyseccomp()
    built = _start(seccomp, _ERRNO | errno.EPERM)
    for name in allowed:
        if name not in denied:
            _add(seccomp, built, seccomp.ALLOW, name)
        elif name.endswith("xattr"):  # programs take it as "this file system has none"
            _add(seccomp, built, _ERRNO | errno.EOPNOTSUPP, name)
    _add_processes(seccomp, built, processes=processes)
    if socket_pairs:
        _add_socket_pairs(seccomp, built)
    _add_by_argument(seccomp, built, denied)
    return _prologue() + _export(built)


def keeper_filter(allowed: Iterable[str], *, reporting: bool = False) -> bytes:
    """The filter of the keeper: a plain allow-list, and the question whether the filter is on.

    `reporting`: besides the three commands by which it hears and answers what its tool asks.
    """
    seccomp = _pyseccomp()
    built = _start(seccomp, _ERRNO | errno.EPERM)
    for name in allowed:
        _add(seccomp, built, seccomp.ALLOW, name)
    question = seccomp.Arg(0, seccomp.MASKED_EQ, _LOW_32, abi.PR_GET_SECCOMP)
    _add(seccomp, built, seccomp.ALLOW, "prctl", question)
    for code in _NOTIFYING if reporting else ():
        _add(seccomp, built, seccomp.ALLOW, "ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, _LOW_32, code))
    return _prologue() + _export(built)


def reporting_filter(program: bytes, asked: Mapping[int, int | None], door: int) -> bytes:
    """`program`, made by `tool_filter`, in which the keeper is asked instead of an EPERM, and about the calls `asked`.

    The keeper answers what `program` decides (sandbox.denials), so every call ends as it would have.

    asked  numbers of system calls; the argument that may hold AT_EMPTY_PATH, with which a call has no path to ask about.
    door   a secret number: sendmsg passes with it in the sixth argument, which the call does not use. By this door the
           listener leaves the tool's process before the program begins, which then has neither the number nor a listener.
    """
    head = _prologue()
    body = program[len(head) :]
    refuse, ask = (
        _instruction(_RETURN, 0, 0, value) for value in (_ERRNO | errno.EPERM, abi.SECCOMP_RET_USER_NOTIF)
    )
    rows = [body[at : at + len(ask)] for at in range(0, len(body), len(ask))]
    return head + _door(door) + _ask(asked, ask) + b"".join(ask if row == refuse else row for row in rows)


def _door(door: int) -> bytes:
    """sendmsg with `door` passes; everything else goes on, with the number loaded."""
    sixth = _OFFSET_ARGUMENTS + 5 * 8
    rows = (
        (_JUMP_EQUAL, 0, 6, abi.NUMBERS["sendmsg"]),
        (_LOAD, 0, 0, sixth),
        (_JUMP_EQUAL, 0, 3, door & _LOW_32),
        (_LOAD, 0, 0, sixth + 4),
        (_JUMP_EQUAL, 0, 1, door >> 32),
        (_RETURN, 0, 0, abi.SECCOMP_RET_ALLOW),
        (_LOAD, 0, 0, _OFFSET_NUMBER),
    )
    return b"".join(_instruction(*row) for row in rows)


def _ask(asked: Mapping[int, int | None], ask: bytes) -> bytes:
    """`ask` for each of the numbers; everything else goes on."""
    plain = [number for number, flags in asked.items() if flags is None]
    code = b""
    for number, flags in asked.items():
        if flags is not None:
            code += _instruction(_JUMP_EQUAL, 0, 4, number)
            code += _instruction(_LOAD, 0, 0, _OFFSET_ARGUMENTS + 8 * flags)
            code += _instruction(_JUMP_IF_SET, 1, 0, abi.AT_EMPTY_PATH) + ask
            code += _instruction(_LOAD, 0, 0, _OFFSET_NUMBER)
    for left, number in zip(range(len(plain), 0, -1), plain, strict=True):
        code += _instruction(_JUMP_EQUAL, left, 0, number)
    return code + _instruction(_JUMP, 0, 0, 1) + ask


def numbers(names: Iterable[str]) -> dict[int, str]:
    """Names by number, without those that this architecture does not have."""
    seccomp = _pyseccomp()
    found = {seccomp.resolve_syscall(seccomp.Arch.NATIVE, name): name for name in names}
    return {number: name for number, name in found.items() if number >= 0}


def name_of(number: int) -> str:
    """The name of a system call of this architecture; "" for one that the installed libseccomp does not know."""
    seccomp = _pyseccomp()
    try:
        found = seccomp.resolve_syscall(seccomp.Arch.NATIVE, number)
    except ValueError:
        found = next((name for name, value in abi.NEWER.items() if value == number), "")
    return found.decode() if isinstance(found, bytes) else str(found)


def front_filter(denied: Iterable[str]) -> bytes:
    """The front's own filter: everything but `denied`; clone only for threads."""
    seccomp = _pyseccomp()
    built = _start(seccomp, seccomp.ALLOW)
    for name in denied:
        _add(seccomp, built, _ERRNO | errno.EPERM, name)
    _add(seccomp, built, _ERRNO | errno.ENOSYS, "clone3")
    no_thread = seccomp.Arg(0, seccomp.MASKED_EQ, abi.CLONE_THREAD, 0)
    _add(seccomp, built, _ERRNO | errno.EPERM, "clone", no_thread)
    return _export(built)


def _add_by_argument(seccomp: Any, built: SyscallFilter, denied: Collection[str]) -> None:
    """Calls of which only some uses are allowed."""
    low = seccomp.Arg
    for name, position, codes in (
        ("ioctl", 1, (*_IOCTLS.values(), _IOCTLS_WINDOW)),
        ("prctl", 0, _PRCTLS),
        ("fcntl", 1, _FCNTLS),
    ):
        for code in codes:
            _add(seccomp, built, seccomp.ALLOW, name, low(position, seccomp.MASKED_EQ, _LOW_32, code))
    for kind in _MAPPINGS:
        _add(seccomp, built, seccomp.ALLOW, "mmap", low(3, seccomp.MASKED_EQ, _MAPPING_BITS, kind))
    own = low(0, seccomp.MASKED_EQ, _LOW_32, 0)
    _add(seccomp, built, seccomp.ALLOW, "prlimit64", own, low(2, seccomp.EQ, 0))  # a question
    for number in _LIMITS:
        _add(seccomp, built, seccomp.ALLOW, "prlimit64", own, low(1, seccomp.MASKED_EQ, _LOW_32, number))
    for name, position in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2)):
        if name not in denied:
            _add(seccomp, built, seccomp.ALLOW, name, low(position, seccomp.MASKED_EQ, _SET_ID_BITS, 0))
    _add(seccomp, built, _ERRNO | errno.ENOSYS, "clone3")


def _add_processes(seccomp: Any, built: SyscallFilter, *, processes: bool) -> None:
    mask = abi.NEW_NAMESPACES & ~abi.CLONE_NEWTIME  # in clone(2) that bit belongs to the exit signal
    if processes:
        _add(seccomp, built, seccomp.ALLOW, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, mask, 0))
        _add(seccomp, built, seccomp.ALLOW, "fork")
        _add(seccomp, built, seccomp.ALLOW, "vfork")
    else:
        thread = seccomp.Arg(0, seccomp.MASKED_EQ, mask | abi.CLONE_THREAD, abi.CLONE_THREAD)
        _add(seccomp, built, seccomp.ALLOW, "clone", thread)


def _add_socket_pairs(seccomp: Any, built: SyscallFilter) -> None:
    low = seccomp.Arg
    unix, stream = (
        low(0, seccomp.MASKED_EQ, _LOW_32, _AF_UNIX),
        low(1, seccomp.MASKED_EQ, _SOCKET_TYPE, _SOCK_STREAM),
    )
    _add(seccomp, built, seccomp.ALLOW, "socketpair", unix, stream)
    for name in ("sendto", "recvfrom"):
        _add(seccomp, built, seccomp.ALLOW, name, low(4, seccomp.EQ, 0))  # without an address
    _add(seccomp, built, seccomp.ALLOW, "shutdown")


def _pyseccomp() -> Any:
    try:
        import pyseccomp
    except RuntimeError:
        raise HostRefused(
            "seccomp: the libseccomp library is not installed",
            "install it: apt-get install libseccomp2, dnf install libseccomp, or pacman -S libseccomp",
        ) from None
    return pyseccomp


def _start(seccomp: Any, default: int) -> SyscallFilter:
    built: SyscallFilter = seccomp.SyscallFilter(default)
    built.set_attr(seccomp.Attr.ACT_BADARCH, _KILL_PROCESS)  # libseccomp's own default kills only the thread
    built.set_attr(
        seccomp.Attr.CTL_OPTIMIZE, 2
    )  # a binary tree instead of a list: fewer instructions per call
    return built


def _add(seccomp: Any, built: SyscallFilter, action: int, name: str, *arguments: Any) -> None:
    number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
    if number == _UNKNOWN_NAME:
        number = abi.NEWER[name]  # a name that nobody knows is a mistake in the list, not a call to skip
    if number >= 0:  # other negative numbers: this architecture does not have the call
        built.add_rule(action, number, *arguments)


def _export(built: SyscallFilter) -> bytes:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        with open(writer, "wb") as sink:
            built.export_bpf(sink)
        with open(reader, "rb", closefd=False) as source:
            return source.read()
    finally:
        os.close(reader)


def _prologue() -> bytes:
    """Foreign architecture or x32: kill. Newer than the list: ENOSYS. Otherwise on to libseccomp's part."""
    return b"".join(
        _instruction(*fields)
        for fields in (
            (_LOAD, 0, 0, _OFFSET_ARCH),
            (_JUMP_EQUAL, 1, 0, abi.AUDIT_ARCH),
            (_RETURN, 0, 0, _KILL_PROCESS),
            (_LOAD, 0, 0, _OFFSET_NUMBER),
            (_JUMP_GREATER_EQUAL, 0, 1, abi.X32_BIT),
            (_RETURN, 0, 0, _KILL_PROCESS),
            (_JUMP_GREATER_EQUAL, 0, 1, abi.NEWEST_KNOWN + 1),
            (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        )
    )


def _instruction(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("@HBBI", code, yes, no, value)
