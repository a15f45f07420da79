"""Files and folders a policy stands on: may this policy file be trusted, may this folder be the root?

Looks at files in the front at start-up; changes nothing. The clear answer for a dangerous root is "no, unless you say
so in the policy": desktop clients start servers in "/" or in the home folder.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
from collections.abc import Mapping

from policies.errors import BadKeyError, PolicyRefused
from policies.model import ServerTable

MAX_FILE = 1024 * 1024  # a policy is some kilobytes; a megabyte is a mistake

# Trees the cage itself builds: a root shown there would hide them.
_OWN_TREES = (
    "bin",
    "boot",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "proc",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr",
)
_FIRST_PERSON, _NOBODY = 1000, 65534  # user ids of people, by login.defs(5) of most distributions


def read(path: str) -> bytes:
    """The bytes of a policy file that only its owner (the operator or root) can change. Raises PolicyRefused."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as problem:
        raise PolicyRefused(
            path, "", f"cannot be read: {problem.strerror}", "give the path of a policy file"
        ) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise PolicyRefused(path, "", "is not a regular file", "give the path of a policy file")
        _trusted(path, found)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_FILE + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_FILE:
        raise PolicyRefused(
            path, "", f"is larger than {MAX_FILE} bytes", "split it or remove what is no policy"
        )
    return data


def _trusted(path: str, found: os.stat_result) -> None:
    if found.st_uid not in (0, os.geteuid()):
        raise PolicyRefused(path, "", "belongs to another user", f"run: chown {os.geteuid()} {path}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PolicyRefused(path, "", "can be changed by its group or by everyone", f"run: chmod go-w {path}")
    for folder in {os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))}:
        if (open_folder := replaceable_in(folder, by_group=True)) is not None:
            problem = f"its group or everyone may replace it in {open_folder}"
            raise PolicyRefused(path, "", problem, f"run: chmod go-w {open_folder}")


def _is_shared(group: int) -> bool:
    """Whether a group has members besides root and the user who runs this."""
    own = {0, os.geteuid()}
    try:
        members = {pwd.getpwnam(name).pw_uid for name in grp.getgrgid(group).gr_mem}
    except KeyError:  # a group or a member without an entry
        return group not in (0, os.getegid())
    return not (members | {entry.pw_uid for entry in pwd.getpwall() if entry.pw_gid == group}) <= own


def replaceable_in(folder: str, *, by_group: bool = False) -> str | None:
    """The first of `folder` and its parents in which everyone, or a stranger who owns it, may replace what is there.

    by_group: or a group that has other members.
    """
    while True:
        found = os.stat(folder)
        written = found.st_mode & stat.S_IWOTH or (
            by_group and found.st_mode & stat.S_IWGRP and _is_shared(found.st_gid)
        )
        if written and not found.st_mode & stat.S_ISVTX:
            return folder
        if found.st_uid not in (0, os.geteuid()):
            return folder
        if folder == "/":
            return None
        folder = os.path.dirname(folder)


def root(server: ServerTable, folder: str, override: str | None, environment: Mapping[str, str]) -> str:
    """The absolute, symlink-free root. `folder` is that of the policy file; `override` is --root, from the cwd."""
    path = _folder(*((server.root, folder) if override is None else (override, os.getcwd())))
    if is_taken(path):
        fix = "name a project folder"
        raise BadKeyError(
            "server.root", f"{path} is the kernel's or the cage's own, not a folder to lend", fix
        )
    if path == "/":
        if not server.allow_root_dir:
            raise BadKeyError(
                "server.root", 'is "/", the whole machine', "name a project folder, or allow_root_dir = true"
            )
        if server.root_at is None:
            raise BadKeyError("server.root", 'is "/", which tools have already', 'add root_at = "/host"')
    elif not server.allow_home and any(_holds(path, home) for home in homes(environment)):
        raise BadKeyError(
            "server.root", f"{path} is or holds a home folder", "name a project folder, or allow_home = true"
        )
    return path


