"""A plan that reports decides as the plan that it was made from; what it reports is bounded and checked."""

from __future__ import annotations

import ast
import base64
import dataclasses
import errno
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.syscalls import names
from runner.prepare import compiled_filters
from sandbox import abi, filters, judging, outcome, planning
from sandbox import host as hosts
from sandbox.denials import Filter
from sandbox.errors import WireError
from sandbox.filecalls import CALLS, MAY_BE_EMPTY
from sandbox.plan import Plan, from_json
from sandbox.types import OPERATIONS, REASONS, Denials, Profile
from tests.sandbox.test_filters import ALLOW, ENOSYS, EPERM, KILL, answer, number
from tests.sandbox.test_flight import report as honest
from tests.test_imports import files as sources
from tests.test_imports import name_of

ASKS = 0x7FC00000  # SECCOMP_RET_USER_NOTIF
COMPILED = compiled_filters()
KEEPER = filters.keeper_filter([*names("keeper"), *names("keeper", "reporting")], reporting=True)
HOST = hosts.here()
FILES = filters.numbers(CALLS)
# Arguments that decide something in some filter, and their neighbours.
WORDS = st.sampled_from(
    [0, 1, 2, 7, 0o755, 0o4755, 0x22, 0x21, 0x5413, 0x5412, 1030, 1024, 17, 0x3D0F00, 0x1000, 2**32 + 0x5412, 2**64 - 100]
) | st.integers(0, 2**64 - 1)  # fmt: skip


def plain(folder: str = "/usr/share", **changes: Any) -> Plan:
    profile = Profile("t", ("/bin/true",), folder, **changes)
    return planning.make(profile, HOST, COMPILED, "no-namespaces")


def reporting(plan: Plan) -> Plan:
    return planning.reporting(plan, COMPILED, KEEPER)


def program(plan: Plan) -> bytes:
    return base64.b64decode(plan.seccomp.program)


PLAIN = {
    "strict": plain(),
    "processes": plain(processes="any"),
    "pairs": plain(socket_pairs=True),
    "apart": planning.make(
        Profile("t", ("/bin/true",), "/usr/share"),
        dataclasses.replace(HOST, namespaces="none"),
        COMPILED,
        "no-namespaces",
    ),
}
REPORTING = {name: reporting(plan) for name, plan in PLAIN.items()}


# ---- the filter --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
@given(value=st.integers(0, abi.NEWEST_KNOWN + 3), arguments=st.lists(WORDS, min_size=6, max_size=6))
@settings(max_examples=400, deadline=None)
def test_it_asks_where_the_normal_filter_refuses_and_about_files_and_nowhere_else(
    name: str, value: int, arguments: list[int]
) -> None:
    decided = answer(program(PLAIN[name]), value, *arguments)
    found = answer(program(REPORTING[name]), value, *arguments)
    flags = MAY_BE_EMPTY.get(FILES.get(value, ""))
    names_a_file = value in FILES and not (flags is not None and arguments[flags] & abi.AT_EMPTY_PATH)
    assert found == (ASKS if decided == EPERM or names_a_file else decided)


@pytest.mark.parametrize("name", PLAIN)
def test_every_number(name: str) -> None:
    """The same for all numbers, with arguments for which the conditional calls are refused and allowed."""
    for value in range(abi.NEWEST_KNOWN + 2):
        for arguments in ((0, 0, 0, 0, 0, 0), (0xDEAD, 0xBEEF0000, 0o7777, 0x21, 1, 1), (0, 0x5413, 0, 0x22)):
            decided = answer(program(PLAIN[name]), value, *arguments)
            found = answer(program(REPORTING[name]), value, *arguments)
            assert found == (ASKS if decided == EPERM or value in FILES else decided), value


@pytest.mark.parametrize("name", PLAIN)
def test_what_kills_still_kills(name: str) -> None:
    assert answer(program(REPORTING[name]), 2, arch=0x40000003) == KILL
    assert answer(program(REPORTING[name]), 0x40000000 + 39) == KILL
    assert answer(program(REPORTING[name]), number("clone3")) == ENOSYS


