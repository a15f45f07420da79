"""runner.catalog.from_policy: a plan for each tool, two for each catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies.load import load
from policies.policy import Policy
from runner.catalog.from_policy import from_policy
from sandbox.errors import ProfileRefused
from sandbox.root import open_root

POLICY = """
[server]
name = "test"
root = "root"
root_at = "/work"
[tools.show]
description = "Show."
command = ["cat", "-n", "--", "{path}"]
params.path = { type = "path", kind = "file", required = true }
cwd = "sub"
limits = { wall_seconds = 5 }
set_env = { A = "b" }
findings_exit_codes = [1]
redact_exempt = ["uuid"]
[catalogs.demo]
describe = ["cat", "catalog.json"]
command = ["cat", "--show-all"]
processes = ["gzip"]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    (tmp_path / "root" / "sub").mkdir(parents=True)
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    file.chmod(0o600)
    return load(file, root_override=None, environment={"PATH": "/usr/bin:/bin"})


def test_tools_and_profiles(policy: Policy) -> None:
    root = open_root(policy.root)
    (Path(root.path) / "x").write_text("x")
    tools, profiles = from_policy(policy, root)
    assert [profile.name for profile in profiles] == ["show", "catalog:demo", "describe:demo"]
    show, calls, describe = profiles
    assert show.command == ("/usr/bin/cat", "-n", "--")
    assert (show.root, show.root_at, show.environment) == (root.path, "/work", (("A", "b"),))
    assert (show.limits.wall_seconds, show.processes) == (5, "none")
    assert calls.command == ("/usr/bin/cat", "--show-all")
    assert describe.command == ("/usr/bin/cat", "catalog.json")
    assert calls.processes == ("/usr/bin/gzip",)
    (tool,) = tools
    assert (tool.plan, tool.findings_exit_codes) == ("show", (1,))
    assert set(tool.redact_exempt) == {"uuid"}
    call = tool.call({"path": "x"}, root)
    assert (call.plan, call.argv, call.cwd) == ("show", ("../x",), "sub")


def test_a_folder_behind_a_symlink_is_refused(policy: Policy) -> None:
    root = open_root(policy.root)
    assert from_policy(policy, root)
    (Path(root.path) / "sub").rename(Path(root.path) / "real")
    (Path(root.path) / "sub").symlink_to("real")
    with pytest.raises(ProfileRefused, match="symlink"):
        from_policy(policy, root)
