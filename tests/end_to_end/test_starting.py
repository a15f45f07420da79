"""Starts that fail say what to do: exit code 2, words on stderr, nothing on stdout. And one that is slow."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Server
from tests.end_to_end.waiting import all_gone
from tests.live.cage import PYTHON

TOOLS = {"echo": tools.ECHO}


def refused_start(policy: Path, *flags: str) -> str:
    """stderr of a server that must not start: exit code 2, nothing on stdout, launcher gone."""
    with Server(policy, *flags) as server:
        children = server.me.children() if server.process.poll() is None else []
        assert server.wait() == 2
        assert server.rest() == []
        all_gone(children)
        text = server.stderr()
    assert "Traceback" not in text
    assert text.startswith("toolcage: ")
    assert "  what to do: " in text
    assert len(text.splitlines()) == 2
    return text


def test_policy_with_an_unknown_key(place: Path) -> None:
    policy = write_policy(place, {"lint": tools.ECHO | {"proceses": "any"}})
    text = refused_start(policy)
    assert str(policy) in text
    assert "tools.lint" in text
    assert "proceses" in text
    assert 'did you mean "processes"' in text


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"command": ["no-such-program-anywhere"]}, ("tools.lint.command", "no-such-program-anywhere")),
        ({"command": [PYTHON, "{path}"], "params": {"path": {"type": "path"}}}, ("tools.lint.command[1]",)),
        ({"limits": {"wall_seconds": 0}}, ("tools.lint.limits.wall_seconds",)),
        ({"set_env": {"LD_PRELOAD": "/x"}}, ("tools.lint.set_env", "LD_PRELOAD", "unsafe_env")),
    ],
)
def test_policy_with_a_bad_value(place: Path, keys: dict[str, object], said: tuple[str, ...]) -> None:
    text = refused_start(write_policy(place, {"lint": python("pass") | keys}))
    for words in said:
        assert words in text


def test_policy_that_is_no_toml(place: Path) -> None:
    policy = place / "policy.toml"
    policy.write_text("[server\n")
    assert str(policy) in refused_start(policy)


def test_policy_that_does_not_exist(place: Path) -> None:
    assert "missing.toml" in refused_start(place / "missing.toml")


def test_policy_that_everyone_can_change(place: Path) -> None:
    policy = write_policy(place, TOOLS)
    policy.chmod(0o666)
    assert "chmod go-w" in refused_start(policy)


def test_flags_out_of_bounds(place: Path) -> None:
    policy = write_policy(place, TOOLS)
    assert "--max-output-bytes" in refused_start(policy, "--max-output-bytes", "7")
    assert "call log" in refused_start(policy, "--log-json", str(place))


def catalog(code: str) -> dict[str, object]:
    return {"own": {"describe": [PYTHON, "-I", "-S", "-c", code], "command": [PYTHON, "-I", "-S", "-c", "0"]}}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit('no license found')", ("exited 1", "no license found")),
        ("print('{}')", ("own",)),
        ("import os; os.kill(os.getpid(), 9)", ("signalled",)),
        (
            "import socket, sys\ntry: socket.socket()\nexcept OSError as e: sys.exit(str(e))",
            ("exited 1", "not permitted"),
        ),
    ],
)
def test_catalog_that_cannot_be_described(place: Path, code: str, said: tuple[str, ...]) -> None:
    text = refused_start(write_policy(place, {}, catalogs=catalog(code)))
    for words in ("catalog", "own", *said):
        assert words in text


def test_discovery_does_not_wait_for_a_slow_catalog(place: Path) -> None:
    document = json.dumps({"catalog": "own", "schema_version": 1, "commands": []})
    code = f"import time; time.sleep(2); print({document!r})"
    with Server(write_policy(place, {"echo": tools.ECHO}, catalogs=catalog(code))) as server:
        begun = time.monotonic()
        server.shake()
        listing = server.start("tools/list")
        assert server.ping() < 1
        assert time.monotonic() - begun < 1.9
        names = [tool["name"] for tool in server.answer(listing)["result"]["tools"]]
        assert names == ["echo", "read_output"]
        assert time.monotonic() - begun > 1.5


def test_catalog_that_fails_while_a_client_waits(place: Path) -> None:
    with Server(write_policy(place, {}, catalogs=catalog("import time; time.sleep(1); 1 / 0"))) as server:
        server.shake()
        server.start("tools/list")
        assert server.wait() == 2
        assert "ZeroDivisionError" in server.stderr()
        assert server.stderr().startswith('toolcage: catalog "own": the describe command ended with exited 1')
