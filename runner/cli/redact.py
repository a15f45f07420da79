"""`toolcage redact`: the redaction of tool output as a filter for people and pipelines."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from runner import config
from runner.flags import Flags

_EPILOG = """\
examples:
  env | toolcage redact                               what is a secret by name, by form, or by being in this environment
  toolcage redact --policy policy.toml < build.log    with the policy's env, files and rules
  toolcage redact --json < build.log                  {"text", "redactions": {kind: count}, "withheld"}

A net against accidents: it knows formats, names and values, not disguises. Text that cannot be checked within its
bounds (32 MiB) is withheld. Exit codes: 0 checked, 2 withheld or an error.
"""


def add_to(verbs: Any) -> None:
    """Add this verb's parser."""
    parser = verbs.add_parser(
        "redact",
        help="take secrets out of text: stdin to stdout",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--policy", metavar="POLICY", help="use the [redact] table of this policy")
    parser.add_argument("--root", metavar="DIR", help="replaces the policy's root, as in the other verbs")
    parser.add_argument("--json", action="store_true", help="print JSON with kinds and counts")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Redact stdin. 0: the text was checked; 2: it was withheld."""
    # Imported only here: the other verbs do not pay for the rules.
    from runner.redaction.engine import MAX_BYTES, WITHHELD, Redactor

    flags = Flags(options.policy, options.root) if options.policy else None
    secrets = config.secrets(flags)
    for name in secrets.unmasked:
        print(
            f"toolcage: the value of {name} cannot be masked (too short, or an ordinary word)",
            file=sys.stderr,
        )
    # One byte more than is checked: larger input is withheld, never cut and passed.
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    text, counts = Redactor(secrets.values, rules=secrets.rules).text(data.decode("utf-8", "surrogateescape"))
    withheld = WITHHELD in counts
    if options.json:
        shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        kinds = {kind: counts[kind] for kind in sorted(counts) if kind != WITHHELD}
        print(json.dumps({"text": shown, "redactions": kinds, "withheld": withheld}))
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
    if withheld:
        print("toolcage: the text could not be checked within its bounds and was withheld", file=sys.stderr)
    return 2 if withheld else 0
