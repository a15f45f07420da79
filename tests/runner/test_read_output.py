from __future__ import annotations

import json
from typing import Any

import pytest

from runner import read_output
from runner.catalog.catalog import Catalog
from runner.catalog.tools import Tool
from runner.outputs import JSON, URI_PREFIX, HandleRefused, Outputs
from runner.read_output import ReadRefused
from sandbox.errors import Refused


def tool(**more: Any) -> Tool:
    return Tool(name="t", title="T", description="d", plan="t", **more)


def test_it_is_offered_where_there_is_a_tool() -> None:
    """JSON tools store too: what was refused for its size, and what was no JSON."""
    assert read_output.is_offered(Catalog([tool(output="json")]))
    assert read_output.is_offered(Catalog([tool(output="text")]))
    assert not read_output.is_offered(Catalog([]))


def test_its_definition_is_small_and_names_every_argument() -> None:
    definition: Any = read_output.definition()
    assert list(definition["inputSchema"]["properties"]) == [
        "handle",
        "offset",
        "limit",
        "grep",
        "tail",
        "json_path",
    ]
    assert len(json.dumps(definition)) < 2000


def test_a_page() -> None:
    outputs = Outputs()
    handle = outputs.keep("a\nb\nc", "t")
    assert (
        read_output.answer(outputs, {"handle": handle}).text
        == f"{handle} · characters 0-5 of 5 · end\na\nb\nc"
    )
    assert read_output.answer(
        outputs, {"handle": handle, "offset": 2.0, "limit": 1, "grep": None}
    ).text.endswith("\nb")
    document = outputs.keep('{"items": [{"name": "n"}]}', "t", JSON)
    part = read_output.answer(outputs, {"handle": document, "json_path": "$.items[0].name"})
    assert part.text == f'{document} · $.items[0].name · characters 0-3 of 3 · end\n"n"'


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        (
            {"ofset": 1},
            "`read_output` has no such argument",
            'did you mean "offset"? allowed: handle, offset, ',
        ),
        ({"x" * 900_000: 1}, "unknown argument", "allowed: handle"),
        ({"handle": 7}, "handle is not text", "string"),
        ({"handle": "x" * 101}, "at most 100 characters, is 101", "shorter"),
        ({"offset": -1}, "of at least 0, is -1", "nearest that is allowed is 0"),
        ({"limit": 20_000}, "from 1 to 10000, is 20000", "nearest that is allowed is 10000"),
        ({"limit": "5"}, "not a whole number from 1 to 10000", "without quotes"),
        ({"tail": True}, "not a whole number", "from 1 to 1000"),
        ({"tail": 1.5}, "not a whole number", "from 1 to 1000"),
        ({"grep": "x" * 201}, "at most 200 characters, is 201", "shorter"),
        ({"json_path": "$", "tail": 1}, "excludes grep and tail", "without json_path"),
        ({"json_path": "$.b"}, "$ has no 'b'", "it has: 'a'"),
        ({"json_path": "b"}, "does not begin with $", "$.items[0].name"),
        ({"json_path": "$" + "a" * 500}, "at most 500 characters", "shorter"),
    ],
)
def test_refusals_say_what_is_allowed(arguments: dict[str, object], message: str, remedy: str) -> None:
    outputs = Outputs()
    handle = outputs.keep('{"a": 1}', "t", JSON)
    with pytest.raises(Refused) as caught:
        read_output.answer(outputs, {"handle": handle} | arguments)
    assert caught.value.code == "argument_refused"
    assert message in caught.value.message
    assert remedy in caught.value.remedy
    assert len(caught.value.message) < 1000
    assert read_output.answer(outputs, {"handle": handle}).text.endswith('\n{"a": 1}')  # the control


def test_a_missing_handle() -> None:
    for arguments in (None, {}, {"handle": None}):
        with pytest.raises(ReadRefused, match='"handle" is missing'):
            read_output.answer(Outputs(), arguments)
    with pytest.raises(HandleRefused):
        read_output.answer(Outputs(), {"handle": ""})
    with pytest.raises(ReadRefused):
        read_output.answer(Outputs(), {"handle": ["out_"]})


def test_a_placeholder_may_be_looked_for() -> None:
    """As no argument of a tool: what is stored holds them."""
    outputs = Outputs()
    handle = outputs.keep("a\nb [REDACTED:github-token]\nc", "t")
    page = read_output.answer(outputs, {"handle": handle, "grep": "[REDACTED:github-token]"})
    assert page.text.endswith("\nb [REDACTED:github-token]")


def test_resources_say_why_there_is_nothing() -> None:
    outputs = Outputs()
    handle = outputs.keep('{"a": 1}', "t", JSON)
    uri = URI_PREFIX + handle
    assert read_output.contents(outputs, uri) == {"uri": uri, "mimeType": JSON, "text": '{"a": 1}'}
    for other, reason in (
        (URI_PREFIX + Outputs().keep("x", "t"), "other session"),
        ("file:///etc/passwd", "no handle"),
    ):
        with pytest.raises(HandleRefused) as caught:
            read_output.contents(outputs, other)
        assert caught.value.reason == reason
