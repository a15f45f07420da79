"""runner.catalog.describe: foreign bytes are a whole, well-formed catalog document or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runner.catalog import describe
from runner.catalog.catalog import CatalogRefused


def document(**changes: Any) -> dict[str, Any]:
    command = {
        "name": "show",
        "tags": ["read_only"],
        "json": "--json",
        "flags": [{"name": "--json", "type": "flag"}],
    }
    return {"catalog": "demo", "schema_version": 1, "commands": [command], **changes}


def test_a_minimal_document() -> None:
    found = describe.decode(json.dumps(document()).encode(), "demo")
    assert found.commands[0].name == "show"
    assert found.commands[0].flags[0].type == "flag"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"\xff",
        b'{"catalog"',
        b"[" * 100_000,
        json.dumps(document(schema_version=2)).encode(),
        json.dumps(document(extra=1)).encode(),
        json.dumps(document(commands=None)).encode(),
        json.dumps(document(commands=[{"name": "show"}])).encode(),
        json.dumps(document(commands=[{"name": "-x", "tags": []}])).encode(),
        json.dumps(document(commands=[{"name": "a b", "tags": []}])).encode(),
        json.dumps(document(commands=[{"name": "a", "tags": "read_only"}])).encode(),
        json.dumps(document(commands=[{"name": "a", "tags": [], "json": "; rm"}])).encode(),
        json.dumps(
            document(commands=[{"name": "a", "tags": [], "flags": [{"name": "--a=b", "type": "flag"}]}])
        ).encode(),
        json.dumps(document(commands=[{"name": "a", "tags": []}] * 2)).encode(),
        json.dumps(document(commands=[{"name": f"a{n}", "tags": []} for n in range(2001)])).encode(),
        json.dumps(document()).encode() + b" " * describe.MAX_BYTES,
        json.dumps(document()).encode() + b"{}",
    ],
    ids=lambda data: repr(data[:40]),
)
def test_everything_else_is_refused(data: bytes) -> None:
    with pytest.raises(CatalogRefused) as caught:
        describe.decode(data, "demo")
    assert 'catalog "demo"' in caught.value.message
    assert caught.value.message.isascii()
    assert len(caught.value.message) < 400
    assert "docs/catalog.md" in caught.value.remedy
