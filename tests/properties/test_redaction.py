"""Properties of redaction and results over generated input."""

from __future__ import annotations

import json
from dataclasses import dataclass

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from runner import results, visible
from runner.outputs import Outputs
from runner.redaction.engine import WITHHELD, Redactor
from runner.redaction.rules import TOKEN_RULES
from runner.redaction.values import SecretValue
from sandbox.types import Kind, Outcome
from tests.runner.redaction.tokens import github, private_key, token
from tests.runner.tool import Tool

VALUE = "k4o9pM324jHOoPWvMmgG"
KNOWN = Redactor((SecretValue("API_TOKEN", VALUE),))
FREE = [
    rule for rule in TOKEN_RULES if not rule.bounded and not rule.before and not rule.most and not rule.words
]
_PIECES = st.sampled_from(
    ["password", "=", ": ", '"', "'", "\\", "\n", "://", "@", "ghp_", "eyJ", ".", "-----BEGIN ", "PRIVATE KEY-----", "[REDACTED:",
     "password]", "Bearer ", "\x1b[31m", "\u200b", "\\u0041", "%3A%2F%2F", "%40", VALUE, VALUE[:9], "value", "<", ">", "a1B2c3D4e5F6g7H8",
     "\ud800", "é", "{", "}", ",", " is ", "--"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(_PIECES, max_size=30).map("".join))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@dataclass(frozen=True)
class Policy:
    max_output_bytes: int = 1024
    digest: str = "d" * 64
    root: str = "/home/u/project"
    root_at: str | None = None


@given(TEXTS, st.integers(0, len(FREE) - 1), TEXTS)
def test_a_token_survives_nowhere(before: str, number: int, after: str) -> None:
    rule = FREE[number]
    secret = token(rule, rule.anchors[-1])
    out, counts = KNOWN.text(before + secret + after)
    assert secret not in out
    assert counts


@given(TEXTS, TEXTS)
def test_a_known_value_survives_nowhere(before: str, after: str) -> None:
    assert VALUE not in KNOWN.text(before + VALUE + after)[0]


@given(TEXTS, st.integers(0, 12))
def test_a_private_key_survives_nowhere(before: str, lines: int) -> None:
    key = private_key()
    out = KNOWN.text(before + "\n" + key[: 200 + lines * 50])[0]
    assert not any(line in out for line in key.split("\n")[1:3])


@given(TEXTS)
def test_redacting_again_changes_nothing(text: str) -> None:
    once, counts = KNOWN.text(text)
    assert KNOWN.text(once) == (once, {})
    assert WITHHELD not in counts


@given(JSON)
def test_redacting_a_document_again_changes_nothing(document: object) -> None:
    before = repr(document)
    once, counts = KNOWN.value(document)
    assert repr(document) == before
    assert KNOWN.value(once) == (once, {})
    assert WITHHELD not in counts
    assert VALUE not in json.dumps(once)


def _outcomes() -> st.SearchStrategy[Outcome]:
    printed = st.one_of(
        st.binary(max_size=3000),
        JSON.map(lambda v: json.dumps(v).encode()),
        TEXTS.map(lambda t: t.encode("utf-8", "replace") * 40),
    )
    return st.builds(
        lambda kind, code, out, err, more: Outcome(
            kind, code if kind is Kind.EXITED else None, stdout=out, stderr=err, stdout_total=len(out) + more, stderr_total=len(err)
        ),
        st.sampled_from(list(Kind)), st.integers(0, 3), printed, printed, st.sampled_from([0, 0, 5]),
    )  # fmt: skip


@settings(max_examples=300)
@given(_outcomes(), st.sampled_from(["json", "text"]), st.sampled_from([1024, 4096, 262_144]))
def test_results_hold_their_caps_and_never_raise(outcome: Outcome, output: str, cap: int) -> None:
    result = results.to_result(Tool(output), outcome, KNOWN, Outputs(), Policy(cap))
    content = {"content": [{"type": "text", "text": result.text}], "isError": result.is_error}
    if result.structured is not None:
        content["structuredContent"] = result.structured
        assert orjson.loads(result.text) == result.structured
        assert len(orjson.dumps(result.structured)) <= cap
        if result.is_error:
            assert isinstance(result.structured.get("error") or result.structured["result"], dict)
    else:
        assert len(result.text) <= (results.MAX_ERROR if result.is_error else 10_000)
    assert len(orjson.dumps(content)) <= 3 * cap
    assert VALUE not in result.text
    assert visible.visible(result.text) == result.text
    assert result.is_error or outcome.kind is Kind.EXITED
    assert b"null" not in orjson.dumps(result.meta)


@given(TEXTS, st.integers(0, 300))
def test_cuts_keep_placeholders_whole(text: str, limit: int) -> None:
    padded = text + "[REDACTED:github-token]" + text
    for part in (visible.cut_head(padded, limit), visible.cut_tail(padded, limit)):
        assert len(part) <= limit or limit >= len(padded)
    head = visible.cut_head(padded, limit)
    assert not (len(text) < len(head) < len(text) + 23) or "[REDACTED:" in text


def test_the_generators_reach_secrets() -> None:
    assert KNOWN.text(VALUE)[1] == {"secret-value": 1}  # the control
    assert KNOWN.text(github())[1] == {"github-token": 1}
