from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from runner import results
from runner.mcp.messages import ToolResult
from runner.outputs import HandleRefused, Outputs
from runner.redaction.engine import Redactor
from runner.redaction.values import SecretValue
from sandbox.errors import Refused
from sandbox.types import Kind, Outcome, Usage
from tests.runner.redaction.tokens import github

VALUE = "k4o9pM324jHOoPWvMmgG"
REDACTOR = Redactor((SecretValue("API_TOKEN", VALUE),))


@dataclass(frozen=True)
class Tool:
    output: str = "json"
    name: str = "t"
    ok_exit_codes: tuple[int, ...] = (0,)
    findings_exit_codes: tuple[int, ...] = (1,)
    redact_exempt: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Policy:
    max_output_bytes: int = 262_144
    digest: str = "sha"
    root: str = "/home/u/project"
    root_at: str | None = None


@dataclass
class Desk:
    outputs: Outputs = field(default_factory=Outputs)

    def show(
        self, outcome: Outcome, output: str = "json", cap: int = 262_144, exempt: frozenset[str] = frozenset()
    ) -> ToolResult:
        return results.to_result(
            Tool(output, redact_exempt=exempt), outcome, REDACTOR, self.outputs, Policy(cap)
        )


def exited(
    code: int, out: bytes = b"", err: bytes = b"", attestation: dict[str, object] | None = None
) -> Outcome:
    return Outcome(
        Kind.EXITED,
        code,
        stdout=out,
        stderr=err,
        stdout_total=len(out),
        stderr_total=len(err),
        attestation=attestation,
    )


@pytest.fixture
def desk() -> Desk:
    return Desk()


def document(result: ToolResult) -> dict[str, object]:
    assert result.structured is not None
    assert json.loads(result.text) == result.structured
    return result.structured


def error(result: ToolResult) -> dict[str, str]:
    assert result.is_error
    found = document(result)["error"]
    assert isinstance(found, dict)
    return found


# ---- JSON tools ----


def test_json_ok_findings_and_error(desk: Desk) -> None:
    ok = desk.show(exited(0, b' {"a": [1, 2.5, null]}\n'))
    assert document(ok) == {"exit_code": 0, "outcome": "ok", "result": {"a": [1, 2.5, None]}}
    assert not ok.is_error
    found = desk.show(exited(1, b"[1]", b"warned\n"))
    assert document(found) == {"exit_code": 1, "outcome": "findings", "result": [1], "messages": "warned"}
    assert not found.is_error
    own = desk.show(exited(2, b'{"error": {"code": "own"}}'))
    assert document(own) == {"exit_code": 2, "outcome": "error", "result": {"error": {"code": "own"}}}
    assert own.is_error
    usage = desk.show(
        exited(2, b"", b"usage: x [-h]\nx: error: the following arguments are required: file\n")
    )
    assert document(usage)["result"] is None
    assert error(usage)["code"] == "tool_failed"
    assert (
        error(usage)["message"]
        == "The tool failed with exit code 2:\nx: error: the following arguments are required: file"
    )
    report = desk.show(exited(2, b'{"valid": false}'))
    assert document(report)["result"] == {"valid": False}
    assert error(report)["code"] == "tool_failed"


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (b"", "printed nothing"), (b" \n", "printed nothing"), (b"\xef\xbb\xbf{}", "byte order mark"), (b"NaN", "line 1"), (b'{"a": NaN}', "line 1"),
        (b"{} {}", "line 1"), (b"{}x", "line 1"), (b'"\xff"', "UTF-8"), (b"[1,]", "line 1"), (b"1e999", "infinity"), (b'"\\ud800"', "surrogate"),
        (b"[" * 66 + b"]" * 66, "nested deeper"), (b"[" * 100_000, ""), (b"[" + b"0," * 200_000 + b"0]", "200000 members"),
        (b"[123456789012345678901]", "64 bits"), (b"plain text", "line 1"),
    ],
)  # fmt: skip
def test_what_is_not_one_json_document_is_an_error(desk: Desk, out: bytes, said: str) -> None:
    result = desk.show(exited(0, out), cap=1_000_000)
    assert error(result)["code"] == "result_not_json"
    assert said in error(result)["message"]
    assert len(result.text) <= results.MAX_ERROR
    assert document(result)["result"] is None


def test_deep_and_long_json_within_the_bounds_passes(desk: Desk) -> None:
    nested = b"[" * 60 + b"]" * 60
    assert document(desk.show(exited(0, nested)))["result"] == json.loads(nested)
    numbers = b'[18446744073709551615, -9223372036854775808, "123456789012345678901", 1.5e300]'
    assert document(desk.show(exited(0, numbers)))["result"] == json.loads(numbers)


def test_first_lines_of_what_is_not_json_are_redacted_and_visible(desk: Desk) -> None:
    out = f"\x1b[31mfailed\x1b[0m with {VALUE} in /etc/hidden and /home/u/project/a.txt\n".encode() * 20
    message = error(desk.show(exited(0, out)))["message"]
    assert "␛[31mfailed␛[0m with [REDACTED:secret-value] in <path outside the root> and a.txt" in message
    assert VALUE not in message


