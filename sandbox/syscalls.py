"""The only file that talks to the kernel by number: thin, typed, each function raises OSError with the call's name.

Used in every process. Holds no policy and no order of steps. `_invoke` is the single door, so that a test can
make the n-th call fail (fault injection).
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct

from sandbox import abi

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
# PyDLL keeps the interpreter lock: a new process must not be born while the lock is between owners.
_libc_locked = ctypes.PyDLL(None, use_errno=True)
_libc_locked.syscall.restype = ctypes.c_long

_PAGE = os.sysconf("SC_PAGE_SIZE")
_M_MMAP_THRESHOLD = -3  # malloc.h
_Argument = int | bytes | ctypes.Array[ctypes.c_char] | None


def _invoke(name: str, *arguments: _Argument) -> int:
    """Call `name` through syscall(2). Raises OSError(errno, "name: text"); ENOSYS on an unknown machine."""
    number = abi.NUMBERS.get(name)
    if number is None:
        raise OSError(38, f"{name}: no number for {abi.MACHINE}")
    converted = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def return_large_blocks(least: int) -> None:
    """From now on, memory of `least` bytes and more goes back to the kernel when it is freed. mallopt(3), glibc.

    Else glibc raises that bound to the largest block freed so far, up to 32 MiB, and keeps twice as much. No other C
    library does that, or has the call.
    """
    if mallopt := getattr(_libc, "mallopt", None):
        mallopt(_M_MMAP_THRESHOLD, least)


def openat2(folder: int, path: bytes, flags: int, resolve: int) -> int:
    """openat2(2), Linux 5.6. Returns a descriptor (O_CLOEXEC is added)."""
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolve)
    return _invoke("openat2", folder, path, how, len(how))


def spawn(flags: int) -> tuple[int, int]:
    """A fork into new namespaces (`flags`, CLONE_NEW*). Returns (pid, pidfd); (0, -1) in the child.

    clone3(2), Linux 5.3; where a container's filter says that it does not exist, clone(2) with CLONE_PIDFD. The
    interpreter's own fork hooks run, as in os.fork. Only for a process with one thread.
    """
    pidfd = ctypes.c_int(-1)
    place = ctypes.addressof(pidfd)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid, code = _clone3(flags | abi.CLONE_PIDFD, place)
    if code == errno.ENOSYS:
        pid, code = _clone(flags | abi.CLONE_PIDFD | signal.SIGCHLD, place)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0, -1
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(code, f"clone: {os.strerror(code)}")
    return pid, pidfd.value


def _clone3(flags: int, pidfd: int) -> tuple[int, int]:
    record = struct.pack("=11Q", flags, pidfd, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
    buffer = ctypes.create_string_buffer(record, len(record))
    number, size = ctypes.c_long(abi.NUMBERS["clone3"]), ctypes.c_long(len(record))
    pid: int = _libc_locked.syscall(number, buffer, size)
    return pid, ctypes.get_errno() if pid < 0 else 0


def _clone(flags: int, pidfd: int) -> tuple[int, int]:
    # flags, stack, parent_tid (where CLONE_PIDFD puts the descriptor); the order of the other two does not matter here
    arguments = [ctypes.c_long(item) for item in (abi.NUMBERS["clone"], flags, 0, pidfd, 0, 0)]
    pid: int = _libc_locked.syscall(*arguments)
    return pid, ctypes.get_errno() if pid < 0 else 0


def close_range(first: int, last: int) -> None:
    """close_range(2), Linux 5.9: close every descriptor from `first` to `last`."""
    _invoke("close_range", first, last, 0)


def make_mounts_private() -> None:
    """mount(2) MS_REC|MS_PRIVATE on "/": nothing done here may travel back to the host."""
    _invoke("mount", None, b"/", None, abi.MS_REC | abi.MS_PRIVATE, None)


def open_tree(folder: int, path: bytes, *, clone: bool = True) -> int:
    """open_tree(2), Linux 5.2: a detached recursive copy of the mounts at `path`. Symlinks are not followed."""
    flags = abi.OPEN_TREE_CLOEXEC | abi.AT_SYMLINK_NOFOLLOW
    if clone:
        flags |= abi.OPEN_TREE_CLONE | abi.AT_RECURSIVE
    if not path:
        flags |= abi.AT_EMPTY_PATH
    return _invoke("open_tree", folder, path, flags)


def mount_setattr(tree: int, attributes: int, *, userns: int = -1, recursive: bool = True) -> None:
    """mount_setattr(2), Linux 5.12: set MOUNT_ATTR_* on a whole tree and make it private; with `userns` also id-map it.

    Private, because a detached copy of a shared mount stays in its peer group: what is mounted on it would appear on the
    host, and what the host mounts later would appear in it, without any of these attributes (mount_namespaces(7)).
    """
    if userns >= 0:
        attributes |= abi.MOUNT_ATTR_IDMAP
    record = struct.pack("=QQQQ", attributes, 0, abi.MS_PRIVATE, max(userns, 0))
    flags = abi.AT_EMPTY_PATH | (abi.AT_RECURSIVE if recursive else 0)
    _invoke("mount_setattr", tree, b"", flags, record, len(record))


def move_mount(tree: int, target_folder: int, target: bytes) -> None:
    """move_mount(2), Linux 5.2: attach the detached `tree` at `target` (an empty target is the folder itself)."""
    flags = abi.MOVE_MOUNT_F_EMPTY_PATH | (0 if target else abi.MOVE_MOUNT_T_EMPTY_PATH)
    _invoke("move_mount", tree, b"", target_folder, target, flags)


def new_filesystem(kind: bytes, options: tuple[tuple[bytes, bytes], ...], attributes: int) -> int:
    """fsopen, fsconfig, fsmount (Linux 5.2): a detached new filesystem. Returns its mount descriptor."""
    context = _invoke("fsopen", kind, abi.FSOPEN_CLOEXEC)
    try:
        for key, value in options:
            _invoke("fsconfig", context, abi.FSCONFIG_SET_STRING, key, value, 0)
        _invoke("fsconfig", context, abi.FSCONFIG_CMD_CREATE, None, None, 0)
        return _invoke("fsmount", context, abi.FSMOUNT_CLOEXEC, attributes)
    finally:
        os.close(context)


def pivot_here() -> None:
    """pivot_root(2) to the current folder, then detach the old root, which is stacked on the same spot."""
    _invoke("pivot_root", b".", b".")
    _invoke("umount2", b".", abi.MNT_DETACH)


def prctl(option: int, second: int = 0, third: int = 0) -> int:
    """prctl(2)."""
    return _invoke("prctl", option, second, third, 0, 0)


def set_hostname(name: bytes) -> None:
    """sethostname(2)."""
    _invoke("sethostname", name, len(name))


def join_new_session_keyring() -> int:
    """keyctl(KEYCTL_JOIN_SESSION_KEYRING, NULL): a fresh anonymous keyring; no namespace cuts the old one."""
    return _invoke("keyctl", abi.KEYCTL_JOIN_SESSION_KEYRING, None, 0, 0, 0)


def clear_capabilities() -> None:
    """capset(2): empty effective, permitted and inheritable sets of this thread."""
    header = struct.pack("=Ii", abi.CAPABILITY_VERSION_3, 0)
    _invoke("capset", header, struct.pack("=6I", 0, 0, 0, 0, 0, 0))


def regain_capabilities() -> None:
    """capset(2): everything that is permitted becomes effective again, as after a change of ids with PR_SET_KEEPCAPS."""
    _, permitted, inheritable = capabilities()
    low = (permitted & 0xFFFFFFFF, permitted & 0xFFFFFFFF, inheritable & 0xFFFFFFFF)
    high = (permitted >> 32, permitted >> 32, inheritable >> 32)
    _invoke("capset", struct.pack("=Ii", abi.CAPABILITY_VERSION_3, 0), struct.pack("=6I", *low, *high))


def capabilities() -> tuple[int, int, int]:
    """capget(2) of this thread: (effective, permitted, inheritable) as bit sets."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", abi.CAPABILITY_VERSION_3, 0), 8)
    data = ctypes.create_string_buffer(24)
    _invoke("capget", header, data)
    low_e, low_p, low_i, high_e, high_p, high_i = struct.unpack("=6I", data.raw)
    return low_e | high_e << 32, low_p | high_p << 32, low_i | high_i << 32