@pytest.mark.parametrize("name", PLAIN)
@given(value=st.integers(0, abi.NEWEST_KNOWN), arguments=st.lists(WORDS, min_size=6, max_size=6))
@settings(max_examples=400, deadline=None)
def test_the_keeper_decides_as_the_kernel_would(name: str, value: int, arguments: list[int]) -> None:
    """The keeper's interpreter against that of the filters' own tests, which is another one."""
    plan = REPORTING[name]
    assert plan.reports is not None
    assert plan.reports.decides == PLAIN[name].seccomp.program
    data = struct.pack("=iIQ6Q", value, abi.AUDIT_ARCH, 0, *arguments)
    assert Filter(plan.reports.decides).decides(data) == answer(program(PLAIN[name]), value, *arguments)


def test_what_the_keeper_cannot_understand_is_refused() -> None:
    for rows in (b"", struct.pack("@HBBI", 0x80, 0, 0, 0), struct.pack("@HBBI", 0x05, 0, 0, 50)):
        assert Filter(base64.b64encode(rows).decode()).decides(bytes(64)) == EPERM


def test_the_door_opens_for_its_number_only() -> None:
    plan = REPORTING["strict"]
    assert plan.reports is not None
    door = plan.reports.door
    assert answer(program(plan), number("sendmsg"), 5, 0, 0, 0, 0, door) == ALLOW
    for wrong in (0, door ^ 1, door ^ 1 << 40, door & 0xFFFFFFFF, door >> 32 << 32):
        assert answer(program(plan), number("sendmsg"), 5, 0, 0, 0, 0, wrong) == ASKS
    assert answer(program(plan), number("socket"), 5, 0, 0, 0, 0, door) == ASKS
    doors = {other.reports.door for other in REPORTING.values() if other.reports}
    assert len(doors) == len(REPORTING)


def test_a_looser_filter_stands_for_each_key_that_the_plan_does_not_have() -> None:
    keys = {name: [key for key, _ in plan.reports.looser] for name, plan in REPORTING.items() if plan.reports}
    assert keys == {
        "strict": ["processes", "socket_pairs"],
        "processes": ["socket_pairs"],
        "pairs": ["processes"],
        "apart": ["processes", "socket_pairs"],
    }
    strict = REPORTING["strict"].reports
    assert strict is not None
    looser = {key: base64.b64decode(code) for key, code in strict.looser}
    assert answer(looser["processes"], number("clone"), 17) == ALLOW
    assert answer(looser["processes"], number("clone"), 17 | abi.CLONE_NEWUSER) == EPERM
    assert answer(looser["socket_pairs"], number("socketpair"), 1, 1) == ALLOW
    assert answer(looser["socket_pairs"], number("socketpair"), 2, 1) == EPERM


# ---- the plan ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_a_normal_plan_has_nothing_of_it(name: str) -> None:
    plan = PLAIN[name]
    denied = names("tool", "apart") if name == "apart" else ()
    usual = filters.tool_filter(
        names("tool"), processes=name == "processes", socket_pairs=name == "pairs", denied=denied
    )
    assert (plan.reports, program(plan)) == (None, usual)
    assert base64.b64decode(plan.keeper_seccomp.program) == filters.keeper_filter(names("keeper"))
    rows = [usual[at : at + 8] for at in range(0, len(usual), 8)]
    assert not any(struct.unpack("@HBBI", row)[::3] == (0x06, ASKS) for row in rows)


def test_the_rest_of_the_plan_is_the_same() -> None:
    before, after = PLAIN["strict"].as_json(), REPORTING["strict"].as_json()
    assert {key for key in after if before[key] != after[key]} == {"seccomp", "keeper_seccomp", "reports"}


def test_reporting_is_part_of_digest_attestation_and_json() -> None:
    before, after = PLAIN["strict"], REPORTING["strict"]
    assert before.digest != after.digest
    assert before.expected()["seccomp"] != after.expected()["seccomp"]
    assert from_json(json.loads(json.dumps(after.as_json()))) == after
    assert from_json(json.loads(json.dumps(before.as_json()))) == before


