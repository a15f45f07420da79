"""One MCP tool: what clients see of it, and how their arguments become a call.

Runs in the front. A tool starts nothing: `call` returns a value that names a plan registered at start-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policies.params import AnyParam, GroupTable
from policies.template import Word
from runner.catalog import arguments as args
from runner.catalog import schema
from runner.redaction import guard
from sandbox.root import Root
from sandbox.types import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of the server.

    plan        id of the plan that its calls use.
    template    the words after the plan's fixed command.
    emit_defaults  a parameter that was not given is passed with its default (else the program has its own).
    output      "json" is refused when too large, "text" is shortened.
    findings_exit_codes  exit codes that are no error: "found something", as with linters and grep.
    redact_exempt  names of redaction rules that do not apply to its output.
    """

    name: str
    title: str
    description: str
    plan: str
    output: Literal["json", "text"] = "text"
    params: Mapping[str, AnyParam] = field(default_factory=dict)
    groups: tuple[GroupTable, ...] = ()
    template: tuple[Word, ...] = ()
    emit_defaults: bool = True
    cwd: str = "."
    ok_exit_codes: tuple[int, ...] = (0,)
    findings_exit_codes: tuple[int, ...] = ()
    redact_exempt: frozenset[str] = frozenset()

    def definition(self) -> dict[str, object]:
        """The tool object of tools/list (MCP server/tools), the same for every revision; no member is null."""
        return {
            "name": self.name,
            "title": self.title,
            "description": " ".join([self.description, *schema.group_sentences(self.groups)]),
            "inputSchema": schema.of(self.params),
            "annotations": {
                "title": self.title,
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }

    def call(self, arguments: Mapping[str, object] | None, root: Root) -> Call:
        """The call for a client's arguments. Raises runner.catalog.arguments.ArgumentRefused, PlaceholderRefused."""
        guard.check(arguments)
        given = args.check(arguments, self.params, self.groups)
        if self.emit_defaults:
            given = {**{n: p.default for n, p in self.params.items() if p.default is not None}, **given}
        return Call(self.plan, args.words(self.template, self.params, given, root, self.cwd), cwd=self.cwd)
