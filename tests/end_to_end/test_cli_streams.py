"""The command line where its streams are closed, full or interrupted: one line of words, and never an exit code that means
something else.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from runner import cli
from runner.cli import doctor
from tests.end_to_end import tools
from tests.end_to_end.policy_file import write_policy
from tests.end_to_end.server import REPO, SYSTEM_PATH, runs_a_tool
from tests.end_to_end.waiting import PATIENCE, all_gone, until

ENVIRONMENT = {"PATH": SYSTEM_PATH, "HOME": "/nonexistent"}


@pytest.fixture
def policy(place: Path) -> str:
    return str(write_policy(place, {"sleep": tools.SLEEP, "echo": tools.ECHO}, presets=["files"]))


def shell(line: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`line` in a shell, with the command as "$@" and streams as the line says."""
    return subprocess.run(
        ["/bin/sh", "-c", line, "sh", sys.executable, "-m", "runner", *words],
        cwd=REPO, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(("line", "words"), [
    ('"$@" >&-', ("redact",)),
    ('"$@" <&-', ("redact",)),
    ('"$@" >/dev/full', ("explain", "{policy}")),
    ('"$@" >/dev/full', ("call", "{policy}", "echo", "text=x")),
])  # fmt: skip
def test_a_stream_that_cannot_be_used_is_an_error_in_one_line(
    policy: str, line: str, words: tuple[str, ...]
) -> None:
    done = shell(f"echo text | {line}", *(word.format(policy=policy) for word in words))
    assert done.returncode == 2, done
    assert done.stderr.splitlines()[-1].startswith("toolcage: standard input or output failed: ")
    assert "Traceback" not in done.stderr
    well = shell(line.split()[0], *(word.format(policy=policy) for word in words))
    assert well.returncode == 0, well


def test_words_for_people_never_go_to_stdout(tmp_path: Path) -> None:
    done = shell('"$@" 2>&-', "explain", str(tmp_path / "none.toml"))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    assert "none.toml" in shell('"$@"', "explain", str(tmp_path / "none.toml")).stderr


def test_a_reader_that_leaves_is_no_trouble(policy: str) -> None:
    done = shell('{ "$@"; echo "code $?" >&2; } | head -n 1', "explain", policy)
    assert done.stdout.startswith("policy ")
    assert done.stderr in ("code 0\n", "code 2\n")  # whether all fitted into the pipe before it left


def test_no_file_of_ours_takes_the_number_of_a_closed_stream(policy: str) -> None:
    done = shell('"$@" <&- | cat', "call", policy, "echo", "text=there")
    assert "there" in done.stdout


def test_ctrl_c_ends_a_call_in_one_line_and_nothing_stays(policy: str) -> None:
    # Who runs the tests in the background ignores the signal, and so would the command (sh(1), signal(7)).
    code = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.executable, sys.argv[1:])"
    command = [sys.executable, "-m", "runner", "call", policy, "sleep", "seconds=60"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *command],
        cwd=REPO, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        ours = psutil.Process(process.pid)
        until(lambda: any(runs_a_tool(below) for below in tools_of(ours)))
        below = ours.children(recursive=True)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
        assert (process.returncode, said) == (130, b"toolcage: interrupted\n")
        all_gone(below)


def tools_of(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [below for child in process.children() for below in child.children(recursive=True)]
    except psutil.NoSuchProcess:  # it ended while we looked
        return []


def test_arguments_that_nest_too_deep_are_refused(policy: str) -> None:
    deep = "[" * 20_000
    done = shell('"$@"', "call", policy, "echo", "--json", f'{{"text":{deep}')
    assert done.returncode == 2
    assert "--json is not JSON" in done.stderr
    done = shell('"$@"', "call", policy, "read_file_start", "path=x", f"lines={deep}")
    assert done.returncode == 2
    assert "must be" in done.stderr or "integer" in done.stderr, done.stderr


def test_a_root_that_cannot_be_told_is_refused(policy: str, place: Path) -> None:
    odd = os.fsencode(place) + b"/root\xff"
    os.mkdir(odd)
    done = subprocess.run(
        [sys.executable, "-m", "runner", "explain", policy, "--root", odd],
        cwd=REPO, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    os.rmdir(odd)
    assert done.returncode == 2
    assert "root\\xff is not UTF-8" in done.stderr


def test_a_bug_says_that_it_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_options: object) -> int:
        raise ZeroDivisionError("of the test")

    monkeypatch.setattr(doctor, "run", broken)
    assert cli.main(["doctor"]) == 2
    said = capsys.readouterr().err
    assert "ZeroDivisionError: of the test" in said
    assert "this is a bug in Toolcage" in said
