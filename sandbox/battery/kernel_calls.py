"""KE: system calls that a tool has no use for, with arguments that do no harm where nothing stops them: bad pointers,
descriptors and flags, so that a refused call (EPERM) and one that reached the kernel (EFAULT, EBADF, EINVAL) differ.
"""

from __future__ import annotations

from sandbox.battery.case import Case, blocked
from sandbox.battery.program import raw

_GROUP = "kernel"
IN_NAMESPACES = f"try: {raw('unshare', hex(0x10000000 | 0x20000 | 0x4000000))}\nexcept OSError: pass"  # user, mount and uts
# Namespaces with that of users, so that an ordinary user could make each where nothing stops it.
_USER = 0x10000000
_NAMESPACES = {
    "user": _USER, "mount": _USER | 0x20000, "pid": _USER | 0x20000000, "net": _USER | 0x40000000,
    "ipc": _USER | 0x8000000, "uts": _USER | 0x4000000, "cgroup": _USER | 0x2000000, "empty": _USER | 0x00100000,
}  # fmt: skip
# id -> [(call, arguments)]; "+" after the call: outside it is made in namespaces of its own, where everybody may.
_CALLS: dict[str, tuple[tuple[str, str], ...]] = {
    "KE-01": (("unshare", "0"), ("setns", "-1, 0")),
    "KE-02": (
        ("io_uring_enter", "-1, 0, 0, 0, 0, 0"), ("io_uring_register", "-1, 99, 0, 0"), ("userfaultfd", "0xffff"),
        ("bpf", "99, 0, 0"), ("perf_event_open", "1, 0, -1, -1, 0"), ("keyctl", "0x7fff, 0, 0, 0, 0"),
        ("add_key", "1, 1, 0, 0, 0"), ("request_key", "1, 1, 0, 0"),
    ),
    "KE-03": (
        ("ptrace", "2, 999999, 0, 0"), ("process_vm_readv", "os.getpid(), 1, 1, 1, 1, 0"),
        ("process_vm_writev", "os.getpid(), 1, 1, 1, 1, 0"), ("pidfd_getfd", "-1, 0, 0"),
        ("kcmp", "os.getpid(), os.getpid(), 99, 0, 0"), ("process_madvise", "-1, 0, 0, 0, 0"),
        ("process_mrelease", "-1, 0"),
    ),
    "KE-04": (
        ("mount", "1, 1, 1, 0, 0"), ("umount2", "1, 0"), ("pivot_root+", "1, 1"), ("chroot", "1"), ("fsopen+", "1, 0"),
        ("fsconfig", "-1, 0, 0, 0, 0"), ("fsmount+", "-1, 0, 0"), ("fspick+", "-1, 1, 0"), ("open_tree", "-1, 1, 0"),
        ("open_tree_attr", "-1, 1, 0, 0, 0"), ("move_mount+", "-1, 1, -1, 1, 0"), ("mount_setattr", "-1, 1, 0, 0, 0"),
        ("statmount", "1, 0, 0, 0"), ("listmount", "1, 0, 0, 0"),
    ),
    "KE-05": (
        ("init_module", "0, 0, 1"), ("finit_module", "-1, 1, 0"), ("delete_module", "1, 0"),
        ("kexec_load", "0, 99999, 0, 0"), ("kexec_file_load", "-1, -1, 0, 0, 0x80000000"), ("reboot", "0, 0, 0, 0"),
        ("swapon", "1, 0x7fffffff"), ("swapoff", "1"), ("acct", "1"), ("quotactl", "-1, 0, 0, 0"),
        ("quotactl_fd", "-1, -1, 0, 0"), ("syslog", "10, 0, 0"), ("iopl", "99"), ("ioperm", "0x7fffffff, 0x7fffffff, 1"),
        ("modify_ldt", "99, 0, 0"), ("personality", "0xffffffff"), ("lookup_dcookie", "0, 1, 1"),
        ("fanotify_init", "0x200, 0x7fffffff"), ("fanotify_mark", "-1, 0, 0, -1, 0"), ("inotify_init1", "0xffff"),
        ("name_to_handle_at", "-1, 1, 1, 1, 0"), ("settimeofday", "1, 0"), ("clock_settime", "0, 1"),
        ("clock_adjtime", "0, 1"), ("adjtimex", "1"), ("sethostname+", "1, -1"), ("setdomainname+", "1, -1"),
    ),
    "KE-09": (("memfd_create", "1, 0"), ("memfd_secret", "-1"), ("execveat", "-1, 1, 0, 0, 0")),
    "KE-12": (
        ("splice", "-1, 0, -1, 0, 1, 0"), ("tee", "-1, -1, 1, 0"), ("vmsplice", "-1, 1, 1, 0"),
        ("setuid", "-1"), ("setgid", "-1"), ("setresuid", "-1, -1, -1"), ("capset", "1, 1"), ("mbind", "1, 1, 99, 0, 0, 0"),
        ("move_pages", "0, 1, 1, 0, 0, 0"), ("set_mempolicy", "99, 0, 0"), ("mlockall", "0"), ("io_setup", "1, 1"),
    ),
    "RE-07": (("syncfs", "-1"), ("sync_file_range", "-1, 0, 0, 0")),
}  # fmt: skip
# Like raw, but the call that is made outside is another one: the call itself would do something there.
_WITH_CONTROL = (
    ("KE-02", "io_uring_setup", "1, 0", raw("io_uring_enter", "-1, 0, 0, 0, 0, 0")),
    ("KE-05", "vhangup", "", raw("unshare", "0")),
    ("RE-07", "sync", "", raw("syncfs", "-1")),
)


