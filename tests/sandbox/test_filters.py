"""The compiled filters, run in a small interpreter of the kernel's classic BPF: what each one answers to each call."""

from __future__ import annotations

import os
import struct

import pytest

from policies.syscalls import names
from sandbox import abi, filters

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x00050001, 0x00050026
X86 = os.uname().machine == "x86_64"


def answer(  # noqa: C901 - one branch per instruction
    program: bytes, number: int, *arguments: int, arch: int = abi.AUDIT_ARCH
) -> int:
    """What the kernel would do: classic BPF over struct seccomp_data, seccomp(2)."""
    data = struct.pack(
        "<iIQ6Q", number if number < 2**31 else number - 2**32, arch, 0, *(list(arguments) + [0] * 6)[:6]
    )
    position, register, memory = 0, 0, [0] * 16
    while True:
        code, yes, no, value = struct.unpack_from("@HBBI", program, position * 8)
        position += 1
        match code:
            case 0x20:
                register = int(struct.unpack_from("<I", data, value)[0])
            case 0x05:
                position += value
            case 0x15:
                position += yes if register == value else no
            case 0x25:
                position += yes if register > value else no
            case 0x35:
                position += yes if register >= value else no
            case 0x45:
                position += yes if register & value else no
            case 0x54:
                register &= value
            case 0x02:
                memory[value] = register
            case 0x60:
                register = memory[value]
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"instruction {code:#x}")


def number(name: str) -> int:
    import pyseccomp

    found: int = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    return found


STRICT = filters.tool_filter(names("tool"), processes=False)
LOOSE = filters.tool_filter(names("tool"), processes=True)
KEEPER = filters.keeper_filter(names("keeper"))
FRONT = filters.front_filter([*names("front", "deny"), *names("front", "deny_stdio")])


@pytest.mark.parametrize("program", [STRICT, LOOSE, KEEPER])
def test_a_foreign_architecture_is_killed(program: bytes) -> None:
    assert answer(program, 20, arch=0x40000003) == KILL  # AUDIT_ARCH_I386
    assert answer(program, 20, arch=0x40000028) == KILL  # AUDIT_ARCH_ARM
    assert answer(FRONT, 20, arch=0x40000003) == KILL


@pytest.mark.parametrize("program", [STRICT, LOOSE, KEEPER])
def test_x32_numbers_are_killed_and_newer_ones_do_not_exist(program: bytes) -> None:
    assert answer(program, 0x40000000 + 39) == KILL
    assert answer(program, abi.NEWEST_KNOWN + 1) == ENOSYS
    assert answer(program, 0x3FFFFFFF) == ENOSYS
    assert answer(program, abi.NEWEST_KNOWN) == EPERM


def test_every_number_up_to_the_newest_is_allowed_by_the_list_or_refused() -> None:
    conditional = {
        "clone",
        "ioctl",
        "prctl",
        "prlimit64",
        "chmod",
        "fchmod",
        "fchmodat",
        "fork",
        "vfork",
        "mmap",
        "fcntl",
        "socketpair",
        "sendto",
        "recvfrom",
        "shutdown",
    }
    listed = {number(name) for name in names("tool")}
    refused = {number(name) for name in names("tool", "conditional") if name not in conditional}
    special = {number(name) for name in conditional}
    for value in range(abi.NEWEST_KNOWN + 1):
        found = answer(STRICT, value, 0xDEAD, 0xBEEF0000, 0o7777)
        if value in listed:
            assert found == ALLOW, value
        elif value in refused:
            assert found == ENOSYS, value
        elif value not in special:
            assert found == EPERM, value


def test_processes_only_where_they_are_allowed_and_never_namespaces() -> None:
    fork = 17  # SIGCHLD
    thread = 0x3D0F00
    assert answer(STRICT, number("clone"), fork) == EPERM
    assert answer(LOOSE, number("clone"), fork) == ALLOW
    for flag in (abi.CLONE_NEWUSER, abi.CLONE_NEWNS, abi.CLONE_NEWNET, abi.CLONE_NEWPID, abi.CLONE_NEWCGROUP):
        assert answer(LOOSE, number("clone"), fork | flag) == EPERM
        assert answer(STRICT, number("clone"), thread | flag) == EPERM
    assert answer(STRICT, number("clone"), thread) == ALLOW
    if X86:
        assert answer(STRICT, number("vfork")) == EPERM
        assert answer(LOOSE, number("vfork")) == ALLOW


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("ioctl", (0, 0x5413), (0, 0x5412)),
        ("ioctl", (0, 0x541B), (0, 0x5412 | 1 << 32)),
        ("prctl", (15, 0), (4, 1)),
        ("prlimit64", (0, 7, 1), (1, 7, 1)),
        ("prlimit64", (0, 4, 0), (0, 4, 1)),
        ("mmap", (0, 1, 3, 0x22), (0, 1, 3, 0x21)),
        ("mmap", (0, 1, 3, 0x01), (0, 1, 3, 0x40022)),
        ("fcntl", (0, 1030), (0, 1024)),
        ("fcntl", (0, 3), (0, 1031)),
        ("fchmodat", (0, 0, 0o755), (0, 0, 0o4755)),
    ],
)
def test_arguments_decide(name: str, good: tuple[int, ...], bad: tuple[int, ...]) -> None:
    assert answer(STRICT, number(name), *good) == ALLOW
    assert answer(STRICT, number(name), *bad) == EPERM


def test_the_front_gives_up_starting_and_connecting_and_nothing_else() -> None:
    for name in (
        "execve",
        "execveat",
        "socket",
        "socketpair",
        "connect",
        "ptrace",
        "mount",
        "io_uring_setup",
    ):
        assert answer(FRONT, number(name)) == EPERM, name
    for name in ("read", "write", "openat", "sendmsg", "pipe2", "mmap", "exit_group"):
        assert answer(FRONT, number(name)) == ALLOW, name
    assert answer(FRONT, number("clone"), 17) == EPERM
    assert answer(FRONT, number("clone"), 0x3D0F00) == ALLOW
    assert answer(FRONT, number("clone3")) == ENOSYS


def test_every_entry_has_a_reason_and_a_real_name() -> None:
    for process, sections in (
        ("tool", ("allow", "conditional")),
        ("keeper", ("allow",)),
        ("front", ("deny", "deny_stdio")),
    ):
        for section in sections:
            for name, reason in names(process, section).items():
                assert len(reason) >= 4, name
                assert number(name) != -1 or name in abi.NEWER, name