def test_only_the_verb_call_makes_such_plans() -> None:
    users, importers = set(), set()
    for path in sources():
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        if any(
            isinstance(n, ast.Attribute) and ast.unparse(n) == "planning.reporting" for n in ast.walk(tree)
        ):
            users.add(name_of(path))
        if any(
            isinstance(n, ast.ImportFrom)
            and n.module == "runner"
            and any(a.name == "denied" for a in n.names)
            for n in ast.walk(tree)
        ):
            importers.add(name_of(path))
    assert (users, importers) == ({"runner/denied.py"}, {"runner/cli/call.py"})


def test_the_reporting_keeper_gets_three_commands_and_questions() -> None:
    usual = filters.keeper_filter(names("keeper"))
    ioctl = number("ioctl")
    for command in (0xC0502100, 0xC0182101, 0x80082102):
        assert answer(KEEPER, ioctl, 7, command) == ALLOW
        assert answer(usual, ioctl, 7, command) == EPERM
    for command in (0x5412, 0x40182103, 0xC0182104, 0):  # TIOCSTI; SECCOMP_IOCTL_NOTIF_ADDFD; none
        assert answer(KEEPER, ioctl, 7, command) == EPERM
    more = {number(name) for name in names("keeper", "reporting")}
    for value in range(abi.NEWEST_KNOWN + 1):
        if value not in more and value != ioctl:
            assert answer(KEEPER, value, 0xDEAD) == answer(usual, value, 0xDEAD), value
    for name in ("execve", "ptrace", "process_vm_writev", "unlink", "mkdir", "sendmsg", "socket"):
        assert answer(KEEPER, number(name)) == EPERM


def test_every_listed_call_is_one_that_the_tool_may_make() -> None:
    allowed = {*names("tool"), *names("tool", "conditional")}
    assert set(CALLS) <= allowed
    assert set(MAY_BE_EMPTY) <= set(CALLS)
    for section in ("reporting", "reporting_conditional"):
        for name, reason in names("keeper", section).items():
            assert len(reason) >= 4, name
            assert number(name) != -1, name
    for value, name in FILES.items():
        assert filters.name_of(value) == name
    assert filters.name_of(abi.NEWER["open_tree_attr"]) == "open_tree_attr"
    assert filters.name_of(abi.NEWEST_KNOWN + 1000) == ""


# ---- where a path leads ------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path.resolve()
    (top / "folder").mkdir()
    (top / "folder" / "file").write_text("x")
    (top / "link").symlink_to("folder/file")
    (top / "up").symlink_to("../" + top.name + "/folder")
    (top / "away").symlink_to("/nowhere/at/all")
    (top / "round").symlink_to("round")
    return top


@pytest.mark.parametrize(
    ("path", "follow", "leads", "code"),
    [
        ("folder/file", True, "folder/file", 0),
        ("link", True, "folder/file", 0),
        ("link", False, "link", 0),
        ("up/file", True, "folder/file", 0),
        ("up/../folder/./file", True, "folder/file", 0),
        ("folder/none", True, "folder/none", errno.ENOENT),
        ("none/deeper/./x", True, "none/deeper/x", errno.ENOENT),
        ("folder/file/x", True, "folder/file/x", errno.ENOTDIR),
        ("away", True, "/nowhere/at/all", errno.ENOENT),
        ("away", False, "away", 0),
        ("round", True, "round", errno.ELOOP),
        ("./" * 300 + "a/../" * 300 + "folder", True, "", errno.ELOOP),
        ("../" * 200 + "etc", True, "/etc", 0),
    ],
)
def test_find(tree: Path, path: str, follow: bool, leads: str, code: int) -> None:
    (tree / "a").mkdir()
    found = judging.find(f"{tree}/{path}", os.getpid(), follow=follow)
    assert found.code == code
    assert (found.state is None) == bool(code)
    if leads:
        assert found.path == (leads if leads.startswith("/") else f"{tree}/{leads}")
    if not code and follow:
        assert found.path == os.path.realpath(f"{tree}/{path}")


