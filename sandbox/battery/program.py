"""The programs of attempts: Python source that says in its last line what became of it. Pure text, run elsewhere.

WORKED, BLOCKED and the errno that stopped it, or VALUE and what it found. A body finds `temp`, the folder that it may
write, and `mine`, the beginning of a name there that no other program uses. Only the standard library is used, and only
what starts quickly: a battery has hundreds of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FACT = re.compile(r"\{(\w+)\}")
_CALL = re.compile(r"\{sys_(\w+)\}")
_FRAME = """\
import errno, os
temp = os.environ.get("TMPDIR", "/tmp")
mine = temp + "/verify-" + str(os.getpid()) + "-"
{helpers}try:
{body}
    print("WORKED")
except OSError as e:
    print("BLOCKED", errno.errorcode.get(e.errno, e.errno))
"""
# Functions that a body may use; each is part of a program only where its name is.
_HELPERS = {
    # One system call by number, every word as wide as a register.
    "call(": """\
import ctypes
def call(*words):
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    found = syscall(*(ctypes.c_long(word) if isinstance(word, int) else word for word in words))
    if found < 0: raise OSError(ctypes.get_errno(), "")
    return found
""",
    # Acts on every item. Returns as soon as one works; raises `stop` when that is what stopped all of them.
    "each(": """\
def each(stop, act, items):
    for item in items:
        try: act(item)
        except OSError as e:
            if e.errno != stop: raise
        else: return
    raise OSError(stop, "")
""",
    # Makes a new file below a folder, with the folders on its way, and takes all of it back. Touches nothing that exists.
    "plant(": """\
def plant(folder, name):
    made, here = [], folder
    for part in name.split("/")[:-1]:
        here += "/" + part
        while os.path.lexists(here) and not os.path.isdir(here): here += "~"
        if not os.path.isdir(here):
            os.mkdir(here)
            made.append(here)
    here += "/" + name.split("/")[-1]
    while os.path.lexists(here): here += "~"
    os.close(os.open(here, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW))
    os.unlink(here)
    for one in reversed(made): os.rmdir(one)
""",
    # Starts a child that does `work` and ends.
    "child(": """\
def child(work):
    pid = os.fork()
    if pid == 0:
        try: work()
        finally: os._exit(0)
    return pid
""",
    # Mount points of this process, each with its options.
    "mounted(": """\
def mounted():
    fields = (line.split() for line in open("/proc/self/mountinfo"))
    return [(words[4], words[5].split(",")) for words in fields]
""",
    # A field of this process's status, as text.
    "status(": """\
def status(name):
    return next(line.split(":", 1)[1].strip() for line in open("/proc/self/status") if line.startswith(name + ":"))
""",
}


def framed(body: str) -> str:
    """A program that says what became of `body`."""
    helpers = "".join(text for name, text in _HELPERS.items() if name in body)
    return _FRAME.format(helpers=helpers, body="\n".join("    " + line for line in body.splitlines()))


def filled(body: str, facts: Mapping[str, object]) -> str:
    """{name} becomes the fact of that name as a literal. KeyError for one that does not exist."""
    return _FACT.sub(lambda found: repr(facts[found[1]]), body)


def calls_in(body: str) -> set[str]:
    """Names of the system calls that a body makes by number: {sys_NAME}."""
    return set(_CALL.findall(body))


def raw(name: str, arguments: str = "") -> str:
    """Statements that make one system call."""
    return f"call({{sys_{name}}}, {arguments})"


def value(expression: str) -> str:
    """Statements that say what an expression is."""
    return f"print('VALUE', {expression})\nraise SystemExit"


def finds(condition: str, code: str = "ENOENT") -> str:
    """Statements that work when a condition is true, and are stopped by `code` when it is not."""
    return f"if not ({condition}): raise OSError(errno.{code}, '')"
