"""Finds what a tool needs besides the system folders: interpreter, virtual environment, node prefix, own libraries.

Runs in the front, at start-up, so that an operator does not list these paths by hand. Pure but for reading the
programs themselves. Each need carries the reason that `explain` shows.

Two rules keep this from lending more than a program. Only known parts of an installation are taken (`bin`, `lib`, ...),
never a prefix, a home folder or what `_is_private` names. And what lies in the root folder is a stranger's word: a
repository's .venv may name an interpreter, which must be one, but no other folder and no library outside the root.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field

from sandbox import elf
from sandbox.errors import ProfileRefused
from sandbox.plan import SYSTEM

TOOL_PATH = "/usr/local/bin:/usr/bin:/bin"
_PARTS = ("pyvenv.cfg", "bin", "lib", "lib64", "libexec")
_DEPTH = 6  # a script whose interpreter is a script whose ...; the kernel itself stops at 4
_MOST_READ = 1 << 16  # characters of a file of an environment, which may lie in a hostile repository
_EDITABLE = re.compile(r"""['"](/[^'"\n]+)['"]""")
# Folders that hold much more than a program's files, whatever names them.
_NEVER = (
    "/",
    "/etc",
    "/root",
    "/home",
    "/var",
    "/run",
    "/proc",
    "/sys",
    "/dev",
    "/boot",
    "/tmp",  # noqa: S108
    "/srv",
    "/mnt",
    "/opt",
)
_KERNELS_OWN = ("/proc/", "/sys/", "/dev/", "/run/")
_SECRETS = {
    ".ssh",
    ".gnupg",
    ".aws",
    ".config",
    ".kube",
    ".docker",
    ".mozilla",
    ".password-store",
    "keyrings",
}


@dataclass
class Needs:
    """What was found. `trees`: path -> reason. `links`: path -> (target, reason). `execute`: files to be started.

    root: the root folder, or "" when there is none.
    """

    root: str = ""
    trees: dict[str, str] = field(default_factory=dict)
    links: dict[str, tuple[str, str]] = field(default_factory=dict)
    execute: list[str] = field(default_factory=list)

    def covers(self, path: str) -> bool:
        """Whether `path` will be there: a system folder or below a tree."""
        return any(below(path, place) for place in (*SYSTEM, *self.trees))

    def is_strangers(self, path: str) -> bool:
        """Whether `path` lies in the root folder, where anybody may have written it."""
        return bool(self.root) and below(os.path.realpath(path), self.root)


def resolve(program: str, search: str) -> str:
    """Absolute path of `program`, looked up in `search` when it has no slash. Raises ProfileRefused."""
    found = program if program.startswith("/") else shutil.which(program, path=search)
    if found is None or not os.path.isfile(found) or not os.access(found, os.X_OK):
        raise ProfileRefused(
            f"program {program!r} was not found or may not be started",
            "install it, or give its absolute path; desktop clients start servers with a short PATH",
        )
    return os.path.abspath(found)


def needs(program: str, root: str = "") -> Needs:
    """Everything that `program` (absolute path) needs to be started in a cage that lends `root`."""
    found = Needs(root)
    _add_program(found, program, f"the program {os.path.basename(program)}", _DEPTH)
    return found


def _add_program(found: Needs, path: str, reason: str, depth: int) -> None:
    if depth == 0 or path in found.execute:
        return
    resolve(path, "")
    found.execute.append(path)
    real = os.path.realpath(path)
    for place in dict.fromkeys((path, real)):
        _add_prefix(found, place)
    _add_tree(found, path, reason)
    try:
        program = elf.read(real)
    except OSError as problem:
        raise ProfileRefused(
            f"program {path}: {problem.strerror}", "make it readable for this user"
        ) from None
    if program.words:
        _add_script(found, program.words, os.path.basename(path), depth)
    elif program.loader:
        if program.loader not in found.execute:
            found.execute.append(program.loader)
        _add_tree(found, program.loader, f"loader of {os.path.basename(real)}")
        _add_libraries(found, program, real, _DEPTH)


def _add_script(found: Needs, words: tuple[str, ...], name: str, depth: int) -> None:
    reason = f"interpreter of {name}"
    interpreter = words[0]
    if os.path.basename(interpreter) == "env" and len(words) > 1:
        _add_program(found, interpreter, reason, depth - 1)
        wanted = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        interpreter = resolve(wanted, TOOL_PATH)
    _add_program(found, interpreter, reason, depth - 1)


def _add_libraries(found: Needs, program: elf.Program, real: str, depth: int) -> None:
    """Libraries that the program itself says where to find; those of the system are there anyhow."""
    if depth == 0 or found.is_strangers(real):
        return
    for library in program.libraries:
        for folder in program.search:
            candidate = os.path.join(folder, library)
            if not os.path.isfile(candidate):
                continue
            if not found.covers(candidate):
                _add_tree(found, candidate, f"library of {os.path.basename(real)}")
                _add_libraries(found, elf.read(candidate), os.path.realpath(candidate), depth - 1)
            break


def _add_prefix(found: Needs, path: str) -> None:
    """The parts of the installation that `path` belongs to, if its layout is a known one."""
    if found.covers(path):
        return
    if "/node_modules/" in path:
        modules = path[: path.index("/node_modules/") + len("/node_modules")]
        _add_tree(found, modules, f"node packages of {os.path.basename(path)}")
    prefix = os.path.dirname(os.path.dirname(path))
    config = os.path.join(prefix, "pyvenv.cfg")
    if os.path.isfile(config):
        _add_parts(found, prefix, "virtual environment")
        _add_base(found, config)
        if not found.is_strangers(config):
            _add_path_entries(found, prefix)
    elif _is_python(prefix) or os.path.isdir(os.path.join(prefix, "lib", "node_modules")):
        _add_parts(found, prefix, "installation")


def _is_python(prefix: str) -> bool:
    """A whole installation has the standard library; ~/.local has a lib/python3.x as well, and is none."""
    return bool(glob.glob(os.path.join(glob.escape(prefix), "lib", "python3*", "os.py")))


def _add_parts(found: Needs, prefix: str, what: str) -> None:
    for part in _PARTS:
        path = os.path.join(prefix, part)
        if os.path.exists(path) and below(os.path.realpath(path), os.path.realpath(prefix)):
            _add_tree(found, path, f"part of the {what} {prefix}")


def _add_tree(found: Needs, path: str, reason: str) -> None:
    """A tree at its real path, and a link where the path that was asked for is another one."""
    path = os.path.abspath(path)
    real = os.path.realpath(path)
    if _is_private(real):
        return
    if not found.covers(real):
        found.trees[real] = reason
    if real != path and not found.covers(path):
        found.links[path] = (real, reason)


def _is_private(real: str) -> bool:
    """A folder that no program needs as a whole, or one that holds keys."""
    if os.path.isdir(real) and (real in _NEVER or os.path.dirname(real) in ("/home", "/root")):
        return os.path.basename(real) not in ("bin", "lib", "lib64", "libexec")
    return real.startswith(_KERNELS_OWN) or not _SECRETS.isdisjoint(real.split("/"))


def _add_base(found: Needs, config: str) -> None:
    with open(config, encoding="utf-8", errors="replace") as file:
        for line in file.read(_MOST_READ).splitlines():
            key, _, value = line.partition("=")
            prefix = os.path.dirname(value.strip())
            if key.strip() == "home" and not found.covers(value.strip()) and _is_python(prefix):
                _add_parts(found, prefix, "Python")


def _add_path_entries(found: Needs, prefix: str) -> None:
    """Folders that .pth files and editable installs of the environment add to Python's path."""
    packages = os.path.join(glob.escape(prefix), "lib", "python3*", "site-packages")
    for name in glob.glob(os.path.join(packages, "*.pth")):
        with open(name, encoding="utf-8", errors="replace") as file:
            _add_folders(found, (line.strip() for line in file.read(_MOST_READ).splitlines()), name)
    for name in glob.glob(os.path.join(packages, "__editable__*.py")):
        with open(name, encoding="utf-8", errors="replace") as file:
            _add_folders(found, _EDITABLE.findall(file.read(_MOST_READ)), name)


def _add_folders(found: Needs, paths: Iterable[str], name: str) -> None:
    for path in paths:
        if path.startswith("/") and os.path.isdir(path):
            _add_tree(found, path, f"path entry of {os.path.basename(name)}")


def below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it, by their names."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
