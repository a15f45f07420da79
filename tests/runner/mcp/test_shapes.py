"""Answers of the front in all revisions: what each may hold, and that no content can break a message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.mcp import eras
from runner.mcp.messages import ToolResult
from tests.runner.mcp.schema_check import ALL, Client

HINTS = {
    "title": "Look",
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
TOOL: dict[str, object] = {
    "name": "look",
    "title": "Look",
    "description": "Looks.",
    "inputSchema": {"type": "object", "properties": {"p": {"type": "string"}}, "additionalProperties": False},
    "outputSchema": {"type": "object"},
    "annotations": HINTS,
    "_meta": {"a/b": 1},
    "execution": {"taskSupport": "forbidden"},
    "icons": None,
}
FIELDS = {
    "2024-11-05": {"name", "description", "inputSchema"},
    "2025-03-26": {"name", "description", "inputSchema", "annotations"},
    "2025-06-18": {"name", "description", "inputSchema", "annotations", "title", "outputSchema", "_meta"},
}
FIELDS["2026-07-28"] = FIELDS["2025-11-25"] = FIELDS["2025-06-18"]
SERVER_META = {eras.SERVER_INFO_KEY: {"name": "toolcage", "version": "0.1.0", "title": "Toolcage"}}


def answered(client: Client, result: ToolResult) -> Any:
    return client.checked(client.protocol.result(client.call(), result), "CallToolResult")["result"]


@pytest.mark.parametrize("revision", ALL)
def test_tools_have_the_members_of_their_revision(revision: str) -> None:
    client = Client(revision)
    listing = client.event(client.ask("tools/list")).request
    result = client.checked(client.protocol.tools(listing, [TOOL, TOOL | {"name": "b"}]), "ListToolsResult")[
        "result"
    ]
    assert [tool["name"] for tool in result["tools"]] == ["look", "b"]
    assert set(result["tools"][0]) == FIELDS[revision]
    assert "nextCursor" not in result
    if revision == eras.MODERN:
        assert result["_meta"] == SERVER_META
        assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (
            300_000,
            "private",
            "complete",
        )
    else:
        assert set(result) == {"tools"}


@pytest.mark.parametrize("revision", ALL)
def test_an_output_schema_that_is_no_object_is_for_the_modern_era(revision: str) -> None:
    client = Client(revision)
    listing = client.event(client.ask("tools/list")).request
    data = client.protocol.tools(listing, [TOOL | {"outputSchema": {"type": "array"}}])
    [tool] = client.checked(data, "ListToolsResult")["result"]["tools"]
    assert ("outputSchema" in tool) == (revision == eras.MODERN)


@pytest.mark.parametrize("revision", ALL)
def test_a_result(revision: str) -> None:
    result = answered(Client(revision), ToolResult("t", {"a": [1]}, False, {"layers": ["landlock"]}))
    meta: dict[str, object] = {"io.github.toolcage/call": {"layers": ["landlock"]}}
    expected: dict[str, object] = {"content": [{"type": "text", "text": "t"}], "isError": False}
    if revision >= "2025-06-18":
        expected["structuredContent"] = {"a": [1]}
    if revision == eras.MODERN:
        meta |= SERVER_META
        expected["resultType"] = "complete"
    assert result == expected | {"_meta": meta}


@pytest.mark.parametrize("revision", ALL)
def test_a_bare_error_result(revision: str) -> None:
    result = answered(Client(revision), ToolResult("no", None, True))
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert ("_meta" in result) == (revision == eras.MODERN)


def nested(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "structured",
    [{"n": 2**64}, {"n": -(2**63) - 1}, {"s": "\ud800"}, nested(201), nested(5000), {"x": object()}],
)
def test_what_json_cannot_say_is_an_error_result(revision: str, structured: dict[str, object]) -> None:
    result = answered(Client(revision), ToolResult("t", structured, False, {"a": 1}))
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert "cannot be sent as JSON" in result["content"][0]["text"]
    assert result["_meta"]["io.github.toolcage/call"] == {"a": 1}


@pytest.mark.parametrize("structured", [{"n": 2**64 - 1}, {"n": -(2**63)}, {"s": "\U0010ffff"}, nested(200)])
def test_what_json_can_say_is_sent(structured: dict[str, object]) -> None:
    result = answered(Client(eras.MODERN), ToolResult("t", structured))
    assert (result["isError"], result["structuredContent"]) == (False, structured)


def test_old_revisions_do_not_look_at_structured() -> None:
    assert answered(Client("2025-03-26"), ToolResult("t", {"n": 2**64}))["isError"] is False


def test_meta_that_cannot_be_written_is_an_error_result_without_it() -> None:
    result = answered(Client("2025-11-25"), ToolResult("t", {"a": 1}, False, {"n": 2**64}))
    assert result["isError"] is True
    assert set(result) == {"content", "isError"}


@given(st.sampled_from(ALL), st.text())
def test_any_text_can_be_sent(revision: str, text: str) -> None:
    result = answered(Client(revision), ToolResult(text))
    assert result["content"] == [{"type": "text", "text": text.encode(errors="replace").decode()}]


RESOURCE: dict[str, object] = {
    "uri": "toolcage://out/1",
    "name": "out 1",
    "title": "Output 1",
    "description": "d",
    "mimeType": "text/plain",
    "size": 5,
    "lastModified": "ignored",
}


@pytest.mark.parametrize("revision", ALL)
def test_resources(revision: str) -> None:
    client = Client(revision)
    listing = client.event(client.ask("resources/list")).request
    result = client.checked(client.protocol.resources(listing, [RESOURCE]), "ListResourcesResult")["result"]
    title = {"title"} if revision >= "2025-06-18" else set()
    assert set(result["resources"][0]) == {"uri", "name", "description", "mimeType", "size"} | title
    assert result.get("ttlMs") == (0 if revision == eras.MODERN else None)


@pytest.mark.parametrize("revision", ALL)
def test_resource_templates(revision: str) -> None:
    client = Client(revision)
    listing = client.event(client.ask("resources/templates/list")).request
    template = {"uriTemplate": "toolcage://out/{id}", "name": "out", "title": "Out"}
    data = client.protocol.resource_templates(listing, [template])
    [sent] = client.checked(data, "ListResourceTemplatesResult")["result"]["resourceTemplates"]
    assert set(sent) == {"uriTemplate", "name"} | ({"title"} if revision >= "2025-06-18" else set())


@pytest.mark.parametrize("revision", ALL)
def test_resource_contents(revision: str) -> None:
    client = Client(revision)
    reading = client.event(client.ask("resources/read", uri="u:1")).request
    data = client.protocol.resource(
        reading, [{"uri": "u:1", "mimeType": "text/plain", "text": "a\udc80"}], 5_000
    )
    result = client.checked(data, "ReadResourceResult")["result"]
    assert result["contents"] == [{"uri": "u:1", "mimeType": "text/plain", "text": "a?"}]
    assert result.get("ttlMs") == (5_000 if revision == eras.MODERN else None)


def test_a_time_to_live_is_never_negative() -> None:
    client = Client(eras.MODERN)
    reading = client.event(client.ask("resources/read", uri="u:1")).request
    data = client.protocol.resource(reading, [{"uri": "u:1", "text": ""}], -1)
    assert client.checked(data, "ReadResourceResult")["result"]["ttlMs"] == 0


def test_contents_are_never_empty() -> None:
    client = Client(eras.MODERN)
    reading = client.event(client.ask("resources/read", uri="u:1")).request
    assert client.checked(client.protocol.resource(reading, []))["error"]["code"] == -32603


@pytest.mark.parametrize("revision", ALL)
def test_a_missing_resource(revision: str) -> None:
    client = Client(revision)
    reading = client.event(client.ask("resources/read", uri="u:1")).request
    error = client.checked(client.protocol.resource_missing(reading, "u:1"))["error"]
    assert error["code"] == (-32602 if revision == eras.MODERN else -32002)
    assert error["data"] == {"uri": "u:1"}


@pytest.mark.parametrize("revision", ALL)
def test_an_unknown_tool(revision: str) -> None:
    client = Client(revision)
    name = "\ud800\n\x1b[0m" + "x" * 100_000
    answer = client.checked(client.protocol.unknown_tool(client.call("i"), name))
    assert answer["id"] == "i"
    message = "unknown tool: \ufffd\ufffd\ufffd[0m" + "x" * 74 + "\u2026"
    assert answer["error"] == {"code": -32602, "message": message}


@pytest.mark.parametrize("revision", ALL)
def test_what_was_meant_and_why_it_is_gone_stand_in_the_message(revision: str) -> None:
    client = Client(revision)
    answer = client.checked(client.protocol.unknown_tool(client.call("i"), "ecoh", "echo"))
    assert answer["error"]["message"] == "unknown tool: ecoh; did you mean echo?"
    reading = client.event(client.ask("resources/read", uri="u:1")).request
    error = client.checked(client.protocol.resource_missing(reading, "u:1", "it has expired"))["error"]
    assert error["message"] == "resource not found: it has expired"


@pytest.mark.parametrize("revision", ALL)
def test_no_separator_of_lines_but_the_last_is_on_the_wire(revision: str) -> None:
    """Some clients read lines with a function that also cuts at U+2028 or U+0085; forged messages stay text for them."""
    forged = '\u2028{"jsonrpc":"2.0","id":1,"result":{}}\u0085\u2029\x7f\U000e0041'
    client = Client(revision)
    result = ToolResult("t", {"x": forged, forged: [1]}, False, {"y": forged})
    data = client.protocol.result(client.call(), result)
    assert len(data.decode().splitlines()) == 1
    answer = client.checked(data)
    if "structuredContent" in answer["result"]:
        assert answer["result"]["structuredContent"] == result.structured
    assert answer["result"]["_meta"][eras.CALL_KEY] == result.meta


@pytest.mark.parametrize("revision", ALL)
def test_refuse(revision: str) -> None:
    client = Client(revision)
    refused = client.checked(client.protocol.refuse(client.call(), 7, "a\udcff", {"k": 1}))
    assert refused["error"] == {"code": 7, "message": "a?", "data": {"k": 1}}
    refused = client.checked(client.protocol.refuse(client.call(), 7, "b", {"k": 2**70}))
    assert refused["error"] == {"code": 7, "message": "b"}


def test_a_definition_that_json_cannot_say_is_an_internal_error() -> None:
    client = Client("2025-11-25")
    listing = client.event(client.ask("tools/list")).request
    answer = client.checked(client.protocol.tools(listing, [TOOL | {"description": "\ud800"}]))
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)
