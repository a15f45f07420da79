"""The root folder, held by a descriptor: path arguments are resolved by the kernel beneath it.

Runs in the front. It looks, it never opens a file for reading: the tool does that, inside its own cage, where nothing
besides the root folder exists. So a path that is swapped after this check still cannot leave the root.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Literal

from sandbox import abi, syscalls
from sandbox.errors import PathRefused, ProfileRefused

PathKind = Literal["any", "file", "folder"]
_RACE_RETRIES = (
    8  # openat2 answers EAGAIN while something is being renamed (openat2(2)); bounded, then refused
)
_INSIDE = "give a path inside the root folder, relative to it"


class Root:
    """A root folder. `path` is its absolute path with symlinks resolved; `identity` is (st_dev, st_ino).

    shown_at: the path at which tools see it (`root_at`), if that is another one: tools print it, so clients send it.
    """

    def __init__(self, path: str, descriptor: int, shown_at: str | None = None) -> None:
        self.path = path
        self._places = [place.rstrip("/") for place in (shown_at, path) if place is not None]
        self._descriptor = descriptor
        found = os.fstat(descriptor)
        self.identity = (found.st_dev, found.st_ino)

    def look(self, text: str, *, kind: PathKind = "any", must_exist: bool = True) -> str:
        """The path relative to the root, normalised ("." or "a/b"), after the kernel resolved it beneath the root.

        Raises PathRefused for "", "-", "~...", NUL, a path that leaves the root, something that is neither a regular
        file nor a folder, or one that does not exist. Messages name only what was given.
        """
        relative = self._relative(text)
        try:
            descriptor = self._open(relative)
        except OSError as problem:
            if problem.errno == errno.ENOENT and not must_exist:
                return self._missing(relative)
            raise _refusal(problem.errno or 0) from None
        try:
            mode = os.fstat(descriptor).st_mode
        finally:
            os.close(descriptor)
        _check_kind(mode, kind)
        return relative

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)

    def _relative(self, text: str) -> str:
        if text in ("", "-") or text.startswith("~") or "\0" in text:
            raise PathRefused("an empty path, '-', '~' and NUL are not paths here", _INSIDE)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise PathRefused("the path is not valid text", _INSIDE) from None
        if text.startswith("/"):
            place = next((one for one in self._places if text == one or text.startswith(one + "/")), None)
            if place is None:
                raise PathRefused("the path is outside the root folder", _INSIDE)
            text = text[len(place) :].lstrip("/")
        # normpath would turn "link/../x" into "x", which is another file than the kernel means
        parts = [part for part in text.split("/") if part not in ("", ".")]
        return "/".join(parts) or "."

    def _open(self, relative: str) -> int:
        for _ in range(_RACE_RETRIES):
            try:
                return self._open_beneath(relative)
            except OSError as problem:
                if problem.errno != errno.EAGAIN:
                    raise
        raise OSError(errno.EAGAIN, "the path kept changing")

    def _open_beneath(self, relative: str) -> int:
        resolve = abi.RESOLVE_BENEATH | abi.RESOLVE_NO_MAGICLINKS
        try:
            return syscalls.openat2(self._descriptor, os.fsencode(relative), os.O_PATH, resolve)
        except OSError as problem:
            if problem.errno != errno.EXDEV:
                raise
        # An absolute symlink that points back into the root is legitimate, and works inside the cage.
        real = os.path.realpath(os.path.join(self.path, relative))
        if real != self.path and not real.startswith(self.path.rstrip("/") + "/"):
            raise OSError(errno.EXDEV, "leaves the root")
        inside = real[len(self.path) :].lstrip("/") or "."
        return syscalls.openat2(
            self._descriptor, os.fsencode(inside), os.O_PATH, resolve | abi.RESOLVE_NO_SYMLINKS
        )

    def _missing(self, relative: str) -> str:
        folder, _, name = relative.rpartition("/")
        if name in ("..", "."):
            raise _refusal(errno.ENOENT)
        try:
            descriptor = self._open(folder or ".")
        except OSError as problem:
            raise _refusal(problem.errno or 0) from None
        os.close(descriptor)
        return relative


def open_root(path: str, shown_at: str | None = None) -> Root:
    """Open the root folder of a policy once. Raises ProfileRefused when it is not a folder that can be read."""
    real = os.path.realpath(path)
    try:
        descriptor = os.open(real, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        raise ProfileRefused(
            f"root folder {path}: {problem.strerror}", "name an existing folder as root, or pass --root"
        ) from None
    return Root(real, descriptor, shown_at)


def _check_kind(mode: int, kind: PathKind) -> None:
    regular, folder = stat.S_ISREG(mode), stat.S_ISDIR(mode)
    if not regular and not folder:
        raise PathRefused("the path is a pipe, socket or device, not a regular file or folder", _INSIDE)
    if kind == "file" and not regular:
        raise PathRefused("the path is a folder, a file is needed", _INSIDE)
    if kind == "folder" and not folder:
        raise PathRefused("the path is a file, a folder is needed", _INSIDE)


def _refusal(code: int) -> PathRefused:
    reasons = {
        errno.EXDEV: "the path leaves the root folder",
        errno.ENOENT: "no such file or folder inside the root folder",
        errno.ENOTDIR: "a part of the path is not a folder",
        errno.ELOOP: "the path has a symlink loop",
        errno.EACCES: "the path may not be read",
        errno.EAGAIN: "the path is being renamed at this moment, try again",
        errno.ENAMETOOLONG: "the path is too long",
    }
    return PathRefused(
        reasons.get(code, f"the path cannot be used ({errno.errorcode.get(code, code)})"), _INSIDE
    )
