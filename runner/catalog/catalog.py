"""All tools of a server: by name, in a fixed order, each name once and each definition small enough for clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import orjson

from policies.check import RESERVED
from runner.catalog.tools import Tool
from sandbox.errors import Refused

# Codex replaces the parameters of a larger definition by an open object.
MAX_DEFINITION_BYTES = 8000
MAX_TOTAL_BYTES = 512 * 1024


class CatalogRefused(Refused):
    """Tools that cannot be offered: a broken catalog document, a name twice, a definition that is too large."""

    code = "catalog_refused"


class Catalog:
    """The tools of a server. Immutable; iteration order is that of `tools/list`."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        found: dict[str, Tool] = {}
        total = 0
        for tool in tools:
            if tool.name in RESERVED:
                raise CatalogRefused(
                    f'"{tool.name}" is the name of a tool of the server itself', "withhold or rename it"
                )
            if tool.name in found:
                raise CatalogRefused(
                    f'two tools are called "{tool.name}" (plans {found[tool.name].plan} and {tool.plan})',
                    "rename the one in the policy, or withhold the one of the preset or catalog",
                )
            size = len(orjson.dumps(tool.definition()))
            if size > MAX_DEFINITION_BYTES:
                raise CatalogRefused(
                    f'the definition of tool "{tool.name}" has {size} bytes; clients break above {MAX_DEFINITION_BYTES}',
                    "shorten its descriptions and enums, or withhold some of its flags",
                )
            found[tool.name] = tool
            total += size
        if total > MAX_TOTAL_BYTES:
            raise CatalogRefused(
                f"the definitions of {len(found)} tools have {total:,} bytes; at most {MAX_TOTAL_BYTES:,} are sent",
                "withhold commands that nobody needs: a model has to read the whole list before it does anything",
            )
        self._tools = MappingProxyType(found)

    @property
    def by_name(self) -> Mapping[str, Tool]:
        """Read-only view."""
        return self._tools

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._tools.get(name)

    def merged(self, tools: Iterable[Tool]) -> Catalog:
        """This catalog and more tools after it; a name twice is refused."""
        return Catalog([*self._tools.values(), *tools])

    def definitions(self) -> list[dict[str, object]]:
        """The tool objects of tools/list, in order."""
        return [tool.definition() for tool in self._tools.values()]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)
