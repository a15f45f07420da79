from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

import orjson
import pytest

from runner import results
from runner.case import LEAST_MESSAGE_BYTES, content_room
from runner.mcp.messages import ToolResult
from runner.outputs import JSON, Cut, HandleRefused, Outputs
from runner.redaction.engine import WITHHELD, WITHHELD_TEXT, Redactor
from runner.redaction.values import SecretValue
from sandbox.errors import Refused
from sandbox.types import Kind, Outcome, Usage
from tests.runner.redaction.tokens import github
from tests.runner.tool import Tool

VALUE = "k4o9pM324jHOoPWvMmgG"
REDACTOR = Redactor((SecretValue("API_TOKEN", VALUE),))


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
        (b"[" * 66 + b"]" * 66, "nested deeper"), (b"[" * 100_000, "nested deeper"), (b"[" + b"0," * 200_000 + b"0]", "200000 members"),
        (b"[123456789012345678901]", "64 bits"), (b"plain text", "line 1"), (b'{"a": 1, "a": 2}', "the name 'a' stands twice"),
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
    assert not desk.show(exited(0, out), cap=2200).is_error  # the control: twice on the wire
    refused = desk.show(exited(0, out), cap=2048)
    assert error(refused)["code"] == "result_too_large"
    assert "2,1" in error(refused)["message"]
    assert "2,048 bytes" in error(refused)["message"]
    assert "xxx" not in refused.text
    pretty = json.dumps([1] * 200, indent=8).encode()
    assert len(pretty) > 1024
    assert not desk.show(exited(0, pretty), cap=1024).is_error
    cut = Outcome(Kind.EXITED, 0, stdout=b"[1]", stdout_total=10**9)
    assert error(desk.show(cut))["code"] == "result_too_large"
    assert desk.outputs.listing()  # of the first; the unread one was not stored
    assert len(desk.outputs.listing()) == 1


def test_too_large_json_says_what_to_narrow_and_can_be_read_in_parts(desk: Desk) -> None:
    rows = [{"id": n, "password": "hunter2", "text": f"see {VALUE}"} for n in range(3000)]
    result = desk.show(exited(0, json.dumps({"total": 3000, "found": {"rows": rows}}).encode()))
    told = document(result)
    assert list(told)[:3] == [
        "exit_code",
        "outcome",
        "handle",
    ]  # in the first lines: every client cuts somewhere
    assert (told["outcome"], told["result"], told["exit_code"]) == ("error", None, 0)
    message, remedy = error(result)["message"], error(result)["remedy"]
    assert "Largest part: $.found.rows, a list of 3,000 elements, 2" in message
    assert "max_output_bytes = 262,144" in message
    assert "(path, count)" in remedy
    assert "$.found.rows[0:10]" in remedy
    assert (result.meta["limit"], result.meta["limit_value"]) == ("max_output_bytes", 262_144)
    assert int(str(result.meta["current"])) > 262_144
    handle = str(told["handle"])
    assert handle in remedy
    assert result.meta["handle"] == handle
    assert desk.outputs.listing()[0]["mimeType"] == JSON
    part = desk.outputs.read(handle, Cut(path="$.found.rows[2999]"))
    assert json.loads(part.text) == {
        "id": 2999,
        "password": "[REDACTED:password]",
        "text": "see [REDACTED:secret-value]",
    }
    assert VALUE not in desk.outputs.whole(handle)[0]
    assert (
        desk.outputs.read(handle, Cut(grep='"total"')).text == '  "total": 3000,'
    )  # in lines, also for grep


def test_names_in_what_to_narrow_are_redacted_visible_and_without_paths(desk: Desk) -> None:
    odd = {"/etc/passwd\u202e": {github(): ["x" * 1000] * 1000}}
    message = error(desk.show(exited(0, json.dumps(odd).encode())))["message"]
    assert "/etc" not in message
    assert "\u202e" not in message
    assert "ghp_" not in message
    long = {"k" * 5000: ["x" * 1000] * 1000}
    assert "kkkkk" not in error(desk.show(exited(0, json.dumps(long).encode())))["message"]


