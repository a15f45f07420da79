"""ReachWeaver's own MCP server and Toolcage with its catalog, both driven over stdio with raw JSON lines."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = Path(sys.executable).parent / "reachweaver"
# What both servers are started with: nothing of whoever runs the tests. UTC, because a cage has no /etc/localtime.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "HOME": "/nonexistent"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Server:
    """One started server; requests are answered in the order in which they are made."""

    def __init__(self, command: Iterable[object], cwd: Path) -> None:
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [str(word) for word in command], cwd=cwd, env=ENVIRONMENT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._next = 1

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a request. Fails with what the server said on stderr when it ends instead."""
        number, self._next = self._next, self._next + 1
        request = {
            "jsonrpc": "2.0",
            "id": number,
            "method": method,
            "params": {**params, "_meta": META},
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        while line := self.process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
        raise AssertionError(f"the server ended: {self.end()}")

    def call(self, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of tools/call."""
        return self.ask("tools/call", name=tool, arguments=arguments or {})

    def end(self) -> str:
        """Close its input, wait until it and its processes are gone, and return what it said on stderr."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        _, said = self.process.communicate(timeout=30)
        deadline = time.monotonic() + 5
        while not all(_is_gone(process) for process in below):
            assert time.monotonic() < deadline, below
            time.sleep(0.002)
        return said.decode()


def _is_gone(process: psutil.Process) -> bool:
    """Ended; a zombie waits only for whoever is pid 1 here, which may take seconds."""
    try:
        return not process.is_running() or bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def original(workspace: Path) -> Server:
    """ReachWeaver's own server."""
    return Server([PROGRAM, "mcp-serve", "--root", workspace, "--max-calls-per-minute", 600], workspace)


def toolcage(policy: Path, root: Path) -> Server:
    """`toolcage serve`."""
    return Server(
        [sys.executable, "-m", "runner", "serve", policy, "--root", root, "--max-calls-per-minute", 600],
        REPOSITORY,
    )


def write_policy(path: Path) -> Path:
    """A policy that withholds what ReachWeaver's own server withholds."""
    from reachweaver import mcp_server  # type: ignore[import-not-found,import-untyped,unused-ignore]

    keys = {
        "describe": [str(PROGRAM), "describe", "--json"],
        "command": [str(PROGRAM), "--plain"],
        "withhold": sorted(mcp_server.WITHHELD_COMMANDS),
        "withhold_flags": sorted(mcp_server.WITHHELD_FLAGS),
        "never": sorted(mcp_server.NEVER_EXPOSED),
        # "string" in the catalog, but a path by its metavar (PATH_METAVARS), which the original goes by
        "path_flags": ["trace --log"],
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    path.write_text('[server]\nname = "reachweaver"\n\n[catalogs.reachweaver]\n' + "\n".join(lines) + "\n")
    path.chmod(0o644)
    return path
