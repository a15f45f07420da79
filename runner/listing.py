"""The tool list as clients get it: the catalog's definitions, masked, and the built-in tool. Made once per server.

Definitions may hold a program's own words: help texts, defaults, choices. They are masked like output. Pure.
"""

from __future__ import annotations

from typing import Any, cast

from runner import read_output
from runner.catalog.catalog import Catalog
from runner.redaction.engine import Redactor


def offered(catalog: Catalog, redactor: Redactor) -> list[dict[str, object]]:
    """The tool objects of tools/list, in order."""
    found = [_masked(definition, redactor) for definition in catalog.definitions()]
    if read_output.is_offered(catalog):
        found.append(read_output.definition())
    return found


def _masked(definition: dict[str, object], redactor: Redactor) -> dict[str, object]:
    schema = cast(dict[str, Any], definition["inputSchema"])
    properties = {name: _schema(name, details, redactor) for name, details in schema["properties"].items()}
    text, _counts = redactor.text(str(definition["description"]))
    return {**definition, "description": text, "inputSchema": {**schema, "properties": properties}}


def _schema(name: str, details: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """A secret default or choice is left out: a masked one would be offered as a value."""
    masked = dict(details)
    if "description" in masked:
        masked["description"] = redactor.text(masked["description"])[0]
    if "items" in masked:
        masked["items"] = _schema(name, masked["items"], redactor)
    if "default" in masked and redactor.value({name: masked["default"]})[1]:
        del masked["default"]
    if "enum" in masked:
        masked["enum"] = [choice for choice in masked["enum"] if not redactor.value(choice)[1]]
        if not masked["enum"]:
            del masked["enum"]
    return masked
