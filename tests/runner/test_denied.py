"""What the person who writes a policy reads about refusals: the key that would allow each, or why none does."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from runner import denied
from runner.prepare import Prepared, compiled_filters
from runner.redaction.engine import Redactor
from runner.redaction.values import SecretValue
from sandbox import abi, filters, planning
from sandbox import host as hosts
from sandbox.plan import Plan
from sandbox.root import Root, open_root
from sandbox.types import REASONS, Denials, DeniedCall, DeniedFile, Kind, Outcome, Profile

HOST = hosts.here()
SECRET = "winter-4711-snow!"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    top = tmp_path.resolve()
    (top / "root").mkdir()
    (top / "there").write_text("x")
    (top / "link").symlink_to("there")
    return top


def root_of(place: Path, root_at: str | None = None) -> Root:
    return open_root(str(place / "root"), root_at)


def plan(place: Path, **changes: Any) -> Plan:
    profile = Profile("t", ("/bin/true",), str(place / "root"), **changes)
    return planning.make(profile, HOST, compiled_filters(), "no-namespaces")


def explained(
    place: Path, made: Plan, *found: DeniedCall | DeniedFile, kind: Kind = Kind.EXITED
) -> denied.Explained:
    calls = tuple(one for one in found if isinstance(one, DeniedCall))
    files = tuple(one for one in found if isinstance(one, DeniedFile))
    outcome = Outcome(kind, exit_code=0, denials=Denials(calls, files))
    return denied.explain(outcome, made, root_of(place), Redactor((SecretValue("test", SECRET),)))


def file(path: Path | str, operation: str = "read", why: str = "missing") -> DeniedFile:
    return DeniedFile(str(path), operation, why, 1)


def row(place: Path, found: DeniedFile, **changes: Any) -> denied.FileRow:
    return explained(place, plan(place, **changes), found).files[0]


def test_calls_have_names_and_the_key_that_would_allow_them(place: Path) -> None:
    number = next(iter(filters.numbers(["clone"])))
    found = explained(
        place,
        plan(place),
        DeniedCall(number, 3, "processes"),
        DeniedCall(number, 1),
        DeniedCall(abi.NEWER["open_tree_attr"], 1),
        DeniedCall(abi.NEWEST_KNOWN, 1),
    )
    assert [one.call for one in found.calls][:3] == ["clone", "clone", "open_tree_attr"]
    assert found.calls[3].call
    assert found.calls[0].allowed_by is not None
    assert found.calls[0].allowed_by.startswith('processes = "any"')
    lines = list(denied.lines(found))
    assert any("3 x  system call clone: processes" in line for line in lines)
    assert any("1 x  system call clone: no policy can allow this call" in line for line in lines)


def test_a_path_that_is_on_the_host_may_be_lent(place: Path) -> None:
    found = row(place, file(place / "there"))
    assert (found.on_host, found.allowed_by) == (
        True,
        f"read_only_paths = [{json.dumps(str(place / 'there'))}]",
    )


def test_a_path_that_is_nowhere_has_no_key_and_no_line(place: Path) -> None:
    found = explained(place, plan(place), file(place / "none"), file("/nowhere", "start"))
    assert [(one.on_host, one.allowed_by) for one in found.files] == [(False, None)] * 2
    lines = list(denied.lines(found))
    assert lines[0] == "Nothing was refused in this run."
    assert "2 more paths" in lines[1]
    assert str(place) not in "\n".join(lines)


@pytest.mark.parametrize(
    ("operation", "why", "path", "because"),
    [
        ("write", "missing", "PLACE/there", "temporary folder"),
        ("create", "read-only", "PLACE/root/x", "temporary folder"),
        ("look", "read-only", "PLACE/root/x", "temporary folder"),
        ("read", "permission", "PLACE/there", "depends on the file"),
        ("read", "unreadable", "", "named no file"),
        ("read", "missing", "PLACE/link", "is a link to PLACE/there"),
        ("read", "missing", "/proc/meminfo", "the kernel"),
        ("read", "not-lent", "/", "holds only what is lent"),
        ("read", "not-lent", "PLACE", "holds only what is lent"),
    ],
)
def test_where_no_key_helps_it_says_why(
    place: Path, operation: str, why: str, path: str, because: str
) -> None:
    found = row(place, file(path.replace("PLACE", str(place)), operation, why))
    assert found.allowed_by is None
    assert because.replace("PLACE", str(place)) in found.because


def test_programs(place: Path) -> None:
    echo = os.path.realpath("/bin/echo")
    assert row(place, file(echo, "start", "not-a-program")).allowed_by == f'processes = ["{echo}"]'
    assert row(place, file(place / "there", "start")).allowed_by == f'processes = ["{place}/there"]'
    loose = row(place, file("/tmp/made", "start", "not-a-program"), processes="any")
    assert (loose.allowed_by, bool(loose.because)) == (None, True)


def test_the_roots_own_name(place: Path) -> None:
    if HOST.namespaces == "none":
        pytest.skip("the root folder cannot have another name without namespaces")
    (place / "root" / "file").write_text("x")
    made = plan(place, root_at="/work-here")
    outcome = Outcome(Kind.EXITED, denials=Denials(files=(file(place / "root" / "file"),)))
    found = denied.explain(outcome, made, root_of(place, "/work-here"), Redactor(())).files[0]
    assert (found.allowed_by, found.because) == (None, "the root folder is /work-here inside")


def test_every_reason_has_words_and_a_remedy(place: Path) -> None:
    assert set(denied._WHY) == set(REASONS)
    for why in REASONS:
        found = row(place, file(place / "there", "read", why))
        assert bool(found.allowed_by) != bool(found.because)


def test_secrets_in_paths_are_masked(place: Path) -> None:
    (place / SECRET).write_text("x")
    found = explained(place, plan(place), file(place / SECRET))
    assert found.files[0].on_host is True
    assert SECRET not in json.dumps(found.as_json())
    assert SECRET not in "\n".join(denied.lines(found))


def test_it_says_what_it_is_worth(place: Path) -> None:
    assert "hide what it tries, and forge it" in list(denied.lines(explained(place, plan(place))))[-1]
    for kind in (Kind.UNKNOWN, Kind.SETUP_FAILED, Kind.CANCELLED):
        assert list(denied.lines(explained(place, plan(place), kind=kind))) == [denied._UNKNOWN]
    more = dataclasses.replace(explained(place, plan(place)), more=7)
    assert any("7 more refusals" in line for line in denied.lines(more))


def test_plans_of_describe_commands_do_not_report(place: Path) -> None:
    plans = {name: dataclasses.replace(plan(place), name=name) for name in ("t", "describe:x", "catalog:x")}
    prepared = Prepared(HOST, root_of(place), (), plans)
    found = denied.reporting(prepared).plans
    assert {name: made.reports is not None for name, made in found.items()} == {
        "t": True,
        "describe:x": False,
        "catalog:x": True,
    }
    assert found["describe:x"] == plans["describe:x"]