def test_what_was_promised_as_json_and_is_long_can_be_read_as_text(desk: Desk) -> None:
    out = f"Listing all {VALUE}\n".encode() + b"".join(b"row %d\n" % n for n in range(2000))
    for code in (0, 3):
        result = desk.show(exited(code, out))
        assert "Listing all [REDACTED:secret-value]\nrow 0" in error(result)["message"]
        handle = str(document(result)["handle"])
        assert f"read_output with handle {handle}" in error(result)["remedy"]
        assert desk.outputs.read(handle, Cut(tail=1)).text == "row 1999"
        assert VALUE not in desk.outputs.whole(handle)[0]
    assert "handle" not in document(desk.show(exited(0, b"short")))  # the message has all of it


def test_messages_say_how_much_of_them_is_missing(desk: Desk) -> None:
    err = b"".join(b"warning %d\n" % n for n in range(2000))
    for outcome in (
        exited(0, b"1", err),
        exited(2, b"", err),
        Outcome(Kind.TIMED_OUT, stderr=err, stderr_total=len(err)),
    ):
        said = str(document(desk.show(outcome))["messages"])
        hit = re.match(r"\[… ([\d,]+) bytes not shown …\]\n", said)
        assert hit
        assert int(hit[1].replace(",", "")) + len(said[hit.end() :].encode()) == len(err) - 1
    assert document(desk.show(exited(0, b"1", b"x\n")))["messages"] == "x"


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
    assert (
        len(head.encode()) + int(mark.replace(",", "")) + len(tail.encode()) == len(out) - 1
    )  # the last line feed
    assert desk.outputs.whole(handle)[0] == out.decode().rstrip("\n")
    offset = int(rest.partition(", offset ")[2].partition(" ")[0])
    following = desk.outputs.read(handle, Cut(offset, 100)).text
    assert out.decode().startswith(head + following)


def test_what_is_stored_is_redacted_first(desk: Desk) -> None:
    out = (b"x" * 50 + b"\n") * 150 + VALUE.encode() + b"\n" + b"y z\n" * 3000
    result = desk.show(exited(0, out + b"".join(b"%d\n" % n for n in range(4000))), "text")
    handle = result.text.split("handle ")[1].split(" ")[0]
    whole, _ = desk.outputs.whole(handle)
    assert "[REDACTED:secret-value]" in whole
    assert VALUE not in whole


def test_progress_and_repeats_are_collapsed(desk: Desk) -> None:
    result = desk.show(exited(0, b"10%\r50%\r100%\ndone\r\n" + b"same\n" * 500), "text")
    assert (
        result.text.split("\n", 1)[1] == "100% [redrawn 2 times]\ndone\nsame\n[the line above 499 more times]"
    )
    handle = result.text.split("handle ")[1].split(" ")[0]
    assert desk.outputs.whole(handle)[0].startswith("10%␍50%␍100%\ndone\nsame\nsame")
    assert "handle" not in desk.show(exited(0, b"a\r\n" * 3), "text").text  # ordinary line ends lose nothing


def test_control_characters_are_visible(desk: Desk) -> None:
    result = desk.show(exited(0, "a\x1b[31m\x00\x07\u202eb\x9b\u2066\x7f\tc\u200bd".encode()), "text")
    assert result.text.split("\n")[1] == "a␛[31m␀␇<U+202E>b<U+009B><U+2066>␡\tc<U+200B>d"


@pytest.mark.parametrize("before", [0, 55, 62, 70])
def test_a_name_that_stands_twice_is_masked_before_it_is_shortened(desk: Desk, before: int) -> None:
    name = "x" * before + VALUE
    shown = desk.show(exited(0, f'{{"{name}": 1, "{name}": 2}}'.encode()), "json")
    assert VALUE[:6] not in shown.text
    assert "stands twice" in shown.text


