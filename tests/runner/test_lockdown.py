"""After the lock-down a front that was taken over cannot start a program, connect, or write into the launcher."""

from __future__ import annotations

import subprocess
import sys

ATTEMPTS = """\
import errno, os, socket
from runner import lockdown
from sandbox import spawn

def tries(name, action):
    try:
        action()
        print(name, "WORKED")
    except OSError as problem:
        print(name, errno.errorcode[problem.errno])

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)

def run():
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)

def all_of_them():
    tries("fork", fork)
    tries("spawn", run)
    tries("socket", lambda: socket.socket(socket.AF_INET).close())
    tries("unix", lambda: socket.socket(socket.AF_UNIX).close())
    tries("pair", lambda: [end.close() for end in socket.socketpair()])
    tries("memory", lambda: os.close(os.open(f"/proc/{launcher.pid}/mem", os.O_RDWR)))
    tries("status", lambda: open(f"/proc/{launcher.pid}/status").close())

launcher = spawn.launcher()
all_of_them()
lockdown.lock(lockdown.program(), landlock=True)
print("locked")
all_of_them()
tries("execve", lambda: os.execv("/bin/true", ["true"]))
launcher.link.close()
"""


def test_what_worked_before_does_not_after() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ATTEMPTS], capture_output=True, text=True, timeout=30, check=False
    )
    before, after = done.stdout.split("locked\n")
    names = ("fork", "spawn", "socket", "unix", "pair", "memory", "status")
    assert before.splitlines() == [f"{name} WORKED" for name in names], done.stderr
    found = dict(line.split() for line in after.splitlines())
    assert {found[name] for name in ("fork", "spawn", "socket", "unix", "pair", "execve")} == {"EPERM"}
    assert found["memory"] == "EACCES"
    assert found["status"] == "WORKED"  # what the attestation needs