def _call(number: str, name: str, arguments: str, control: str = "") -> Case:
    call = name.removesuffix("+")
    if call != name:
        control = f"{IN_NAMESPACES}\n{raw(call, arguments)}"
    return Case(
        f"{number}-{call}", _GROUP, f"calls {call}", raw(call, arguments), blocked("EPERM"), control=control,
        needs=("call",), optional=True,
    )  # fmt: skip


def _unshare(name: str, flags: int) -> Case:
    return Case(
        f"KE-01-unshare-{name}", _GROUP, f"unshares its {name} namespace", raw("unshare", hex(flags)), blocked("EPERM"),
        control=raw("unshare", "0"), optional=True,
    )  # fmt: skip


def _clone(name: str, flags: int) -> Case:
    started = (
        "pid = call({{sys_clone}}, {0:#x} | 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)"
    )
    return Case(
        f"KE-01-clone-{name}", _GROUP, f"starts a process in a {name} namespace of its own", started.format(flags),
        blocked("EPERM"), control=started.format(0),
    )  # fmt: skip


CASES = (
    *(_call(number, *row) for number, rows in _CALLS.items() for row in rows),
    *(_call(*row) for row in _WITH_CONTROL),
    *(_unshare(name, flags) for name, flags in _NAMESPACES.items()),
    *(_clone(name, flags) for name, flags in _NAMESPACES.items() if name != "empty"),
    Case("KE-01-clone3", _GROUP, "calls clone3", raw("clone3", "0, 0"), blocked("ENOSYS")),
    Case(
        "KE-02-userfaultfd-any", _GROUP, "calls userfaultfd for faults of the kernel", raw("userfaultfd", "0"),
        blocked("EPERM"), control=raw("userfaultfd", "0xffff"), optional=True,
    ),
    Case(
        "KE-05-personality-read", _GROUP, "makes readable memory executable", raw("personality", "0x0400000"),
        blocked("EPERM"), optional=True,
    ),
    Case(
        "KE-05-personality-fixed", _GROUP, "turns address randomisation off", raw("personality", "0x0040000"),
        blocked("EPERM"), optional=True,
    ),
)  # fmt: skip
