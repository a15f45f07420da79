"""`toolcage call`: one call without a client, on the same path as a client's."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from runner import config, denied, lockdown, results
from runner.catalog.catalog import Catalog
from runner.cli import options as common
from runner.cli.explain import UnknownTool
from runner.config import Config, UsageRefused
from runner.describing import describe
from runner.outputs import Outputs
from runner.prepare import Prepared, prepare
from runner.redaction.engine import Redactor
from runner.visible import visible
from sandbox import host, spawn
from sandbox.supervisor import Supervisor

_EPILOG = """\
examples:
  toolcage call policy.toml git_log count=3
  toolcage call policy.toml search_text --json '{"pattern": "def main", "path": "src"}'
  toolcage call --explain-denials policy.toml lint path=src      what else does this tool need?

A value that is JSON (3, true, ["a"]) is taken as JSON where the tool wants that type, everything else as text.
Prints the result as JSON. With --explain-denials it has a member "denials", and stderr has the same for people: which
system calls and files the tool was refused in this run, and which policy key would allow them. The cage decides as
always, but is slower, because each such call is also reported. Exit codes: 0 ok, 1 findings, 2 error or refusal.
"""


def add_to(verbs: Any) -> None:
    """Add this verb's parser."""
    parser = verbs.add_parser(
        "call",
        help="make one call and print its result as JSON",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common.add_policy(parser)
    parser.add_argument("tool", metavar="TOOL")
    parser.add_argument("arguments", metavar="KEY=VALUE", nargs="*", default=[], help="arguments of the tool")
    parser.add_argument("--json", metavar="OBJECT", help="all arguments as one JSON object")
    parser.add_argument(
        "--explain-denials",
        action="store_true",
        help="also list what the tool was refused, and what would allow it",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the call; the exit code says what became of it."""
    launcher = spawn.launcher()
    supervisor = Supervisor(launcher)
    try:
        settings = config.read(common.flags(options))
        prepared = prepare(settings.policy, host.probe(launcher))
        if options.explain_denials:
            prepared = denied.reporting(prepared)
        supervisor.register(prepared.plans.values())
        return asyncio.run(_call(options, settings, prepared, supervisor))
    finally:
        supervisor.close()


async def _call(
    options: argparse.Namespace, settings: Config, prepared: Prepared, supervisor: Supervisor
) -> int:
    supervisor.attach(asyncio.get_running_loop())
    lockdown.lock(lockdown.program(), landlock=prepared.host.landlock > 0)
    redactor = Redactor(settings.secrets.values, rules=settings.secrets.rules)
    catalog = Catalog(prepared.tools)
    if options.tool not in catalog.by_name:
        catalog = catalog.merged(await describe(settings.policy.catalogs, supervisor, redactor))
    tool = catalog.get(options.tool)
    if tool is None:
        raise UnknownTool(
            f"no tool is called {options.tool!r}", f"known: {', '.join(sorted(catalog.by_name))}"
        )
    arguments = _arguments(options, tool.definition()["inputSchema"])
    outcome = await supervisor.run(tool.call(arguments, prepared.root))
    result = results.to_result(tool, outcome, redactor, Outputs(), settings.policy)
    document = {"tool": tool.name, "is_error": result.is_error, "text": result.text}
    if result.structured is not None:
        document["structured"] = result.structured
        del document["text"]
    document["meta"] = result.meta
    if options.explain_denials:
        found = denied.explain(
            outcome, prepared.plans[tool.plan], prepared.root, redactor.exempting(tool.redact_exempt)
        )
        document["denials"] = found.as_json()
        for line in denied.lines(found):
            print(visible(line), file=sys.stderr)
    print(json.dumps(document, indent=2))
    if result.is_error:
        return 2
    return 1 if outcome.exit_code in tool.findings_exit_codes else 0


def _arguments(options: argparse.Namespace, schema: Any) -> dict[str, object]:
    if options.json is not None:
        if options.arguments:
            raise UsageRefused("arguments are given twice", "give KEY=VALUE words or --json, not both")
        try:
            given = json.loads(options.json)
        except (ValueError, RecursionError) as problem:
            raise UsageRefused(
                f"--json is not JSON: {problem}", "quote it for your shell: --json '{…}'"
            ) from None
        if not isinstance(given, dict):
            raise UsageRefused("--json is not an object", "give --json '{\"name\": value}'")
        return given
    given = {}
    for word in options.arguments:
        key, separator, value = word.partition("=")
        if not separator:
            raise UsageRefused(f"{word!r} is not KEY=VALUE", "write for example path=src")
        given[key] = _value(value, schema["properties"].get(key, {}))
    return given


def _value(text: str, schema: dict[str, Any]) -> object:
    if schema.get("type") == "string" and "enum" not in schema:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
