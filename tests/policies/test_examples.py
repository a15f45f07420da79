"""Every example of every preset is executed against the sample: what is offered works, what is hostile does nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from policies import examples, preset
from policies.load import load
from runner.catalog.arguments import ArgumentRefused
from runner.catalog.catalog import Catalog
from runner.catalog.from_policy import from_policy
from sandbox.root import open_root
from tests.policies import sample as samples

Run = Callable[[str, dict[str, object]], subprocess.CompletedProcess[str]]
ALL = [(name, example) for name in preset.names() for example in examples.examples(name)]


def identity(value: object) -> str:
    return f"{value.tool}-{dict(value.arguments)}"[:80] if isinstance(value, examples.Example) else str(value)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> samples.Sample:
    return samples.build(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def run(sample: samples.Sample, tmp_path_factory: pytest.TempPathFactory) -> Run:
    file = tmp_path_factory.mktemp("policy") / "policy.toml"
    names = ", ".join(f'"{name}"' for name in preset.names())
    file.write_text(f'presets = [{names}]\n[server]\nname = "test"\nroot = "{sample.root}"\n')
    file.chmod(0o600)
    policy = load(file, root_override=None, environment={"PATH": os.defpath, "HOME": "/nonexistent"})
    root = open_root(policy.root)
    tools, profiles = from_policy(policy, root)
    catalog, plans = Catalog(tools), {profile.name: profile for profile in profiles}

    def execute(name: str, arguments: dict[str, object]) -> subprocess.CompletedProcess[str]:
        call = catalog.by_name[name].call(arguments, root)
        plan = plans[call.plan]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(sample.folder / "home"), "LANG": "C.UTF-8"}
        return subprocess.run(
            [*plan.command, *call.argv], cwd=os.path.join(root.path, call.cwd), check=False, timeout=20,
            env={**environment, **dict(plan.environment)}, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return execute


@pytest.mark.parametrize(("name", "example"), [p for p in ALL if not p[1].hostile], ids=identity)
def test_benign_examples_work(name: str, example: examples.Example, run: Run, sample: samples.Sample) -> None:
    result = run(example.tool, dict(example.arguments))
    assert (result.returncode, result.stderr) == (example.exit_code, "")
    assert example.expect in result.stdout
    assert not sample.ran.exists()


@pytest.mark.parametrize(("name", "example"), [p for p in ALL if p[1].hostile], ids=identity)
def test_hostile_examples_do_nothing(
    name: str, example: examples.Example, run: Run, sample: samples.Sample
) -> None:
    before = sample.snapshot()
    try:
        result = run(example.tool, dict(example.arguments))
        shown = result.stdout + result.stderr
    except ArgumentRefused as refusal:
        shown = f"{refusal.message} {refusal.remedy}"
    assert samples.MARKER not in shown
    assert "root:x:0" not in shown
    assert not sample.ran.exists()
    assert sample.snapshot() == before


def test_every_tool_of_a_preset_has_both_kinds_of_examples() -> None:
    for name in preset.names():
        found = examples.examples(name)
        for tool in preset.load(name).tools:
            assert {example.hostile for example in found if example.tool == tool} == {False, True}


# Positive controls: without the preset's words and variables, the same sample does its harm.


@pytest.mark.parametrize(
    "careless",
    [
        ["status"],
        ["diff"],
        ["-c", "diff.external=", "log", "-p", "-1", "--ext-diff"],
        ["blame", "README.md"],
        ["show", "--textconv", "HEAD:README.md"],
        ["grep", "-O./canary", "hello"],
    ],
    ids=lambda words: words[-1],
)
def test_the_sample_runs_its_canary_for_a_careless_reader(careless: list[str], tmp_path: Path) -> None:
    sample = samples.build(tmp_path)
    sample.git(*careless, hostile=True)
    assert sample.ran.exists()


def test_the_sample_notices_reading_and_writing(sample: samples.Sample) -> None:
    before = sample.snapshot()
    outside = str(sample.folder / "outside" / "secret.txt")
    result = sample.git(
        "--no-pager", "diff", "--no-ext-diff", "--no-index", "/dev/null", outside, hostile=True
    )
    assert samples.MARKER in result.stdout
    written = sample.root / "written"
    sample.git("log", f"--output={written}", hostile=True)
    assert sample.snapshot() != before
    written.unlink()
    sample.ran.unlink(missing_ok=True)


def test_a_missing_object_is_not_fetched(tmp_path: Path) -> None:
    """A promisor remote makes git run `remote.*.uploadpack` or ext:: while it only reads."""
    sample = samples.build(tmp_path)
    blob = sample.git("-c", "core.fsmonitor=false", "rev-parse", "HEAD:src/app.py").stdout.strip()
    (sample.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        **preset.load("git-read").tools["git_show"].set_env,
    }
    for extra, harm in (
        (environment, False),
        ({"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}, True),
    ):
        subprocess.run(
            ["git", "--no-pager", "show", "--no-ext-diff", "--no-textconv", "HEAD:src/app.py"], cwd=sample.root,
            env=extra, check=False, capture_output=True, timeout=20, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert sample.ran.exists() is harm
