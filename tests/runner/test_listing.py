"""What a catalog's program says of itself is masked before clients see it, in every place."""

from __future__ import annotations

import json

from policies.params import EnumParam, ListParam, StringParam
from runner import listing
from runner.catalog.catalog import Catalog
from runner.catalog.tools import Tool
from runner.redaction.engine import Redactor

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def test_no_place_of_a_definition_shows_a_token() -> None:
    tool = Tool(
        name="t",
        title="T",
        description=f"uses {TOKEN}",
        plan="t",
        params={
            "a": StringParam(description=f"such as {TOKEN}", default=TOKEN),
            "b": EnumParam(values=(TOKEN, "x")),
            "c": ListParam(items=StringParam(description=f"e.g. {TOKEN}"), max_items=3),
            "d": EnumParam(values=(TOKEN,)),
            "password": StringParam(default="hunter2-Sup3rSecret"),
            "region": StringParam(default="north"),
        },
    )
    [made, _read_output] = listing.offered(Catalog([tool]), Redactor(()))
    text = json.dumps(made)
    assert TOKEN not in text
    assert "hunter2" not in text
    properties = made["inputSchema"]["properties"]  # type: ignore[index]
    assert properties["b"]["enum"] == ["x"]
    assert "enum" not in properties["d"]
    assert properties["region"]["default"] == "north"
