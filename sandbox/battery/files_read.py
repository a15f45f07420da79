"""FR: reading what lies outside the root folder."""

from __future__ import annotations

from sandbox.battery.case import Case, blocked

_GONE = blocked("ENOENT")
_GROUP = "files_read"


def _stat(number: str, path: str) -> Case:
    return Case(number, _GROUP, f"looks at {path}", f"os.lstat({path!r})", _GONE)


CASES = (
    _stat("FR-01-shadow", "/etc/shadow"),
    _stat("FR-01-sys", "/sys/kernel"),
    _stat("FR-01-sysctl", "/proc/sys/kernel/core_pattern"),
    Case("FR-01", _GROUP, "reads a file beside the root folder", "open({outside}).read()", _GONE, needs=("apart",)),
    Case("FR-02", _GROUP, "finds anything of the user's home folder",
        "if not any(os.path.lexists(name) for name in {home}): raise OSError(2, '')", _GONE, needs=("home",)),
    Case(
        "FR-03", _GROUP, "walks up from the root folder with ..",
        "os.chdir({root})\nopen('../' * 40 + {outside}[1:]).read()", _GONE, needs=("apart",),
    ),
    Case(
        "FR-04", _GROUP, "follows a symbolic link of its own out of the cage",
        "os.symlink({outside}, {temp} + '/link-' + str(os.getpid()))\n"
        "open({temp} + '/link-' + str(os.getpid())).read()", _GONE, needs=("apart",),
    ),
    Case("FR-07", _GROUP, "goes through /proc/self/root", "open('/proc/self/root' + {outside}).read()", _GONE, needs=("apart",)),
    Case(
        "FR-07-cwd", _GROUP, "goes up through /proc/self/cwd",
        "os.chdir({root})\nopen('/proc/self/cwd/' + '../' * 40 + {outside}[1:]).read()", _GONE, needs=("apart",),
    ),
    Case(
        "FR-08", _GROUP, "finds a descriptor that it did not open",
        "if len(os.listdir('/proc/self/fd')) == 4: raise OSError(9, '')", blocked("EBADF"),
        control="f = open('/dev/null')\nif len(os.listdir('/proc/self/fd')) == 4: raise OSError(9, '')",
    ),
    _stat("FR-12-kmsg", "/dev/kmsg"),
    _stat("FR-12-zero", "/dev/zero"),
    _stat("FR-13", "/dev/shm"),  # noqa: S108
    Case("FR-17", _GROUP, "reads the source of the front", "open({source}).read()", _GONE, needs=("source",)),
)  # fmt: skip
