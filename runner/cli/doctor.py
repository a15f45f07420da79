"""`toolcage doctor`: what this host can enforce, found by building a real cage and throwing it away."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import textwrap
from typing import Any

import psutil

from runner import remedies
from runner.diagnosis import AVAILABLE, Diagnosis, Layer, diagnose
from runner.prepare import compiled_filters
from sandbox import host, ladder, planning, spawn
from sandbox.errors import HostRefused, Refused
from sandbox.host import Host
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Limits, Outcome, Profile

_WIDTH = 110


def add_to(verbs: Any) -> None:
    """Add this verb's parser."""
    parser = verbs.add_parser(
        "doctor",
        help="show what this host can enforce",
        description="Tries every layer of the cage on this host, and says what is missing, what that costs and how to "
        "get it. Exit code: 0 a policy with the default floor is served here; 2 not.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0 when a policy with the default floor is served here, else 2."""
    launcher = spawn.launcher()
    supervisor = Supervisor(launcher)
    try:
        found = host.probe(launcher)
        diagnosis = diagnose(found, _try(found, supervisor), remedies.look(sys.executable))
    finally:
        supervisor.close()
        os.waitpid(launcher.pid, 0)
    report = {**diagnosis.as_json(), **_machine(found)}
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _print(diagnosis, report)
    return 0 if diagnosis.ok else 2


def _machine(found: Host) -> dict[str, object]:
    memory = psutil.virtual_memory()
    return {
        "user": "root" if found.root_user else "ordinary user",
        "host": {
            "machine": found.machine,
            "kernel": os.uname().release,
            "processors": os.cpu_count(),
            "memory_mb": memory.total >> 20,
        },
    }


def _try(found: Host, supervisor: Supervisor) -> Outcome | Refused:
    """Build one cage around `true`, as a call would."""
    program = shutil.which("true", path="/usr/bin:/bin")
    if program is None:
        return HostRefused("no program 'true' in /usr/bin or /bin", "install coreutils")
    with tempfile.TemporaryDirectory(prefix="toolcage-doctor-") as root:
        os.chmod(root, 0o755)  # noqa: S103 - an empty folder that the worker's own uid may enter
        try:
            profile = Profile("doctor", (program,), os.path.realpath(root), limits=Limits(wall_seconds=10))
            plan = planning.make(profile, found, compiled_filters(), ladder.NAMES[-1])
            supervisor.register([plan])
            return asyncio.run(_call(supervisor))
        except Refused as refused:
            return refused


async def _call(supervisor: Supervisor) -> Outcome:
    supervisor.attach(asyncio.get_running_loop())
    return await supervisor.run(Call("doctor"))


def _print(diagnosis: Diagnosis, report: dict[str, Any]) -> None:
    machine = report["host"]
    print(
        f"{machine['machine']}, Linux {machine['kernel']}, {machine['processors']} processors, "
        f"{machine['memory_mb']} MiB, as {report['user']}"
    )
    for layer in diagnosis.layers:
        _print_layer(layer, report)
    print()
    if diagnosis.rung:
        _print_rung(diagnosis)
    else:
        _print_failure(diagnosis)


def _print_layer(layer: Layer, report: dict[str, Any]) -> None:
    gives = next(entry["gives"] for entry in report["layers"] if entry["layer"] == layer.name)
    print(f"  {layer.name:12} {layer.state:12} {gives}")
    if layer.known_by:
        print(f"  {'':25} {layer.known_by}")
    if layer.state != AVAILABLE:
        for sentence in layer.lost:
            _wrapped("lost: ", sentence)
        for line in layer.remedy.splitlines():
            _wrapped("> ", line)


def _wrapped(first: str, text: str) -> None:
    indent = " " * 28
    lines = textwrap.wrap(
        text,
        _WIDTH - len(indent + first),
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    for number, line in enumerate(lines or [""]):
        print(indent + (first if first == "> " or number == 0 else " " * len(first)) + line)


def _print_rung(diagnosis: Diagnosis) -> None:
    steps = " > ".join(f"[{name}]" if name == diagnosis.rung else name for name in ladder.NAMES)
    print(f"Rung: {steps}")
    if diagnosis.ok:
        print(f'Policies with the default floor, "{ladder.DEFAULT_FLOOR}", are served here.')
        return
    print(
        f'Policies with the default floor, "{ladder.DEFAULT_FLOOR}", are not served here. What to do, one of both:'
    )
    print("  * make the missing layers available, as the lines with > say, and run doctor again; or")
    print(f'  * accept what is lost, by name: floor = "{diagnosis.rung}" in the policy\'s [server] table.')
    print("Toolcage never does the second by itself: it never runs a tool in half a cage.")


def _print_failure(diagnosis: Diagnosis) -> None:
    print(f"No cage can be built here: {diagnosis.problem}")
    print("What to do:")
    for line in diagnosis.remedy.splitlines():
        print(f"  {line}")
    print("Until then Toolcage does not start: it never runs a tool in half a cage.")
