"""`toolcage verify`: the escape battery against this host's cage, or against each distinct cage of a policy."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from runner.verify import Battery, Cage, group, planned
from runner.verify_site import Site, folder, lent, python
from sandbox import ladder, syscalls
from sandbox.battery import registry
from sandbox.battery.case import (
    CONTROL_FAILED,
    ESCAPED,
    HELD,
    NOT_APPLICABLE,
    RESULTS,
    Case,
    Verdict,
)
from sandbox.errors import HostRefused
from sandbox.host import Host
from sandbox.types import Limits, Profile

_LIMITS = Limits(wall_seconds=60, cpu_seconds=10, memory_mb=256, processes=32, open_files=64, output_mb=2)
Found = list[tuple[Cage, Verdict]]
Named = list[tuple[Profile, tuple[str, ...]]]


def add_to(verbs: Any) -> None:
    """Add this verb's parser."""
    parser = verbs.add_parser("verify", help="attack the cage and show that it holds")
    parser.add_argument("policy", metavar="POLICY", nargs="?", help="attack the cages of this policy's tools")
    parser.add_argument("--root", metavar="DIR", help="overrides the policy's root")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--junit", metavar="FILE", help="also write a JUnit report")
    parser.add_argument(
        "--only", metavar="GROUP|ID", action="append", default=[], help="these cases only; repeat, or commas"
    )
    parser.add_argument("--list", action="store_true", help="print the cases; runs nothing")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0 when all held or do not apply, 1 when something escaped, 2 when a case proved nothing."""
    cases = registry.chosen(options.only)
    if options.list:
        _list(cases, as_json=options.json)
        return 0
    if options.root and not options.policy:
        raise HostRefused("--root without a policy", "give a POLICY; without one an empty folder is the root")
    found = _run(options, cases)
    if options.junit:
        _junit(found, options.junit)
    totals = Counter(verdict.result for _, verdict in found)
    if options.json:
        print(json.dumps(_document(found, totals), indent=2))
    else:
        _table(found, totals)
    return 1 if totals[ESCAPED] else 2 if totals[CONTROL_FAILED] else 0


def _run(options: argparse.Namespace, cases: tuple[Case, ...]) -> Found:
    from sandbox import host, spawn
    from sandbox.supervisor import Supervisor

    with contextlib.suppress(OSError):  # a kernel without keyrings
        syscalls.join_new_session_keyring()  # one of our own, so that a worker can be seen to have another
    launcher = spawn.launcher()
    supervisor = Supervisor(launcher)
    try:
        here = host.probe(launcher)
        cages = _planned(here, *_of_policy(options)) if options.policy else []
        place = folder(path for cage in cages for path in lent(cage.honest))
        with (
            tempfile.TemporaryDirectory(prefix=f"toolcage-verify-{os.getpid()}-", dir=place) as name,
            Site(Path(os.path.realpath(name))) as site,
        ):
            battery = Battery(site, _teller())
            shares = battery.share(cases, cages or _planned(here, _default(site), ladder.NAMES[-1]))
            supervisor.register(plan for cage, chosen in shares for plan in battery.plans(cage, chosen))
            return asyncio.run(_attack(supervisor, battery, shares))
    finally:
        supervisor.close()
        os.waitpid(supervisor.launcher_pid, 0)


def _teller() -> Callable[[Cage, Verdict], None]:
    """Shows on a terminal how far it is."""
    done, live = 0, sys.stdout.isatty()

    def tell(cage: Cage, verdict: Verdict) -> None:
        nonlocal done
        done += 1
        if live:
            print(f"\r\x1b[K{done} {cage.name} {verdict.case.id}\r", end="", flush=True)

    return tell


async def _attack(supervisor: Any, battery: Battery, shares: list[tuple[Cage, tuple[Case, ...]]]) -> Found:
    supervisor.attach(asyncio.get_running_loop())
    for cage, _ in shares:
        await battery.try_out(supervisor, cage)
    verdicts = await asyncio.gather(*(battery.run(supervisor, cage, chosen) for cage, chosen in shares))
    return [(cage, verdict) for (cage, _), found in zip(shares, verdicts, strict=True) for verdict in found]


def _default(site: Site) -> Named:
    """Two cages that differ in what decides most: whether a tool may start processes."""
    command = (python(), "-I", "-S", "-c")
    strict = Profile("one process", command, str(site.root), limits=_LIMITS)
    many = dataclasses.replace(strict, name="any processes", processes="any")
    return [(profile, (profile.name,)) for profile in (strict, many)]


def _of_policy(options: argparse.Namespace) -> tuple[Named, str]:
    """The policy's distinct cages and its floor: what would not be served is not attacked either."""
    from runner import config
    from runner.catalog.from_policy import from_policy
    from runner.cli.options import flags
    from sandbox.root import open_root

    policy = config.read(flags(options)).policy
    return group(from_policy(policy, open_root(policy.root, policy.root_at))[1]), policy.floor