def same_memory(first: int, second: int) -> bool:
    """kcmp(2) KCMP_VM: whether two processes share one address space, as after vfork. OSError when not allowed."""
    return _invoke("kcmp", first, second, abi.KCMP_VM, 0, 0) == 0


def landlock_abi() -> int:
    """Highest Landlock ABI of this kernel (1 is Linux 5.13); OSError when absent or switched off."""
    return _invoke("landlock_create_ruleset", None, 0, abi.LANDLOCK_CREATE_RULESET_VERSION)


def landlock_ruleset(filesystem: int, network: int, scoped: int) -> int:
    """landlock_create_ruleset(2): returns the ruleset descriptor. Pass 0 for what the ABI lacks."""
    record = struct.pack("=QQQ", filesystem, network, scoped)
    size = 24 if scoped else 16 if network else 8  # an older kernel refuses a longer record than it knows
    return _invoke("landlock_create_ruleset", record, size, 0)


def landlock_allow_path(ruleset: int, access: int, path: int) -> None:
    """landlock_add_rule(2) for everything beneath the O_PATH descriptor `path`."""
    _invoke("landlock_add_rule", ruleset, abi.LANDLOCK_RULE_PATH_BENEATH, struct.pack("=Qi", access, path), 0)


def landlock_restrict_self(ruleset: int) -> None:
    """landlock_restrict_self(2); needs no_new_privs."""
    _invoke("landlock_restrict_self", ruleset, 0)


