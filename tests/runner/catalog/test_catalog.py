"""runner.catalog.catalog: one name, one tool; order is kept; definitions stay small."""

from __future__ import annotations

import pytest

from policies.params import StringParam
from runner.catalog.catalog import Catalog, CatalogRefused
from runner.catalog.tools import Tool


def tool(name: str, **more: str) -> Tool:
    return Tool(name=name, title=name, description=more.get("description", "d"), plan=more.get("plan", name))


def test_the_order_is_kept() -> None:
    catalog = Catalog([tool("bb"), tool("aa")]).merged([tool("cc")])
    assert [one.name for one in catalog] == ["bb", "aa", "cc"]
    assert [one["name"] for one in catalog.definitions()] == ["bb", "aa", "cc"]
    assert (len(catalog), catalog.get("aa"), catalog.get("zz")) == (3, catalog.by_name["aa"], None)


def test_a_name_twice_is_refused() -> None:
    with pytest.raises(CatalogRefused, match='two tools are called "aa"') as caught:
        Catalog([tool("aa")]).merged([tool("aa", plan="catalog:x")])
    assert "catalog:x" in caught.value.message
    assert "withhold" in caught.value.remedy


def test_a_definition_that_clients_break_on_is_refused() -> None:
    assert Catalog([tool("aa", description="x" * 7000)])
    with pytest.raises(CatalogRefused, match="bytes"):
        Catalog([tool("aa", description="x" * 8000)])
    many = {f"p{n}": StringParam() for n in range(300)}
    with pytest.raises(CatalogRefused):
        Catalog([Tool(name="aa", title="a", description="d", plan="p", params=many)])