def _planned(here: Host, profiles: Named, floor: str) -> list[Cage]:
    from runner.prepare import compiled_filters
    from sandbox import planning

    compiled = compiled_filters()
    return [
        planned(f"cage-{number}", names, profile, planning.make(profile, here, compiled, floor))
        for number, (profile, names) in enumerate(profiles, 1)
    ]


def _list(cases: tuple[Case, ...], *, as_json: bool) -> None:
    if as_json:
        listed = [{"id": case.id, "group": case.group, "sentence": case.sentence} for case in cases]
        print(json.dumps({"cases": listed}, indent=2))
        return
    for case in cases:
        print(f"{case.id:20} {case.group:14} {case.sentence}")


def _document(found: Found, totals: Counter[str]) -> dict[str, object]:
    cases = [
        {
            "id": verdict.case.id,
            "group": verdict.case.group,
            "result": verdict.result,
            "why": verdict.why,
            "rung": cage.rung,
            "sentence": verdict.case.sentence,
            "cage": {"name": cage.name, "tools": cage.stands_for},
        }
        for cage, verdict in found
    ]
    return {"cases": cases, "totals": {result: totals[result] for result in RESULTS}}


def _table(found: Found, totals: Counter[str]) -> None:
    if sys.stdout.isatty():
        print("\x1b[K", end="")
    heading: tuple[str, str] = ("", "")
    for cage, verdict in found:
        if cage.name != heading[0]:
            print(f"{cage.name}: stands for {', '.join(cage.stands_for)}")
        if (cage.name, verdict.case.group) != heading:
            print(f"  {verdict.case.group}")
        heading = (cage.name, verdict.case.group)
        print(f"    {verdict.case.id:20} {verdict.result:15} {verdict.case.sentence}")
        if verdict.result != HELD:
            print(f"    {'':20} {'':15} {verdict.why}")
    print(", ".join(f"{totals[result]} {result.replace('_', ' ')}" for result in RESULTS))


def _junit(found: Found, path: str) -> None:
    suite = ElementTree.Element("testsuite", name="toolcage verify", tests=str(len(found)))
    counts = Counter(verdict.result for _, verdict in found)
    suite.set("failures", str(counts[ESCAPED]))
    suite.set("errors", str(counts[CONTROL_FAILED]))
    suite.set("skipped", str(counts[NOT_APPLICABLE]))
    kinds = {ESCAPED: "failure", CONTROL_FAILED: "error", NOT_APPLICABLE: "skipped"}
    for cage, verdict in found:
        name = f"{verdict.case.id} {verdict.case.sentence}"
        entry = ElementTree.SubElement(
            suite, "testcase", classname=f"{cage.name}.{verdict.case.group}", name=name
        )
        if verdict.result in kinds:
            ElementTree.SubElement(entry, kinds[verdict.result], message=verdict.why)
    try:
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as problem:
        raise HostRefused(f"--junit {path}: {problem.strerror}", "name a file that can be written") from None
