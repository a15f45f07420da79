"""policies.programs: programs are found once, and a tool's environment is built from nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policies import programs
from policies.errors import BadKeyError


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_is_found_in_the_given_path_only(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "tool")
    assert programs.resolve("tool", f"/nonexistent:{path.parent}", "k") == str(path)
    assert programs.resolve(str(path), "", "k") == str(path)
    for search in ("/usr/bin", "", "."):
        with pytest.raises(BadKeyError, match="not found"):
            programs.resolve("tool", search, "k")


def test_relative_folders_of_path_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "tool")
    monkeypatch.chdir(tmp_path)
    for search in (".", "", os.curdir + ":/usr/bin"):
        with pytest.raises(BadKeyError, match="not found"):
            programs.resolve("tool", search, "k")


def test_shims_and_open_programs_are_refused(tmp_path: Path) -> None:
    shim = program(tmp_path / ".pyenv" / "shims", "python")
    with pytest.raises(BadKeyError, match="shim") as caught:
        programs.resolve("python", str(shim.parent), "k")
    assert "real path" in caught.value.fix
    shared = program(tmp_path / "bin", "tool")
    shared.chmod(0o757)
    with pytest.raises(BadKeyError, match="everyone may change"):
        programs.resolve("tool", str(shared.parent), "k")


def test_processes_are_resolved() -> None:
    assert programs.resolve_all("none", "", "k") == "none"
    assert programs.resolve_all(["cat"], "/usr/bin", "k") == ("/usr/bin/cat",)
    with pytest.raises(BadKeyError) as caught:
        programs.resolve_all(["cat", "no-such"], "/usr/bin", "k")
    assert caught.value.key == "k[1]"


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "GLIBC_TUNABLES", "BASH_ENV", "ENV", "PYTHONPATH", "PERL5OPT", "RUBYOPT", "NODE_OPTIONS", "GIT_DIR",
     "CARGO_HOME", "RUSTC_WRAPPER", "GOFLAGS", "npm_config_prefix", "SSH_AUTH_SOCK", "http_proxy", "HTTPS_PROXY",
     "KUBECONFIG", "DOCKER_HOST", "AWS_PROFILE", "TAR_OPTIONS", "PATH", "HOME", "LESSOPEN"],
)  # fmt: skip
def test_dangerous_variables_need_a_word(name: str) -> None:
    operator = {name: "v"}
    with pytest.raises(BadKeyError, match="run code"):
        programs.environment([name], {}, operator, unsafe=False, key="k")
    with pytest.raises(BadKeyError, match="run code"):
        programs.environment([], operator, {}, unsafe=False, key="k")
    assert programs.environment([name], {}, operator, unsafe=True, key="k") == ((name, "v"),)


@pytest.mark.parametrize("name", ["LANG", "LC_ALL", "TZ", "NO_COLOR", "MY_TOOL_LEVEL"])
def test_ordinary_variables_pass(name: str) -> None:
    assert programs.environment([name], {}, {name: "v", "X": "y"}, unsafe=False, key="k") == ((name, "v"),)
