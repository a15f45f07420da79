"""The official Python client (mcp) in all its modes against the real server."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from tests.end_to_end import tools
from tests.end_to_end.policy_file import write_policy
from tests.end_to_end.server import REPO, SYSTEM_PATH, runs_a_tool
from tests.end_to_end.waiting import PATIENCE, all_gone, until

MODES = ("auto", "legacy", "2026-07-28")
TOOLS = {
    "echo": tools.ECHO,
    "facts": tools.FACTS,
    "fails": tools.FAILS,
    "sleep": tools.SLEEP,
    "hang": tools.HANGS,
    "long": tools.LONG,
}
TEE = 'wire="$1"; shift; "$@" | tee "$wire"'


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def parameters(place: Path) -> StdioServerParameters:
    """The server, with a copy of what it says in `wire`."""
    policy = write_policy(place, TOOLS, presets=["files"])
    server = [sys.executable, "-m", "runner", "serve", str(policy)]
    return StdioServerParameters(
        command="/bin/sh",
        args=["-c", TEE, "sh", str(place / "wire"), *server],
        cwd=REPO,
        env={"PATH": SYSTEM_PATH, "HOME": "/nonexistent"},
    )


def converse(parameters: StdioServerParameters, mode: str, work: Callable[[Any], Awaitable[None]]) -> None:
    """Connect, do the work, disconnect; then nothing of the server is left."""
    found: list[psutil.Process] = []
    before = set(below())  # of other tests: not ours to wait for

    async def run() -> None:
        async with Client(parameters, mode=mode, read_timeout_seconds=PATIENCE) as client:
            await work(client)
            found.extend(process for process in below() if process not in before)

    asyncio.run(run())
    assert len(found) >= 3  # shell, server, launcher
    all_gone(found, PATIENCE)  # how fast, is measured in test_ending.py


def below() -> list[psutil.Process]:
    """All processes that the client started, directly or not."""
    children: list[psutil.Process] = psutil.Process().children(recursive=True)
    return children


def workers() -> list[psutil.Process]:
    """The processes of tools: below the launcher, and no longer its program."""
    try:
        [launcher] = [process for process in below() if is_launcher(process)]
        return [process for process in launcher.children(recursive=True) if runs_a_tool(process)]
    except psutil.NoSuchProcess:  # gone while we looked
        return []


def is_launcher(process: psutil.Process) -> bool:
    """The launcher itself, not what it forked."""
    try:
        return "sandbox.launcher" in " ".join(process.cmdline()) and "serve" in process.parent().cmdline()
    except psutil.NoSuchProcess:  # it ended just now
        return False


def text(result: Any) -> str:
    [block] = result.content
    return str(block.text)


def test_list_and_call(parameters: StdioServerParameters, mode: str) -> None:
    async def work(client: Any) -> None:
        listed = await client.list_tools()
        names = {tool.name for tool in listed.tools}
        assert set(TOOLS) | {"read_file", "list_folder", "read_output"} <= names
        result = await client.call_tool("echo", {"text": "grüße \u2028 {braces}"})
        assert not result.is_error
        assert text(result).partition("\n")[2].startswith("grüße")
        facts = await client.call_tool("facts", {})
        assert facts.structured_content["result"] == {"answer": 42, "list": [1, "two"]}
        assert json.loads(text(facts)) == facts.structured_content
        read = await client.call_tool("read_file", {"path": "inside.txt"})
        assert text(read).endswith("inside")

    converse(parameters, mode, work)


def test_errors(parameters: StdioServerParameters, mode: str) -> None:
    async def work(client: Any) -> None:
        failed = await client.call_tool("fails", {})
        assert failed.is_error
        assert text(failed).startswith("exit 2 · error")
        assert "no such thing" in text(failed)
        refused = await client.call_tool("read_file", {"path": "../outside.txt"})
        assert refused.is_error
        assert text(refused).startswith("refused · argument_refused")
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nonsense", {})
        assert caught.value.code == -32602
        assert "nonsense" in str(caught.value)
        assert not (await client.call_tool("echo", {"text": "still here"})).is_error

    converse(parameters, mode, work)


def test_progress(parameters: StdioServerParameters, mode: str) -> None:
    seen: list[tuple[float, str | None]] = []

    async def heard(progress: float, _total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async def work(client: Any) -> None:
        result = await client.call_tool("sleep", {"seconds": 1.5}, progress_callback=heard)
        assert text(result).endswith("slept")
        assert len(seen) == 1
        assert 0.9 < seen[0][0] < 1.5
        assert seen[0][1] == "1 s since the call was received"
        await client.call_tool("echo", {"text": "quick"}, progress_callback=heard)
        assert len(seen) == 1

    converse(parameters, mode, work)


def test_cancel_kills_the_workers_and_nothing_more_is_said(
    parameters: StdioServerParameters, mode: str, place: Path
) -> None:
    async def work(client: Any) -> None:
        await client.list_tools()
        call = asyncio.ensure_future(client.call_tool("hang", {}))
        await asyncio.to_thread(until, lambda: len(workers()) == tools.HANGING - 1)  # and their keeper
        processes = workers()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(all_gone, processes)
        assert text(await client.call_tool("echo", {"text": "next"})).endswith("next")
        wire = place / "wire"  # tee writes to us first, then to the file
        await asyncio.to_thread(
            until, lambda: b"next" in wire.read_bytes() and wire.read_bytes().endswith(b"\n")
        )
        said = wire.read_bytes().splitlines()
        # the handshake, which this mode leaves out, the list and the next call; nothing for the cancelled one
        assert len(said) == (2 if mode == "2026-07-28" else 3)
        assert b"next" in said[-1]

    converse(parameters, mode, work)


def test_stored_output(parameters: StdioServerParameters, mode: str) -> None:
    async def work(client: Any) -> None:
        result = await client.call_tool("long", {})
        found = re.search(r"out_[\w-]{24}", text(result))
        assert found
        assert f"line {tools.LONG_LINES - 1}" in text(result)
        await page_through(client, found[0])
        listed = await client.list_resources()
        [resource] = listed.resources
        assert str(resource.uri) == f"toolcage://output/{found[0]}"
        [contents] = (await client.read_resource(str(resource.uri))).contents
        assert contents.text.count("\n") == tools.LONG_LINES - 1
        with pytest.raises(MCPError) as caught:
            await client.read_resource("toolcage://output/out_nothing")
        assert caught.value.code in (-32002, -32602)
        templates = await client.list_resource_templates()
        assert len(templates.resource_templates) == 1

    converse(parameters, mode, work)


async def page_through(client: Any, handle: str) -> None:
    """Every character once, in order; then the last lines, and lines that contain something."""
    offset, pages = 0, ""
    while True:
        page = text(
            await client.call_tool("read_output", {"handle": handle, "offset": offset, "limit": 10000})
        )
        first, _, body = page.partition("\n")
        pages += body
        following = re.search(r"next offset (\d+)$", first)
        if following is None:
            break
        offset = int(following[1])
        assert offset == len(pages)
    assert pages == "\n".join(f"line {n} of a long output" for n in range(tools.LONG_LINES))
    tail = text(await client.call_tool("read_output", {"handle": handle, "tail": 1}))
    assert tail.endswith(f"\nline {tools.LONG_LINES - 1} of a long output")
    grep = text(await client.call_tool("read_output", {"handle": handle, "grep": "line 77 "}))
    assert grep.endswith("\nline 77 of a long output")
    gone = await client.call_tool("read_output", {"handle": "out_" + "x" * 24})
    assert gone.is_error
    assert "handle_refused" in text(gone)
