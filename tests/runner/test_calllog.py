from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from runner import calllog
from runner.calllog import CallLog, JsonLog, LogRefused
from runner.pace import GivenUp, TooFast, TooMany
from sandbox.errors import Refused
from sandbox.types import Kind, Outcome


def test_line() -> None:
    assert calllog.line("lint", "exited", 1, 42, 12.6) == "tool lint exited exit 1 42 bytes 13 ms"
    assert calllog.line("a\nb \x1b[2J", "ok", None, 0, 0) == "tool a_b___2J ok 0 bytes 0 ms"


def test_records_hold_facts_and_no_output(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    said: list[str] = []
    log = CallLog(said.append, JsonLog(str(path)), "digest")
    log.ended("lint", Outcome(Kind.EXITED, exit_code=0, stdout=b"private"), 10, 0.5, redactions=2)
    log.ended("lint", Refused("private"), 0, 0.0)
    log.ended("read_output", None, 5, 0.001)
    first, second, third = (json.loads(line) for line in path.read_text().splitlines())
    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "tool": "lint",
        "outcome": "exited",
        "exit_code": 0,
        "bytes": 10,
        "ms": 500.0,
        "redactions": 2,
        "policy": "digest",
    }
    assert second["outcome"] == "refused"
    assert third["outcome"] == "ok"
    assert "exit_code" not in third
    assert "private" not in path.read_text() + "".join(said)
    assert said[0] == "tool lint exited exit 0 10 bytes 500 ms"


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_refusals_do_not_grow_the_log(tmp_path: Path) -> None:
    """60 of each kind in a minute, then a word that they are counted, and at the end of the minute how many."""
    path, said, seconds = tmp_path / "log", list[str](), [0.0]
    log = CallLog(said.append, JsonLog(str(path)), "d", clock=lambda: seconds[0])
    for n in range(10_000):
        seconds[0] = n / 1000
        log.ended("t", TooFast(60, 1.0), 100, 0.0)
    log.ended("t", TooMany("x"), 100, 0.0)
    log.ended("t", Outcome(Kind.EXITED, exit_code=0), 100, 0.0)
    written = records(path)
    assert len(written) == len(said) == 63
    assert [line["outcome"] for line in written[:60]] == ["rate_limited"] * 60
    assert written[60] == {
        "timestamp": written[60]["timestamp"], "outcome": "rate_limited", "dropped": "counted from now on", "policy": "d",
    }  # fmt: skip
    assert "only counted" in said[60]
    assert [line["outcome"] for line in written[61:]] == ["too_many_calls", "exited"]
    seconds[0] = 61.0
    log.ended("t", TooFast(60, 1.0), 100, 0.0)
    told, new = records(path)[63:]
    assert (told["outcome"], told["dropped"]) == ("rate_limited", 9_940)
    assert new["tool"] == "t"
    assert "9940 more calls ended with rate_limited" in said[63]


def test_what_was_dropped_is_told_at_the_end(tmp_path: Path) -> None:
    path, said = tmp_path / "log", list[str]()
    log = CallLog(said.append, JsonLog(str(path)), clock=lambda: 0.0)
    for _ in range(100):
        log.ended("t", Refused("x"), 0, 0.0)
    log.close()
    assert records(path)[-1]["dropped"] == 40
    log.close()
    assert len(records(path)) == len(said) == 62


def test_calls_that_were_let_in_are_all_logged(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = CallLog(lambda _line: None, JsonLog(str(path)), clock=lambda: 0.0)
    for _ in range(200):
        log.ended("t", Outcome(Kind.CANCELLED), 0, 0.0)
        log.ended("t", Outcome(Kind.EXITED, exit_code=0), 0, 0.0)
        log.ended("read_output", None, 0, 0.0)
        log.ended("t", GivenUp("x"), 0, 0.0)
    kept = [(line.get("tool"), line["outcome"]) for line in records(path)]
    assert len(kept) == 600 + 60 + 1


def test_a_line_and_a_record_are_plain_whatever_the_name(tmp_path: Path) -> None:
    """Names of tools come from policies and catalogs; a record is one line of ASCII."""
    path, said = tmp_path / "log", list[str]()
    log = CallLog(said.append, JsonLog(str(path)))
    log.ended('\x1b]0;x\x07\u202e\x9b\n{"jsonrpc":"2.0"}', Outcome(Kind.EXITED, exit_code=0), 0, 0.0)
    [line] = path.read_bytes().splitlines()
    assert line.isascii()
    assert said[0].isprintable()
    assert said[0].isascii()
    assert "\\u001b" not in line.decode()


def test_the_file_is_private_appended_to_and_not_inherited(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("kept\n")
    path.chmod(0o600)
    log = JsonLog(str(path))
    assert log.write({"a": 1})
    assert path.read_text() == 'kept\n{"a":1}\n'
    assert not os.get_inheritable(log._descriptor)
    log.close()
    fresh = tmp_path / "fresh"
    JsonLog(str(fresh)).close()
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o600


def test_links_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    link = tmp_path / "link"
    link.symlink_to(target)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    JsonLog(str(target)).close()  # the control
    for bad, said in (
        (link, "symbolic link"),
        (tmp_path, "directory"),
        (pipe, "cannot be opened|not a regular"),
        (tmp_path / "no" / "x", "No such"),
    ):
        with pytest.raises(LogRefused, match=said):
            JsonLog(str(bad))


def test_a_write_that_fails_breaks_nothing(tmp_path: Path) -> None:
    full = JsonLog(str(tmp_path / "log"))
    full.close()
    said: list[str] = []
    CallLog(said.append, full).ended("lint", None, 0, 0)
    assert len(said) == 1
