"""Results of JSON tools through a real server: an object in every era, refused when too large, an error when it is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runner.mcp import eras
from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Server

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
RAW = "import sys; w = sys.stdout.buffer.write\n"
# A tool that promised JSON, and what is said of what it printed.
FAULTS = {
    "utf8": (RAW + 'w(b\'{"a": "\\xff"}\')', "it is not UTF-8: byte 0xff at offset 7"),
    "nan": ("print('{\"a\": NaN}')", "it has NaN at line 1, column 7, which JSON does not have"),
    "infinity": ("print('[-Infinity]')", "it has -Infinity"),
    "twice": ('print(\'[{"id": 1, "id": 2}]\')', "the name 'id' stands twice in one object"),
    "escaped_twice": (RAW + 'w(b\'{"id": 1, "\\\\u0069d": 2}\')', "the name 'id' stands twice"),
    "levels": ("print('[' * 1000 + ']' * 1000)", "nested deeper than 64 levels"),
    "objects": ("print('{\"a\":' * 1000 + '1' + '}' * 1000)", "nested deeper than 64 levels"),
    "nodes": ("print('[' + '[],' * 1000000 + '0]')", "at most 200000 members and 64 levels"),
    "overflow": ("print('[18446744073709551616]')", "an integer beyond 64 bits"),
    "digits": ("print('[' + '9' * 100000 + ']')", "infinity"),
    "surrogate": ("print('[\"' + chr(92) + 'ud800\"]')", "surrogate"),
    "bom": (RAW + "w(b'\\xef\\xbb\\xbf{}')", "byte order mark"),
    "nothing": ("pass", "it printed nothing"),
    "two": ("print('{} {}')", "unexpected content after document"),
    "text": (
        "print('Traceback is not what this is\\nsecond line')",
        "It printed:\nTraceback is not what this is",
    ),
    "log": ("print('INFO starting\\n' * 3 + '{}')", "It printed:\nINFO starting"),
}
LARGE = f"""\
import json
rows = [{{"id": n, "name": "row %d" % n, "password": "hunter2", "note": "{TOKEN}"}} for n in range(3000)]
print(json.dumps({{"total": 3000, "rows": rows}}))"""
TOOLS = {
    "facts": tools.FACTS,
    "large": python(LARGE, "{path}", "{count}", params={"path": {"type": "path", "default": "."},
                    "count": {"type": "integer", "default": 1}}, output="json"),
    "huge": python("print('[' + '\"' + 'x' * (9 << 20) + '\"' + ']')", output="json"),
    "numbers": python("print('[18446744073709551615, -9223372036854775808, 1.5, \"9007199254740993\"]')", output="json"),
    "sized": python("import json, sys; print(json.dumps(['\\u2028\"' * (int(sys.argv[-1]) // 8)]))", "{size}",
                    params={"size": {"type": "integer", "required": True}}, output="json"),
    "deepest": python("print('[' * 60 + ']' * 60)", output="json"),
    **{name: python(code, output="json") for name, (code, _) in FAULTS.items()},
}  # fmt: skip


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    with Server(write_policy(place, TOOLS, limits={"output_mb": 16})) as made:
        made.shake()
        yield made


@pytest.mark.parametrize("revision", eras.SUPPORTED)
def test_an_object_in_every_era_and_the_same_json_as_text(place: Path, revision: str) -> None:
    with Server(write_policy(place, TOOLS)) as server:
        if revision != eras.MODERN:
            server.shake(revision)
        for name in ("facts", "twice", "numbers", "large"):
            result = server.call(name)
            document = json.loads(result.text)
            assert isinstance(document, dict)
            if revision >= "2025-06-18":
                assert result.structured == document
            else:
                assert "structuredContent" not in result.raw
            assert (document["exit_code"], result.meta["outcome"]) == (0, document["outcome"])


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_a_clear_error(server: Server, fault: str) -> None:
    result = server.call(fault)
    assert result.is_error
    assert result.structured["error"]["code"] == "result_not_json"
    assert FAULTS[fault][1] in result.structured["error"]["message"]
    assert (result.structured["outcome"], result.structured["result"]) == ("error", None)
    assert (result.meta["class"], result.meta["retryable"]) == ("result", False)
    assert server.call("facts").structured["result"]["answer"] == 42  # the control, and the server goes on


def test_what_is_just_within_the_bounds_passes(server: Server) -> None:
    assert server.call("numbers").structured["result"] == [2**64 - 1, -(2**63), 1.5, "9007199254740993"]
    assert not server.call("deepest").is_error


def test_hostile_documents_do_not_grow_the_front(server: Server) -> None:
    """Beyond what is stored of them, which is 32 MiB at most: the first calls fill that."""

    def round_of_calls() -> None:
        for name in ("nodes", "levels", "digits", "large"):
            assert server.call(name).is_error

    for _ in range(12):
        round_of_calls()
    assert len(server.ask("resources/list")["resources"]) < 40  # the oldest made room
    before = peak(server)
    for _ in range(4):
        round_of_calls()
    assert peak(server) - before < 8 << 20


def peak(server: Server) -> int:
    """Most memory that the front has ever had, in bytes (proc_pid_status(5))."""
    for line in Path(f"/proc/{server.me.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise psutil.NoSuchProcess(server.me.pid)


def test_too_large_says_what_to_narrow_and_a_path_reads_the_parts(server: Server) -> None:
    result = server.call("large")
    error = result.structured["error"]
    assert error["code"] == "result_too_large"
    assert "Largest part: $.rows, a list of 3,000 elements" in error["message"]
    assert "(path, count)" in error["remedy"]
    assert (result.meta["limit"], result.meta["limit_value"]) == ("max_output_bytes", 262_144)
    assert result.meta["current"] > 262_144
    handle = result.structured["handle"]
    assert handle == result.meta["handle"]
    assert '"row 5"' not in result.text  # refused, not cut

    def part(path: str, **more: object) -> str:
        arguments = {"handle": handle, "json_path": path, **more}
        page = server.ask("tools/call", {"name": "read_output", "arguments": arguments})
        assert not page["isError"], page
        text: str = page["content"][0]["text"]
        return text.partition("\n")[2]

    assert part("$.total") == "3000"
    row = {
        "id": 2999,
        "name": "row 2999",
        "password": "[REDACTED:password]",
        "note": "[REDACTED:github-token]",
    }
    assert json.loads(part("$.rows[-1]")) == row
    assert json.loads(part("$.rows[10:13].id")) == [10, 11, 12]
    names = "".join(part("$.rows[*].name", offset=n, limit=10_000) for n in range(0, 40_000, 10_000))
    assert json.loads(names) == [f"row {n}" for n in range(3000)]
    listed = server.ask("resources/list")["resources"]
    assert [item["mimeType"] for item in listed] == ["application/json"]
    assert TOKEN.encode() not in server.received
    assert b"hunter2" not in server.received


def test_no_message_is_larger_than_the_cap(server: Server) -> None:
    """Sizes around the one at which a result becomes too large, in characters that grow when they are escaped."""
    passed = 0
    for size in (1000, 60_000, 100_000, 105_000, 105_900, 106_200, 107_000, 200_000, 900_000):
        before = server.said_since(0)
        result = server.call("sized", {"size": size})
        assert server.said_since(before) <= 262_144, size
        passed += not result.is_error
    assert 3 <= passed <= 7  # the controls: some are sent, some refused


def test_what_is_too_large_to_be_read_at_all_is_not_stored(server: Server) -> None:
    result = server.call("huge")
    assert result.structured["error"]["code"] == "result_too_large"
    assert "refused unread" in result.structured["error"]["message"]
    assert "handle" not in result.structured
    assert server.ask("resources/list")["resources"] == []
