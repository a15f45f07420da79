"""`toolcage explain`: what a policy's tools and their cages would be. Runs nothing."""

from __future__ import annotations

import argparse
import json
from typing import Any

from runner import config
from runner.cli import options as common
from runner.prepare import Prepared, prepare
from runner.visible import visible
from sandbox import host
from sandbox.errors import Refused
from sandbox.plan import Plan

_EPILOG = """\
examples:
  toolcage explain policy.toml             every tool and catalog in one line
  toolcage explain policy.toml git_log     its command, schema and cage, with a reason for each path
  toolcage explain policy.toml --json      the same for machines
"""


class UnknownTool(Refused):
    """A name that is neither a tool nor a plan."""

    code = "unknown_tool"


def add_to(verbs: Any) -> None:
    """Add this verb's parser."""
    parser = verbs.add_parser(
        "explain",
        help="show what a tool's cage would be; runs nothing",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common.add_policy(parser)
    parser.add_argument("tool", metavar="TOOL", nargs="?", help="a tool, or a plan such as catalog:NAME")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the plan of one tool, or an overview."""
    settings = config.read(common.flags(options))
    prepared = prepare(settings.policy, host.here())
    if options.tool is None:
        _overview(prepared, settings.policy.digest, as_json=options.json)
        return 0
    plan = prepared.plans.get(options.tool)
    if plan is None:
        known = ", ".join(sorted(prepared.plans))
        raise UnknownTool(f"no tool or plan is called {options.tool!r}", f"known: {known}")
    definition = next((tool.definition() for tool in prepared.tools if tool.name == options.tool), None)
    if options.json:
        print(json.dumps({"definition": definition, "plan": plan.as_json(), "digest": plan.digest}, indent=2))
    else:
        _one(plan, definition)
    return 0


def _overview(prepared: Prepared, digest: str, *, as_json: bool) -> None:
    if as_json:
        plans = {
            name: {"command": plan.command, "digest": plan.digest} for name, plan in prepared.plans.items()
        }
        tools = [tool.definition() for tool in prepared.tools]
        print(
            json.dumps(
                {"policy": digest, "root": prepared.root.path, "tools": tools, "plans": plans}, indent=2
            )
        )
        return
    _say(f"policy {digest[:16]}   root {prepared.root.path} (read-only)")
    for name, plan in prepared.plans.items():
        _say(f"  {name:24} {' '.join(plan.command)[:80]}   processes: {plan.processes}")
    catalogs = [name.partition(":")[2] for name in prepared.plans if name.startswith("catalog:")]
    if catalogs:
        _say(f"  Tools of {', '.join(catalogs)} are known when the server has run their describe command.")


def _one(plan: Plan, definition: dict[str, Any] | None) -> None:
    _say(f"{plan.name}: {' '.join(plan.command)}")
    if definition is not None:
        _say(f"  {definition['description']}")
        schema = definition["inputSchema"]
        for name, details in schema["properties"].items():
            needed = " (required)" if name in schema.get("required", ()) else ""
            _say(f"    {name}: {details.get('type', 'any')}{needed}")
    if plan.in_namespaces:
        _say("file system, all of it; the rest of this machine does not exist inside:")
    else:
        _say("what the tool may read; the contents of other files are refused:")
    for mount in plan.mounts.mounts:
        if not plan.in_namespaces and mount.kind not in ("tree", "device", "temp"):
            continue
        access = "may run" if mount.execute else "read-only" if mount.kind == "tree" else mount.kind
        if mount.kind == "temp":
            access = f"writable, {mount.size >> 20} MiB"
        _say(f"  {mount.target:40} {access:18} {mount.reason}")
    _say("programs that may be started:", ", ".join(plan.landlock.execute))
    pairs = "; socket pairs within itself" if plan.socket_pairs else "; no sockets of any kind"
    _say(f"processes: {plan.processes}{pairs}")
    _say("environment:", " ".join(f"{key}={value}" for key, value in plan.environment))
    limits = plan.limits
    print(
        f"limits: {limits.wall_seconds:g} s, {limits.cpu_seconds} s of processor, {limits.memory_mb} MiB memory, "
        f"{limits.processes} processes, {limits.open_files} open files, {limits.file_mb} MiB a file, "
        f"{limits.tmp_mb} MiB in /tmp, {limits.output_mb} MiB output"
    )
    spaces = {"user": "seven namespaces", "root": "six namespaces", "none": "no namespaces"}
    landlock = f"landlock ABI {plan.landlock.version}" if plan.landlock.version else "no landlock"
    print(
        f"layers: {spaces[plan.identity.namespaces]}, no network; {landlock}; seccomp {plan.seccomp.digest}; "
        "no capabilities; no_new_privs; fresh keyring"
    )
    _say(f"rung: {plan.rung}")
    for sentence in plan.lost:
        _say(f"  lost on it: {sentence}")
    _say(f"plan digest: {plan.digest}")


def _say(*texts: str) -> None:
    """A policy is somebody's text: what it says must not act on the terminal of the person who checks it."""
    print(visible(" ".join(texts)))
