"""`toolcage call`: one call without a client, on the same path as a client's."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from runner import config, lockdown, results
from runner.catalog.catalog import Catalog
from runner.cli import options as common
from runner.cli.explain import UnknownTool
from runner.config import Config, UsageRefused
from runner.describing import describe
from runner.outputs import Outputs
from runner.prepare import Prepared, prepare
from runner.redaction.engine import Redactor
from sandbox import host, spawn
from sandbox.supervisor import Supervisor

_EPILOG = """\
examples:
  toolcage call policy.toml git_log count=3
  toolcage call policy.toml search_text --json '{"pattern": "def main", "path": "src"}'

A value that is JSON (3, true, ["a"]) is taken as JSON where the tool wants that type, everything else as text.
Prints the result as JSON. Exit codes: 0 ok, 1 findings, 2 error or refusal.
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
    parser.add_argument("arguments", metavar="KEY=VALUE", nargs="*", help="arguments of the tool")
    parser.add_argument("--json", metavar="OBJECT", help="all arguments as one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the call; the exit code says what became of it."""
    supervisor = Supervisor(spawn.launcher())
    try:
        settings = config.read(common.flags(options))
        prepared = prepare(settings.policy, host.probe())
        supervisor.register(prepared.plans.values())
        return asyncio.run(_call(options, settings, prepared, supervisor))
    finally:
        supervisor.close()


async def _call(
    options: argparse.Namespace, settings: Config, prepared: Prepared, supervisor: Supervisor
) -> int:
    supervisor.attach(asyncio.get_running_loop())
    lockdown.lock(lockdown.program())
    catalog = Catalog(prepared.tools)
    if options.tool not in catalog.by_name:
        catalog = catalog.merged(await describe(settings.policy.catalogs, supervisor))
    tool = catalog.get(options.tool)
    if tool is None:
        raise UnknownTool(
            f"no tool is called {options.tool!r}", f"known: {', '.join(sorted(catalog.by_name))}"
        )
    arguments = _arguments(options, tool.definition()["inputSchema"])
    outcome = await supervisor.run(tool.call(arguments, prepared.root))
    redactor = Redactor(settings.secrets.values, rules=settings.secrets.rules)
    result = results.to_result(tool, outcome, redactor, Outputs(), settings.policy)
    document = {"tool": tool.name, "is_error": result.is_error, "text": result.text}
    if result.structured is not None:
        document["structured"] = result.structured
        del document["text"]
    print(json.dumps({**document, "meta": result.meta}, indent=2))
    if result.is_error:
        return 2
    return 1 if outcome.exit_code in tool.findings_exit_codes else 0


def _arguments(options: argparse.Namespace, schema: Any) -> dict[str, object]:
    if options.json is not None:
        if options.arguments:
            raise UsageRefused("arguments are given twice", "give KEY=VALUE words or --json, not both")
        try:
            given = json.loads(options.json)
        except ValueError as problem:
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
    except ValueError:
        return text
