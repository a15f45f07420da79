"""`toolcage serve`: the MCP server on stdin and stdout."""

from __future__ import annotations

import argparse
from typing import Any

from runner.cli import options as common
from runner.mcp import claim
from sandbox import spawn

_EPILOG = """\
A client starts this command and talks to it over stdin and stdout (MCP, revisions 2024-11-05 to 2026-07-28).
Log lines (tool, outcome, exit code, bytes, milliseconds; never arguments or output) go to stderr.

  claude mcp add my-tools -- toolcage serve /absolute/policy.toml --root "$PWD"
"""


def add_to(verbs: Any) -> None:
    """Add this verb's parser."""
    parser = verbs.add_parser(
        "serve",
        help="serve a policy's tools to an MCP client over stdio",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common.add_policy(parser)
    parser.add_argument(
        "--max-output-bytes", type=int, metavar="N", help="largest result; a larger one is refused"
    )
    parser.add_argument("--max-calls-per-minute", type=int, metavar="N", help="calls in any 60 seconds")
    parser.add_argument("--log-json", metavar="FILE", help="append the call log to FILE as JSON lines")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until the input ends, a signal comes, or the launcher dies."""
    source, sink = claim.claim_stdio()
    launcher = spawn.launcher()
    # Imported only now: the launcher's interpreter starts on another processor meanwhile, and clients wait for us.
    from runner import server

    return server.serve(common.flags(options), launcher, source, sink)
