"""Starts the real server as a client would and talks to it in raw JSON lines.

Every message that is read is one line of JSON, and one that a schema of the revisions in play accepts: `receive` checks.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import jsonschema
import psutil

from runner.mcp import eras
from tests.end_to_end.waiting import PATIENCE, all_gone, until
from tests.runner.mcp.schema_check import check, initialize, modern, request

REPO = Path(__file__).resolve().parents[2]
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@functools.cache
def runtime_dir() -> str:
    """Where the servers of this run count their calls: not together with other servers of the same user."""
    folder = tempfile.TemporaryDirectory(prefix="tc-run-")
    atexit.register(folder.cleanup)
    return folder.name


class Server:
    """One server process. stderr goes to a file unless a descriptor is given; the environment is `ENVIRONMENT` + env."""

    def __init__(
        self,
        policy: Path | str,
        *flags: str,
        env: Mapping[str, str] | None = None,
        wrapper: str | None = None,
        stderr: int | None = None,
    ) -> None:
        """`wrapper`: Python code run in place of `-m runner`; it finds the arguments in sys.argv[1:]."""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        entry = ["-m", "runner"] if wrapper is None else ["-c", wrapper]
        self.process = subprocess.Popen(
            [sys.executable, *entry, "serve", str(policy), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors if stderr is None else stderr,
            cwd=REPO,
            env={
                "PATH": SYSTEM_PATH,
                "HOME": "/nonexistent",
                "TOOLCAGE_RUNTIME_DIR": runtime_dir(),
                **(env or {}),
            },
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        self.me = psutil.Process(self.process.pid)
        self.revisions: tuple[str, ...] = eras.SUPPORTED
        self.received = b""  # everything that was ever on stdout
        self._rest = b""
        self._next = 100
        self.aside: list[Any] = []  # messages that `answer` was not looking for

    # ---- out

    def line(self, data: bytes) -> None:
        """Write these bytes and a newline."""
        self.write(data + b"\n")

    def write(self, data: bytes) -> None:
        """Write these bytes."""
        view = memoryview(data)
        while view:
            view = view[self.input.write(view) or 0 :]

    def send(self, *messages: object) -> None:
        """Write messages, each on its line."""
        self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def close_input(self) -> None:
        """The client has nothing more to say."""
        self.input.close()

    # ---- in

    def receive(self, seconds: float = PATIENCE) -> Any:
        """The next message, checked. EOFError when the output has ended."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.output], [], [], left)[0]:
                raise TimeoutError(f"nothing within {seconds} s; stderr: {self.stderr()[-2000:]}")
            data = os.read(self.output.fileno(), 1 << 20)
            if not data:
                assert not self._rest, f"half a line: {self._rest[:200]!r}"
                raise EOFError(self.stderr())
            self.received += data
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return checked(line, self.revisions)

    def said_since(self, before: int) -> int:
        """Bytes on stdout so far, less those of an earlier moment."""
        return len(self.received) - before

    def answer(self, id_: object, seconds: float = PATIENCE) -> Any:
        """The message that answers this id; what comes before it is put aside."""
        deadline = time.monotonic() + seconds
        for index, message in enumerate(self.aside):
            if answers(message, id_):
                return self.aside.pop(index)
        while True:
            message = self.receive(max(deadline - time.monotonic(), 0.001))
            if answers(message, id_):
                return message
            self.aside.append(message)

    def rest(self, seconds: float = PATIENCE) -> list[Any]:
        """All messages until the output ends."""
        found, self.aside = self.aside, []
        with contextlib.suppress(EOFError):
            while True:
                found.append(self.receive(seconds))
        return found

    # ---- requests

    def shake(self, revision: str = eras.NEWEST_LEGACY) -> dict[str, Any]:
        """The handshake of a legacy client. Only this revision is accepted from now on."""
        self.send(initialize(revision, "shake"))
        result: dict[str, Any] = self.answer("shake")["result"]
        self.revisions = (result["protocolVersion"],)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def start(self, method: str, params: Mapping[str, object] | None = None, id_: object = None) -> object:
        """Send a request in the revision that was agreed on (modern when none was); returns its id."""
        self._next += 1
        id_ = self._next if id_ is None else id_
        if self.revisions == eras.SUPPORTED:
            self.send(modern(method, id_, **dict(params or {})))
        else:
            self.send(request(method, id_, dict(params or {})))
        return id_

    def ask(
        self, method: str, params: Mapping[str, object] | None = None, seconds: float = PATIENCE
    ) -> dict[str, Any]:
        """Send a request and return its result."""
        message = self.answer(self.start(method, params), seconds)
        assert "result" in message, message
        result: dict[str, Any] = message["result"]
        return result

    def error(self, method: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Send a request and return its error."""
        message = self.answer(self.start(method, params))
        assert "error" in message, message
        found: dict[str, Any] = message["error"]
        return found

    def begin(self, tool: str, arguments: Mapping[str, object] | None = None, id_: object = None) -> object:
        """Start a call; returns its id."""
        return self.start("tools/call", {"name": tool, "arguments": dict(arguments or {})}, id_)

    def call(self, tool: str, arguments: Mapping[str, object] | None = None) -> Result:
        """One call, to its end."""
        return Result(self.ask("tools/call", {"name": tool, "arguments": dict(arguments or {})}))

    def result(self, id_: object, seconds: float = PATIENCE) -> Result:
        """The result of a call that was begun."""
        return Result(self.answer(id_, seconds)["result"])

    def ping(self, seconds: float = PATIENCE) -> float:
        """How long a ping takes, in seconds. A modern client has none: discovery is answered the same way."""
        begun = time.monotonic()
        self.ask("server/discover" if self.revisions == eras.SUPPORTED else "ping", None, seconds)
        return time.monotonic() - begun

    # ---- processes

    @property
    def launcher(self) -> psutil.Process:
        """The one child of the server."""
        [child] = self.me.children()
        assert "sandbox.launcher" in " ".join(child.cmdline())
        return child

    def workers(self) -> list[psutil.Process]:
        """The processes of the calls that are running: keepers, tools and what these started.

        Workers that only wait, staged, for a next call run nothing but the launcher's program and are left out.
        """
        found: list[psutil.Process] = []
        for keeper in self.launcher.children():
            with contextlib.suppress(psutil.NoSuchProcess):
                below = keeper.children(recursive=True)
                if any(runs_a_tool(process) for process in below):
                    found += [keeper, *below]
        return found

    def family(self, workers: int) -> list[psutil.Process]:
        """Server, launcher and all below, when that many processes belong to running calls."""
        until(lambda: len(self.workers()) == workers)
        return [self.me, *self.me.children(recursive=True)]

    # ---- ends

    def stderr(self) -> str:
        """What the server has written to stderr so far."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its exit code; negative for a signal."""
        return self.process.wait(seconds)

    def stop(self) -> int:
        """Close its input and wait."""
        self.close_input()
        return self.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        launcher = [] if self.process.poll() is not None else self.me.children()
        with contextlib.suppress(OSError):
            self.close_input()
        try:
            self.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait()
            raise
        finally:
            self.output.close()
            self._errors.close()
        all_gone(launcher, PATIENCE)


def runs_a_tool(process: psutil.Process) -> bool:
    """Whether a process below the launcher has become another program."""
    try:
        words: list[str] = process.cmdline()
    except psutil.NoSuchProcess:
        return False
    return bool(words) and not any("sandbox.launcher" in word for word in words)


class Result:
    """A tools/call result with its facts at hand."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.raw = result
        self.is_error: bool = result["isError"]
        [block] = result["content"]
        self.text: str = block["text"]
        self.structured: Any = result.get("structuredContent")
        self.meta: dict[str, Any] = result["_meta"][eras.CALL_KEY]

    def __repr__(self) -> str:
        return json.dumps(self.raw)[:3000]

    @property
    def body(self) -> str:
        """The text below the first line, which is the status."""
        return self.text.partition("\n")[2]


def checked(line: bytes, revisions: Iterable[str]) -> Any:
    """One line of JSON that a schema of these revisions accepts."""
    message = json.loads(line)
    faults = []
    for revision in revisions:
        try:
            check(revision, message)
        except (AssertionError, jsonschema.ValidationError) as fault:
            faults.append(f"{revision}: {str(fault)[:300]}")
        else:
            return message
    raise AssertionError(f"no schema accepts {line[:500]!r}: {faults}")


def answers(message: Any, id_: object) -> bool:
    """Whether the message answers a request with exactly this id: 1 is not "1"."""
    return (
        isinstance(message, dict)
        and "method" not in message
        and type(message.get("id")) is type(id_)
        and message.get("id") == id_
    )


def cancel(id_: object) -> dict[str, object]:
    """The notification that gives up a request."""
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}
