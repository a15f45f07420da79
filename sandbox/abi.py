"""Kernel ABI numbers: system calls of x86-64 and arm64, and the flags of the calls that `syscalls` makes.

Data only. Sources: Linux arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h (arm64),
include/uapi/linux/{sched,mount,landlock,prctl,securebits,capability,keyctl,openat2,seccomp}.h.
"""

from __future__ import annotations

import os

MACHINE = os.uname().machine

# From 424 on every architecture uses the same numbers.
_COMMON = {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "clone3": 435,
    "close_range": 436,
    "openat2": 437,
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}
_BY_MACHINE = {
    "x86_64": {
        "clone": 56,
        "mount": 165,
        "umount2": 166,
        "pivot_root": 155,
        "prctl": 157,
        "capget": 125,
        "capset": 126,
        "sethostname": 170,
        "keyctl": 250,
        "kcmp": 312,
        "kill": 62,
        "tkill": 200,
        "tgkill": 234,
        "ioctl": 16,
        "sendmsg": 46,
        "process_vm_readv": 310,
        "seccomp": 317,
    },
    "aarch64": {
        "clone": 220,
        "mount": 40,
        "umount2": 39,
        "pivot_root": 41,
        "prctl": 167,
        "capget": 90,
        "capset": 91,
        "sethostname": 161,
        "keyctl": 219,
        "kcmp": 272,
        "kill": 129,
        "tkill": 130,
        "tgkill": 131,
        "ioctl": 29,
        "sendmsg": 211,
        "process_vm_readv": 270,
        "seccomp": 277,
    },
}
# AUDIT_ARCH_* of include/uapi/linux/audit.h: what seccomp sees in seccomp_data.arch.
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Calls that an installed libseccomp may be too old to know by name; the same number everywhere.
NEWER = {"open_tree_attr": 467}

SUPPORTED_MACHINES = tuple(_BY_MACHINE)
NUMBERS = {**_COMMON, **_BY_MACHINE.get(MACHINE, {})}
AUDIT_ARCH = _AUDIT_ARCH.get(MACHINE, 0)
X32_BIT = 0x40000000  # system call numbers of the x32 ABI, which reports the x86-64 architecture
NEWEST_KNOWN = 469  # file_setattr (Linux 6.17); numbers above answer ENOSYS so that a libc falls back

CLONE_THREAD = 0x00010000
CLONE_PIDFD = 0x00001000
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_NEWTIME = 0x00000080
NEW_NAMESPACES = (
    CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET
    | CLONE_NEWTIME
)

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
AT_SYMLINK_NOFOLLOW = 0x100

RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08

MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 0x4
MOVE_MOUNT_T_EMPTY_PATH = 0x40
FSOPEN_CLOEXEC = 1
FSMOUNT_CLOEXEC = 1
FSCONFIG_SET_STRING = 1
FSCONFIG_CMD_CREATE = 6
MOUNT_ATTR_RDONLY = 0x01
MOUNT_ATTR_NOSUID = 0x02
MOUNT_ATTR_NODEV = 0x04
MOUNT_ATTR_NOEXEC = 0x08
MOUNT_ATTR_IDMAP = 0x00100000

PR_SET_PDEATHSIG = 1
PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_SET_NAME = 15
PR_GET_SECCOMP = 21
PR_SET_SECCOMP = 22
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_GET_SECUREBITS = 27
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_GET_NO_NEW_PRIVS = 39
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_NEW_LISTENER = 1 << 3
SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = (
    1 << 5
)  # Linux 5.19: no signal but a deadly one interrupts an asked call
SECCOMP_RET_ALLOW = 0x7FFF0000
SECCOMP_RET_USER_NOTIF = 0x7FC00000
SECCOMP_RET_ERRNO = 0x00050000
SECCOMP_USER_NOTIF_FLAG_CONTINUE = 1
SECCOMP_IOCTL_NOTIF_RECV = 0xC0502100
SECCOMP_IOCTL_NOTIF_SEND = 0xC0182101
SECCOMP_IOCTL_NOTIF_ID_VALID = 0x80082102  # the number of Linux 5.0, which later kernels take as well
NOTIFICATION_BYTES = 80
# NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE, each with its lock bit.
SECUREBITS_LOCKED = 0x01 | 0x02 | 0x04 | 0x08 | 0x40 | 0x80
CAPABILITY_VERSION_3 = 0x20080522
KEYCTL_JOIN_SESSION_KEYRING = 1
KCMP_VM = 1

LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1
FS_EXECUTE = 1 << 0
FS_WRITE_FILE = 1 << 1
FS_READ_FILE = 1 << 2
FS_READ_DIR = 1 << 3
FS_REMOVE_DIR = 1 << 4
FS_REMOVE_FILE = 1 << 5
FS_MAKE_CHAR = 1 << 6
FS_MAKE_DIR = 1 << 7
FS_MAKE_REG = 1 << 8
FS_MAKE_SOCK = 1 << 9
FS_MAKE_FIFO = 1 << 10
FS_MAKE_BLOCK = 1 << 11
FS_MAKE_SYM = 1 << 12
FS_REFER = 1 << 13
FS_TRUNCATE = 1 << 14
FS_IOCTL_DEV = 1 << 15
FS_RESOLVE_UNIX = 1 << 16
NET_ALL_TCP = 0b11
SCOPE_ALL = 0b11  # abstract unix sockets, signals
LANDLOCK_SCOPE_SINCE = 6
