"""ReachWeaver through Toolcage gives what its own server gives: tools, schemas, exit codes and results.

Every difference that is left stands in DIFFERENCES with its reason; the tests fail when one is missing or one too many.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.end_to_end.reachweaver import calls, compare
from tests.end_to_end.reachweaver.conftest import Both
from tests.end_to_end.reachweaver.servers import PROGRAM

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="reachweaver is not installed")

WITHOUT_ARGUMENTS = (
    "account_advisor", "ai_label_check", "capabilities", "context", "delivery_options", "describe", "doctor",
    "eu_review_evidence", "experiment_next", "insights", "ops_summary", "platform_risk", "registry_age",
    "repeat_check", "review_status", "social_web_plan", "start", "suggest", "version", "voice_check",
)  # fmt: skip

CHECKED_FIRST = (
    "one of several arguments is needed; Toolcage refuses before anything starts, the original after"
)
ERROR_ADDED = (
    "exit code 2 without an error in the result; Toolcage adds one, so that every failure has a code"
)
REDACTED = (
    "the original takes the word after `token:` or `api_key:` for a secret, whatever it is; Toolcage does not"
)
DIFFERENCES = {
    "ai_label_check alone": {"refused": CHECKED_FIRST},
    "voice_check alone": {"refused": CHECKED_FIRST},
    "capabilities alone": dict.fromkeys(
        ("result.platforms[2].rate_limits.summary", "result.platforms[11].rate_limits.summary"), REDACTED
    ),
    "campaign_check bad": {"error": ERROR_ADDED, "result.errors[0]": REDACTED},
    "campaign_preview bad": {"error": ERROR_ADDED, "result.campaign_errors[0]": REDACTED},
    "campaign_check with brand": {"error": ERROR_ADDED},
    "media_check bad": {"error": ERROR_ADDED},
    "review_status alone": dict.fromkeys(
        ("error", "isError", "outcome", "result"),
        "it prints text in spite of --json; Toolcage refuses what is not JSON, the original wraps it",
    ),
    "voice_check link": {
        "exit_code": "the tool refuses symlinks; the original resolves them first, Toolcage passes on the name"
    },
}
CALLS = [calls.Made(f"{tool} alone", tool, {}) for tool in WITHOUT_ARGUMENTS] + calls.with_arguments()


def listed(both: Both) -> tuple[dict[str, Any], dict[str, Any]]:
    theirs, ours = (server.ask("tools/list")["tools"] for server in (both.original, both.toolcage))
    own = {tool["name"]: tool for tool in ours}
    del own["read_output"]  # the server's own tool, which the original does not have
    return {tool["name"]: tool for tool in theirs}, own


def test_the_same_tools_with_the_same_arguments(both: Both) -> None:
    theirs, ours = listed(both)
    assert sorted(ours) == sorted(theirs)
    assert len(ours) == 39
    for name in theirs:
        mine, other = ours[name]["inputSchema"], theirs[name]["inputSchema"]
        assert sorted(mine.get("required", ())) == sorted(other.get("required", ())), name
        assert {key: shape(value) for key, value in mine["properties"].items()} == {
            key: shape(value) for key, value in other["properties"].items()
        }, name
    needs_nothing = [name for name, tool in theirs.items() if not tool["inputSchema"].get("required")]
    assert tuple(sorted(needs_nothing)) == WITHOUT_ARGUMENTS


def shape(schema: dict[str, Any]) -> tuple[str, list[Any] | None, Any]:
    """Type, choices (without their order) and, of a list, the shape of its items."""
    choices = sorted(schema["enum"]) if "enum" in schema else None
    return schema["type"], choices, shape(schema["items"]) if "items" in schema else None


@pytest.mark.parametrize("made", CALLS, ids=[made.name for made in CALLS])
def test_the_same_result(both: Both, made: calls.Made) -> None:
    arguments = {
        key: both.place.post if value == calls.POST else value for key, value in made.arguments.items()
    }
    root = str(both.place.folder)
    theirs = compare.document(both.original.call(made.tool, arguments), root)
    ours = compare.document(both.toolcage.call(made.tool, arguments), root)
    assert set(compare.differences(made.tool, theirs, ours)) == set(DIFFERENCES.get(made.name, {}))


def test_no_difference_is_listed_for_a_call_that_is_not_made() -> None:
    assert set(DIFFERENCES) <= {made.name for made in CALLS}
    assert len({made.name for made in CALLS}) == len(CALLS)


def test_bad_exit_codes_are_among_the_calls(both: Both) -> None:
    """Control: the comparison is not one of successes only."""
    codes = {
        both.original.call(tool, arguments)["structuredContent"]["exit_code"]
        for tool, arguments in (
            ("version", {}),
            ("pilot_report", {"log": "in/pilot.csv"}),
            ("campaign_check", {"file": "in/not.json"}),
        )
    }
    assert codes == {0, 1, 2}


@pytest.mark.parametrize("made", calls.REFUSED, ids=[made.name for made in calls.REFUSED])
def test_both_refuse(both: Both, made: calls.Made) -> None:
    for server in (both.original, both.toolcage):
        answer = server.call(made.tool, made.arguments)
        assert answer["isError"] is True
        assert "structuredContent" not in answer


@pytest.mark.parametrize("made", calls.STRICTER, ids=[made.name for made in calls.STRICTER])
def test_toolcage_refuses_what_the_original_runs_in_vain(both: Both, made: calls.Made) -> None:
    assert both.original.call(made.tool, made.arguments)["structuredContent"]["exit_code"] == 2
    answer = both.toolcage.call(made.tool, made.arguments)
    assert answer["isError"] is True
    assert "structuredContent" not in answer


def test_a_whole_number_may_be_written_with_a_point(both: Both) -> None:
    """As JSON Schema counts integers; the original refuses 7.0."""
    arguments = {"seed": 7.0, "pairs": 4, "lift": 1, "noise": 0.1, "trials": 5}
    assert both.toolcage.call("experiment_simulate", arguments)["structuredContent"]["exit_code"] == 0
    assert "structuredContent" not in both.original.call("experiment_simulate", arguments)


def test_the_workspace_is_not_changed(both: Both) -> None:
    """By any call of either server; the last test of the file, after all calls."""
    files = [path for path in both.place.folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if path.stat().st_mtime_ns > both.place.made_ns] == []
