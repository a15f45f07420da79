"""policies.locate: whatever msgspec refuses in a document is found again, with its key."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.errors import BadKeyError
from policies.locate import locate
from policies.model import Document

GOOD: dict[str, Any] = {
    "server": {"name": "x", "max_output_bytes": 4096},
    "presets": ["files"],
    "limits": {"wall_seconds": 3},
    "redact": {"env": ["*KEY"]},
    "tools": {
        "show": {
            "description": "d", "command": ["cat", "--", "{p}"], "processes": ["gzip"], "set_env": {"A": "b"},
            "params": {"p": {"type": "list", "items": {"type": "path", "kind": "file"}}},
            "groups": [{"params": ["p"]}], "limits": {"cpu_seconds": 1},
        },
    },
    "catalogs": {"demo": {"describe": ["x"], "command": ["x"]}},
}  # fmt: skip

JUNK = st.sampled_from(
    [None, True, -1, 0.5, 10**9, "", "x", "\0", [], ["x", 1], {}, {"type": "path"}, {"zz": 1}]
)


def spots(node: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [way, *(spot for key, value in inner for spot in spots(value, (*way, key)))]


def planted(node: Any, way: tuple[Any, ...], value: Any) -> Any:
    if not way:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[way[0]] = planted(node[way[0]], way[1:], value)
    return copy


def test_a_good_document_has_no_problem() -> None:
    assert msgspec.convert(GOOD, Document).presets == ("files",)
    locate(GOOD, Document)


@settings(max_examples=400, deadline=None)
@given(way=st.sampled_from(spots(GOOD)), junk=JUNK)
def test_every_refusal_is_located(way: tuple[Any, ...], junk: Any) -> None:
    raw = planted(GOOD, way, junk)
    try:
        msgspec.convert(raw, Document)
    except msgspec.ValidationError:
        with pytest.raises(BadKeyError) as caught:
            locate(raw, Document)
        first = str(way[0]) if way else ""
        assert caught.value.key.startswith(first)
        assert caught.value.problem
    else:
        locate(raw, Document)