def test_too_large_json_is_refused_not_cut(desk: Desk) -> None:
    out = json.dumps(["x" * 1000]).encode()
    assert not desk.show(exited(0, out), cap=1100).is_error  # the control
    refused = desk.show(exited(0, out), cap=1024)
    assert error(refused)["code"] == "result_too_large"
    assert "1,0" in error(refused)["message"]
    assert "1,024 bytes" in error(refused)["message"]
    assert "xxx" not in refused.text
    pretty = json.dumps([1] * 300, indent=8).encode()
    assert len(pretty) > 1024
    assert not desk.show(exited(0, pretty), cap=1024).is_error
    cut = Outcome(Kind.EXITED, 0, stdout=b"[1]", stdout_total=10**9)
    assert error(desk.show(cut))["code"] == "result_too_large"


def test_secrets_leave_results_keys_messages_and_errors(desk: Desk) -> None:
    secret = github()
    out = json.dumps({"password": "hunter2", secret: VALUE}).encode()
    result = desk.show(exited(3, out, f"bad token {secret}\n".encode()))
    assert secret not in result.text
    assert VALUE not in result.text
    assert "hunter2" not in result.text
    assert result.meta["redactions"] == {"password": 1, "github-token": 2, "secret-value": 1}
    exempt = desk.show(exited(0, out), exempt=frozenset({"github-token"}))
    assert secret in exempt.text
    assert VALUE not in exempt.text


def test_json_that_cannot_be_checked_is_withheld(desk: Desk) -> None:
    result = desk.show(exited(0, json.dumps("SK0" * 80_000).encode()))
    assert error(result)["code"] == "redaction_incomplete"
    assert document(result)["result"] is None


def test_unseen_characters_are_escaped_in_the_text_copy(desk: Desk) -> None:
    result = desk.show(exited(0, '["\u202e\x9b"]'.encode()))
    assert "\\u202e\\u009b" in result.text
    assert document(result)["result"] == ["\u202e\x9b"]


# ---- text tools ----


def test_short_text_is_whole(desk: Desk) -> None:
    result = desk.show(exited(0, b"hello\n"), "text")
    assert result == ToolResult("exit 0 · ok · 6 bytes\nhello", None, False, result.meta)
    assert desk.outputs.listing() == []
    assert desk.show(exited(0), "text").text == "exit 0 · ok · 0 bytes\n(no output)"
    both = desk.show(exited(1, b"out\n", b"err\n"), "text")
    assert both.text == "exit 1 · findings · 8 bytes\nout\n[stderr, 4 bytes]\nerr"
    assert not both.is_error
    assert desk.show(exited(2, b"out\n"), "text").is_error


def test_long_text_has_head_tail_count_and_handle(desk: Desk) -> None:
    out = "".join(f"line {n}\n" for n in range(5000)).encode()
    result = desk.show(exited(0, out), "text")
    first, _, rest = result.text.partition("\n")
    assert len(result.text) <= 10_000
    handle = first.split("handle ")[1].split(" ")[0]
    assert first == f"exit 0 · ok · {len(out):,} bytes · handle {handle} (read_output)"
    head, mark, tail = (
        rest.partition("[… ")[0],
        rest.partition("[… ")[2].partition(" bytes")[0],
        rest.partition("…]\n")[2],
    )
    assert head.startswith("line 0\n")
    assert tail.endswith("line 4999")
    assert len(head.encode()) + int(mark.replace(",", "")) + len(tail.encode()) in (len(out) - 1, len(out))
    assert desk.outputs.whole(handle) == out.decode().rstrip("\n")


def test_what_is_stored_is_redacted_first(desk: Desk) -> None:
    out = (b"x" * 50 + b"\n") * 150 + VALUE.encode() + b"\n" + b"y z\n" * 3000
    result = desk.show(exited(0, out + b"".join(b"%d\n" % n for n in range(4000))), "text")
    handle = result.text.split("handle ")[1].split(" ")[0]
    whole = desk.outputs.whole(handle)
    assert "[REDACTED:secret-value]" in whole
    assert VALUE not in whole


def test_progress_and_repeats_are_collapsed(desk: Desk) -> None:
    result = desk.show(exited(0, b"10%\r50%\r100%\ndone\r\n" + b"same\n" * 500), "text")
    assert result.text.split("\n", 1)[1] == "100%\ndone\nsame\n[the line above 499 more times]"
    handle = result.text.split("handle ")[1].split(" ")[0]
    assert desk.outputs.whole(handle).startswith("10%␍50%␍100%\ndone\nsame\nsame")


def test_control_characters_are_visible(desk: Desk) -> None:
    result = desk.show(exited(0, "a\x1b[31m\x00\x07\u202eb\x9b\u2066\x7f\tc\u200bd".encode()), "text")
    assert result.text.split("\n")[1] == "a␛[31m␀␇<U+202E>b<U+009B><U+2066>␡\tc<U+200B>d"


