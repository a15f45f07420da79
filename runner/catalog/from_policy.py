"""From a policy to tools and to the profiles of their cages: one plan for each tool, two for each catalog. Pure but
for one look at each tool's folder.
"""

from __future__ import annotations

from typing import Literal, cast

from policies import template
from policies.policy import CagePolicy, Policy, ToolPolicy
from runner.catalog import arguments
from runner.catalog.tools import Tool
from sandbox.errors import ProfileRefused
from sandbox.root import Root
from sandbox.types import Profile


def from_policy(policy: Policy, root: Root) -> tuple[list[Tool], list[Profile]]:
    """The tools of the policy and its presets, and the profiles of all plans.

    Plan ids: the tool's name; "catalog:NAME" for the calls of a catalog and "describe:NAME" for the command that
    prints it (its tools come later, from `runner.catalog.derive.tools`).
    """
    tools = [_tool(tool, root) for tool in policy.tools]
    profiles = [
        _profile(tool.name, template.fixed_part(tool.command)[0], tool.cage, policy, root)
        for tool in policy.tools
    ]
    for catalog in policy.catalogs:
        profiles.append(_profile(f"catalog:{catalog.name}", catalog.command, catalog.cage, policy, root))
        profiles.append(_profile(f"describe:{catalog.name}", catalog.describe, catalog.cage, policy, root))
    return tools, profiles


def _tool(tool: ToolPolicy, root: Root) -> Tool:
    if not arguments.is_plain_folder(root, tool.cwd):
        raise ProfileRefused(
            f'tool "{tool.name}": cwd {tool.cwd} is not a folder beneath the root, or lies behind a symlink',
            "name the real folder",
        )
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        plan=tool.name,
        output=cast(Literal["json", "text"], tool.output),
        params=tool.params,
        groups=tool.groups,
        template=template.fixed_part(tool.command)[1],
        cwd=tool.cwd,
        findings_exit_codes=tool.findings_exit_codes,
        redact_exempt=tool.cage.redact_exempt,
    )


def _profile(plan: str, command: tuple[str, ...], cage: CagePolicy, policy: Policy, root: Root) -> Profile:
    return Profile(
        name=plan,
        command=command,
        root=root.path,
        root_at=policy.root_at,
        read_only=cage.read_only,
        processes=cage.processes,
        socket_pairs=cage.socket_pairs,
        environment=cage.environment,
        limits=cage.limits,
    )
