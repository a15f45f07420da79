"""`toolcage demo`: a real MCP conversation with a real server in a temporary folder; tools answer, attacks fail.

Every attack is made twice by the same program: outside the cage, where it must work (else it would prove nothing), and
as a tool, where it must not. Exit code 0 when everything went as it should, 2 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner import verify_site
from runner.cli.probes import PROBES, Probe
from sandbox.errors import HostRefused

_SECRET = "demo-7f3a9c51e2b84d60"  # noqa: S105 - made up, and the point of the demo
_VERSION = "2025-11-25"
_TIMEOUT = 60.0


def add_to(verbs: Any) -> None:
    """Add this verb's parser."""
    parser = verbs.add_parser("demo", help="see it work: tools answer, attacks fail, a secret is masked")
    parser.set_defaults(run=run)


def run(_options: argparse.Namespace) -> int:
    """Set the stage, play, say what happened."""
    python = verify_site.python()
    with tempfile.TemporaryDirectory(prefix="toolcage-demo-") as place, _listener() as port:
        stage = _Stage(Path(os.path.realpath(place)), python, port)
        stage.build()
        return asyncio.run(_play(stage))


@dataclass(frozen=True)
class _Stage:
    """A project, a policy beside it, and things outside the project that must stay out of reach."""

    place: Path
    python: str
    port: int

    @property
    def facts(self) -> dict[str, str]:
        """What the probes aim at."""
        return {
            "outside": str(self.place / "outside.txt"),
            "inside": str(self.place / "project" / "notes.txt"),
            "port": str(self.port),
            "pid": str(os.getpid()),
        }

    def build(self) -> None:
        """Write everything."""
        self.place.chmod(0o755)
        project = self.place / "project"
        project.mkdir()
        (project / "notes.txt").write_text("Toolcage demo\nline two\nline three\n", "utf-8")
        (project / "settings.env").write_text(f"region=north\ndemo_value={_SECRET}\n", "utf-8")
        (self.place / "outside.txt").write_text("nobody should read this\n", "utf-8")
        presets = ["files"] + ["search"] * bool(shutil.which("rg", path="/usr/local/bin:/usr/bin:/bin"))
        lines = ["presets = " + json.dumps(presets), "[server]", 'name = "demo"', 'root = "project"']
        lines += ["[limits]", "wall_seconds = 5", "memory_mb = 256"]
        for probe in PROBES:
            words = [
                self.python,
                "-I",
                "-S",
                "-c",
                probe.code(self.facts),
            ]
            lines += [f"[tools.{probe.name}]", f"description = {json.dumps(probe.sentence)}"]
            lines += ["command = " + json.dumps(words), f'processes = "{probe.processes}"']
        (self.place / "policy.toml").write_text("\n".join(lines) + "\n", "utf-8")


async def _play(stage: _Stage) -> int:
    client = await _Client.start(stage)
    try:
        server = await client.request("initialize", {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {
            "name": "toolcage-demo", "version": "1"}})  # fmt: skip
        await client.notify("notifications/initialized")
        tools = (await client.request("tools/list", {}))["tools"]
        print(f"An MCP client has started: toolcage serve {stage.place}/policy.toml")
        print(
            f"MCP {server['protocolVersion']}, server {server['serverInfo']['name']}, {len(tools)} tools.\n"
        )
        good = await _ordinary(client)
        good = await _secret(client) and good
        good = await _attacks(client, stage) and good
        good = await _limit(client) and good
    finally:
        code = await client.stop()
    print("\nWhat the server logged on stderr: no arguments, no output")
    for line in client.log.splitlines():
        print(f"   | {line[:110]}")
    print(f"\nThe client closed its end; the server ended with exit code {code}.")
    print(
        "Everything went as it should."
        if good and code == 0
        else "Something did NOT go as it should, see above."
    )
    return 0 if good and code == 0 else 2


async def _ordinary(client: _Client) -> bool:
    print("1. Ordinary work")
    read = await client.call("read_file", {"path": "notes.txt"})
    listed = await client.call("list_folder", {})
    _show("read_file notes.txt", read["text"])
    _show("list_folder", listed["text"])
    return _verdict("the tools answer", "Toolcage demo" in read["text"] and "settings.env" in listed["text"])