def test_only_the_last_name_is_missing(tree: Path) -> None:
    assert judging.find(f"{tree}/folder/new", 1, follow=True).last
    assert not judging.find(f"{tree}/none/new", 1, follow=True).last


def test_self_is_the_process_that_asks() -> None:
    other = os.getppid()
    assert judging.find("/proc/self/status", other, follow=True).path == f"/proc/{other}/status"
    assert judging.find("/dev/stdin", os.getpid(), follow=True).magic
    assert judging.find("/", 1, follow=True).path == "/"


# ---- the report --------------------------------------------------------------------------------------------------------

TOKEN = "0" * 32
CALL = {"call": 41, "count": 2, "key": ""}
FILE = {"path": "/etc/x", "operation": "read", "why": "missing", "count": 1}


def report(**changes: object) -> dict[str, object]:
    seen = {"denials": [CALL], "files": [FILE], "more": 3}
    return {**honest(TOKEN), "stdout": "", "stdout_total": 0, **seen, **changes}


def read(document: dict[str, object], plan: Plan = REPORTING["strict"]) -> Any:
    return outcome.reported(document, TOKEN, plan, {}).denials


def test_an_honest_report_counts() -> None:
    found = read(report())
    assert (found.calls[0].number, found.calls[0].count, found.more) == (41, 2, 3)
    assert (found.files[0].path, found.files[0].why) == ("/etc/x", "missing")
    full = report(denials=[CALL] * 256, files=[FILE] * 256)
    assert len(read(full).files) == 256


WRONG_CALLS: list[dict[str, object]] = [
    {"call": -1}, {"call": abi.NEWEST_KNOWN + 1}, {"call": "1"}, {"call": True}, {"count": 0}, {"count": 1.0},
    {"key": "root"}, {"key": None}, {"count": 2**60},
]  # fmt: skip
WRONG_FILES: list[dict[str, object]] = [
    {"path": "etc"}, {"path": "/" * 4097}, {"path": "/a\0"}, {"path": None}, {"operation": "open"},
    {"why": "because"}, {"why": []}, {"count": 0}, {"count": True},
]  # fmt: skip
WRONG: list[Mapping[str, object]] = [
    {"denials": None}, {"files": {}}, {"more": -1}, {"more": "1"}, {"more": True}, {"more": 2**60},
    {"denials": [CALL] * 257}, {"files": [FILE] * 257}, {"denials": [1]}, {"files": [[]]},
    {"denials": [{}]}, {"files": [{"path": "/x"}]},
    *({"denials": [CALL | wrong]} for wrong in WRONG_CALLS),
    *({"files": [FILE | wrong]} for wrong in WRONG_FILES),
]  # fmt: skip


@pytest.mark.parametrize("changes", WRONG)
def test_a_wrong_report_is_worthless(changes: Mapping[str, object]) -> None:
    with pytest.raises(WireError):
        read(report(**changes))


def test_a_plan_that_does_not_report_has_no_denials() -> None:
    honest = {key: value for key, value in report().items() if key not in ("denials", "files", "more")}
    assert read(honest, PLAIN["strict"]) == Denials()
    with pytest.raises(WireError):
        read(honest)
    for key in ("denials", "files", "more"):
        with pytest.raises(WireError):
            read({**honest, key: report()[key]}, PLAIN["strict"])


def test_a_key_that_the_plan_has_is_not_what_it_lacks() -> None:
    with_key = report(denials=[CALL | {"key": "processes"}])
    assert read(with_key).calls[0].key == "processes"
    with pytest.raises(WireError):
        read(with_key, REPORTING["processes"])


def test_words_are_those_of_the_types() -> None:
    assert set(judging._OPERATIONS.values()) | {"write", "create"} == set(OPERATIONS)
    assert len(set(REASONS)) == len(REASONS)