@pytest.mark.parametrize("output", ["json", "text"])
@pytest.mark.parametrize("kind", [Kind.TOO_MUCH_OUTPUT, Kind.TIMED_OUT, Kind.SIGNALLED, Kind.OUT_OF_MEMORY])
def test_the_unfinished_last_line_of_a_stopped_tool_is_left_out(desk: Desk, kind: Kind, output: str) -> None:
    """A library writes in blocks: where the tool was stopped, half a secret may be all that came of it."""
    half = f"first line\nphrase is correct horse 7battery {VALUE[:12]}".encode()
    total = 9**9 if kind is Kind.TOO_MUCH_OUTPUT else len(half)
    stopped = Outcome(kind, signal=9, stdout=half, stderr=half, stdout_total=total, stderr_total=len(half))
    shown = desk.show(stopped, output)
    assert VALUE[:12] not in shown.text
    assert "horse" not in shown.text
    assert "first line" in shown.text
    assert "[the unfinished last line, 45 bytes of it, is left out]" in shown.text
    finished = replace(stopped, stdout=half + b"\n", stderr=half + b"\n", stdout_total=total + 1)
    assert "horse" in desk.show(finished, output).text
    assert "horse" in desk.show(exited(0, half), "text").text  # the control: an end of its own is an end


def test_of_a_long_unfinished_line_only_the_end_is_left_out(desk: Desk) -> None:
    shown = desk.show(Outcome(Kind.TIMED_OUT, stdout=b"a" * 5000 + b"b" * 4096, stdout_total=9096), "text")
    assert "aaaa\n[the unfinished last line, 4,096 bytes of it, is left out]" in shown.text
    assert "bb" not in shown.text


def test_what_is_missing_is_never_said_to_be_more_than_there_was(desk: Desk) -> None:
    text = desk.show(exited(0, b"x\n" + b"\0" * 300_000), "text").text
    assert text.startswith("exit 0 · ok · 300,002 bytes")
    assert re.search(r"\[… 8[0-9]{2},[0-9]{3} bytes, counted as they are shown, not shown", text)
    numbers = b"".join(b"%d\n" % number for number in range(100_000))
    assert " bytes not shown" in desk.show(exited(0, numbers), "text").text


def test_few_equal_lines_stay_as_they_are(desk: Desk) -> None:
    """Whoever edits a file counts its lines; a note may not be longer than what it stands for."""
    content = "matrix = [\n" + "        0,\n" * 3 + "]\n\n\n\n\nend"
    assert desk.show(exited(0, content.encode()), "text").text.split("\n", 1)[1] == content


# ---- every outcome ----


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.EXITED])
@pytest.mark.parametrize("output", ["json", "text"])
def test_every_outcome_has_words(desk: Desk, kind: Kind, output: str) -> None:
    usage = Usage(45.1, 30.2, 2**30, 12, 99, 2**20)
    outcome = Outcome(
        kind,
        stdout=b"partial out\n",
        stderr=b"partial err\n",
        stdout_total=12,
        stderr_total=12,
        usage=usage,
        limit_value=7,
    )
    result = desk.show(outcome, output)
    assert result.is_error
    assert kind.value in result.text.split("\n")[0]
    assert result.meta["outcome"] == result.meta["code"] == kind.value
    assert result.meta["class"]
    assert isinstance(result.meta["retryable"], bool)
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


def test_one_word_for_each_outcome_in_text_document_and_facts(desk: Desk) -> None:
    """Also where the tool's own exit was good, and what it printed was not."""
    outcomes = [
        exited(0, b"1"),
        exited(1, b"1"),
        exited(2, b"1"),
        exited(0, b"no json"),
        exited(0, b'["' + b"x" * 300_000 + b'"]'),
    ]
    for outcome, word in zip(outcomes, ("ok", "findings", "error", "error", "error"), strict=True):
        result = desk.show(outcome)
        assert document(result)["outcome"] == result.meta["outcome"] == word
        assert ("code" in result.meta) is (word == "error")
    for code, word in ((0, "ok"), (1, "findings"), (2, "error")):
        result = desk.show(exited(code, b"x"), "text")
        assert result.text.startswith(f"exit {code} · {word} · ")
        assert result.meta["outcome"] == word


