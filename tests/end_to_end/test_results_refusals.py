"""Refusals through a real server: they help, do not repeat themselves, name no path outside the root, and do not fill a log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Result, Server
from tests.live.cage import PYTHON
from tests.runner.mcp.schema_check import request

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
NUMBERS = {
    "count": {"type": "integer", "min": 1, "max": 50}, "depth": {"type": "enum", "values": ["shallow", "full"]},
    "all": {"type": "boolean", "flag": "--all"}, "names": {"type": "list", "items": {"type": "string"}, "max_items": 3},
}  # fmt: skip
TOOLS: dict[str, dict[str, object]] = {
    "echo": tools.ECHO,
    "read": tools.READ,
    "log_lines": {
        "description": "Prints its words.",
        "command": [
            PYTHON,
            "-I",
            "-S",
            "-c",
            "import sys; print(sys.argv[1:])",
            "--count={count}",
            "--depth={depth}",
            "{all}",
            "--",
            "{names}",
        ],
        "params": NUMBERS,
    },
    "leak": python(f"print('token is {TOKEN}')"),
    "facts": tools.FACTS,
}


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    with Server(write_policy(place, TOOLS, presets=["files"]), "--log-json", str(place / "log")) as made:
        made.shake()
        yield made


def refused(server: Server, tool: str, arguments: dict[str, object]) -> Result:
    result = server.call(tool, arguments)
    assert result.is_error
    assert result.meta["outcome"] == "refused"
    assert result.text.startswith(f"refused · {result.meta['code']}")
    assert set(result.meta) >= {"class", "retryable"}
    assert "exited" not in server.stderr()
    return result


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"output": "x"}, ["`log_lines` has no such argument", "allowed: count, depth, all, names"]),
        ({"coutn": 1}, ["unknown argument 'coutn'", 'did you mean "count"?']),
        ({"count": "7"}, ["between 1 and 50", "write 7 without quotes"]),
        ({"count": 99}, ["between 1 and 50", "the nearest is 50"]),
        ({"depth": "ful"}, ["one of: shallow, full", 'did you mean "full"?']),
        ({"all": "true"}, ["write true without quotes"]),
        ({"names": "a"}, ['such as ["a"]']),
        ({"names": ["a", "b", "c", "d"]}, ["at most 3 values, has 4"]),
    ],
)
def test_the_nearest_allowed_form(server: Server, arguments: dict[str, object], words: list[str]) -> None:
    result = refused(server, "log_lines", arguments)
    for word in words:
        assert word in result.text
    assert (result.meta["class"], result.meta["retryable"]) == ("argument", False)
    assert result.text.endswith("Retryable: no, not unchanged (argument)")


def test_an_unknown_tool_is_a_protocol_error_that_names_the_nearest(server: Server) -> None:
    for name, near in (("log_line", "log_lines"), ("read_outputs", "read_output"), ("ecko", "echo")):
        assert (
            server.error("tools/call", {"name": name})["message"]
            == f"unknown tool: {name}; did you mean {near}?"
        )
    assert server.error("tools/call", {"name": "zzzzzz"})["message"] == "unknown tool: zzzzzz"


def test_the_third_identical_refusal_is_one_short_constant_line(server: Server) -> None:
    wrong: dict[str, object] = {"path": "../x", "b": 1}
    first, second = refused(server, "read", wrong), refused(server, "read", {"b": 1, "path": "../x"})
    assert first.text == second.text
    assert "\n" in first.text
    third, fourth = refused(server, "read", wrong), refused(server, "read", wrong)
    assert third.text == fourth.text
    assert "\n" not in third.text
    assert len(third.text) < 150
    assert third.meta == first.meta
    assert "\n" in refused(server, "read", {"path": "../y"}).text  # another call has its reason
    assert "\n" in refused(server, "read_file", {"path": "../x"}).text
    constant = third.text
    texts = [refused(server, "log_lines", {"count": 99}).text for _ in range(3)]
    assert texts[2] == constant != texts[1] == texts[0]
    assert server.call("read", {"path": "inside.txt"}).body == "inside"  # the control


def test_a_rate_that_is_used_up_says_limit_count_and_wait(place: Path) -> None:
    with Server(write_policy(place, TOOLS, server={"max_calls_per_minute": 2})) as server:
        server.shake()
        for _ in range(2):
            assert not server.call("echo", {"text": "x"}).is_error
        result = server.call("echo", {"text": "x"})
        assert {**result.meta, "retry_after_seconds": 0} == {
            "outcome": "refused", "code": "rate_limited", "class": "capacity", "retryable": True, "scope": "server",
            "limit": "max_calls_per_minute", "limit_value": 2, "current": 2, "retry_after_seconds": 0,
        }  # fmt: skip
        assert "Retryable: yes" in result.text
        server.call("echo", {"text": "x"})
        short = server.call("echo", {"text": "x"})
        assert "\n" not in short.text
        assert short.meta["retry_after_seconds"] > 50  # the wait is still told, to who reads it


def test_a_placeholder_that_is_written_back_is_refused_with_the_reason(server: Server) -> None:
    shown = server.call("leak")
    assert shown.body == "token is [REDACTED:github-token]"
    for tool, arguments in (
        ("echo", {"text": shown.body}), ("read", {"path": "notes/[REDACTED:github-token].txt"}),
        ("log_lines", {"names": ["a", "x [REDACTED:password]"]}), ("read_file", {"path": "[REDACTED:key]"}),
    ):  # fmt: skip
        result = server.call(tool, arguments)
        assert (result.is_error, result.meta["code"]) == (True, "placeholder_refused")
        assert "[REDACTED:" in result.text
        assert "in place of a secret" in result.text
    assert server.stderr().count("exited") == 1  # nothing of it was started
    assert server.call("echo", {"text": "[REDACTED]"}).body == "[REDACTED]"  # the control


OUTSIDE = (
    "/etc/shadow", "/home/somebody/Her Documents/x", "//etc/shadow", "file:///etc/shadow", "~root/.ssh/id", "/proc/1/environ",
    "../../../../etc/shadow", "/root/x y/z", "x:/etc/shadow", "-I/etc/shadow", "'/etc/shadow'", "/etc/shadow\u202e",
)  # fmt: skip


def test_no_path_outside_the_root_stands_in_an_error(server: Server, place: Path) -> None:
    root = place / "root"
    for path in OUTSIDE:
        for tool, arguments in (
            ("read", {"path": path}), ("read_file", {"path": path}), ("echo", {path: 1}), ("log_lines", {"depth": path}),
            ("read_output", {"handle": path}), ("read_output", {"handle": "out_x", "json_path": path}),
        ):  # fmt: skip
            result = server.ask("tools/call", {"name": tool, "arguments": arguments})
            text = json.dumps(result, ensure_ascii=False)
            assert result["isError"], (tool, path)
            for word in ("/etc", "/home", "/proc", "/root/x", str(place), "id_rsa", "~root"):
                assert word not in text.replace("../../../../etc", ""), (tool, path, text)
    missing = refused_text(server, {"path": str(root / "sub" / "none.txt")})
    assert "sub/none.txt" in missing  # inside, it is shown relative to the root
    assert str(root) not in missing


def refused_text(server: Server, arguments: dict[str, object]) -> str:
    return server.call("read", arguments).text


def test_with_another_name_of_the_root_both_are_relative(place: Path) -> None:
    with Server(write_policy(place, TOOLS, server={"root_at": "/work/here"})) as server:
        server.shake()
        assert "'none.txt'" in refused_text(server, {"path": "/work/here/none.txt"})
        inside = refused_text(server, {"path": str(place / "root" / "none.txt")})
        assert str(place) not in inside
        assert server.call("read", {"path": "/work/here/inside.txt"}).body == "inside"


def test_a_flood_of_refusals_does_not_grow_the_logs(server: Server, place: Path) -> None:
    """Refused and given-up calls cost a client nothing; what is not logged is counted and told."""
    calls = [
        request("tools/call", f"{n}", {"name": "read", "arguments": {"path": f"../{n}"}})
        for n in range(20_000)
    ]
    for start in range(0, len(calls), 500):
        server.write(b"".join(json.dumps(call).encode() + b"\n" for call in calls[start : start + 500]))
        assert server.answer(f"{start + 499}")["result"][
            "isError"
        ]  # in order, and not more than may be in flight
        assert all("result" in message for message in server.aside)
        server.aside.clear()
    log = place / "log"
    assert log.stat().st_size < 60_000
    assert server.stderr().count("\n") < 300
    server.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    told = [line for line in lines if isinstance(line.get("dropped"), int)]
    listed = [line for line in lines if "dropped" not in line]
    assert sum(line["dropped"] for line in told) + len(listed) == len(calls)
    assert {line["outcome"] for line in told} <= {"argument_refused", "rate_limited"}
    assert "more calls ended with rate_limited and were not logged" in server.stderr()
