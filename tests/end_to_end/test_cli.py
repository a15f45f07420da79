"""The verbs of the command line as a person or a script uses them: output, exit codes, errors with a remedy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import REPO, SYSTEM_PATH
from tests.end_to_end.waiting import PATIENCE
from tests.live.cage import PYTHON

TOOLS = {
    "echo": tools.ECHO,
    "facts": tools.FACTS,
    "read": tools.READ,
    "findings": python("print('[1, 2]'); raise SystemExit(1)", output="json", findings_exit_codes=[1]),
    "fails": tools.FAILS,
    "typed": python(
        "import sys; print(sys.argv[2:])", "{count}", "{items}", "{text}",
        params={"count": {"type": "integer", "required": True}, "items": {"type": "list", "required": True, "items": {"type": "string"}},
                "text": {"type": "string"}},
    ),
}  # fmt: skip
VERBS = ("serve", "call", "explain", "doctor", "demo")


def toolcage(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "runner", *words],
        cwd=REPO,
        env={"PATH": SYSTEM_PATH, "HOME": "/nonexistent", **(env or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def policy(place: Path) -> str:
    return str(write_policy(place, TOOLS, presets=["files"]))


def printed(done: subprocess.CompletedProcess[str], code: int) -> Any:
    """The JSON on stdout; the exit code is as expected, and nothing is on stderr unless it is an error."""
    assert done.returncode == code, done
    return json.loads(done.stdout)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The words of a refusal: two lines on stderr, exit code 2."""
    assert done.returncode == 2, done
    first, second = done.stderr.splitlines()
    assert first.startswith("toolcage: ")
    assert second.startswith("  what to do: ")
    return done.stderr


# ---- help ------------------------------------------------------------------------------------------------------------