def _folder(text: str | None, base: str) -> str:
    """A folder that exists and can be told to a client."""
    if text is None:
        raise BadKeyError("server.root", "there is no root", 'write root = "/some/folder", or pass --root')
    if not text:
        raise BadKeyError("server.root", "is empty", "write the absolute path of a folder")
    if text.startswith("~"):
        raise BadKeyError("server.root", f'"{text}" is not expanded here', "write the absolute path")
    path = os.path.realpath(os.path.join(base, text))
    if not os.path.isdir(path):
        raise BadKeyError("server.root", f"{path} is not a folder", "create it or name another")
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    if shown != path:
        problem = f"{shown} is not UTF-8, and clients are told paths as text"
        raise BadKeyError("server.root", problem, "rename the folder, or name another")
    return path


def is_taken(path: str) -> bool:
    """Whether a path cannot be lent: what the kernel makes up, and folders that every cage has of its own."""
    return path.split("/")[1] in ("proc", "sys", "dev", "run") or path in ("/etc", "/tmp", "/tmp/home")  # noqa: S108


def _holds(path: str, inner: str) -> bool:
    return inner == path or inner.startswith(path + "/")


def homes(environment: Mapping[str, str]) -> set[str]:
    """The home folder by the environment and by the user database, as root those of all people, symlinks resolved."""
    found = {environment.get("HOME", "")}
    with contextlib.suppress(KeyError):  # a uid without an entry, as in many containers
        found.add(pwd.getpwuid(os.geteuid()).pw_dir)
    if os.geteuid() == 0:  # whose tools may read what is private to the owner of the root
        found |= {entry.pw_dir for entry in pwd.getpwall() if _FIRST_PERSON <= entry.pw_uid < _NOBODY}
    return {os.path.realpath(home) for home in found if home.startswith("/")} - {"/"}


def root_at(text: str | None) -> str | None:
    """Where the tools see the root."""
    if text is None:
        return None
    path = os.path.normpath(text)
    if not text.startswith("/") or path == "/" or path.split("/")[1] in _OWN_TREES or ".." in text.split("/"):
        raise BadKeyError(
            "server.root_at", f'"{text}" is taken or not absolute', 'write a free path such as "/work"'
        )
    return path


def outside(policy_file: str, root_folder: str, *, writable: bool) -> None:
    """A tool that can write the root must not be able to change the policy that confines it."""
    path = os.path.realpath(policy_file)
    if writable and _holds(root_folder.rstrip("/"), path):
        raise BadKeyError("server.root", f"the policy file {path} stands inside the root that tools may write",
                         "move the policy file out of the root")  # fmt: skip


def existing(paths: tuple[str, ...], key: str) -> tuple[str, ...]:
    """Absolute paths that exist, as `read_only_paths` needs them."""
    for index, path in enumerate(paths):
        where = f"{key}[{index}]"
        if not path.startswith("/") or ".." in path.split("/"):
            raise BadKeyError(where, f'"{path}" is not an absolute path', "write it from / on, without ..")
        if os.path.normpath(path) == "/":
            raise BadKeyError(where, 'is "/"', "name the folders the tool needs")
        if is_taken(os.path.realpath(path)):
            raise BadKeyError(
                where, f"{path} is the kernel's or the cage's own", "name files or folders below it"
            )
        if not os.path.exists(path):
            raise BadKeyError(where, f"{path} does not exist", "remove it or correct it")
    return tuple(os.path.normpath(path) for path in paths)


def secret_files(paths: tuple[str, ...], folder: str, home: str | None) -> tuple[str, ...]:
    """Absolute paths of secret files. A file that is missing is refused: nothing would be redacted."""
    found = []
    for index, text in enumerate(paths):
        where = f"redact.files[{index}]"
        path = os.path.join(home, text[2:]) if text.startswith("~/") and home else os.path.join(folder, text)
        if not os.path.isfile(path):
            raise BadKeyError(
                where, f"{path} is not a file", "correct it: a secret that is not found is not redacted"
            )
        found.append(os.path.normpath(path))
    return tuple(found)
