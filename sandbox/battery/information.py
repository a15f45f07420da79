"""IL: what a tool learns about this machine and its user. TC: what it learns shows how its cage was made."""

from __future__ import annotations

from sandbox.battery import rungs
from sandbox.battery.case import ANOTHER, Case, blocked
from sandbox.battery.changed import UNFILTERED
from sandbox.battery.program import finds, raw, value

_GROUP = "information"
_NONE = blocked("ENOENT")
_UNIQUE = (
    "/etc/machine-id", "/var/lib/dbus/machine-id", "/etc/hostid", "/etc/ssh/ssh_host_ed25519_key.pub", "/sys/class/dmi/id",
    "/sys/class/net",
)  # fmt: skip
# A program that starts itself again, twice: a stack at the same place means that addresses are not random. The first
# start does not count, since outside the control changes what comes after it.
_TWICE = """\
import sys
start = next(line.split('-')[0] for line in open('/proc/self/maps') if '[stack]' in line)
if len(sys.argv) < 3:
    words = open('/proc/self/cmdline').read().split('\\0')[:-1]
    os.execv(sys.executable, [*words, start])
if sys.argv[2] != start: raise OSError(errno.ENOENT, '')"""
# A program with two more threads where it may have them, to be looked at once it is called ready (PR_SET_NAME).
_WAIT = """\
import threading, time
try:
    for n in range({threads}): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
except RuntimeError: pass
call({sys_prctl}, 15, b'ready', 0, 0, 0)
time.sleep(60)"""
# Identifiers of the process that started a program stand in its auxiliary vector (getauxval(3): AT_UID, AT_EGID).
_AUXV = """\
import struct
words = dict(struct.iter_unpack('@LL', open('/proc/self/auxv', 'rb').read()))
if {words[n] for n in (11, 12, 13, 14)} == set([1000]) and not words[23]: raise OSError(errno.ENOENT, '')"""


def _front(number: str, sentence: str, name: str) -> Case:
    return Case(
        number, _GROUP, sentence, f"os.stat('/proc/%d/{name}' % {{front}})", _NONE, control="os.stat('/proc/%d' % {front})",
        on=rungs.PROC,
    )  # fmt: skip


def _file(number: str, sentence: str, path: str) -> Case:
    return Case(number, _GROUP, sentence, f"os.stat({path!r})", _NONE, aims=(path,), on=rungs.NAME)