def test_help() -> None:
    done = toolcage("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for verb in VERBS:
        assert f"  {verb} " in done.stdout
    assert "exit codes: 0 ok, 1 findings, 2 error" in done.stdout
    assert "examples:" in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb(verb: str) -> None:
    done = toolcage(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: toolcage {verb}" in done.stdout


def test_version() -> None:
    assert toolcage("--version").stdout.startswith("toolcage ")


@pytest.mark.parametrize(
    "words", [(), ("nonsense",), ("call",), ("serve", "--nonsense", "x"), ("explain", "a", "b", "c")]
)
def test_usage_errors(words: tuple[str, ...]) -> None:
    done = toolcage(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: toolcage" in done.stderr


# ---- call ------------------------------------------------------------------------------------------------------------


def test_call(policy: str) -> None:
    document = printed(toolcage("call", policy, "echo", "text=hello world=1"), 0)
    assert (document["tool"], document["is_error"]) == ("echo", False)
    assert document["text"].endswith("hello world=1")
    assert document["meta"]["exit_code"] == 0
    assert document["meta"]["cage"]["no_new_privs"] is True
    facts = printed(toolcage("call", policy, "facts"), 0)
    assert facts["structured"]["result"] == {"answer": 42, "list": [1, "two"]}
    assert "text" not in facts


def test_call_findings_and_errors(policy: str) -> None:
    findings = printed(toolcage("call", policy, "findings"), 1)
    assert findings["structured"]["outcome"] == "findings"
    failed = printed(toolcage("call", policy, "fails"), 2)
    assert failed["is_error"]
    assert "no such thing" in failed["text"]


def test_call_arguments(policy: str) -> None:
    words = printed(toolcage("call", policy, "typed", "count=3", 'items=["a", "b"]', "text=7"), 0)
    assert words["text"].endswith("['3', 'a', 'b', '7']")
    whole = json.dumps({"count": 3, "items": ["a", "b"], "text": "7"})
    assert printed(toolcage("call", policy, "typed", "--json", whole), 0)["text"] == words["text"]


def test_call_root_from_the_command_line(policy: str, place: Path) -> None:
    (place / "other").mkdir()
    (place / "other").chmod(0o755)
    (place / "other" / "there.txt").write_text("there\n")
    document = printed(toolcage("call", policy, "read", "path=there.txt", "--root", str(place / "other")), 0)
    assert document["text"].endswith("there")


def test_call_refusals(policy: str) -> None:
    assert "echoo" in refused(toolcage("call", policy, "echoo"))
    assert '"text" is missing' in refused(toolcage("call", policy, "echo"))
    assert "unknown argument" in refused(toolcage("call", policy, "echo", "txt=1"))
    assert "path=src" in refused(toolcage("call", policy, "echo", "word"))
    assert "leaves the root" in refused(toolcage("call", policy, "read", "path=../outside.txt"))
    assert "not both" in refused(toolcage("call", policy, "echo", "text=1", "--json", "{}"))
    assert "--json is not JSON" in refused(toolcage("call", policy, "echo", "--json", "{"))
    assert "missing.toml" in refused(toolcage("call", "missing.toml", "echo"))


def test_json_errors(policy: str) -> None:
    for words in (
        ("call", policy, "read", "--json", '{"path": "../outside.txt"}'),
        ("call", policy, "nonsense", "--json", "{}"),
        ("call", policy, "echo", "--json", "[]"),
        ("call", "missing.toml", "echo", "--json", "{}"),
        ("explain", policy, "nonsense", "--json"),
        ("explain", "missing.toml", "--json"),
    ):
        done = toolcage(*words)
        error = printed(done, 2)["error"]
        assert set(error) == {"code", "message", "remedy"}
        assert all(error.values()), words
        assert error["message"] in done.stderr


def test_call_masks_secrets(policy: str, place: Path) -> None:
    (place / "root" / "secret.txt").write_text("it is winter-4711-snow!\n")
    done = toolcage("call", policy, "read", "path=secret.txt", env={"SERVICE_TOKEN": "winter-4711-snow!"})
    assert printed(done, 0)["text"].endswith("it is [REDACTED:secret-value]")
    assert "winter" not in done.stdout + done.stderr


def test_call_that_explains_denials(place: Path) -> None:
    code = "import os, _socket\nfor use in (lambda: _socket.socket(1, 1), os.fork, lambda: open(os.path.join('..', 'outside.txt'))):\n try: use()\n except OSError as e: print(e.errno)"
    policy = str(write_policy(place, {"tries": python(code)}))
    asked, usual = toolcage("call", "--explain-denials", policy, "tries"), toolcage("call", policy, "tries")
    outside = str(place / "outside.txt")
    document, before = printed(asked, 0), printed(usual, 0)
    assert document["text"] == before["text"]
    assert document["text"].split()[-3:] == ["1", "1", "2"]
    calls = {one["call"]: (one["count"], one["allowed_by"]) for one in document["denials"]["calls"]}
    assert calls["socket"] == (1, None)
    assert calls["clone"][1].startswith('processes = "any"')
    refused_file = next(one for one in document["denials"]["files"] if one["path"] == outside)
    assert (refused_file["why"], refused_file["on_host"]) == ("missing", True)
    line = f"read {outside}: does not exist inside; read_only_paths = [{json.dumps(outside)}]"
    assert any(text.endswith(line) for text in asked.stderr.splitlines())
    assert "system call socket: no policy can allow this call" in asked.stderr
    assert "hide what it tries, and forge it" in asked.stderr
    assert ("denials" in before, usual.stderr) == (False, "")
    allowed = python(code, processes="any", read_only_paths=[outside])
    policy = str(write_policy(place, {"tries": allowed}))
    after = printed(toolcage("call", "--explain-denials", policy, "tries"), 0)
    assert [one["call"] for one in after["denials"]["calls"]] == ["socket"]  # the other two lines were true
    assert outside not in [one["path"] for one in after["denials"]["files"]]


def test_call_of_a_catalogs_tool(place: Path) -> None:
    document = {"catalog": "own", "schema_version": 1, "commands": [
        {"name": "show", "tags": ["read_only"], "json": "--json", "flags": [{"name": "--json", "type": "flag"}]}]}  # fmt: skip
    catalog = {
        "describe": [PYTHON, "-I", "-S", "-c", f"print({json.dumps(document)!r})"],
        "command": [PYTHON, "-I", "-S", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"],
    }
    policy = str(write_policy(place, {}, catalogs={"own": catalog}))
    assert printed(toolcage("call", policy, "show"), 0)["structured"]["result"] == ["show", "--json"]


# ---- explain ---------------------------------------------------------------------------------------------------------


def test_explain(policy: str, place: Path) -> None:
    done = toolcage("explain", policy)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(place / "root") in done.stdout
    for name in (*TOOLS, "read_file"):
        assert f"  {name} " in done.stdout
    one = toolcage("explain", policy, "echo").stdout
    for words in (
        "text: string (required)",
        str(place / "root"),
        "processes: none",
        "limits: 45 s",
        "plan digest: ",
    ):
        assert words in one
    assert not toolcage("explain", policy, "echo").stderr


def test_explain_json(policy: str, place: Path) -> None:
    whole = printed(toolcage("explain", policy, "--json"), 0)
    assert whole["root"] == str(place / "root")
    assert set(whole["plans"]) == {tool["name"] for tool in whole["tools"]} >= set(TOOLS)
    one = printed(toolcage("explain", policy, "echo", "--json"), 0)
    assert one["definition"]["inputSchema"]["required"] == ["text"]
    assert one["digest"] == whole["plans"]["echo"]["digest"]
    again = printed(toolcage("explain", policy, "echo", "--json"), 0)
    assert again == one


def test_explain_starts_nothing(place: Path) -> None:
    policy = str(write_policy(place, {"hang": tools.HANGS}))
    assert toolcage("explain", policy, "hang").returncode == 0
    assert "known: hang" in refused(toolcage("explain", policy, "other"))


# ---- doctor ----------------------------------------------------------------------------------------------------------


def test_doctor() -> None:
    done = toolcage("doctor")
    assert done.returncode == 0, done.stdout
    assert "are served here" in done.stdout
    report = printed(toolcage("doctor", "--json"), 0)
    assert report["ok"] is True
    states = {layer["layer"]: layer["state"] for layer in report["layers"]}
    assert {state for layer, state in states.items() if layer != "cgroup"} == {"available"}
    assert report["rung"] in ("full", "cgroup-v1", "namespaces")
    assert {"seccomp", "landlock", "namespaces", "mounts", "identity", "keyring", "limits"} <= set(states)


def test_output_that_nobody_reads(policy: str) -> None:
    """`toolcage explain ... | head -1` is no error to shout about."""
    with subprocess.Popen(
        [sys.executable, "-m", "runner", "explain", policy, "--json"],
        cwd=REPO, env={"PATH": SYSTEM_PATH}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
        process.wait(PATIENCE)
