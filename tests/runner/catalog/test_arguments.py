"""runner.catalog.arguments under arbitrary JSON: a refusal, or words of the tool's own form."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies import preset, template
from policies.params import AnyParam, ListParam, StringParam
from runner.catalog import arguments
from runner.catalog.arguments import ArgumentRefused, PlaceholderRefused
from runner.catalog.tools import Tool
from sandbox.root import Root, open_root

TEXT = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "-",
            "--",
            "--x=y",
            "-x",
            "@f",
            "..",
            "../..",
            "/",
            "~",
            ".",
            "a",
            "\0",
            "\n",
            "HEAD",
            "[]",
            '["-x"]',
        ]
    ),
)
SCALAR = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT)
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2)
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    folder = tmp_path_factory.mktemp("root")
    (folder / "a").write_text("a")
    return open_root(str(folder))


def tools() -> list[Tool]:
    return [
        Tool(
            name=name, title=name, description="d", plan=name, params=table.params, groups=table.groups,
            template=template.fixed_part(table.command)[1],
        )
        for one in preset.names()
        for name, table in preset.load(one).tools.items()
    ]  # fmt: skip


TOOLS = tools()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_words_have_the_form_of_the_template(data: st.DataObject, root: Root) -> None:
    tool = data.draw(st.sampled_from(TOOLS))
    names = st.sampled_from([*tool.params, "unknown"])
    given_arguments: dict[str, Any] = data.draw(st.dictionaries(names, VALUE, max_size=5))
    try:
        argv = tool.call(given_arguments, root).argv
    except ArgumentRefused as refusal:
        assert len(refusal.message) < 400  # noqa: PT017
        return
    fixed = {word.text for word in tool.template if word.param is None}
    flags = {param.flag for param in tool.params.values() if hasattr(param, "flag")}
    starts = tuple(word.text for word in tool.template if word.param is not None and word.text)
    for word in argv:
        assert "\0" not in word
        os.fsencode(word)
        assert word in fixed | flags or (starts and word.startswith(starts)) or not word.startswith("-")


def test_paths_beneath_a_folder() -> None:
    for path, cwd, expected in (
        (".", ".", "."), ("a", ".", "./a"), (".a", ".", ".a"), ("-a", ".", "./-a"), (".", "s/t", "../.."),
        ("s/a", "s", "../s/a"),
    ):  # fmt: skip
        assert arguments.beneath(path, cwd) == expected


def test_a_plain_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_text("x")
    root = open_root(str(tmp_path))
    assert [arguments.is_plain_folder(root, name) for name in (".", "real", "link", "file", "none")] == [
        True, True, False, False, False,
    ]  # fmt: skip


# ---- placeholders ----------------------------------------------------------------------------------------------------

HOLDS = "x[REDACTED:github-token]y"
PARAMS: dict[str, AnyParam] = {"text": StringParam(), "items": ListParam(items=StringParam(), max_items=9)}


@pytest.mark.parametrize(
    "given",
    [{"text": HOLDS}, {"items": ["a", HOLDS]}, {"items": f'["{HOLDS}"]'}, {"items": [{"deep": [HOLDS]}]}, {"text": {HOLDS: 1}}],
)  # fmt: skip
def test_a_placeholder_that_a_model_wrote_back_is_refused_with_the_reason(given: dict[str, object]) -> None:
    with pytest.raises(PlaceholderRefused) as caught:
        arguments.check(given, PARAMS, ())
    assert caught.value.code == "placeholder_refused"
    assert f'argument "{next(iter(given))}" holds [REDACTED:github-token]' in caught.value.message
    assert "in place of a secret" in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "[REDACTED]",
        "[redacted:key]",
        "REDACTED:key",
        "[REDACTED: key]",
        "[REDACTED:]",
        "[REDACTED:" + "a" * 41 + "]",
    ],
)
def test_what_only_looks_like_one_is_text(text: str) -> None:
    assert arguments.check({"text": text, "items": [text]}, PARAMS, ()) == {"text": text, "items": [text]}


def test_the_look_for_placeholders_is_not_stopped_by_nesting() -> None:
    nested: object = HOLDS
    for _ in range(60):
        nested = [nested]
    with pytest.raises(PlaceholderRefused):
        arguments.check({"text": nested}, PARAMS, ())


def test_a_refusal_names_the_tool_and_what_it_takes() -> None:
    with pytest.raises(ArgumentRefused) as caught:
        arguments.check({"output": 1}, PARAMS, (), "git_log")
    assert caught.value.message == "unknown argument 'output': `git_log` has no such argument"
    assert caught.value.remedy == "allowed: text, items"
    with pytest.raises(ArgumentRefused) as caught:
        arguments.check({"txt": 1}, PARAMS, (), "git_log")
    assert caught.value.remedy == 'did you mean "text"? allowed: text, items'
