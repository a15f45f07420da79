"""The site of a battery: what the attempts aim at, outside the cage, and the facts that their programs are filled with.

Front side of `verify`. Everything lies in one temporary folder; listeners are on loopback.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from sandbox import elf
from sandbox.plan import Plan
from sandbox.types import Profile

# Not /tmp first: it is private inside, so that the mounts and Landlock could not be told apart there.
_PLACES = ("/var/tmp", "/dev/shm")  # noqa: S108
_FIXED_VARIABLES = ("HOME", "LANG", "NO_COLOR", "PAGER", "PATH", "TERM", "TMPDIR", "TZ")
_HOME_NAMES = 64


def python() -> str:
    """A Python for the attempts: one of the system where there is one, since every user can read it."""
    return os.path.abspath(shutil.which("python3", path="/usr/bin:/bin") or sys.executable)


def loader() -> str:
    """The loader that this Python names, "" when it has none (elf(5): PT_INTERP)."""
    return elf.read(os.path.realpath(python())).loader


def home() -> str:
    """The home folder of whoever runs this, symlinks resolved."""
    return os.path.realpath(os.path.expanduser("~"))


def is_lent(path: str, lent: Iterable[str]) -> bool:
    """Whether one of the lent paths holds `path`, or lies in it."""
    return any(os.path.commonpath((path, place)) in (path, place) for place in lent)


def folder(lent: Iterable[str]) -> str:
    """Where a site's folder can be made so that no cage lends it; the usual temporary folder when nowhere else."""
    places = [place for place in _PLACES if os.access(place, os.W_OK | os.X_OK)]
    lent = tuple(lent)
    free = [place for place in places if not is_lent(os.path.realpath(place), lent)]
    starts = [place for place in free if not os.statvfs(place).f_flag & os.ST_NOEXEC]
    return next(iter((*starts, *free)), tempfile.gettempdir())


class Site(ExitStack):
    """A folder with a root, files outside it, a TCP and a UDP port, a Unix socket with a path and one without."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        self.folder = place
        self.root = place / "root"
        self.programs = place / "programs"
        place.chmod(0o755)
        for name in ("root", "scratch", "programs"):
            (place / name).mkdir(exist_ok=True)
        (place / "outside.txt").write_text("outside\n", "utf-8")
        os.symlink(place / "outside.txt", self.root / "link")
        os.link(place / "outside.txt", self.root / "hard")
        for folder_of_programs in (self.root, self.programs):
            program = folder_of_programs / "program"
            program.write_text("#!/bin/echo WORKED\n", "utf-8")
            program.chmod(0o755)
        self._port = self.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        udp = self.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        self._udp_port = udp.getsockname()[1]
        self._abstract = f"\0toolcage-verify-{os.getpid()}-{self._port}"
        for name in (self._abstract, str(place / "socket")):
            listener = self.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(name)
            listener.listen(64)

    def facts(self, profile: Profile, honest: Plan, *, inside: bool) -> dict[str, object]:
        """Values for the names in attempts. Outside, the root folder is the site's own."""
        trees = [mount for mount in honest.mounts.mounts if mount.kind == "tree"]
        return {
            "outside": str(self.folder / "outside.txt"),
            "mark": str(self.folder / "mark"),
            "scratch": str(self.folder / "scratch"),
            "socket": str(self.folder / "socket"),
            "folder": str(self.folder),
            "root": (profile.root_at or profile.root) if inside else str(self.root),
            "programs": tuple(mount.target for mount in trees if mount.execute),
            "home": of_home(lent(honest)),
            "home_folder": home(),
            "source": os.path.abspath(__file__),
            "loader": loader(),
            "port": self._port,
            "udp_port": self._udp_port,
            "abstract": self._abstract,
            "front": os.getpid(),
            "threads": min(2, profile.limits.processes - 1),
            "streams": tuple(_identity(number) for number in range(3)),
            "hostname": socket.gethostname(),
            "variables": (*_FIXED_VARIABLES, *(name for name, _ in profile.environment)),
            **{f"limit_{name}": value for name, value in honest.resources.values},
        }


def lent(plan: Plan) -> tuple[str, ...]:
    """Paths of the host that a cage shows, as they are called inside."""
    return tuple(mount.target for mount in plan.mounts.mounts if mount.kind in ("tree", "device"))


def of_home(places: Iterable[str]) -> tuple[str, ...]:
    """Paths in the home folder that no lent path holds or lies in."""
    places = tuple(places)
    try:
        names = os.listdir(home())
    except OSError:
        return ()
    paths = [os.path.join(home(), name) for name in sorted(names)[:_HOME_NAMES]]
    return tuple(path for path in paths if not is_lent(path, places))


def _identity(descriptor: int) -> tuple[int, int]:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino
