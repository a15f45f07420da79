"""From a catalog document to tools: a command is a tool only when the document and the policy leave no doubt.

Runs in the front. Absence is the guarantee: a command that writes, connects, asks or belongs to the owner has no tool
at all. Where the document and the policy contradict each other the server does not start. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from policies.check import RESERVED
from policies.errors import did_you_mean
from policies.params import (
    AnyParam,
    EnumParam,
    GroupTable,
    IntegerParam,
    ListParam,
    NumberParam,
    PathParam,
    Scalar,
    StringParam,
)
from policies.params import BooleanParam as Switch
from policies.policy import CatalogPolicy
from policies.template import Word
from runner.catalog import describe
from runner.catalog.catalog import CatalogRefused
from runner.catalog.tools import Tool

MAX_TEXT = 20_000  # characters of one value, as ReachWeaver allows
MAX_ITEMS = 50
MAX_DESCRIPTION = 1000
_ALLOWED_TAGS = frozenset({"read_only"})  # with any other tag, also an unknown one, there is no tool
_TOOL_NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")
_LONG_FLAG = re.compile(r"--[A-Za-z0-9][A-Za-z0-9_-]*")


def tools(data: bytes, policy: CatalogPolicy) -> list[Tool]:
    """The tools of a catalog, in the order of their names. `data` is what the describe command printed.

    Raises CatalogRefused: no catalog document, a withheld name that does not exist, a required flag that cannot be
    offered, or a command of `never` that would become a tool.
    """
    document = describe.decode(data, policy.name)
    _check_names(document, policy)
    exposed = [command for command in document.commands if _exposed(command, policy)]
    _backstop(document, exposed, policy)
    return sorted((_tool(command, policy) for command in exposed), key=lambda tool: tool.name)


def _exposed(command: describe.Command, policy: CatalogPolicy) -> bool:
    return (
        set(command.tags) == _ALLOWED_TAGS
        and not command.owner_only_flags
        and command.json is not None
        and command.name not in policy.withhold
    )


def _check_names(document: describe.Document, policy: CatalogPolicy) -> None:
    """A misspelt name in `withhold`, `withhold_flags` or `path_flags` would leave something open: refuse it."""
    commands = {command.name for command in document.commands}
    pairs = {f"{command.name} {flag.name}" for command in document.commands for flag in command.flags}
    flags = {flag.name for command in document.commands for flag in command.flags}
    _known(policy, "withhold", policy.withhold, commands)
    _known(policy, "withhold_flags", policy.withhold_flags, flags | pairs)
    _known(policy, "path_flags", policy.path_flags, pairs)


def _known(policy: CatalogPolicy, key: str, names: Iterable[str], known: set[str]) -> None:
    for name in sorted(set(names) - known):
        raise CatalogRefused(
            f'catalogs.{policy.name}.{key}: the catalog has no "{name}"',
            f"remove or correct it{did_you_mean(name, sorted(known))}",
        )


def _backstop(document: describe.Document, exposed: list[describe.Command], policy: CatalogPolicy) -> None:
    owner = {form.split(" ")[0] for form in document.owner_only.commands}
    crossed = sorted({command.name for command in exposed} & (policy.never | owner))
    if crossed:
        raise CatalogRefused(
            f'catalog "{policy.name}": {", ".join(crossed)} would become a tool, but is owner-only or in "never"',
            "withhold it in the policy, and report the contradiction to the author of the catalog",
        )


def _tool(command: describe.Command, policy: CatalogPolicy) -> Tool:
    name = command.name.replace("-", "_")
    if not _TOOL_NAME.fullmatch(name):
        raise _refused(
            policy, command, "the name does not fit [a-z][a-z0-9_]{1,39}", f'withhold "{command.name}"'
        )
    if name in RESERVED:
        raise _refused(
            policy, command, "this name belongs to the server itself", f'withhold "{command.name}"'
        )
    offered = _offered(command, policy)
    params = {one.param_name: one.param for one in offered}
    if len(params) != len(offered):
        raise _refused(policy, command, "two flags have the same parameter name", "withhold one of them")
    groups = _groups(command, offered, policy)
    return Tool(
        name=name,
        title=f"{policy.name} {command.name}",
        description=_description(command),
        plan=f"catalog:{policy.name}",
        output="json",
        params=params,
        groups=groups,
        template=_template(command, offered),
        emit_defaults=False,
        findings_exit_codes=policy.findings_exit_codes,
        redact_exempt=policy.cage.redact_exempt,
    )


@dataclass(frozen=True, slots=True)
class _Offered:
    """A flag that clients may use."""

    flag: describe.Flag
    param: AnyParam

    @property
    def param_name(self) -> str:
        return self.flag.name.removeprefix("--").replace("-", "_").lower()


def _offered(command: describe.Command, policy: CatalogPolicy) -> list[_Offered]:
    hidden = _hidden(command, policy)
    offered = []
    for flag in command.flags:
        param = (
            None if flag.name in hidden else _param(flag, f"{command.name} {flag.name}" in policy.path_flags)
        )
        if param is not None:
            offered.append(_Offered(flag, param))
        elif flag.required:
            fix = f'withhold the command "{command.name}", or offer the flag'
            raise _refused(
                policy, command, f"the required flag {flag.name} is withheld or not supported", fix
            )
    return offered


def _hidden(command: describe.Command, policy: CatalogPolicy) -> set[str]:
    """Withheld flags, the flag that asks for JSON (always given) and what it excludes, and the owner's flags."""
    switch = (command.json or "").split(" ")[0]
    excluded = {name for group in command.exclusive_groups if switch in group.flags for name in group.flags}
    withheld = {f.name for f in command.flags if policy.withhold_flags & {f.name, f"{command.name} {f.name}"}}
    return {switch} | excluded | withheld


