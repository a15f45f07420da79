"""FR: reading what lies outside the root folder."""

from __future__ import annotations

from sandbox.battery import rungs
from sandbox.battery.case import Case, blocked
from sandbox.battery.changed import PROGRAMS_AT, SHELF
from sandbox.battery.kernel_calls import IN_NAMESPACES
from sandbox.battery.program import finds, raw

_GONE = blocked("ENOENT")
_GROUP = "files_read"
_UP = "'../' * 40 + {outside}[1:]"
_DEVICES = (
    "mem", "port", "kvm", "fuse", "vsock", "vda", "sda", "nvme0n1", "loop0", "loop-control", "mapper", "console", "pts",
    "tty0", "net/tun", "uinput", "userfaultfd", "dri", "vhost-net", "shm", "mqueue", "hugepages",
)  # fmt: skip


def _absent(number: str, path: str) -> Case:
    return Case(number, _GROUP, f"looks at {path}", f"os.lstat({path!r})", _GONE, aims=(path,), on=rungs.NAME)


def _outside(number: str, sentence: str, attempt: str) -> Case:
    return Case(number, _GROUP, sentence, attempt, _GONE, aims=("{outside}",), on=rungs.CONTENT)


CASES = (
    _absent("FR-01-shadow", "/etc/shadow"),
    _absent("FR-01-hostname", "/etc/hostname"),
    _absent("FR-01-sys", "/sys/kernel"),
    _absent("FR-01-sysctl", "/proc/sys/kernel/core_pattern"),
    _outside("FR-01", "reads a file beside the root folder", "open({outside}).read()"),
    Case(
        "FR-02", _GROUP, "finds anything of the user's home folder", finds("any(os.path.lexists(name) for name in {home})"),
        _GONE, needs=("home",), on=rungs.NAME,
    ),
    _outside("FR-03", "walks up from the root folder with ..", f"os.chdir({{root}})\nopen({_UP}).read()"),
    _outside(
        "FR-04", "follows a symbolic link of its own out of the cage",
        "os.symlink({outside}, mine + 'link')\nopen(mine + 'link').read()",
    ),
    _outside(
        "FR-04-up", "follows a relative link of its own out of the cage",
        f"os.symlink({_UP}, mine + 'up')\nopen(mine + 'up').read()",
    ),
    Case(
        "FR-04-root", _GROUP, "follows a link in the root folder out of it", "open({root} + '/link').read()", _GONE,
        needs=("own_root",), aims=("{outside}",), on=rungs.CONTENT,
    ),
    Case(
        "FR-05", _GROUP, "follows links that go round in a circle",
        "a, b = mine + 'a', mine + 'b'\nos.symlink(a, b)\nos.symlink(b, a)\nopen(a)", blocked("ELOOP"),
        control="a = mine + 'a'\nos.symlink('.', a)\nos.stat(a)",
    ),
    Case(
        "FR-05-chain", _GROUP, "follows a chain of 50 links",
        "name = '/'\nfor n in range(50):\n    os.symlink(name, mine + str(n))\n    name = mine + str(n)\n"
        "os.stat(name)", blocked("ELOOP"),
        control="name = '/'\nfor n in range(15):\n    os.symlink(name, mine + str(n))\n"
        "    name = mine + str(n)\nos.stat(name)",
    ),
    Case(
        "FR-07", _GROUP, "goes through /proc/self/root", "open('/proc/self/root' + {outside}).read()", _GONE,
        aims=("{outside}",), on=rungs.PROC,
    ),
    Case(
        "FR-07-init", _GROUP, "goes through the root of process 1", "os.stat('/proc/1/root' + {outside})",
        blocked("ENOENT", "EPERM"), control="os.stat('/proc/self/root' + {outside})", aims=("{outside}",), on=rungs.PROC,
    ),
    Case(
        "FR-07-cwd", _GROUP, "goes up through /proc/self/cwd",
        f"os.chdir({{root}})\nopen('/proc/self/cwd/' + {_UP}).read()", _GONE, aims=("{outside}",), on=rungs.PROC,
    ),
    Case(
        "FR-08", _GROUP, "finds a descriptor that it did not open",
        "each(errno.EBADF, os.fstat, range(3, 1024))", blocked("EBADF"),
        control="f = open('/dev/null')\neach(errno.EBADF, os.fstat, range(3, 1024))",
    ),
    Case(
        "FR-10", _GROUP, "opens a file by its number", raw("open_by_handle_at", "-1, 1, 0"), blocked("EPERM"), optional=True,
    ),
    Case(
        "FR-11", _GROUP, "mounts a folder of the host a second time",
        raw("mount", "{outside}.encode(), temp.encode(), 0, 4096, 0"), blocked("EPERM"),
        control=raw("mount", "1, 1, 1, 4096, 0"),
        optional=True,
    ),
    Case(
        "FR-11-tree", _GROUP, "copies the mounts of the host", raw("open_tree", "-100, 1, 1"), blocked("EPERM"),
        control=f"{IN_NAMESPACES}\n{raw('open_tree', '-100, 1, 1')}", optional=True,
    ),
    _absent("FR-12-kmsg", "/dev/kmsg"),
    _absent("FR-12-zero", "/dev/zero"),
    Case(
        "FR-12", _GROUP, "finds a device besides the four",
        f"each(errno.ENOENT, os.lstat, ['/dev/' + name for name in {_DEVICES!r}])", _GONE, on=rungs.NAME,
    ),
    _absent("FR-13", "/dev/shm"),  # noqa: S108
    Case(
        "FR-16-ro", _GROUP, "finds a mount that is writable, besides /tmp and devices",
        finds("any('ro' not in words for at, words in mounted() if at != '/tmp' and at[:5] != '/dev/')"),
        _GONE, on=rungs.PROC,
    ),
    Case(
        "FR-16-nosuid", _GROUP, "finds a mount that honours set-user-id bits",
        finds("any('nosuid' not in words for at, words in mounted())"), _GONE, on=rungs.PROC,
    ),
    Case(
        "FR-16-nodev", _GROUP, "finds a mount that honours device nodes, besides those of devices",
        finds("any('nodev' not in words for at, words in mounted() if at[:5] != '/dev/')"), _GONE, on=rungs.PROC,
    ),
    Case(
        "FR-16-noexec", _GROUP, "finds a mount that allows programs where the policy does not lend any",
        finds("any('noexec' not in words for at, words in mounted() if at not in {programs})"), _GONE,
        control=finds("any('noexec' not in words for at, words in mounted())"), on=rungs.PROC,
    ),
    Case(
        "FR-16-tied", _GROUP, "has a mount that is tied to one of the host",
        finds("any(' shared:' in line or ' master:' in line for line in open('/proc/self/mountinfo'))"), _GONE,
        control=finds("any(' - ' in line for line in open('/proc/self/mountinfo'))"), on=rungs.PROC,
    ),
    Case(
        "FR-16-host", _GROUP, "finds mounts of the host in its own list",
        finds("{'/sys', '/run', '/dev', '/dev/pts', '/sys/fs/cgroup', '/boot'} & {at for at, words in mounted()}"), _GONE, on=rungs.PROC,
    ),
    Case(
        "FR-01-shelf", _GROUP, "reads a folder that is mounted and that Landlock does not know",
        f"os.listdir({PROGRAMS_AT!r})", blocked("EACCES"), control="os.listdir({folder})", cage=SHELF, on=rungs.LANDLOCK,
    ),
    Case(
        "FR-01-shelf-file", _GROUP, "reads a file that is mounted and that Landlock does not know",
        f"open({PROGRAMS_AT!r} + '/program').read()", blocked("EACCES"), control="open({outside}).read()", cage=SHELF,
        on=rungs.LANDLOCK,
    ),
    Case(
        "FR-17", _GROUP, "reads the source of the front", "open({source}).read()", _GONE, aims=("{source}",), on=rungs.CONTENT
    ),
)  # fmt: skip
