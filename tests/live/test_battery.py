"""The escape battery holds on this host, and it sees holes: each weakened cage lets at least one case escape."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from runner.cli import main
from runner.cli.verify import _LIMITS
from runner.prepare import compiled_filters
from runner.verify import Battery, Cage, Site, group, python
from sandbox import host, planning, spawn
from sandbox.battery import registry
from sandbox.battery.case import CONTROL_FAILED, ESCAPED, HELD, Verdict, judge
from sandbox.plan import Plan
from sandbox.steps.limits import ResourceLimits
from sandbox.steps.mounts import Mount, Mounts
from sandbox.steps.seccomp import Seccomp
from sandbox.supervisor import Supervisor
from sandbox.types import Limits, Profile

ALLOW_ALL = Seccomp(base64.b64encode(struct.pack("@HBBI", 0x06, 0, 0, 0x7FFF0000)).decode())
WIDE = Limits(memory_mb=4096, open_files=512, file_mb=4096)


@pytest.fixture
def site(place: Path) -> Iterator[Site]:
    folder = place / f"battery-{os.urandom(4).hex()}"
    folder.mkdir()
    with Site(folder) as made:
        yield made


def attack(site: Site, weaken: Callable[[Plan, Site], Plan], only: str = "") -> list[Verdict]:
    profile = Profile("battery", (python(), "-I", "-S", "-c"), str(site.root), limits=_LIMITS)
    plan = weaken(planning.make(profile, host.probe(), compiled_filters()), site)
    supervisor = Supervisor(spawn.launcher())

    async def work() -> list[Verdict]:
        supervisor.attach(asyncio.get_running_loop())
        battery = Battery(site, lambda _cage, _verdict: None)
        cage = Cage("battery", ("battery",), profile, plan)
        return await battery.run(supervisor, cage, registry.chosen([only]))

    try:
        supervisor.register([plan])
        return asyncio.run(work())
    finally:
        supervisor.close()
        os.waitpid(supervisor.launcher_pid, 0)


def test_the_whole_battery_holds_here(site: Site) -> None:
    found = attack(site, lambda plan, _site: plan)
    assert [(v.case.id, v.why) for v in found if v.result in (ESCAPED, CONTROL_FAILED)] == []
    assert sum(v.result == HELD for v in found) > 50


def more_mounts(plan: Plan, *mounts: Mount) -> Plan:
    both = tuple(sorted((*plan.mounts.mounts, *mounts), key=lambda mount: mount.target.split("/")))
    return dataclasses.replace(plan, mounts=Mounts(both, plan.mounts.hostname))


def wider(plan: Plan, site: Site, **more: Any) -> Plan:
    return dataclasses.replace(plan, landlock=dataclasses.replace(plan.landlock, **more))


def outside_mounted(plan: Plan, site: Site) -> Plan:
    path = str(site.folder / "outside.txt")
    return wider(more_mounts(plan, Mount("tree", path, path)), site, read=(*plan.landlock.read, path))


def another_temp(plan: Plan, site: Site) -> Plan:
    return wider(
        more_mounts(plan, Mount("temp", "/elsewhere", size=1 << 20)), site, write=("/tmp", "/elsewhere")
    )


HOLES: dict[str, tuple[Callable[[Plan, Site], Plan], str, set[str]]] = {
    "filter": (
        lambda plan, _site: dataclasses.replace(plan, seccomp=ALLOW_ALL),
        "network,kernel,processes",
        {"NE-03", "KE-02-io_uring", "PS-03"},
    ),
    "execute": (lambda plan, site: wider(plan, site, execute=("/",)), "kernel", {"KE-09-exec"}),
    "mount": (outside_mounted, "files_read", {"FR-01", "FR-04", "FR-07"}),
    "writable": (another_temp, "files_write", {"FW-01-any"}),
    "limits": (
        lambda plan, _site: dataclasses.replace(plan, limits=WIDE, resources=ResourceLimits.build(WIDE)),
        "resources",
        {"RE-02", "RE-02-reserve", "RE-04", "RE-04-files"},
    ),
    "environment": (
        lambda plan, _site: dataclasses.replace(plan, environment=(*plan.environment, ("TOKEN", "x"))),
        "information",
        {"IL-01"},
    ),
    "hostname": (
        lambda plan, _site: dataclasses.replace(plan, mounts=Mounts(plan.mounts.mounts, os.uname().nodename)),
        "information",
        {"IL-04"},
    ),
}


@pytest.mark.parametrize("hole", HOLES)
def test_the_battery_sees_a_hole(site: Site, hole: str) -> None:
    weaken, only, wanted = HOLES[hole]
    found = attack(site, weaken, only)
    escaped = {v.case.id for v in found if v.result == ESCAPED}
    assert wanted <= escaped, [(v.case.id, v.result, v.why) for v in found]


def test_ids_are_unique_and_can_be_chosen() -> None:
    ids = [case.id for case in registry.CASES]
    assert len(ids) == len(set(ids))
    assert [case.id for case in registry.chosen(["FR-01,NE-01"])] == ["FR-01", "NE-01"]
    with pytest.raises(registry.UnknownCase, match="nonsense"):
        registry.chosen(["nonsense"])


def test_an_attempt_that_fails_everywhere_proves_nothing() -> None:
    case = registry.chosen(["FR-01"])[0]
    assert judge(case, "BLOCKED ENOENT", "BLOCKED ENOENT", root=True).result == CONTROL_FAILED
    assert judge(case, "BLOCKED ENOENT", "WORKED", root=True).result == HELD
    assert judge(case, "WORKED", "WORKED", root=True).result == ESCAPED
    assert judge(case, "exit code 1: no", "WORKED", root=True).result == CONTROL_FAILED


def test_plans_that_differ_in_name_and_program_are_one_cage(tmp_path: Path) -> None:
    one = Profile("one", ("/bin/cat",), str(tmp_path))
    found = group([one, dataclasses.replace(one, name="two"), dataclasses.replace(one, processes="any")])
    assert [names for _, names in found] == [("one", "two"), ("one",)]


def test_the_command_attacks_the_cages_of_a_policy(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, report = tmp_path / "policy.toml", tmp_path / "report.xml"
    policy.write_text(
        'presets = ["files"]\n[server]\nname = "x"\n[tools.count]\ndescription = "Count."\ncommand = ["wc", "--lines"]\nprocesses = "any"\n'
    )
    words = ["verify", str(policy), "--root", str(place / "root"), "--json", "--junit", str(report)]
    assert main([*words, "--only", "network,PS-03"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {tuple(case["cage"]["tools"])[-1] for case in document["cases"]} == {"file_info", "count"}
    assert document["totals"]["escaped"] == document["totals"]["control_failed"] == 0
    assert document["totals"]["not_applicable"] == 1  # starting a process, where the policy allows it
    entries = ElementTree.parse(report).getroot().findall("testcase")
    assert len(entries) == len(document["cases"])
    assert sum(entry.find("skipped") is not None for entry in entries) == 1


def test_the_command_lists_without_running(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(registry.CASES)
    assert main(["verify", "--only", "nonsense"]) == 2
    assert "files_read" in capsys.readouterr().err