def _param(flag: describe.Flag, is_path: bool) -> AnyParam | None:
    """The parameter for a flag; None when it has no safe canonical form (counters, short-only options, ...)."""
    if not flag.positional and not _LONG_FLAG.fullmatch(flag.name):
        return None
    if flag.type == "flag":
        return None if flag.positional else Switch(flag=flag.name, description=_plain(flag.help or ""))
    scalar = _scalar(flag, is_path)
    if scalar is None or not flag.repeatable:
        return scalar
    return ListParam(
        items=scalar, max_items=MAX_ITEMS, required=flag.required, description=scalar.description
    )


def _scalar(flag: describe.Flag, is_path: bool) -> Scalar | None:
    about = _plain(flag.help or "")
    if flag.choices:
        return _choice(flag, about)
    match "path" if is_path else flag.type:
        case "path":
            place = "A path inside the root folder."
            return PathParam(required=flag.required, description=f"{about} {place}".strip())
        case "string":
            text = flag.default if isinstance(flag.default, str) else None
            return StringParam(
                required=flag.required, description=about, default=None if flag.required else text,
                max_length=MAX_TEXT, multiline=True, allow_at=not flag.positional,
            )  # fmt: skip
        case "int":
            whole = (
                flag.default if isinstance(flag.default, int) and not isinstance(flag.default, bool) else None
            )
            return IntegerParam(required=flag.required, description=about, default=whole)
        case "float":
            number = float(flag.default) if isinstance(flag.default, (int, float)) else None
            return NumberParam(required=flag.required, description=about, default=number)
        case _:
            return None


def _choice(flag: describe.Flag, about: str) -> EnumParam | None:
    values = flag.choices or ()
    texts = {isinstance(value, str) for value in values}
    if flag.type not in ("string", "int", "float") or texts != {flag.type == "string"}:
        return None
    if flag.positional and any(str(value).startswith("-") for value in values):
        return None
    default = flag.default if flag.default in values and not isinstance(flag.default, (list, bool)) else None
    # Sorted: Python programs print the choices of a set in another order each time, and a tool list must be stable.
    ordered = tuple(sorted(set(values), key=lambda value: (isinstance(value, str), value)))
    return EnumParam(required=flag.required, description=about, values=ordered, default=default)


def _template(command: describe.Command, offered: list[_Offered]) -> tuple[Word, ...]:
    """[subcommand, --flag=value ..., the words that ask for JSON, positionals]: one canonical form."""
    options = [_option(one) for one in offered if not one.flag.positional]
    positionals = [Word("", one.param_name) for one in offered if one.flag.positional]
    switch = [Word(text) for text in (command.json or "").split(" ")]
    return (Word(command.name), *options, *switch, *positionals)


def _option(one: _Offered) -> Word:
    return Word("" if isinstance(one.param, Switch) else f"{one.flag.name}=", one.param_name)


def _groups(
    command: describe.Command, offered: list[_Offered], policy: CatalogPolicy
) -> tuple[GroupTable, ...]:
    names = {one.flag.name: one.param_name for one in offered}
    found = []
    for group in command.exclusive_groups:
        members = tuple(names[flag] for flag in group.flags if flag in names)
        if group.required and not members and (command.json or "").split(" ")[0] not in group.flags:
            fix = f'withhold the command "{command.name}", or offer one of the flags'
            raise _refused(
                policy, command, f"all of {', '.join(group.flags)} are withheld and one is needed", fix
            )
        if members and (group.required or len(members) > 1):
            found.append(GroupTable(params=members, required=group.required))
    return tuple(found)


def _description(command: describe.Command) -> str:
    parts = [_plain(command.help or command.name)]
    if command.note:
        parts.append(f"Note: {_plain(command.note)}.")
    text = " ".join(parts)
    return text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 1] + "…"


def _plain(text: str) -> str:
    """Foreign text on one line, without control and format characters (they can forge or hide text)."""
    words = "".join(char if char.isprintable() else " " for char in text).split()
    return " ".join(words)


def _refused(policy: CatalogPolicy, command: describe.Command, problem: str, fix: str) -> CatalogRefused:
    return CatalogRefused(f'catalog "{policy.name}", command "{command.name}": {problem}', fix)
