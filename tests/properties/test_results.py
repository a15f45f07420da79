"""Whatever a tool prints and however it ends: every reply fits its revision's schema, and its cap on the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from runner import read_output, results, visible
from runner.case import LEAST_MESSAGE_BYTES, content_room
from runner.mcp import eras
from runner.mcp.messages import ToolResult
from runner.outputs import URI_PREFIX, Outputs
from runner.redaction.engine import Redactor
from runner.redaction.values import SecretValue
from sandbox.errors import Refused
from sandbox.types import Kind, Outcome, Usage
from tests.runner.mcp.schema_check import Client
from tests.runner.tool import Tool

SECRET = "k4o9pM324jHOoPWvMmgG"
KNOWN = Redactor((SecretValue("API_TOKEN", SECRET),))
CAPS = st.sampled_from([1024, 2048, 10_000, 32_768, 40_000, 262_144, 8_388_608])
REVISIONS = st.sampled_from(eras.SUPPORTED)
UNITS = st.sampled_from(
    ["a", '"', "\\", "\n", "\r", "é", "\u2028", "\u202e", "\U0001f600", "\x00", "\x1b[2K", "\x9b", "\U000e0041", SECRET, "/etc/x ",
     "[REDACTED:key]", "x: 1\n", "\ud800"]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=100), st.tuples(UNITS, st.integers(1, 60_000)).map(lambda pair: pair[0] * pair[1])
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)
ARRAYS = st.tuples(st.integers(0, 30_000), DOCUMENTS).map(lambda pair: [*range(pair[0]), pair[1]])
PRINTED = st.one_of(
    st.binary(max_size=2000),
    TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.one_of(DOCUMENTS, ARRAYS).map(lambda value: json.dumps(value).encode()),
    st.one_of(DOCUMENTS, ARRAYS).map(
        lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    ),
)
# What a worker says of its cage before there is a tool in it: any size and shape, but nothing that was secret.
FACTS = st.dictionaries(st.text(max_size=10), DOCUMENTS, max_size=3).filter(
    lambda facts: SECRET not in json.dumps(facts)
)


@dataclass(frozen=True)
class Policy:
    max_output_bytes: int
    digest: str = "d" * 64
    root: str = "/home/u/project"
    root_at: str | None = "/work"


def outcomes() -> st.SearchStrategy[Outcome]:
    return st.builds(
        lambda kind, code, out, err, lost, facts: Outcome(
            kind, code if kind is Kind.EXITED else None, signal=9 if kind is Kind.SIGNALLED else None, step="mounts", errno=13,
            limit="wall_seconds", limit_value=45.0, stdout=out, stderr=err, stdout_total=len(out) + lost,
            stderr_total=len(err), usage=Usage(45.1, 1.0, 1 << 30, 1, 1, 1), attestation=facts, detail=f"at /srv/{SECRET}.",
        ),
        st.sampled_from([Kind.EXITED] * 8 + list(Kind)), st.integers(0, 3), PRINTED, PRINTED, st.sampled_from([0, 0, 0, 5]), FACTS,
    )  # fmt: skip


def sent(revision: str, result: ToolResult, id_: object = 1) -> tuple[bytes, Any]:
    """The message and what a client makes of it, checked against the schema of the revision."""
    client = Client(revision)
    data = client.protocol.result(client.call(id_), result)
    return data, client.checked(data, "CallToolResult")


def fits(data: bytes, cap: int) -> bool:
    """A whole message, with an id of a few characters."""
    return len(data) <= max(cap, LEAST_MESSAGE_BYTES)


@settings(max_examples=400, deadline=None)
@given(outcomes(), st.sampled_from(["json", "text"]), CAPS, REVISIONS)
def test_every_result_fits_schema_and_cap(outcome: Outcome, output: str, cap: int, revision: str) -> None:
    outputs = Outputs()
    result = results.to_result(Tool(output), outcome, KNOWN, outputs, Policy(cap))
    data, message = sent(revision, result)
    assert fits(data, cap), (len(data), cap)
    assert len(data.decode().splitlines()) == 1
    [block] = message["result"]["content"]
    assert block["text"] == result.text
    assert visible.visible(result.text) == result.text
    assert SECRET not in data.decode()
    assert b"/srv" not in data
    assert result.is_error or outcome.kind is Kind.EXITED
    if output == "json":
        assert orjson.loads(result.text) == result.structured
        if revision >= "2025-06-18":
            assert message["result"]["structuredContent"] == result.structured
    else:
        assert len(result.text) <= (results.MAX_ERROR if result.is_error else 10_000)
    if not result.is_error:
        content = len(orjson.dumps(result.text)) + len(orjson.dumps(result.structured)) * (output == "json")
        assert content <= content_room(cap)
    for entry in outputs.listing():
        read_back(outputs, str(entry["uri"]), cap, revision)


def read_back(outputs: Outputs, uri: str, cap: int, revision: str) -> None:
    """What was stored, as pages and as a resource."""
    room, handle = content_room(cap), uri.removeprefix(URI_PREFIX)
    for more in ({}, {"limit": 10_000}, {"tail": 1000}, {"grep": "a"}, {"offset": 5000, "limit": 10_000}):
        page = read_output.answer(outputs, {"handle": handle, **more}, room)
        data, message = sent(revision, page)
        assert fits(data, cap)
        assert SECRET not in message["result"]["content"][0]["text"]
    client = Client(revision)
    reading = client.event(client.ask("resources/read", uri=uri)).request
    data = client.protocol.resource(reading, [read_output.contents(outputs, uri, room)])
    client.checked(data, "ReadResourceResult")
    assert fits(data, cap)


@settings(max_examples=200, deadline=None)
@given(TEXTS, TEXTS, REVISIONS, st.booleans())
def test_every_refusal_fits_and_is_short(message: str, remedy: str, revision: str, again: bool) -> None:
    result = results.refusal(Refused(message, remedy), KNOWN, "/work", "/home/u/project")
    result = results.again(result) if again else result
    data, _ = sent(revision, result)
    assert fits(data, 1024)
    assert len(result.text) <= results.MAX_ERROR
    assert visible.visible(result.text) == result.text
    assert SECRET not in data.decode()
    assert "/etc/x" not in result.text


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["handle", "offset", "limit", "grep", "tail", "json_path", "x"]),
        DOCUMENTS,
        max_size=4,
    ),
    REVISIONS,
)
def test_read_output_answers_anything(arguments: dict[str, Any], revision: str) -> None:
    outputs = Outputs()
    handle = outputs.keep(json.dumps({"a": [1, {"b": "c"}]}), "t")
    for given_handle in (handle, arguments.get("handle")):
        try:
            result = read_output.answer(outputs, {**arguments, "handle": given_handle}, 4096)
        except Refused as refused:
            result = results.refusal(refused, KNOWN)
        data, _ = sent(revision, result)
        assert fits(data, 1024)


def test_the_generators_reach_what_they_are_for() -> None:
    """Controls: a refused result with a handle, a shortened text, an error."""
    outputs = Outputs()
    large = Outcome(Kind.EXITED, 0, stdout=json.dumps(list(range(60_000))).encode())
    refused = results.to_result(Tool("json"), large, KNOWN, outputs, Policy(262_144))
    assert refused.meta["code"] == "result_too_large"
    long = Outcome(Kind.EXITED, 0, stdout=b"x\n" * 60_000 + b"y" * 60_000, stdout_total=180_000)
    assert "bytes not shown" in results.to_result(Tool("text"), long, KNOWN, outputs, Policy(262_144)).text
    assert len(outputs.listing()) == 2
