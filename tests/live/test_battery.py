"""The escape battery holds on this host and on each weaker rung, and its words are right. That it sees holes is shown by
test_battery_steps and test_battery_plans.
"""

from __future__ import annotations

import asyncio
import dataclasses
import glob
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from runner.cli import main
from runner.verify import group, number
from runner.verify_looks import answer, control, left, marked
from runner.verify_site import Site, folder, is_lent, python
from sandbox.battery import changed, registry, rungs
from sandbox.battery.case import (
    ANOTHER,
    CONTROL_FAILED,
    ESCAPED,
    HELD,
    NEEDS,
    NOT_APPLICABLE,
    Case,
    blocked,
    judge,
    missing,
)
from sandbox.types import Kind, Outcome, Profile
from tests.live.attack import attack, made_site, weak_launcher
from tests.live.rungs import HOSTS, on_host

# As the machines on which these tests run differ: what may not apply there, and nothing else.
EXPLAINED = (
    "outside it is refused as well",
    "this machine has nothing there",
    "nothing of the home folder",
    "this is about ordinary users",
    "only root can do",
    "this kernel's Landlock does not know",
    "this machine does not have that system call",
    "these calls exist on x86-64 only",
    "this rung has no cgroups",
    "there is no bash",
)


def verify(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    code = main(["verify", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def test_the_whole_battery_holds_here(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = verify(capsys)
    cases = found["cases"]
    assert [(c["id"], c["why"]) for c in cases if c["result"] in (ESCAPED, CONTROL_FAILED)] == []
    assert code == 0
    assert {case["id"] for case in cases} == {case.id for case in registry.CASES}
    results = Counter(case["result"] for case in cases)
    assert results[HELD] > 640
    assert results[NOT_APPLICABLE] < 30
    for case in cases:
        assert case["result"] == HELD or case["why"].startswith(EXPLAINED), case


# What a rung can change: cases that expect something else on one, and all groups but the long list of single calls.
ON_RUNGS = ",".join(case.id for case in registry.CASES if case.on or case.group != "kernel")


@pytest.mark.parametrize("weak", sorted(HOSTS))
def test_the_battery_holds_on_a_weaker_host(capsys: pytest.CaptureFixture[str], weak: str) -> None:
    with on_host(weak) as rung:
        code, found = verify(capsys, *(() if weak == "container" else ("--only", ON_RUNGS)))
    cases = found["cases"]
    assert [(c["id"], c["why"]) for c in cases if c["result"] in (ESCAPED, CONTROL_FAILED)] == []
    assert code == 0
    assert {case["rung"] for case in cases} == {rung}
    assert sum(case["result"] == HELD for case in cases) > 250


def test_ids_are_unique_and_can_be_chosen() -> None:
    ids = [case.id for case in registry.CASES]
    assert len(ids) == len(set(ids))
    assert [case.id for case in registry.chosen(["FR-01,NE-01"])] == ["FR-01", "NE-01"]
    with pytest.raises(registry.UnknownCase, match="nonsense"):
        registry.chosen(["nonsense"])


def test_cases_name_only_what_exists() -> None:
    for case in registry.CASES:
        assert set(case.needs) <= NEEDS.keys(), case.id
        assert case.cage in ("", *changed.KINDS), case.id
        assert case.look in ("", "gone", "tool", "keeper", "cgroup", "flat"), case.id
    with made_site() as site:
        _, cage = attack_facts(site)
        for case in registry.CASES:
            facts = {**cage, **{f"sys_{name}": 1 for name in case.calls}}
            for text in (case.inside(facts), case.before(facts), case.outside(facts)):
                compile(text, case.id, "exec")


def attack_facts(site: Site) -> tuple[Profile, dict[str, object]]:
    from runner.prepare import compiled_filters
    from sandbox import host, planning

    profile = Profile("facts", (python(), "-c"), str(site.root))
    plan = planning.make(profile, host.here(), compiled_filters(), "no-namespaces")
    return profile, site.facts(profile, plan, inside=True)


@pytest.mark.x86_only
def test_calls_are_made_by_their_numbers() -> None:
    assert [number(name) for name in ("read", "unshare", "statmount")] == [0, 272, 457]
    assert number("no_such_call") < 0


CASE = Case("X", "group", "sentence", "attempt", blocked("ENOENT"))


@pytest.mark.parametrize(("inside", "outside", "result", "why"), [
    ("BLOCKED ENOENT", "WORKED", HELD, ""),
    ("BLOCKED ENOENT", "BLOCKED EFAULT", HELD, ""),
    ("BLOCKED ENOENT", "BLOCKED ENOENT", CONTROL_FAILED, "outside it is stopped as well: BLOCKED ENOENT"),
    ("WORKED", "WORKED", ESCAPED, "inside: WORKED, expected BLOCKED ENOENT"),
    ("WORKED", "BLOCKED ENOENT", ESCAPED, "inside: WORKED, expected BLOCKED ENOENT"),
    ("BLOCKED EACCES", "WORKED", ESCAPED, "a layer does not hold, another one stopped it: BLOCKED EACCES, expected BLOCKED ENOENT"),
    ("BLOCKED EFAULT", "BLOCKED EFAULT", ESCAPED, "inside it goes as far as outside: BLOCKED EFAULT, expected BLOCKED ENOENT"),
    ("exit code 1: no", "WORKED", CONTROL_FAILED, "the attempt did not run to its answer: exit code 1: no"),
    ("BLOCKED ENOENT", "exit code 1: no", CONTROL_FAILED, "outside it is stopped as well: exit code 1: no"),
])  # fmt: skip
def test_two_answers_make_a_verdict(inside: str, outside: str, result: str, why: str) -> None:
    verdict = judge(CASE, CASE.expected, inside, outside)
    assert (verdict.result, verdict.why) == (result, why)


def test_what_the_machine_itself_refuses_proves_nothing_and_that_is_no_fault() -> None:
    case = dataclasses.replace(CASE, optional=True)
    assert judge(case, case.expected, "BLOCKED ENOENT", "BLOCKED ENOENT").result == NOT_APPLICABLE
    assert judge(case, case.expected, "BLOCKED EIO", "BLOCKED ENOENT").result == ESCAPED


def test_what_exists_outside_afterwards_decides() -> None:
    case = dataclasses.replace(CASE, untouched=("mark",))
    assert (
        judge(case, case.expected, "WORKED", "WORKED").result == HELD
    )  # it may have been in the private /tmp
    assert judge(case, case.expected, "BLOCKED ENOENT", "WORKED", touched="/x").result == ESCAPED


@pytest.mark.parametrize(("inside", "outside", "result"), [
    ("VALUE 1", "VALUE 2", HELD), ("VALUE 1", "VALUE 1", ESCAPED), ("BLOCKED EPERM", "VALUE 1", ESCAPED),
    ("VALUE 1", "BLOCKED EPERM", CONTROL_FAILED), ("BLOCKED ENOSYS", "BLOCKED ENOSYS", NOT_APPLICABLE),
])  # fmt: skip
def test_a_value_must_be_another_one_inside(inside: str, outside: str, result: str) -> None:
    assert judge(CASE, (ANOTHER,), inside, outside).result == result


def test_a_rung_expects_something_else_or_says_why_not() -> None:
    case = dataclasses.replace(CASE, on={**rungs.PROC, "no-landlock": blocked("EPERM")})
    assert case.expects(()) == blocked("ENOENT")
    assert case.expects(("no-landlock",)) == blocked("EPERM")
    assert case.expects(("no-landlock", "root-namespaces")) == blocked("EPERM")
    verdict = missing(case, frozenset(), ("no-landlock", "no-proc"))
    assert verdict is None
    verdict = missing(case, frozenset(), ("no-proc",))
    assert verdict is not None
    assert (verdict.result, verdict.why) == (NOT_APPLICABLE, "there is no /proc inside on this rung")


def test_a_site_lies_where_no_cage_lends_it() -> None:
    assert folder(()) == "/var/tmp"
    assert folder(("/var/tmp/x",)) != "/var/tmp"
    assert folder(("/var", "/dev/shm", "/tmp/x")) == os.path.realpath(folder(("/var", "/dev/shm")))
    assert is_lent("/a/b", ("/a",))
    assert is_lent("/a", ("/a/b",))
    assert not is_lent("/a/b", ("/a/c", "/ab"))


def test_a_process_that_outlives_its_call_is_found_and_ended() -> None:
    word = f"toolcage-test-{os.getpid()}-{os.urandom(4).hex()};"
    with subprocess.Popen([sys.executable, "-c", marked("input()\n", word)], stdin=subprocess.PIPE) as stays:
        try:
            while (found := left(word)) == "GONE":  # it is not yet what it will be
                assert stays.poll() is None
            assert found == "RUNS 1"
            assert stays.wait(10) == -signal.SIGKILL
            assert left(word) == "GONE"
        finally:
            stays.kill()


def test_a_control_is_a_plain_child() -> None:
    assert asyncio.run(control("import os; print(os.environ['TMPDIR'])", "/x")) == "/x"
    assert asyncio.run(control("import os; os.kill(os.getpid(), 9)", "/x")) == "KILLED 9"
    assert asyncio.run(control("raise SystemExit(3)", "/x")) == "no answer, exit code 3"


def test_an_outcome_is_one_line() -> None:
    assert answer(Outcome(Kind.EXITED, exit_code=0, stdout=b"a\nWORKED\n")) == "WORKED"
    assert answer(Outcome(Kind.EXITED, exit_code=1, stderr=b"a\nb\n")) == "exit code 1: b"
    assert answer(Outcome(Kind.SIGNALLED, signal=31)) == "KILLED 31"
    assert answer(Outcome(Kind.TIMED_OUT)) == "ENDED timed_out"


def test_plans_that_differ_in_name_and_program_are_one_cage(tmp_path: Path) -> None:
    one = Profile("one", ("/bin/cat",), str(tmp_path))
    found = group([one, dataclasses.replace(one, name="two"), dataclasses.replace(one, processes="any")])
    assert [names for _, names in found] == [("one", "two"), ("one",)]


POLICY = """\
presets = ["files"]
[server]
name = "x"
floor = "no-namespaces"
[tools.count]
description = "Count."
command = ["wc", "--lines"]
processes = "any"
"""


def test_the_command_attacks_the_cages_of_a_policy(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, report = tmp_path / "policy.toml", tmp_path / "report.xml"
    policy.write_text(POLICY)
    words = [
        str(policy),
        "--root",
        str(place / "root"),
        "--junit",
        str(report),
        "--only",
        "network,PS-03,FR-04-root",
    ]
    code, found = verify(capsys, *words)
    cases = found["cases"]
    assert code == 0
    assert {tuple(case["cage"]["tools"])[-1] for case in cases} == {"file_info", "count"}  # type: ignore[index]
    assert Counter(case["id"] for case in cases)["PS-03"] == 1, (
        "only where the policy lets nothing be started"
    )
    away = [case for case in cases if case["result"] == NOT_APPLICABLE and case["id"] == "FR-04-root"]
    assert {case["why"] for case in away} == {NEEDS["own_root"]}
    entries = ElementTree.parse(report).getroot().findall("testcase")
    assert len(entries) == len(cases)
    skipped = sum(case["result"] == NOT_APPLICABLE for case in cases)
    assert sum(entry.find("skipped") is not None for entry in entries) == skipped


# Policies that lend what cases aim at: none of it may look like an escape.
AWKWARD = {
    "home": 'root = "{home}"\nallow_home = true',
    "everything": 'root = "/"\nroot_at = "/host"\nallow_root_dir = true',
    "elsewhere": 'root = "{root}"\nroot_at = "/srv/x"',
    "site": 'root = "/var/tmp"',
}
LENDABLE = "files_read,files_write,information,processes,resources,terminal,lasting,NE-02,NE-04,NE-05,NE-09-pair,KE-09-tmp"
MORE = """
read_only_paths = ["/etc/hostname", "/etc/profile.d", "/var/lib", "/etc/passwd"]
env = ["TOOLCAGE_TEST_TOKEN"]
socket_pairs = true
limits = {processes = 2, open_files = 16, memory_mb = 48, file_mb = 1, tmp_mb = 1, wall_seconds = 20, cpu_seconds = 2}
"""


@pytest.mark.parametrize("kind", AWKWARD)
def test_what_a_policy_lends_is_no_escape(
    kind: str,
    tmp_path: Path,
    place: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOLCAGE_TEST_TOKEN", "x")
    policy = tmp_path / "policy.toml"
    server = AWKWARD[kind].format(home=os.path.expanduser("~"), root=place / "root")
    policy.write_text(
        POLICY.replace('name = "x"', f'name = "x"\n{server}').replace('processes = "any"', MORE)
    )
    code, found = verify(capsys, str(policy), "--only", LENDABLE)
    failed = [(c["id"], c["why"]) for c in found["cases"] if c["result"] in (ESCAPED, CONTROL_FAILED)]
    assert (code, failed) == (0, [])
    lent = [case["id"] for case in found["cases"] if case["why"].startswith("the policy lends")]
    assert {"FR-01-hostname", "PE-01"} <= set(lent)


def test_a_cage_in_which_nothing_runs_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with weak_launcher("no_new_privs"):
        assert main(["verify"]) == 2
    assert "cage-1 (stands for one process): no program runs in it" in (said := capsys.readouterr().err)
    assert "step landlock" in said


def test_the_command_lists_without_running(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(registry.CASES)
    assert main(["verify", "--only", "nonsense"]) == 2
    assert "files_read" in capsys.readouterr().err


def test_nothing_is_left_of_a_battery(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(capsys, "--only", "files_write,PS-03-daemon,PS-06,TC-09")[0] == 0
    own = f"toolcage-verify-{os.getpid()}-"
    assert glob.glob(f"/var/tmp/{own}*") == []
    assert [p for p in psutil.process_iter(["cmdline"]) if own in " ".join(p.info["cmdline"] or ())] == []


def test_a_case_is_attacked_with_what_its_cage_needs() -> None:
    with made_site() as site:
        seen = attack(site, "FR-01-shelf,RE-09,NE-01-send,FR-01")
    assert {verdict.case.id: verdict.result for verdict in seen.verdicts} == dict.fromkeys(
        ("FR-01", "FR-01-shelf", "NE-01-send", "RE-09"), HELD
    )
