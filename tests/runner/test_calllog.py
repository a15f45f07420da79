from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from runner import calllog
from runner.calllog import CallLog, JsonLog, LogRefused
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
