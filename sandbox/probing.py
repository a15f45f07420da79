"""What this host can enforce, found by doing it: throw-away processes take the real steps. Runs in the launcher, once.

Each attempt is a clone into namespaces and the steps of a worker up to Landlock, on a file system of next to nothing. What
is refused is reported by step and errno; nothing is concluded from a version number or a setting.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from sandbox import abi, syscalls
from sandbox.ladder import Namespaces
from sandbox.steps import mounts
from sandbox.steps.identity import NAMESPACE_KINDS, Identity, write_maps
from sandbox.steps.keyring import Keyring
from sandbox.steps.landlock import MINIMUM_ABI, Landlock
from sandbox.steps.mounts import Mount, Mounts
from sandbox.steps.privileges import Privileges

_ALL = (
    abi.CLONE_NEWNS
    | abi.CLONE_NEWPID
    | abi.CLONE_NEWNET
    | abi.CLONE_NEWIPC
    | abi.CLONE_NEWUTS
    | abi.CLONE_NEWCGROUP
)
FLAGS: dict[Namespaces, int] = {"user": _ALL | abi.CLONE_NEWUSER, "root": _ALL, "none": 0}
_ANSWER = 4096  # bytes of one attempt's answer: fewer than a pipe holds
# errno values that say no; anything else says that something went wrong.
_REFUSALS = frozenset(
    (
        errno.EPERM,
        errno.EACCES,
        errno.ENOSYS,
        errno.EINVAL,
        errno.EOPNOTSUPP,
        errno.ENODEV,
    )
)
_LAST_CAPABILITY = 40  # CAP_CHECKPOINT_RESTORE, the last one since Linux 5.9


@dataclass(frozen=True, slots=True)
class Facts:
    """What the attempts showed. `refused`: (layer, step, errno, detail) of each that did not work; `works`: whether one
    did. A failure that is no refusal (no memory, no process) ends the search: a host in trouble is not a weaker host.
    """

    works: bool
    namespaces: Namespaces
    proc: bool
    landlock: int
    base: int
    last_capability: int
    refused: tuple[tuple[str, str, int, str], ...]

    def as_json(self) -> dict[str, object]:
        """Plain data for the front."""
        return {name: getattr(self, name) for name in self.__slots__}


def look(base: int) -> Facts:
    """The strongest kind of namespaces that works here. `base`: first kernel id for workers, 0 as an ordinary user."""
    refused: list[tuple[str, str, int, str]] = []
    kinds: tuple[Namespaces, ...] = ("user", "root", "none") if os.geteuid() == 0 else ("user", "none")
    last = last_capability()
    ids = (base, base) if base else (os.geteuid(), os.getegid())
    for kind in kinds:
        answer = _attempt(Identity(base > 0, kind), ids, last)
        failed = answer.get("failed")
        if failed:
            step, code, detail = failed
            refused.append(("namespaces" if kind != "none" else step, step, code, detail))
            if not is_refusal(code):
                break
            continue
        refused += [
            (layer, layer, *found)
            for layer in ("proc", "landlock")
            if isinstance(found := answer[layer], list)
        ]
        landlock = answer["landlock"] if isinstance(answer["landlock"], int) else 0
        return Facts(True, kind, answer["proc"] is True, landlock, base, last, tuple(refused))
    return Facts(False, "none", False, 0, base, last, tuple(refused))


def is_refusal(code: int | None) -> bool:
    """Whether an errno says that this host does not do a thing, and not that it could not do it now.

    ENOSPC is both: namespaces are switched off (user.max_user_namespaces = 0), or somebody has used them all up, which
    must not turn a host into a weaker one. namespaces(7).
    """
    if code == errno.ENOSPC:
        return any(_setting(f"/proc/sys/user/max_{kind}_namespaces") == b"0" for kind in NAMESPACE_KINDS)
    return code in _REFUSALS


def _setting(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read().strip()
    except OSError:
        return b""


def last_capability() -> int:
    """Highest capability number that the kernel knows."""
    try:
        with open("/proc/sys/kernel/cap_last_cap", "rb") as file:
            return int(file.read())
    except OSError:
        return _LAST_CAPABILITY


def _attempt(identity: Identity, ids: tuple[int, int], last: int) -> dict[str, Any]:
    """One throw-away process. {"failed": [step, errno, detail]} or {"proc": ..., "landlock": ...}."""
    ready_reader, ready_writer = os.pipe2(os.O_CLOEXEC)
    answer_reader, answer_writer = os.pipe2(os.O_CLOEXEC)
    try:
        pid, pidfd = syscalls.spawn(FLAGS[identity.namespaces])
        if pid == 0:
            _throw_away(identity, ids, last, ready_reader, answer_writer)
        os.close(answer_writer)
        answer_writer = -1
        try:
            return _answer(pid, identity, ids, ready_writer, answer_reader)
        finally:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(pidfd)
    except OSError as problem:
        return {"failed": ["namespaces", problem.errno or 0, str(problem.strerror)]}
    finally:
        for descriptor in (ready_reader, ready_writer, answer_reader, answer_writer):
            if descriptor >= 0:
                os.close(descriptor)


def _answer(pid: int, identity: Identity, ids: tuple[int, int], ready: int, answer: int) -> dict[str, Any]:
    try:
        if identity.namespaces == "user":
            write_maps(pid, *ids, slots=identity.slots)
    except OSError as problem:
        return {"failed": ["identity", problem.errno, str(problem.strerror)]}
    os.write(ready, b"1")
    said = os.read(answer, _ANSWER)
    if not said:
        return {"failed": ["namespaces", 0, "the process that tried it was killed"]}
    found: dict[str, Any] = json.loads(said)
    return found


def _throw_away(identity: Identity, ids: tuple[int, int], last: int, ready: int, answer: int) -> NoReturn:
    """The steps of a worker, in its order. Never returns."""
    step = "identity"
    try:
        os.read(ready, 1)
        identity.apply(*ids)
        apart = identity.namespaces != "none"
        found: dict[str, object] = {"proc": False}
        if apart:
            step = "mounts"
            proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            found["proc"] = _tried(_new_proc)  # while the host's own is in sight: the kernel compares them
            Mounts(_few()).apply({}, proc)
        step = "keyring"
        Keyring(required=apart).apply()
        step = "privileges"
        Privileges(last, bounding=apart or identity.slots).apply()
        step = "landlock"
        found["landlock"] = _tried(_landlock)
        said = found
    except OSError as problem:
        said = {"failed": [step, problem.errno or 0, str(problem.strerror or problem)[:500]]}
    except BaseException as problem:  # noqa: BLE001 - it must not go on into the launcher's code
        said = {"failed": [step, 0, f"{type(problem).__name__}: {problem}"[:500]]}
    try:
        os.write(answer, json.dumps(said).encode())
    finally:
        os._exit(0)


def _tried(step: Callable[[], object]) -> object:
    try:
        return step()
    except OSError as problem:
        if not is_refusal(problem.errno):
            raise
        return [problem.errno or 0, str(problem.strerror or problem)[:500]]


def _few() -> tuple[Mount, ...]:
    """A system folder, a device and a tmpfs: each kind of mount that a worker makes."""
    found = os.lstat("/usr")
    mount = Mount("tree", "/usr", "/usr", identity=(found.st_dev, found.st_ino), execute=True)
    if not stat.S_ISDIR(found.st_mode):
        raise FileNotFoundError(2, "/usr is not a folder")
    return (Mount("device", "/dev/null", "/dev/null"), Mount("temp", "/tmp", size=1 << 20), mount)  # noqa: S108


def _new_proc() -> bool:
    os.close(mounts.new_proc(mounts.PROC_OPTIONS))
    return True


def _landlock() -> int:
    version = syscalls.landlock_abi()
    if version >= MINIMUM_ABI:
        Landlock(version, ("/usr",), (), (), ()).apply()
    return version
