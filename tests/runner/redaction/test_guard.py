from __future__ import annotations

from pathlib import Path

import pytest

from policies.params import StringParam
from policies.template import Word
from runner.catalog.tools import Tool
from runner.redaction import guard
from runner.redaction.engine import Redactor
from runner.redaction.guard import PlaceholderRefused
from sandbox.root import open_root
from tests.runner.redaction.tokens import github


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "TOKEN=[REDACTED:github-token]"},
        {"list": ["a", "[REDACTED:env-1]"]},
        {"deep": {"x": [{"y": "see [REDACTED:password]."}]}},
        {"[REDACTED:token]": 1},
        {
            "text": "[WITHHELD: this output could not be checked for secrets within its bounds, so it is not shown.]"
        },
    ],
)
def test_placeholders_are_refused_wherever_they_stand(arguments: dict[str, object]) -> None:
    with pytest.raises(PlaceholderRefused) as refused:
        guard.check(arguments)
    assert next(iter(arguments)) in refused.value.message
    assert refused.value.remedy


@pytest.mark.parametrize(
    "arguments",
    [None, {}, {"text": "[REDACTED]"}, {"text": "REDACTED:x"}, {"n": 1, "b": True, "z": None}, {"p": "a[0]"}],
)
def test_other_arguments_pass(arguments: dict[str, object] | None) -> None:
    guard.check(arguments)


def test_what_redaction_writes_is_what_the_guard_knows() -> None:
    out, counts = Redactor(()).text(f"see {github()}")
    assert counts
    with pytest.raises(PlaceholderRefused):
        guard.check({"text": out})


def test_no_call_is_made_of_them(tmp_path: Path) -> None:
    tool = Tool(
        name="say",
        title="",
        description="",
        plan="say",
        params={"text": StringParam()},
        template=(Word("", "text"),),
    )
    root = open_root(str(tmp_path))
    assert tool.call({"text": "plain"}, root).argv  # the control
    with pytest.raises(PlaceholderRefused):
        tool.call({"text": "[REDACTED:jwt]"}, root)