def test_a_capture_that_was_cut_loses_its_last_run(desk: Desk) -> None:
    half = f"token is {VALUE[:12]}".encode()
    shown = desk.show(Outcome(Kind.TOO_MUCH_OUTPUT, stdout=half, stdout_total=9**9), "text")
    assert VALUE[:12] not in shown.text
    assert "token is" in shown.text
    assert (
        VALUE[:12] in desk.show(exited(0, half), "text").text
    )  # the control: whole output keeps its last word


# ---- every outcome ----


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.EXITED])
@pytest.mark.parametrize("output", ["json", "text"])
def test_every_outcome_has_words(desk: Desk, kind: Kind, output: str) -> None:
    usage = Usage(45.1, 30.2, 2**30, 12, 99, 2**20)
    outcome = Outcome(
        kind,
        stdout=b"partial out",
        stderr=b"partial err",
        stdout_total=11,
        stderr_total=11,
        usage=usage,
        limit_value=7,
    )
    result = desk.show(outcome, output)
    assert result.is_error
    assert kind.value in result.text.split("\n")[0]
    assert result.meta["outcome"] == kind.value
    assert len(result.text) <= results.MAX_ERROR
    if output == "json":
        found = document(result)
        assert found["outcome"] == kind.value
        assert set(error(result)) == {"code", "message", "remedy"}
        assert error(result)["code"] == kind.value
        assert found["messages"] == "partial err"
    else:
        assert result.structured is None
        assert "What to do: " in result.text
        assert "partial out" in result.text


def test_words_say_limit_usage_step_and_danger(desk: Desk) -> None:
    timed = Outcome(Kind.TIMED_OUT, limit="wall_seconds", limit_value=45.0, usage=Usage(wall_seconds=45.12))
    assert "Limit wall_seconds = 45 s; it had used 45.1 s." in error(desk.show(timed))["message"]
    setup = Outcome(Kind.SETUP_FAILED, step="mounts", errno=13)
    assert "step mounts failed (EACCES)" in error(desk.show(setup))["message"]
    unknown = error(desk.show(Outcome(Kind.UNKNOWN)))
    assert "may have run" in unknown["message"]
    assert "may have had effects" in unknown["message"]
    assert "not success" in unknown["message"]
    assert "Do not repeat it blindly" in unknown["remedy"]
    killed = error(desk.show(Outcome(Kind.SIGNALLED, signal=31)))
    assert "system call filter" in killed["message"]


def test_meta_has_facts_and_no_nulls(desk: Desk) -> None:
    outcome = exited(0, b"1", attestation={"layers": ["seccomp"], "none": None, "in": {"none": None, "x": 1}})
    assert desk.show(outcome).meta == {
        "outcome": "exited",
        "exit_code": 0,
        "usage": {
            "wall_seconds": 0.0,
            "cpu_seconds": 0.0,
            "memory_bytes": 0,
            "processes": 0,
            "open_files": 0,
            "tmp_bytes": 0,
        },
        "cage": {"layers": ["seccomp"], "in": {"x": 1}},
        "policy": "sha",
    }
    large = exited(0, b"1", attestation={"x": "y" * 10_000})
    assert desk.show(large).meta["cage"] == {"omitted": "larger than 8192 bytes or no JSON"}


# ---- refusals ----


def test_refusals_are_redacted_capped_results() -> None:
    class ArgumentRefused(Refused):
        code = "argument_refused"

    result = results.refusal(ArgumentRefused(f"no argument {VALUE!r}" + "x" * 900_000, "give path"), REDACTOR)
    assert result.is_error
    assert result.structured is None
    assert result.text.startswith("refused · argument_refused\nno argument '[REDACTED:secret-value]'")
    assert result.text.endswith("What to do: give path")
    assert len(result.text) <= results.MAX_ERROR
    assert result.meta == {
        "outcome": "refused",
        "code": "argument_refused",
        "redactions": {"secret-value": 1},
    }
    placed = results.refusal(Refused("/home/u/project/x is a FIFO, /etc/x too"), REDACTOR, "/home/u/project")
    assert placed.text == "refused · refused\nx is a FIFO, <path outside the root> too"


def test_rate_refusal_says_limit_count_and_wait() -> None:
    result = results.too_fast(60, 12.3)
    assert result.is_error
    assert "60 tool calls in any 60 seconds, and 60 were made" in result.text
    assert "Wait 13 s" in result.text
    assert result.meta["retry_after_seconds"] == 13
    assert "64 calls are waiting" in results.too_many(64).text


def test_a_handle_that_is_gone_becomes_a_refusal() -> None:
    with pytest.raises(HandleRefused) as caught:
        Outputs().read("out_nothing")
    assert results.refusal(caught.value, REDACTOR).text.startswith(
        "refused · handle_refused\nThis handle is unknown"
    )
