"""From a Config to everything that serving, calling and explaining need: root, tools, host facts, plans.

Front, start-up only. Compiles the filters, looks at programs and folders, starts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.policy import Policy
from policies.syscalls import names
from runner.catalog.from_policy import from_policy
from runner.catalog.tools import Tool
from sandbox import planning
from sandbox.host import Host
from sandbox.plan import Plan
from sandbox.root import Root, open_root


@dataclass(frozen=True, slots=True)
class Prepared:
    """`plans` by id, in the order in which they are registered; `tools` without those of catalogs, which come later."""

    host: Host
    root: Root
    tools: tuple[Tool, ...]
    plans: dict[str, Plan]


def compiled_filters() -> planning.Filters:
    """The seccomp programs of tool and keeper, from the lists in policies/syscalls."""
    return planning.Filters(names("tool"), names("keeper"), names("tool", "apart"))


def prepare(policy: Policy, host: Host) -> Prepared:
    """Raises Refused: a host below the floor, a root or program that cannot be used."""
    root = open_root(policy.root, policy.root_at)
    tools, profiles = from_policy(policy, root)
    programs = compiled_filters()
    plans = {profile.name: planning.make(profile, host, programs, policy.floor) for profile in profiles}
    return Prepared(host, root, tuple(tools), plans)