async def _secret(client: _Client) -> bool:
    print("\n2. A secret in the output (its value stands in the server's environment as DEMO_API_KEY)")
    read = await client.call("read_file", {"path": "settings.env"})
    _show("read_file settings.env", read["text"])
    clean = _SECRET not in read["raw"] and "[REDACTED:" in read["text"]
    return _verdict("the value is masked and the rest is there", clean and "region=north" in read["text"])


async def _attacks(client: _Client, stage: _Stage) -> bool:
    print("\n3. Attacks, by the same program outside and inside the cage")
    good = True
    for probe in PROBES:
        if probe.limit:
            continue
        outside = await _outside(stage, probe)
        inside = (await client.call(probe.name, {}))["text"]
        said = inside.strip().splitlines()[-1] if inside.strip() else "nothing"
        held = outside == "WORKED" and said.startswith("BLOCKED")
        print(
            f"   {probe.sentence:44} outside: {outside:8} inside: {said:24} {'held' if held else 'NOT HELD'}"
        )
        good = good and held
    bad = await client.call("read_file", {"path": "../outside.txt"})
    _show("read_file ../outside.txt", bad["text"])
    return _verdict("nothing got out", good and bad["is_error"])


async def _limit(client: _Client) -> bool:
    print("\n4. A tool that eats memory (limit 256 MiB)")
    probe = next(probe for probe in PROBES if probe.limit)
    eaten = await client.call(probe.name, {})
    _show(probe.name, eaten["text"])
    after = await client.call("read_file", {"path": "notes.txt"})
    stopped = probe.limit in json.dumps(eaten["meta"])
    return _verdict("it was stopped by name, and the next call works", stopped and not after["is_error"])


async def _outside(stage: _Stage, probe: Probe) -> str:
    process = await asyncio.create_subprocess_exec(
        stage.python, "-I", "-S", "-c", probe.code(stage.facts), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode().strip() or "nothing"


class _Client:
    """A small MCP client over the pipes of a server process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._next = 0
        self.log = ""

    @classmethod
    async def start(cls, stage: _Stage) -> _Client:
        """Start `toolcage serve` as a client would."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "runner", "serve", str(stage.place / "policy.toml"),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, limit=1 << 24,
            cwd=Path(__file__).resolve().parents[2], env={"PATH": "/usr/local/bin:/usr/bin:/bin",
            "DEMO_API_KEY": _SECRET, "HOME": str(stage.place)},
        )  # fmt: skip
        return cls(process)

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its result."""
        self._next += 1
        await self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        while True:
            line = await asyncio.wait_for(self._process.stdout.readline(), _TIMEOUT)
            if not line:
                raise HostRefused(
                    "the server ended before it answered",
                    "start it in a terminal to read its words: toolcage serve",
                )
            message = json.loads(line)
            if message.get("id") == self._next:
                return dict(message["result"])

    async def notify(self, method: str) -> None:
        """Send a notification."""
        await self._send({"jsonrpc": "2.0", "method": method})

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool: {"text", "is_error", "meta", "raw"}."""
        result = await self.request("tools/call", {"name": name, "arguments": arguments})
        text = "\n".join(block["text"] for block in result["content"])
        return {
            "text": text,
            "is_error": result.get("isError", False),
            "meta": result.get("_meta", {}),
            "raw": json.dumps(result),
        }

    async def stop(self) -> int:
        """Close our end and wait."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        self._process.stdin.close()
        if self._process.stderr is not None:
            self.log = (await asyncio.wait_for(self._process.stderr.read(), _TIMEOUT)).decode(
                "utf-8", "replace"
            )
        return await asyncio.wait_for(self._process.wait(), _TIMEOUT)

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()


@contextmanager
def _listener() -> Iterator[int]:
    """A server on loopback, so that "no network" can be told from "nobody listens"."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _show(what: str, text: str) -> None:
    print(f"   {what}")
    for line in text.strip().splitlines()[:12]:
        print(f"      | {line[:110]}")


def _verdict(what: str, good: bool) -> bool:
    print(f"   {'ok' if good else 'FAILED'}: {what}")
    return good
