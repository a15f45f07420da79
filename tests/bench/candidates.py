"""What is measured: each candidate does one thing once and says how long it took, in seconds."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.prepare import compiled_filters
from sandbox import host, planning, spawn
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Profile
from tests.end_to_end.reachweaver import servers
from tests.end_to_end.reachweaver.servers import Server
from tests.live.cage import cage

TRUE = shutil.which("true", path="/bin:/usr/bin") or "/bin/true"
CALL, VERSION = (
    "one call of a program that does nothing",
    "one call of a Python program (reachweaver version)",
)
DISCOVER, LIST = "from start to the first answer", "from start to the list of tools"
_SETTLE_SECONDS = 0.05


class Absent(Exception):
    """This candidate cannot be measured here; the text says why."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The first of a group is what the others are compared with."""

    group: str
    name: str
    once: Callable[[], float]


def calls(place: Path, stack: ExitStack) -> list[Candidate]:
    """Candidates that make one call. `stack` ends their servers; `place` holds a folder "root" and takes policies."""
    root = place / "root"
    made = stack.enter_context(cage(root, Profile("true", (TRUE,), str(root))))
    staged = stack.enter_context(_staging(Profile("true", (TRUE,), str(root))))
    plain = _serving(servers.toolcage(_trivial_policy(place), root), stack)
    found = [
        Candidate(CALL, "subprocess.run, no cage", lambda: _run([TRUE])),
        Candidate(CALL, "bwrap", lambda: _run(_bwrap(root))),
        Candidate(
            CALL,
            "toolcage's cage, made for the call",
            lambda: _timed(lambda: made.call("true").exit_code == 0),
        ),
        Candidate(CALL, "toolcage's cage, staged before the call", staged),
        Candidate(CALL, "toolcage serve, over stdio", lambda: _call(plain, "nothing")),
        Candidate(CALL, "toolcage serve, a second call at once", lambda: _second_call(plain, "nothing")),
    ]
    if not servers.PROGRAM.exists():
        return [*found, Candidate(VERSION, "reachweaver", _no_reachweaver)]
    original = _serving(servers.original(root), stack)
    caged = _serving(servers.toolcage(servers.write_policy(place / "catalog.toml"), root), stack)
    return [
        *found,
        Candidate(VERSION, "reachweaver mcp-serve (in its own process)", lambda: _call(original, "version")),
        Candidate(VERSION, "subprocess.run, no cage", lambda: _run([str(servers.PROGRAM), "version", "--json"])),
        Candidate(VERSION, "toolcage serve, over stdio", lambda: _call(caged, "version")),
    ]  # fmt: skip


def starts(place: Path) -> list[Candidate]:
    """Candidates that start a server, ask one thing and end it; the time ends with the answer."""
    root = place / "root"
    presets = _preset_policy(place)
    found = {"toolcage serve, three presets": lambda: servers.toolcage(presets, root)}
    if servers.PROGRAM.exists():
        catalog = servers.write_policy(place / "catalog.toml")
        found = {
            "reachweaver mcp-serve": lambda: servers.original(root),
            "toolcage serve, reachweaver's catalog": lambda: servers.toolcage(catalog, root),
            **found,
        }
    return [
        Candidate(group, name, lambda start=start, method=method: _start(start(), method))  # type: ignore[misc]
        for group, method in ((DISCOVER, "server/discover"), (LIST, "tools/list"))
        for name, start in found.items()
    ]


# ---- policies --------------------------------------------------------------------------------------------------------


def _trivial_policy(place: Path) -> Path:
    return _policy(
        place / "trivial.toml", f'[tools.nothing]\ndescription = "Nothing."\ncommand = ["{TRUE}"]\n'
    )


def _preset_policy(place: Path) -> Path:
    return _policy(place / "presets.toml", "", 'presets = ["git-read", "search", "files"]\n')


def _policy(path: Path, tables: str, keys: str = "") -> Path:
    path.write_text(f'{keys}[server]\nname = "bench"\n{tables}')
    path.chmod(0o644)
    return path


# ---- one measurement -------------------------------------------------------------------------------------------------


def _timed(act: Callable[[], bool]) -> float:
    begun = time.perf_counter()
    good = act()
    spent = time.perf_counter() - begun
    assert good
    return spent


def _run(command: list[str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    spent = time.perf_counter() - begun
    if done.returncode != 0:
        raise Absent(f"failed: {done.stderr.decode(errors='replace').strip()[:60]}")
    return spent


def _call(server: Server, tool: str) -> float:
    return _timed(lambda: server.call(tool)["isError"] is False)


def _second_call(server: Server, tool: str) -> float:
    """The next worker is not ready yet when this one comes."""
    _call(server, tool)
    return _call(server, tool)


@contextmanager
def _staging(profile: Profile) -> Iterator[Callable[[], float]]:
    """A call in this process for which a worker waits, as in `toolcage serve` after the first call."""
    launcher = spawn.launcher()
    supervisor = Supervisor(launcher, spare=1)
    supervisor.register([planning.make(profile, host.probe(launcher), compiled_filters())])
    with asyncio.Runner() as runner:
        runner.run(_attached(supervisor))

        def once() -> float:
            spent = _timed(lambda: runner.run(supervisor.run(Call(profile.name))).exit_code == 0)
            runner.run(asyncio.sleep(_SETTLE_SECONDS))  # the next worker is staged in this loop
            return spent

        once()
        yield once
        supervisor.close()
    os.waitpid(supervisor.launcher_pid, 0)


async def _attached(supervisor: Supervisor) -> None:
    supervisor.attach(asyncio.get_running_loop())


def _start(server: Server, method: str) -> float:
    try:
        server.ask(method)
        return time.perf_counter() - server.begun
    finally:
        server.end()


def _serving(server: Server, stack: ExitStack) -> Server:
    """Ready to be called, and ended with the stack."""
    stack.callback(server.end)
    server.ask("tools/list")
    return server


def _bwrap(root: Path) -> list[str]:
    program = shutil.which("bwrap")
    if program is None:
        raise Absent("not installed")
    links = [("/bin", "usr/bin"), ("/sbin", "usr/sbin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64")]
    binds = [word for path, target in links for word in ("--symlink", target, path)]
    return [
        program, "--unshare-all", "--ro-bind", "/usr", "/usr", *binds, "--ro-bind", str(root), str(root),
        "--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev", "--die-with-parent", "--new-session", TRUE,
    ]  # fmt: skip


def _no_reachweaver() -> float:
    raise Absent("not installed")
