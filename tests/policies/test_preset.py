"""policies.preset: presets are small, strict and complete."""

from __future__ import annotations

import pytest

from policies import preset
from policies.errors import BadKeyError, PolicyRefused


def test_the_presets_of_this_version() -> None:
    assert preset.names() == ["files", "git-read", "search"]
    for name in preset.names():
        tools = preset.load(name).tools
        assert 0 < len(tools) <= 9
        for table in tools.values():
            assert len(table.description) <= 500
            assert table.processes == "none"
            assert not table.env
            assert not table.unsafe_env


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(BadKeyError, match="no preset") as caught:
        preset.load("git-raed")
    assert "git-read" in caught.value.fix


def test_names_cannot_leave_the_folder() -> None:
    for name in ("../model", "examples/files", "", "files.toml"):
        with pytest.raises(BadKeyError):
            preset.load(name)


def test_git_configuration_variables_are_counted() -> None:
    for table in preset.load("git-read").tools.values():
        count = int(table.set_env["GIT_CONFIG_COUNT"])
        for part in ("KEY", "VALUE"):
            found = {name for name in table.set_env if name.startswith(f"GIT_CONFIG_{part}_")}
            assert found == {f"GIT_CONFIG_{part}_{n}" for n in range(count)}


def test_a_preset_file_is_strict() -> None:
    good = b'[preset]\ndescription = "d"\n[tools.ab]\ndescription = "d"\ncommand = ["x"]\n'
    assert preset.decode(good, "f").tools["ab"].command == ("x",)
    with pytest.raises(PolicyRefused, match=r"tools\.ab\.comand"):
        preset.decode(good.replace(b"command", b"comand"), "f")