def load_seccomp(program: bytes) -> None:
    """prctl(PR_SET_SECCOMP): install raw BPF (8 bytes per instruction); needs no_new_privs."""
    record, _code = _bpf(program)
    prctl(abi.PR_SET_SECCOMP, abi.SECCOMP_MODE_FILTER, ctypes.addressof(record))


def load_seccomp_with_listener(program: bytes) -> int:
    """seccomp(2), Linux 5.0: install raw BPF that asks. Returns the listener, which execve closes (seccomp_unotify(2)).

    EBUSY: a filter around this process has a listener already, and the kernel permits one.
    """
    record, _code = _bpf(program)
    flags = abi.SECCOMP_FILTER_FLAG_NEW_LISTENER
    try:
        killable = flags | abi.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
        return _invoke("seccomp", abi.SECCOMP_SET_MODE_FILTER, killable, record)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
    return _invoke("seccomp", abi.SECCOMP_SET_MODE_FILTER, flags, record)


def _bpf(program: bytes) -> tuple[ctypes.Array[ctypes.c_char], ctypes.Array[ctypes.c_char]]:
    """struct sock_fprog, and the code that it points to, which must live as long."""
    code = ctypes.create_string_buffer(program, len(program))
    record = struct.pack("@HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    return ctypes.create_string_buffer(record, len(record)), code


def send_descriptor(link: int, descriptor: int, door: int) -> None:
    """sendmsg(2): one byte and a descriptor. `door` stands in the sixth argument, which only a filter looks at."""
    control = ctypes.create_string_buffer(
        struct.pack("@Niii", 20, 1, 1, descriptor)
    )  # SOL_SOCKET, SCM_RIGHTS
    byte = ctypes.create_string_buffer(1)
    vector = ctypes.create_string_buffer(struct.pack("@PN", ctypes.addressof(byte), 1))
    header = struct.pack("@PIPNPNi", 0, 0, ctypes.addressof(vector), 1, ctypes.addressof(control), 20, 0)
    _invoke("sendmsg", link, header, 0, 0, 0, door)


def notification(listener: int) -> bytes:
    """SECCOMP_IOCTL_NOTIF_RECV: the next struct seccomp_notif. OSError ENOENT when its process is gone again."""
    record = ctypes.create_string_buffer(abi.NOTIFICATION_BYTES)
    _invoke("ioctl", listener, abi.SECCOMP_IOCTL_NOTIF_RECV, record)
    return record.raw


def notification_holds(listener: int, number: int) -> bool:
    """SECCOMP_IOCTL_NOTIF_ID_VALID: the process still waits, so that what was read under its pid was its own."""
    try:
        _invoke("ioctl", listener, abi.SECCOMP_IOCTL_NOTIF_ID_VALID, struct.pack("=Q", number))
    except OSError:
        return False
    return True


def answer_notification(listener: int, number: int, code: int) -> None:
    """SECCOMP_IOCTL_NOTIF_SEND: errno `code`; 0 lets the kernel do the call (Linux 5.5). ENOENT: nobody waits."""
    flags = 0 if code else abi.SECCOMP_USER_NOTIF_FLAG_CONTINUE
    record = ctypes.create_string_buffer(struct.pack("=QqiI", number, 0, -code, flags), 24)
    _invoke("ioctl", listener, abi.SECCOMP_IOCTL_NOTIF_SEND, record)


def read_memory(pid: int, address: int, length: int) -> bytes:
    """process_vm_readv(2): up to `length` bytes, less where memory ends. Two pieces, cut at the end of a page."""
    if address >= 1 << 63:  # no process has memory there
        raise OSError(errno.EFAULT, "process_vm_readv: Bad address")
    first = min(length, -address % _PAGE or _PAGE)
    data = ctypes.create_string_buffer(length)
    local = struct.pack("@PN", ctypes.addressof(data), length)
    remote = struct.pack("@PNPN", address, first, address + first, length - first)
    count = _invoke("process_vm_readv", pid, local, 1, remote, 2, 0)
    return data.raw[:count]
