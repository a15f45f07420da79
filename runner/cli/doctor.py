"""`toolcage doctor`: which layers this host can enforce, found by building a real cage and throwing it away."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from typing import Any

import psutil

from runner import remedies
from runner.prepare import compiled_filters
from sandbox import host, planning, spawn
from sandbox.errors import HostRefused, Refused
from sandbox.host import Host
from sandbox.supervisor import Supervisor
from sandbox.types import Call, Kind, Limits, Outcome, Profile

_LAYERS = (
    ("machine", "system call numbers of this machine are known"),
    ("seccomp", "allow-list of system calls, no sockets, no new processes unless allowed"),
    ("landlock", "second word on files, no TCP, no signals to the outside"),
    ("namespaces", "user, mount, pid, net, ipc, uts and cgroup namespaces: nothing outside can be named"),
    ("identity", "a kernel uid that is never 0"),
    ("mounts", "a file system of nothing but what is listed"),
    ("privileges", "no capability, no_new_privs"),
    ("keyring", "the session's keys stay outside"),
    ("limits", "processor, memory, processes, files, output: setrlimit and sampling"),
)


def add_to(verbs: Any) -> None:
    """Add this verb's parser."""
    parser = verbs.add_parser("doctor", help="show which layers this host can enforce")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0 when every layer is available, else 2."""
    found = host.probe()
    problem, outcome = _try(found)
    report = _report(found, problem, outcome)
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report)
    return 0 if report["ok"] else 2


def _try(found: Host) -> tuple[Refused | None, Outcome | None]:
    """Build one cage around `true`, as a call would."""
    program = shutil.which("true", path="/usr/bin:/bin")
    if program is None:
        return HostRefused("no program 'true' in /usr/bin or /bin", "install coreutils"), None
    with tempfile.TemporaryDirectory(prefix="toolcage-doctor-") as root:
        os.chmod(root, 0o755)  # noqa: S103 - an empty folder that the worker's own uid may enter
        try:
            profile = Profile("doctor", (program,), os.path.realpath(root), limits=Limits(wall_seconds=10))
            plan = planning.make(profile, found, compiled_filters())
            supervisor = Supervisor(spawn.launcher())
            try:
                supervisor.register([plan])
                return None, asyncio.run(_call(supervisor))
            finally:
                supervisor.close()
        except Refused as refused:
            return refused, None


async def _call(supervisor: Supervisor) -> Outcome:
    supervisor.attach(asyncio.get_running_loop())
    return await supervisor.run(Call("doctor"))


def _report(found: Host, problem: Refused | None, outcome: Outcome | None) -> dict[str, Any]:
    ok = outcome is not None and outcome.kind is Kind.EXITED and outcome.exit_code == 0
    failed, message, remedy = "", "", ""
    if problem is not None:
        failed, message, remedy = problem.message.partition(":")[0], problem.message, problem.remedy
    elif outcome is not None and not ok:
        failed, message = outcome.step or "cage", outcome.detail
        remedy = remedies.remedy(failed, remedies.look(sys.executable))
    facts = (outcome.attestation or {}) if outcome is not None else {}
    layers = []
    reached = True
    for name, gives in _LAYERS:
        state = "available" if ok else "failed" if name == failed else "passed" if reached else "not reached"
        reached = reached and name != failed
        layers.append({"layer": name, "state": state, "gives": gives, "known_by": _known(name, facts, found)})
    memory = psutil.virtual_memory()
    return {
        "ok": ok,
        "user": "root" if found.root_user else "ordinary user",
        "host": {"machine": found.machine, "processors": os.cpu_count(), "memory_mb": memory.total >> 20},
        "layers": layers,
        "problem": message,
        "remedy": remedy,
    }


def _known(name: str, facts: dict[str, Any], found: Host) -> str:
    match name:
        case "landlock":
            return f"the kernel says ABI {found.landlock}"
        case "identity" if facts:
            return f"a worker ran with kernel uid {facts['kernel_uid']}"
        case "seccomp" if facts:
            return f"a worker ran under {facts['seccomp']['instructions']} instructions"
        case "mounts" if facts:
            return f"a worker checked {facts['mounts']} mounts from inside"
        case "privileges" if facts and facts["seen_from_outside"]:
            return "read from outside in the worker's /proc status"
        case "keyring" if facts:
            return str(facts["keyring"])
        case "machine":
            return found.machine
        case _:
            return "a worker did it" if facts else ""


def _print(report: dict[str, Any]) -> None:
    host_facts = report["host"]
    print(
        f"{host_facts['machine']}, {host_facts['processors']} processors, {host_facts['memory_mb']} MiB, as {report['user']}"
    )
    for layer in report["layers"]:
        print(f"  {layer['layer']:12} {layer['state']:12} {layer['gives']}")
        if layer["known_by"]:
            print(f"  {'':25} {layer['known_by']}")
    if report["ok"]:
        print('All layers are available: policies with floor = "namespaces" can be served here.')
    else:
        print(f"Not every layer is available: {report['problem']}")
        print("What to do:")
    for line in report["remedy"].splitlines():
        print(f"  {line}")
        print("Until then Toolcage does not start: it never runs a tool in half a cage.")