CASES = (
    Case(
        "IL-01", _GROUP, "finds a variable in its environment that nobody listed",
        finds("set(os.environ) - set({variables}) - {'LC_CTYPE'}"), _NONE,
    ),
    Case(
        "IL-01-start", _GROUP, "finds a variable in what it was started with that nobody listed",
        finds("{one.split(b'=')[0].decode() for one in open('/proc/self/environ', 'rb').read().split(b'\\0') if one} - set({variables})"),
        _NONE, on=rungs.PROC,
    ),
    Case(
        "IL-01-auxv", _GROUP, "finds ids of this machine in its auxiliary vector", _AUXV, _NONE,
        control="import struct\nwords = dict(struct.iter_unpack('@LL', open('/proc/self/auxv', 'rb').read()))\nwords[11]",
        on={**rungs.USER, "no-proc": rungs.PROC["no-proc"]},
    ),
    _front("IL-02", "finds the environment of the front", "environ"),
    _front("IL-02-cmdline", "finds the command line of the front", "cmdline"),
    _front("IL-02-memory", "finds the memory of the front", "mem"),
    _front("IL-02-files", "finds the open files of the front", "fd"),
    Case(
        "IL-02-keeper", _GROUP, "finds the process that guards it", "os.stat('/proc/%d' % os.getppid())", _NONE, on=rungs.PROC,
    ),
    Case(
        "IL-02-list", _GROUP, "finds another process in a list",
        finds("[name for name in os.listdir('/proc') if name.isdigit() and int(name) != os.getpid()]"), _NONE, on=rungs.PROC,
    ),
    _file("IL-03", "looks at the list of keys", "/proc/keys"),
    _file("IL-03-users", "looks at the list of keys' users", "/proc/key-users"),
    Case(
        "IL-03-session", _GROUP, "holds the front's session keyring, behind the filter", value("call({sys_keyctl}, 0, -3, 0, 0, 0)"),
        (ANOTHER,), cage=UNFILTERED, optional=True, on=rungs.BEHIND,
    ),
    Case(
        "IL-04", _GROUP, "learns the name of this host", finds("os.uname().nodename == {hostname}"), _NONE,
        needs=("name",), on={"no-namespaces": "the host name is the host's on this rung"},
    ),
    _file("IL-04-boot", "looks at this boot's id", "/proc/sys/kernel/random/boot_id"),
    Case(
        "IL-04-machine", _GROUP, "looks at what tells this machine from all others",
        f"each(errno.ENOENT, os.stat, {_UNIQUE!r})", _NONE, aims=_UNIQUE, on=rungs.NAME,
    ),
    _file("IL-04-cpu", "looks at this machine's processors", "/proc/cpuinfo"),
    _file("IL-04-memory", "looks at this machine's memory", "/proc/meminfo"),
    _file("IL-04-uptime", "looks how long this machine runs", "/proc/uptime"),
    _file("IL-04-version", "looks who built this kernel", "/proc/version"),
    _file("IL-04-partitions", "looks at this machine's disks", "/proc/partitions"),
    Case(
        "IL-04-mounts", _GROUP, "finds the home folder in its list of mounts",
        finds("any((word + '/').startswith({home_folder} + '/') for line in open('/proc/self/mountinfo') for word in line.split())"), _NONE,
        control=finds("' / ' in open('/proc/self/mountinfo').read()"), aims=("{home_folder}",), on=rungs.PROC,
    ),
    Case(
        "IL-05", _GROUP, "finds root in the list of users", finds("'root:' in open('/etc/passwd').read()"), _NONE, aims=("/etc/passwd",),
        on=rungs.CONTENT,
    ),
    Case(
        "IL-05-map", _GROUP, "has more than one user id (uid_map)",
        finds("[open('/proc/self/%s_map' % kind).read().split()[::2] for kind in ('uid', 'gid')] != [['1000', '1']] * 2"), _NONE, on=rungs.USER,
    ),
    Case(
        "IL-05-groups", _GROUP, "keeps the caller's groups", finds("os.getgroups()"), _NONE, control="os.setgroups([1])\n" + finds("os.getgroups()"),
        needs=("root",), optional=True,
    ),
    Case(
        "IL-07", _GROUP, "tells from the answer whether a file exists outside",
        "def answer(path):\n    try: os.lstat(path)\n    except OSError as e: return e.errno\n"
        + finds("answer({outside}) != answer({outside} + '-not')"), _NONE, aims=("{outside}",), on=rungs.NAME,
    ),
    Case(
        "IL-09", _GROUP, "finds its stack at the same place twice", _TWICE, _NONE,
        control="import ctypes\nctypes.CDLL(None).personality(0x0040000)\n" + _TWICE, optional=True, on=rungs.PROC,
    ),
    Case(
        "IL-11-set", _GROUP, "changes its limit for core files", raw("prlimit64", "0, 4, bytes(16), 0"), blocked("EPERM"),
    ),
    Case(
        "IL-11", _GROUP, "may write a core file, or start a core helper", "import resource\n" + finds("resource.getrlimit(4) != (1, 1)"), _NONE,
    ),
    Case(
        "TC-08", _GROUP, "may change its groups (setgroups)", finds("open('/proc/self/setgroups').read().strip() != 'deny'"), _NONE,
        needs=("user",), on=rungs.USER,
    ),
    *(
        Case(number, _GROUP, sentence, _WAIT, ("SEEN confined",), needs=needs, look=look)
        for number, look, needs, sentence in (
            ("TC-09", "tool", (), "has a thread without filter, or with privileges, as the kernel shows it to others"),
            ("TC-09-keeper", "keeper", (), "is guarded by a process without filter, with privileges, or open to others"),
            ("TC-09-cgroup", "cgroup", ("cgroup",), "is not counted with its call"),
        )
    ),
)  # fmt: skip
