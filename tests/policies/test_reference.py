"""policies.reference: the printed reference is the model."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from policies import model, params, reference

PAGE = Path(__file__).parents[2] / "docs" / "policy.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == reference.render(), "run: python -m policies.reference > docs/policy.md"


def test_every_key_is_explained() -> None:
    page = reference.render().split("## Presets")[0]
    tables = [
        model.Document,
        model.ServerTable,
        model.LimitsTable,
        model.RedactTable,
        model.ToolTable,
        model.CatalogTable,
    ]
    tables += [params.GroupTable, params.StringParam, params.ListParam, params.PathParam, params.BooleanParam]
    for table in tables:
        for field in table.__struct_fields__:
            lines = [line for line in page.splitlines() if line.startswith(f"| `{field}` |")]
            assert lines
            assert all(line.split(" | ")[3].strip() for line in lines)


def test_the_first_example_is_a_policy() -> None:
    block = reference.render().split("```toml\n")[1].split("```")[0]
    document = msgspec.convert(tomllib.loads(block), model.Document)
    assert document.presets == ("git-read", "search", "files")
    assert list(document.tools) == ["lint"]