@pytest.mark.parametrize(
    ("kind", "name", "value", "used"),
    [
        (Kind.TIMED_OUT, "wall_seconds", 45.0, 45.1), (Kind.OUT_OF_CPU, "cpu_seconds", 30.0, 30.2),
        (Kind.OUT_OF_MEMORY, "memory_mb", 512.0, 1024), (Kind.TOO_MANY_PROCESSES, "processes", 12.0, 12),
        (Kind.TOO_MANY_FILES, "open_files", 99.0, 99), (Kind.TOO_MUCH_OUTPUT, "output_mb", 8.0, 8.6),
        (Kind.FILE_TOO_LARGE, "file_mb", 64.0, None), (Kind.TEMP_FULL, "tmp_mb", 64.0, 3),
    ],
)  # fmt: skip
def test_each_limit_has_name_value_and_usage(
    desk: Desk, kind: Kind, name: str, value: float, used: float | None
) -> None:
    usage = Usage(45.12, 30.2, 2**30, 12, 99, 3 * 2**20)
    outcome = Outcome(kind, limit=name, limit_value=value, usage=usage, stdout_total=9 * 10**6)
    for output in ("json", "text"):
        result = desk.show(outcome, output)
        assert (result.meta["limit"], result.meta["limit_value"], result.meta.get("current")) == (
            name,
            value,
            used,
        )
        assert f"Limit {name} = {value:g}" in result.text
        assert ("it had used" in result.text) is (used is not None)
        assert result.meta["class"] == "limit"
    told = document(desk.show(outcome))["limit"]
    expected = {"name": name, "value": value, "used": used}
    assert isinstance(told, dict)
    assert told.pop("unit") in ("s", "MiB", "processes", "files")
    assert told == {key: item for key, item in expected.items() if item is not None}


def test_a_failed_step_and_a_signal_stand_in_the_document(desk: Desk) -> None:
    setup = desk.show(
        Outcome(Kind.SETUP_FAILED, step="mounts", errno=13, detail="step mounts: /srv/x: denied.")
    )
    assert document(setup)["step"] == setup.meta["step"] == "mounts"
    assert "/srv" not in setup.text
    assert "/srv" not in desk.show(Outcome(Kind.SETUP_FAILED, step="m", detail="/srv/x"), "text").text
    assert document(desk.show(Outcome(Kind.SIGNALLED, signal=9)))["signal"] == 9


def test_unknown_says_in_words_that_it_may_have_run(desk: Desk) -> None:
    for output in ("json", "text"):
        result = desk.show(Outcome(Kind.UNKNOWN, detail="the report was cut short."), output)
        assert "may have run" in result.text
        assert "Do not repeat it blindly" in result.text
        assert (result.meta["class"], result.meta["retryable"]) == ("unknown", False)


class Blind(Redactor):
    """Cannot check anything."""

    def text(self, text: str) -> tuple[str, dict[str, int]]:
        return (WITHHELD_TEXT, {WITHHELD: 1}) if text else ("", {})


def test_withheld_text_is_an_error_from_the_first_word_on(desk: Desk) -> None:
    result = results.to_result(Tool("text"), exited(0, b"secret\n"), Blind(()), desk.outputs, Policy())
    assert result.is_error
    first = result.text.split("\n")[0]
    assert first == "exit 0 · error redaction_incomplete · 7 bytes"
    assert " ok" not in first
    assert "withheld" in result.text
    assert "What to do: " in result.text
    assert (result.meta["outcome"], result.meta["code"]) == ("error", "redaction_incomplete")
    assert not desk.outputs.listing()


# ---- bytes on the wire ----


