"""Long output of text tools through a real server: what is shown, what is missing, and how the rest is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Result, Server
from tests.end_to_end.waiting import until

PROGRESS = (
    "import sys\nfor n in range(101): print(f'{n:3}%', end='\\r')\nprint()\n"
    "for n in range(700): print('warning: the same again')\nprint('done')"
)
MIXED = (
    "import sys\nfor n in range(3000): print('line', n, '\\u00e9' * (n % 7))\n"
    "for n in range(50): print('message', n, file=sys.stderr)"
)
FAILS_LONG = "import sys\nfor n in range(3000): print('line', n)\nsys.exit('and then it failed')"
MARKER = "marker-4711-of-a-stored-output"
TOOLS = {
    "echo": tools.ECHO,
    "progress": python(PROGRESS),
    "mixed": python(MIXED),
    "fails_long": python(FAILS_LONG),
    "marked": python(f"print('x\\n' * 9000 + {MARKER!r} + '\\n' + 'y\\n' * 9000 + 'z' * 12000)"),
    "json": python('print(\'{"items": [\' + ", ".join(str(n) for n in range(5000)) + "]}")'),
}
HANDLE = re.compile(r"out_[\w-]{24}")
MISSING = re.compile(
    r"\[… ([\d,]+) bytes not shown; read_output with handle (out_[\w-]{24})(?:, offset (\d+))? …\]\n"
)


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    with Server(write_policy(place, TOOLS)) as made:
        made.shake()
        yield made


def handle_of(result: Result) -> str:
    """From the first line, where every client shows it."""
    found = HANDLE.search(result.text.split("\n")[0])
    assert found
    return found[0]


def read(server: Server, handle: str, **more: object) -> tuple[str, str]:
    """(first line, body) of a page."""
    result = server.ask("tools/call", {"name": "read_output", "arguments": {"handle": handle, **more}})
    first, _, body = result["content"][0]["text"].partition("\n")
    assert not result["isError"], result
    return first, body


def whole(server: Server, handle: str) -> str:
    pages, offset = "", 0
    while True:
        first, body = read(server, handle, offset=offset, limit=10_000)
        pages += body
        following = re.search(r"next offset (\d+)$", first)
        if following is None:
            return pages
        offset = int(following[1])


def test_redrawn_and_repeated_lines_collapse_with_counts_and_are_kept(server: Server) -> None:
    result = server.call("progress")
    assert result.body.split("\n") == [
        "100% [redrawn 100 times]", "warning: the same again", "[the line above 699 more times]", "done",
    ]  # fmt: skip
    kept = whole(server, handle_of(result))
    assert kept.startswith("  0%␍  1%␍  2%␍")
    assert kept.count("warning: the same again") == 700


def test_the_dropped_bytes_are_exact_and_the_rest_is_where_it_says(server: Server) -> None:
    result = server.call("mixed")
    printed = "".join(f"line {n} {'é' * (n % 7)}\n" for n in range(3000))
    errors = "".join(f"message {n}\n" for n in range(50))
    size = len((printed + errors).encode())
    assert result.text.split("\n")[0].startswith(f"exit 0 · ok · {size:,} bytes · handle out_")
    assert len(result.text) <= 10_000
    hit = MISSING.search(result.body)
    assert hit
    head, tail = result.body[: hit.start()], result.body[hit.end() :]
    full = printed.rstrip("\n") + f"\n[stderr, {len(errors)} bytes]\n" + errors.rstrip("\n")
    assert full.startswith(head)
    assert full.endswith(tail)
    assert len(head.encode()) + int(hit[1].replace(",", "")) + len(tail.encode()) == len(full.encode())
    assert whole(server, hit[2]) == full
    assert int(hit[3]) == len(head)
    _, following = read(server, hit[2], offset=int(hit[3]), limit=50)
    assert full.startswith(head + following)


def test_an_error_is_short_and_has_the_end(server: Server) -> None:
    result = server.call("fails_long")
    assert result.is_error
    assert result.text.startswith("exit 1 · error · ")
    assert len(result.text) <= 4000
    assert "and then it failed" in result.text
    assert "line 0\n" in result.text
    assert whole(server, handle_of(result)).count("\n") == 3001


def test_a_handle_of_another_session_a_forged_and_an_expired_one_say_so(place: Path) -> None:
    policy = write_policy(place, TOOLS)
    hasty = (
        "import sys, time\nfrom runner import outputs\n"
        "outputs.Outputs.__init__.__defaults__ = (1 << 25, 64, 0.5, time.monotonic)\n"
        "from runner.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    with Server(policy) as one, Server(policy, wrapper=hasty) as other:
        one.shake()
        other.shake()
        handle = handle_of(one.call("progress"))
        read(one, handle)  # the control
        forged = handle[:-1] + ("a" if handle[-1] != "a" else "b")
        mine = handle_of(other.call("progress"))
        until(lambda: refusal(other, mine)[0] == "expired")
        for server, given, reason, words in (
            (other, handle, "other session", "of another session"), (one, forged, "forged", "never issued"),
            (one, "out_nonsense", "no handle", "This is no handle"), (other, mine, "expired", "has expired"),
        ):  # fmt: skip
            assert refusal(server, given)[0] == reason
            missing = server.error("resources/read", {"uri": f"toolcage://output/{given}"})
            assert words in missing["message"]
            assert given in missing["data"]["uri"]
        # the long answer comes twice for the same handle, so the words are those of a new one
        assert "of another session" in refusal(other, handle_of(one.call("progress")))[1]


def refusal(server: Server, handle: str) -> tuple[str | None, str]:
    """(reason, text); None for a page."""
    result = server.ask("tools/call", {"name": "read_output", "arguments": {"handle": handle}})
    meta = result.get("_meta", {}).get("io.github.toolcage/call", {})
    return meta.get("reason"), result["content"][0]["text"]


def test_a_path_into_text_that_happens_to_be_json(server: Server) -> None:
    handle = handle_of(server.call("json"))
    assert read(server, handle, json_path="$.items[4999]")[1] == "4999"
    assert read(server, handle, json_path="$.items[2:5]")[1] == "[2,3,4]"
    other = handle_of(server.call("progress"))
    refused = server.ask(
        "tools/call", {"name": "read_output", "arguments": {"handle": other, "json_path": "$"}}
    )
    assert refused["isError"]
    assert "json_path needs an output that is one JSON document" in refused["content"][0]["text"]


def test_nothing_of_a_stored_output_is_left_by_a_crash(place: Path) -> None:
    """It is in memory only: no file of the server holds it, before or after."""
    with Server(write_policy(place, TOOLS), "--log-json", str(place / "log")) as server:
        server.shake()
        handle = handle_of(server.call("marked"))
        assert read(server, handle, grep=MARKER)[1] == MARKER  # the control
        assert [file.path for file in server.me.open_files() if file.path != str(place / "log")] == []
        server.process.kill()
        server.wait()
    found = [path for path in place.rglob("*") if path.is_file() and path.name != "policy.toml"]
    assert found
    assert not any(MARKER.encode() in path.read_bytes() for path in found)
