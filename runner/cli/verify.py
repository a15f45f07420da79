"""`toolcage verify`: the escape battery against this host's cage, or against each distinct cage of a policy."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from runner.verify import Battery, Cage, Site, group, python
from sandbox.battery import registry
from sandbox.battery.case import CONTROL_FAILED, ESCAPED, HELD, NOT_APPLICABLE, RESULTS, Case, Verdict
from sandbox.errors import HostRefused
from sandbox.types import Limits, Profile

_LIMITS = Limits(wall_seconds=20, cpu_seconds=10, memory_mb=256, processes=32, open_files=64, output_mb=2)
Found = list[tuple[Cage, Verdict]]


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
    with (
        tempfile.TemporaryDirectory(prefix="toolcage-verify-") as name,
        Site(Path(os.path.realpath(name))) as site,
    ):
        found = _run(options, site, cases)
    if options.junit:
        _junit(found, options.junit)
    totals = Counter(verdict.result for _, verdict in found)
    if options.json:
        print(json.dumps(_document(found, totals), indent=2))
    else:
        _table(found, totals)
    return 1 if totals[ESCAPED] else 2 if totals[CONTROL_FAILED] else 0


def _run(options: argparse.Namespace, site: Site, cases: tuple[Case, ...]) -> Found:
    from runner.prepare import compiled_filters
    from sandbox import host, planning, spawn
    from sandbox.supervisor import Supervisor

    here, compiled = host.probe(), compiled_filters()
    cages = [
        Cage(f"cage-{number}", names, profile, planning.make(profile, here, compiled))
        for number, (profile, names) in enumerate(_profiles(options, site), 1)
    ]
    cages = [
        dataclasses.replace(
            cage, plan=dataclasses.replace(cage.plan, name=cage.name, command=cage.profile.command)
        )
        for cage in cages
    ]
    supervisor = Supervisor(spawn.launcher())
    try:
        supervisor.register([cage.plan for cage in cages])
        return asyncio.run(_attack(supervisor, site, cages, cases))
    finally:
        supervisor.close()
        os.waitpid(supervisor.launcher_pid, 0)


async def _attack(supervisor: Any, site: Site, cages: list[Cage], cases: tuple[Case, ...]) -> Found:
    supervisor.attach(asyncio.get_running_loop())
    await supervisor.prove()
    live, total = sys.stdout.isatty(), len(cages) * len(cases)
    done = 0

    def tell(cage: Cage, verdict: Verdict) -> None:
        nonlocal done
        done += 1
        if live:
            print(f"\r\x1b[K{done}/{total} {cage.name} {verdict.case.id}", end="", flush=True)

    battery = Battery(site, tell)
    found: Found = []
    for cage in cages:
        found += [(cage, verdict) for verdict in await battery.run(supervisor, cage, cases)]
    if live:
        print("\r\x1b[K", end="", flush=True)
    return found


def _profiles(options: argparse.Namespace, site: Site) -> list[tuple[Profile, tuple[str, ...]]]:
    if options.policy is None:
        return [
            (Profile("default", (python(), "-I", "-S", "-c"), str(site.root), limits=_LIMITS), ("default",))
        ]
    from runner import config
    from runner.catalog.from_policy import from_policy
    from runner.cli.options import flags
    from sandbox.root import open_root

    policy = config.read(flags(options)).policy
    return group(from_policy(policy, open_root(policy.root, policy.root_at))[1])


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
            "sentence": verdict.case.sentence,
            "cage": {"name": cage.name, "tools": cage.stands_for},
        }
        for cage, verdict in found
    ]
    return {
        "cases": cases,
        "totals": {result: totals[result] for result in RESULTS},
        "rung": "namespaces",
    }


def _table(found: Found, totals: Counter[str]) -> None:
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
