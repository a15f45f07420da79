"""runner.catalog.arguments under arbitrary JSON: a refusal, or words of the tool's own form."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies import preset, template
from runner.catalog import arguments
from runner.catalog.arguments import ArgumentRefused
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
