"""The command line: one file per verb. The only package that prints, and the only one that chooses exit codes."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
import traceback
from collections.abc import Sequence

from runner import __version__
from runner.cli import streams
from runner.visible import visible
from sandbox.errors import Refused

VERBS = ("serve", "call", "explain", "doctor", "verify", "redact", "demo")
_EPILOG = """\
examples:
  toolcage serve policy.toml --root ~/src/project     what an MCP client starts
  toolcage call policy.toml git_log count=3       one call without a client
  toolcage explain policy.toml git_log                what its cage would be, runs nothing
  toolcage doctor                                     what this host can enforce
  toolcage verify policy.toml                         attack the cages of its tools
  toolcage redact < build.log                         take secrets out of text
  toolcage demo                                       see it work

exit codes: 0 ok, 1 findings, 2 error. The manual is docs/ in the source, the policy reference docs/policy.md.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `toolcage` command. Returns the exit code: that of the verb; 2 for whatever went wrong, since 1 has
    meanings of its own; 130 after Ctrl-C.
    """
    streams.complete()
    words = list(sys.argv[1:] if argv is None else argv)
    options = _parser(words).parse_args(words)
    try:
        code = _run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        streams.abandon()
        return 2
    except OSError as problem:
        if not streams.is_of_a_stream(problem):
            return _bug()
        streams.abandon()
        print(f"toolcage: standard input or output failed: {problem.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("toolcage: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    except Exception:  # noqa: BLE001 - the last word on a bug, printed whole
        return _bug()
    return code


def _run(options: argparse.Namespace) -> int:
    try:
        code: int = options.run(options)
    except Refused as refused:
        # `call` always prints JSON, the others when asked; the words for people go to stderr in every case
        if options.verb == "call" or getattr(options, "json", False):
            print(json.dumps(refused.as_json(), indent=2))
        print_refused(refused)
        return 2
    return code


def _bug() -> int:
    traceback.print_exc()
    print(
        f"toolcage: this is a bug in Toolcage {__version__}; please report it with the lines above",
        file=sys.stderr,
    )
    return 2


def print_refused(refused: Refused) -> None:
    """For people: what is wrong, and what to do next."""
    print(f"toolcage: {visible(refused.message)}", file=sys.stderr)
    if refused.remedy:
        print(f"  what to do: {visible(refused.remedy)}", file=sys.stderr)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="toolcage",
        description="Turns command-line tools into MCP tools that cannot hurt the person who lends them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"toolcage {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", dest="verb", required=True)
    # Only the verb that is used is imported: a client waits for `serve` to answer.
    wanted = [word for word in words if word in VERBS][:1] or list(VERBS)
    for name in wanted:
        importlib.import_module(f"runner.cli.{name}").add_to(verbs)
    return parser
