"""Results as the official Python client (mcp) gets them, in all its modes."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import REPO, SYSTEM_PATH, runtime_dir
from tests.end_to_end.test_results_json import LARGE
from tests.end_to_end.waiting import PATIENCE

TOOLS = {
    "echo": tools.ECHO,
    "long": tools.LONG,
    "large": python(LARGE, output="json"),
    "twice": python('print(\'{"id": 1, "id": 2}\')', output="json"),
    "slow": python("import time; time.sleep(60)", limits={"wall_seconds": 1}),
    "slow_json": python("import time; time.sleep(60)", limits={"wall_seconds": 1}, output="json"),
}
CALL = "io.github.toolcage/call"


@pytest.fixture(params=("auto", "legacy", "2026-07-28"))
def work_with(
    place: Path, request: pytest.FixtureRequest
) -> Callable[[Callable[[Any], Awaitable[None]]], None]:
    """Runs a coroutine function with a connected client."""
    policy = write_policy(place, TOOLS)
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "runner", "serve", str(policy)],
        cwd=REPO,
        env={"PATH": SYSTEM_PATH, "HOME": "/nonexistent", "TOOLCAGE_RUNTIME_DIR": runtime_dir()},
    )

    def run(work: Callable[[Any], Awaitable[None]]) -> None:
        async def connected() -> None:
            async with Client(parameters, mode=request.param, read_timeout_seconds=PATIENCE) as client:
                await work(client)

        asyncio.run(connected())

    return run


WorkWith = Callable[[Callable[[Any], Awaitable[None]]], None]


def text(result: Any) -> str:
    [block] = result.content
    return str(block.text)


def facts(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = result.meta[CALL]
    return found


def test_a_refused_result_is_read_in_parts(work_with: WorkWith) -> None:
    async def work(client: Any) -> None:
        refused = await client.call_tool("large", {})
        assert refused.is_error
        handle = refused.structured_content["handle"]
        assert json.loads(text(refused)) == refused.structured_content
        hit = re.search(r"json_path, such as (\S+)\. ", refused.structured_content["error"]["remedy"])
        assert hit
        part = await client.call_tool(
            "read_output", {"handle": handle, "json_path": hit[1]}
        )  # as it was told
        assert [row["id"] for row in json.loads(text(part).partition("\n")[2])] == list(range(10))
        wrong = await client.call_tool("read_output", {"handle": handle, "json_path": "$.row[0]"})
        assert wrong.is_error
        assert "did you mean 'rows'?" in text(wrong)
        [resource] = (await client.list_resources()).resources
        assert resource.mime_type == "application/json"
        [contents] = (await client.read_resource(str(resource.uri))).contents
        assert len(contents.text) < 262_144
        assert "more characters: read_output(handle, offset=" in contents.text

    work_with(work)


def test_a_limit_has_its_value_and_the_usage(work_with: WorkWith) -> None:
    async def work(client: Any) -> None:
        results = [await client.call_tool(name, {}) for name in ("slow", "slow_json")]
        for ended in results:
            assert ended.is_error
            said = facts(ended)
            assert (said["outcome"], said["code"], said["class"]) == ("timed_out", "timed_out", "limit")
            assert (said["limit"], said["limit_value"]) == ("wall_seconds", 1)
            assert 1 <= said["current"] < 5
            assert "Limit wall_seconds = 1 s; it had used" in text(ended)
        assert results[1].structured_content["limit"]["name"] == "wall_seconds"

    work_with(work)


def test_refusals_and_faults(work_with: WorkWith) -> None:
    async def work(client: Any) -> None:
        refused = await client.call_tool("echo", {"txt": "x"})
        assert refused.is_error
        assert 'did you mean "text"?' in text(refused)
        assert (facts(refused)["class"], facts(refused)["retryable"]) == ("argument", False)
        await client.call_tool("echo", {"txt": "x"})
        assert "\n" not in text(await client.call_tool("echo", {"txt": "x"}))
        with pytest.raises(MCPError, match="did you mean echo"):
            await client.call_tool("ehco", {})
        twice = await client.call_tool("twice", {})
        assert "stands twice" in twice.structured_content["error"]["message"]
        placeholder = await client.call_tool("echo", {"text": "[REDACTED:password]"})
        assert facts(placeholder)["code"] == "placeholder_refused"
        assert text(await client.call_tool("echo", {"text": "fine"})).endswith("fine")

    work_with(work)


def test_handles_say_what_became_of_them(work_with: WorkWith) -> None:
    async def work(client: Any) -> None:
        long = await client.call_tool("long", {})
        hit = re.search(r"; read_output with handle (out_[\w-]{24}), offset (\d+) …\]", text(long))
        assert hit
        page = await client.call_tool("read_output", {"handle": hit[1], "offset": int(hit[2]), "limit": 40})
        head = text(long).partition("\n")[2].partition("[… ")[0]
        whole = "\n".join(f"line {n} of a long output" for n in range(tools.LONG_LINES))
        assert whole.startswith(head + text(page).partition("\n")[2])
        gone = await client.call_tool("read_output", {"handle": "out_" + "x" * 24})
        assert facts(gone)["reason"] == "other session"
        with pytest.raises(MCPError, match="of another session"):
            await client.read_resource("toolcage://output/out_" + "x" * 24)

    work_with(work)
