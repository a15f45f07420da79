"""policies.load: a good policy is resolved, a bad one names file, key and fix."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.errors import PolicyRefused
from policies.load import load
from policies.policy import Policy

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "de_DE.UTF-8", "GIT_DIR": "/x"}
SERVER = '[server]\nname = "test"\nroot = "root"\n'
TOOL = '[tools.show]\ndescription = "Show."\ncommand = ["cat", "--", "{path}"]\nparams.path = { type = "path" }\n'

Load = Callable[..., Policy]


@pytest.fixture
def attempt(tmp_path: Path) -> Load:
    (tmp_path / "root").mkdir()

    def act(text: str, **options: object) -> Policy:
        file = tmp_path / "policy.toml"
        file.write_text(text)
        file.chmod(0o600)
        override = options.get("root_override")
        return load(file, root_override=None if override is None else str(override), environment=ENVIRONMENT)

    return act


def test_a_policy_is_resolved(attempt: Load, tmp_path: Path) -> None:
    policy = attempt(
        'presets = ["files"]\nwithhold = ["file_info"]\n' + SERVER + "[limits]\nwall_seconds = 20\n" + TOOL
        + 'env = ["LANG", "ABSENT"]\nset_env = { A = "b" }\nprocesses = ["gzip"]\nlimits = { wall_seconds = 5 }\n'
    )  # fmt: skip
    assert policy.root == str(tmp_path / "root")
    assert policy.limits.wall_seconds == 20
    assert [tool.name for tool in policy.tools] == [
        "read_file",
        "read_file_start",
        "read_file_end",
        "list_folder",
        "show",
    ]
    tool = policy.tools[-1]
    assert tool.command == ("/usr/bin/cat", "--", "{path}")
    assert tool.title == "Show"
    assert tool.cage.processes == ("/usr/bin/gzip",)
    assert tool.cage.environment == (("A", "b"), ("LANG", "de_DE.UTF-8"))
    assert (tool.cage.limits.wall_seconds, tool.cage.limits.cpu_seconds) == (5, 30)
    assert policy.tools[0].cage.limits.wall_seconds == 20


def test_an_empty_policy_allows_nothing(attempt: Load) -> None:
    policy = attempt(SERVER)
    assert (policy.tools, policy.catalogs) == ((), ())


def test_the_command_line_replaces_the_root(attempt: Load, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "link").symlink_to(other)
    assert attempt(SERVER, root_override=tmp_path / "link").root == str(other)
    assert attempt('[server]\nname = "x"\n', root_override=other).root == str(other)


def test_the_digest_follows_the_content(attempt: Load) -> None:
    first = attempt(SERVER + TOOL)
    assert attempt("# a comment\n" + SERVER + TOOL).digest == first.digest
    assert len(first.digest) == 64
    others = [SERVER, SERVER + TOOL + "title = 'x'\n", 'presets = ["files"]\n' + SERVER + TOOL]
    assert first.digest not in {attempt(text).digest for text in others}


def test_a_catalog_is_resolved(attempt: Load) -> None:
    policy = attempt(
        SERVER
        + '[catalogs.demo]\ndescribe = ["cat", "x"]\ncommand = ["cat"]\nwithhold_flags = ["--out", "a --b"]\n'
    )
    catalog = policy.catalogs[0]
    assert (catalog.describe, catalog.command) == (("/usr/bin/cat", "x"), ("/usr/bin/cat",))
    assert catalog.withhold_flags == {"--out", "a --b"}
    assert catalog.findings_exit_codes == (1,)


BAD = [
    ("x", "", "not TOML", ""),
    (SERVER + "[server]\n", "", "line 4", ""),
    ("", "server", "is missing", ""),
    ('[server]\nname = "x"\n', "server.root", "no root", "--root"),
    (SERVER + "rot = 1\n", "server.rot", "unknown key", '"root"'),
    (SERVER + 'floor = "none"\n', "server.floor", "invalid", "namespaces"),
    (SERVER + "max_output_bytes = 1023\n", "server.max_output_bytes", "1024", "bytes"),
    (SERVER + "max_calls_per_minute = 601\n", "server.max_calls_per_minute", "600", ""),
    (SERVER + 'root_at = "/usr/x"\n', "server.root_at", "taken", "/work"),
    (
        SERVER + '[redact]\nenv = ["A"]\npresets = ["files"]\n',
        "redact.presets",
        "unknown key",
        "above the first",
    ),
    (SERVER + '[redact]\nfiles = ["nope"]\n', "redact.files[0]", "not a file", "not redacted"),
    (SERVER + "[limits]\nmemory_mb = 1\n", "limits.memory_mb", "16", "MiB"),
    ('presets = ["file"]\n' + SERVER, "presets[0]", "no preset", '"files"'),
    ('presets = ["files", "files"]\n' + SERVER, "presets", "twice", ""),
    ('presets = ["files"]\nwithhold = ["file_inf"]\n' + SERVER, "withhold[0]", "no preset has", "file_info"),
    (
        'presets = ["files"]\n' + SERVER + TOOL.replace("show", "read_file"),
        "tools.read_file",
        "a preset has",
        "withhold",
    ),
    (SERVER + TOOL.replace("show", "a-b"), "tools.a-b", "expected", ""),
    (SERVER + TOOL.replace("show", "read_output"), "tools.read_output", "server itself", ""),
    (SERVER + TOOL.replace('"cat"', '"no-such-program"'), "tools.show.command[0]", "not found", "install"),
    (SERVER + TOOL.replace('"cat"', '"./cat"'), "tools.show.command[0]", "relative", "absolute"),
    (SERVER + TOOL.replace('"path" }', '"pth" }'), "tools.show.params.path.type", "not a type", '"path"'),
    (
        SERVER + TOOL.replace('"path" }', '"path", kind = 1 }'),
        "tools.show.params.path.kind",
        "expected",
        "file",
    ),
    (SERVER + TOOL + 'env = ["GIT_DIR"]\n', "tools.show.env.GIT_DIR", "run code", "unsafe_env"),
    (
        SERVER + TOOL + 'set_env = { LD_PRELOAD = "/x" }\n',
        "tools.show.set_env.LD_PRELOAD",
        "run code",
        "unsafe_env",
    ),
    (SERVER + TOOL + "limits = { wall_seconds = 46 }\n", "tools.show.limits.wall_seconds", "wider", "raise"),
    (SERVER + TOOL + 'read_only_paths = ["opt"]\n', "tools.show.read_only_paths[0]", "absolute", ""),
    (SERVER + TOOL + 'read_only_paths = ["/"]\n', "tools.show.read_only_paths[0]", '"/"', ""),
    (SERVER + TOOL + 'cwd = "sub"\n', "tools.show.cwd", "not a folder", ""),
    (SERVER + TOOL + 'cwd = "../x"\n', "tools.show.cwd", "beneath", ""),
    (SERVER + TOOL + 'processes = "some"\n', "tools.show.processes", "some", "any"),
    (SERVER + TOOL + 'preload = "x"\n', "tools.show.preload", "unknown key", ""),
    (SERVER + '[catalogs.demo]\ncommand = ["cat"]\n', "catalogs.demo.describe", "is missing", ""),
]


@pytest.mark.parametrize(("text", "key", "problem", "fix"), BAD)
def test_a_bad_policy_names_key_and_fix(attempt: Load, text: str, key: str, problem: str, fix: str) -> None:
    with pytest.raises(PolicyRefused) as caught:
        attempt(text)
    assert (caught.value.code, caught.value.key) == ("policy_refused", key)
    assert problem in caught.value.message
    assert fix in caught.value.remedy
    assert "policy.toml" in caught.value.message


def test_unsafe_variables_can_be_asked_for(attempt: Load) -> None:
    policy = attempt(SERVER + TOOL + 'env = ["GIT_DIR"]\nunsafe_env = true\n')
    assert policy.tools[0].cage.environment == (("GIT_DIR", "/x"),)


def test_an_absent_program_of_a_preset_names_its_package(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(f'presets = ["search"]\n[server]\nname = "x"\nroot = "{tmp_path}"\n')
    file.chmod(0o600)
    with pytest.raises(PolicyRefused) as caught:
        load(file, root_override=None, environment={"PATH": str(tmp_path)})
    assert '"rg" was not found' in caught.value.message
    assert 'install the package "ripgrep"' in caught.value.remedy
    assert load(file, root_override=None, environment={"PATH": os.defpath}).tools


def test_presets_obey_their_own_limits_but_never_widen(attempt: Load) -> None:
    policy = attempt('presets = ["git-read"]\n' + SERVER + "[limits]\nwall_seconds = 3\n")
    assert {tool.cage.limits.wall_seconds for tool in policy.tools} == {3}