@pytest.mark.parametrize("cap", [1024, 4096, 20_000, 32_768, 50_000, 262_144])
@pytest.mark.parametrize("unit", ['"', "\\", "\n", "é", "\u4e2d", "\U0001f600", "\u202e", "\x1b[0m", "a"])
def test_the_content_fits_whatever_the_characters(desk: Desk, cap: int, unit: str) -> None:
    data = (unit * 400_000)[:400_000].encode()
    for outcome in (
        exited(0, data),
        exited(2, data, data),
        Outcome(Kind.TIMED_OUT, stdout=data, stdout_total=10**9),
    ):
        result = desk.show(outcome, "text", cap)
        size = len(orjson.dumps(result.text))
        assert size <= max(content_room(cap), LEAST_MESSAGE_BYTES - 10_240)
        if not result.is_error:
            assert size <= content_room(cap)
            assert len(result.text) <= 10_000
    for code in (0, 2):
        result = desk.show(exited(code, json.dumps([unit * 30_000]).encode(), data), "json", cap)
        size = len(orjson.dumps(result.text)) + len(result.text.encode())
        assert size <= content_room(cap) or (result.is_error and size <= 3 * min(cap, 4000))


def test_the_room_grows_with_the_cap() -> None:
    assert [content_room(cap) for cap in (1024, 22_528, 32_768, 262_144)] == [1024, 22_528, 22_528, 251_904]


def test_meta_has_facts_and_no_nulls(desk: Desk) -> None:
    outcome = exited(0, b"1", attestation={"layers": ["seccomp"], "none": None, "in": {"none": None, "x": 1}})
    assert desk.show(outcome).meta == {
        "outcome": "ok",
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
    assert result.text.endswith("What to do: give path\nRetryable: no, not unchanged (argument)")
    assert len(result.text) <= results.MAX_ERROR
    assert result.meta == {
        "outcome": "refused",
        "code": "argument_refused",
        "class": "argument",
        "retryable": False,
        "redactions": {"secret-value": 1},
    }
    placed = results.refusal(Refused("/home/u/project/x is a FIFO, /etc/x too"), REDACTOR, "/home/u/project")
    assert placed.text.split("\n")[:2] == ["refused · refused", "x is a FIFO, <path outside the root> too"]
    shown = results.refusal(Refused("/work/x, /home/u/project/y"), REDACTOR, "/work", "/home/u/project")
    assert "\nx, y\n" in shown.text


def test_rate_refusal_says_limit_count_and_wait() -> None:
    result = results.too_fast(60, 12.3)
    assert result.is_error
    assert "60 tool calls in any 60 seconds, and 60 were made" in result.text
    assert "Wait 13 s" in result.text
    assert result.meta["retry_after_seconds"] == 13
    assert (result.meta["class"], result.meta["retryable"], result.meta["current"]) == ("capacity", True, 60)
    assert result.text.endswith("Retryable: yes, later (capacity)")
    assert "64 calls are waiting" in results.too_many(64).text


def test_the_third_refusal_of_the_same_call_is_one_constant_line() -> None:
    first = results.refusal(Refused("x" * 5000, "y"), REDACTOR)
    again = results.again(first)
    assert "\n" not in again.text
    assert len(again.text) < 150
    assert again.text == results.again(results.refusal(Refused("something else"), REDACTOR)).text
    assert again.is_error
    assert again.meta == first.meta
    assert results.again(results.too_fast(60, 12.3)).text == results.again(results.too_fast(60, 1.0)).text
    assert "wait" in results.again(results.too_fast(60, 12.3)).text


def test_a_handle_that_is_gone_becomes_a_refusal() -> None:
    with pytest.raises(HandleRefused) as caught:
        Outputs().read("out_nothing")
    refused = results.refusal(caught.value, REDACTOR)
    assert refused.text.startswith("refused · handle_refused\nThis is no handle")
    assert (refused.meta["class"], refused.meta["reason"]) == ("handle", "no handle")
