"""Fronts that have been taken over: the real server, with code of ours running inside it at a chosen moment.

`attack` is run by `python -c` in place of `-m runner`. What it finds goes into a file of JSON, because the server's own
streams stay what they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# Each attempt is a function that raises OSError when the kernel refuses it. What would replace or fork the front
# is done in a child where children are possible.
ATTEMPTS = """\
import ctypes, json, os, socket, subprocess, sys, threading
from runner import front, lockdown
from sandbox import abi

libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
NUMBERS = {  # asm/unistd_64.h, asm-generic/unistd.h
    "unshare": 272 if X86 else 97, "execveat": 322 if X86 else 281, "memfd_create": 319 if X86 else 279,
    "clone": 56 if X86 else 220, "ptrace": 101 if X86 else 117, "process_vm_readv": 310 if X86 else 270,
    "keyctl": 250 if X86 else 219, "clone3": 435,
}

def raw(name, *arguments):
    result = libc.syscall(NUMBERS[name], *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result

def in_a_child(action):
    try:
        pid = os.fork()
    except OSError:
        return action()  # no children here: the attempt itself, which must fail as well
    if pid == 0:
        try:
            action()
        except OSError as problem:
            os._exit(problem.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "in the child")

def peek():
    buffer, source = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
    class Iovec(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    local, remote = Iovec(ctypes.addressof(buffer), 8), Iovec(ctypes.addressof(source), 8)
    raw("process_vm_readv", os.getpid(), ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)

def clone_raw():
    pid = raw("clone", 17, 0, 0, 0, 0)  # SIGCHLD, as fork
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)

def execveat():
    empty = (ctypes.c_char_p * 2)(b"true", None)
    raw("execveat", -100, b"/bin/true", empty, empty, 0)

def spawn():
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)

def pair():
    for end in socket.socketpair():
        end.close()

ATTEMPTS = {
    "execv": lambda: in_a_child(lambda: os.execv("/bin/true", ["true"])),
    "execveat": lambda: in_a_child(execveat),
    "fork": lambda: os.waitpid(os.fork() or os._exit(0), 0),
    "clone": clone_raw,
    "posix_spawn": spawn,
    "subprocess": lambda: subprocess.run(["/bin/true"], check=True),
    "inet": lambda: socket.socket(socket.AF_INET).close(),
    "inet6 udp": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close(),
    "unix": lambda: socket.socket(socket.AF_UNIX).close(),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
    "socketpair": pair,
    "memfd_create": lambda: os.close(os.memfd_create("x")),
    "memfd_create raw": lambda: os.close(raw("memfd_create", b"x", 0)),
    "unshare": lambda: raw("unshare", 0x400),  # CLONE_FILES: anyone may
    "process_vm_readv": peek,
    "ptrace": lambda: in_a_child(lambda: raw("ptrace", 0, 0, 0, 0)),  # PTRACE_TRACEME
}

def attempts():
    found = {}
    for name, attempt in ATTEMPTS.items():
        try:
            attempt()
            found[name] = "worked"
        except OSError as problem:
            found[name] = os.strerror(problem.errno)
    try:
        raw("clone3", 0, 0)
    except OSError as problem:
        found["clone3"] = os.strerror(problem.errno)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    found["thread"] = "worked"
    return found

def report(document):
    with open(sys.argv[-1] + ".new", "w") as file:
        json.dump(document, file)
    os.rename(sys.argv[-1] + ".new", sys.argv[-1])
"""

BEFORE = """
original = lockdown.lock
def lock(program, landlock):
    report(attempts())
    original(program, landlock=landlock)
lockdown.lock = lock
"""

ON_A_CALL = """
original = front.Front.handle
def handle(self, event):
    if getattr(event, "name", None) == "attack":
        attack(self)
    original(self, event)
front.Front.handle = handle
"""

MAIN = """
arguments = sys.argv[1:-1]
from runner.cli import main
sys.exit(main(arguments))
"""

ASK = """
import base64, dataclasses
from sandbox import wire
from sandbox.wire import Message, Packet
def pipes(count):
    found = []
    while len(found) < count:
        found += os.pipe()
    return found[:count]
def attack(self):
    supervisor = self._parts.supervisor
    plan = next(iter(supervisor._plans.values()))[1]
    evil = dataclasses.replace(plan, name="evil", command=("/bin/sh", "-c", "echo ran"))
    register = Message(Packet.REGISTER, payload=json.dumps(evil.as_json()).encode())
    packets = {
        "plan that does not exist": (Message(Packet.CALL, 999, 77), 2),
        "plan just beyond the last": (Message(Packet.CALL, len(supervisor._plans), 77), 2),
        "new plan": (register, 0),
        "new plan with descriptors": (register, 2),
        "call with one descriptor": (Message(Packet.CALL, 0, 77), 1),
        "call with many descriptors": (Message(Packet.CALL, 0, 77), 9),
        "call without descriptors": (Message(Packet.CALL, 0, 77), 0),
        "launcher's own words": (Message(Packet.STARTED, 0, 77), 0),
        "garbage": (None, 0),
    }
    message, count = packets[os.environ["ATTACK"]]
    data = b"\\xff" * 40 if message is None else wire.pack(message)
    socket.send_fds(supervisor._link, [data], pipes(count))
    report("sent")
"""


def attempts_before() -> str:
    """Tries everything right before the lock closes."""
    return ATTEMPTS + BEFORE + MAIN


def attempts_on_a_call() -> str:
    """Tries everything when a client calls the tool "attack"."""
    return ATTEMPTS + "def attack(self): report(attempts())\n" + ON_A_CALL + MAIN


def asks_the_launcher() -> str:
    """Sends the packet that the variable ATTACK names when a client calls the tool "attack"."""
    return ATTEMPTS + ASK + ON_A_CALL + MAIN


def found(path: Path) -> Any:
    """What was reported."""
    return json.loads(path.read_text())
