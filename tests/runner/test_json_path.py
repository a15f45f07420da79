from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import json_path
from runner.json_path import JsonPathRefused

DOCUMENT = {
    "a": {"b": [1, {"c": 2}, 3], "x y": "q"},
    "it's": 1,
    'q"': 2,
    "back\\slash": 3,
    "üb": 5,
    "items": [{"name": "n1"}, {"name": "n2"}, {}],
    "null": None,
}


def at(path: str, document: object = DOCUMENT) -> object:
    return json_path.select(document, json_path.parse(path))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", DOCUMENT), ("$.a.b[0]", 1), ("$.a.b[-1]", 3), ("$.a['x y']", "q"), ('$["a"]["b"][1].c', 2), ("$.null", None),
        ('$["it\'s"]', 1), ("$['it\\'s']", 1), ('$["q\\""]', 2), ("$['q\"']", 2), ('$["back\\\\slash"]', 3), ("$.üb", 5),
        ('$["\\u00fcb"]', 5), ("$[ 'üb' ]", 5), ("$.items[*].name", ["n1", "n2"]), ("$.items[0:2].name", ["n1", "n2"]),
        ("$.items[1:]", [{"name": "n2"}, {}]), ("$.items[-1:]", [{}]), ("$.items[:1].name", ["n1"]), ("$.items[5:]", []),
        ("$.a.*", [[1, {"c": 2}, 3], "q"]), ("$.items[*].nothing", []), ("$.items[*][*]", ["n1", "n2"]),
    ],
)  # fmt: skip
def test_what_a_path_selects(path: str, expected: object) -> None:
    assert at(path) == expected


@pytest.mark.parametrize(
    ("path", "message", "remedy"),
    [
        ("", "does not begin with $", "$.items[0].name"),
        ("a.b", "does not begin with $", "$.items[0].name"),
        ("$..a", "character 2", "[0:10]"),
        ("$[?(@.a)]", "character 2", "[0:10]"),
        ("$.a.b[0,1]", "character 6", "[0:10]"),
        ("$.a.b[0:2:2]", "character 6", "[0:10]"),
        ("$.a.", "character 4", "[0:10]"),
        ("$.a b", "character 4", "[0:10]"),
        ("$[01]", "character 2", "[0:10]"),
        ("$[99999999999999999999]", "character 2", "[0:10]"),
        ("$['\\x']", "a name that is not understood", "[0:10]"),
        ("$" + ".a" * 300, "601 characters", "[0:10]"),
        ("$.itmes", "$ has no 'itmes'", "did you mean 'items'?"),
        ("$.nothing", "$ has no 'nothing'", "it has: 'a', "),
        ("$.a.b[3]", "$.a.b is a list of 3 elements", "0 to 2"),
        ("$.a.b[-4]", "$.a.b is a list of 3 elements", "0 to 2"),
        ("$.a.b.c", "$.a.b is a list of 3 elements", "an index"),
        ("$.a[0]", "$.a is an object of 2 members", "$.a itself"),
        ("$.a.b[0].x", "$.a.b[0] is a number", "$.a.b[0] itself"),
        ("$.null.x", "$.null is null", "$.null itself"),
    ],
)
def test_what_is_not_understood_or_leads_nowhere_says_what_does(path: str, message: str, remedy: str) -> None:
    with pytest.raises(JsonPathRefused) as caught:
        at(path)
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_names_of_the_document_are_quoted_and_few_in_messages() -> None:
    document = {f"\u202e\n{n}" * 50: n for n in range(1000)}
    with pytest.raises(JsonPathRefused) as caught:
        at("$.x", document)
    said = caught.value.message + caught.value.remedy
    assert said.isascii()
    assert "\n" not in said
    assert len(said) < 1500
    assert "and 990 more" in said


@given(
    st.recursive(
        st.integers() | st.text(),
        lambda i: st.lists(i, max_size=3) | st.dictionaries(st.text(), i, max_size=3),
    )
)
def test_every_node_can_be_named(document: object) -> None:
    waiting: list[tuple[str, object]] = [("$", document)]
    while waiting:
        path, node = waiting.pop()
        if len(path) <= json_path.MAX_PATH:
            assert at(path, document) == node
        if isinstance(node, dict):
            waiting += [(path + json_path.member(name), child) for name, child in node.items()]
        elif isinstance(node, list):
            waiting += [(f"{path}[{index}]", child) for index, child in enumerate(node)]


@given(st.text(alphabet="$.[]'\"\\*:-0129ab é\n?@(),u", max_size=60))
def test_no_path_raises_anything_else(path: str) -> None:
    for text in (path, "$" + path):
        with contextlib.suppress(JsonPathRefused):
            json.dumps(at(text))


def test_the_work_is_bounded_by_the_document() -> None:
    document: object = [[[0] * 10] * 10] * 1000
    begun = time.thread_time()
    assert len(at("$" + "[*]" * 3, document)) == 100_000  # type: ignore[arg-type]
    assert at("$" + "[*]" * 160, document) == []
    assert time.thread_time() - begun < 1
