"""Options that several verbs have."""

from __future__ import annotations

import argparse

from runner.flags import Flags


def add_policy(parser: argparse.ArgumentParser) -> None:
    """POLICY and --root."""
    parser.add_argument("policy", metavar="POLICY", help="policy file (TOML), see docs/policy.md")
    parser.add_argument(
        "--root", metavar="DIR", help="the folder that tools may read; overrides the policy's root"
    )


def flags(options: argparse.Namespace) -> Flags:
    """What was given, as data."""
    return Flags(
        policy=options.policy,
        root=options.root,
        max_output_bytes=getattr(options, "max_output_bytes", None),
        max_calls_per_minute=getattr(options, "max_calls_per_minute", None),
        log_json=getattr(options, "log_json", None),
    )
