"""Every example of every preset, in real cages: benign ones work, hostile ones come to nothing.

The sample repository's author is hostile. Besides what the presets neutralise by flags and configuration, it carries
traps that git has no switch for (filter.<x>.clean, blame.ignoreRevsFile, include.path): only the cage stops those.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from policies import examples, preset
from policies.load import load
from runner.catalog.arguments import ArgumentRefused
from runner.catalog.catalog import Catalog
from runner.catalog.from_policy import from_policy
from sandbox.root import Root, open_root
from sandbox.types import Outcome
from tests.live.cage import Cage
from tests.policies import sample as samples

ALL = [(name, example) for name in preset.names() for example in examples.examples(name)]
ONLY_THE_CAGE = """
[filter "evil"]
\tclean = {canary}
\tsmudge = {canary}
\tprocess = {canary}
[blame]
\tignoreRevsFile = {outside}
[include]
\tpath = {outside}
"""


@dataclass(frozen=True)
class Stage:
    """Real cages for all tools of all presets over one sample."""

    sample: samples.Sample
    root: Root
    catalog: Catalog
    cage: Cage

    def run(self, tool: str, arguments: dict[str, object]) -> Outcome:
        """One call, as a client's would be."""
        call = self.catalog.by_name[tool].call(arguments, self.root)
        outcome: Outcome = self.cage.run(lambda supervisor: supervisor.run(call))
        return outcome


def stage(extra: str) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="tc-presets-") as name:
        place = Path(name).resolve()
        place.chmod(0o755)
        (place / "sample").mkdir()
        sample = samples.build(place / "sample")
        if extra:
            outside = place / "sample/outside/secret.txt"
            with (sample.root / ".git/config").open("a") as file:
                file.write(extra.format(canary=sample.canary, outside=outside))
            (sample.root / ".gitattributes").write_text("*.md diff=evil filter=evil\n*.txt filter=evil\n")
        policy_file = place / "policy.toml"
        names = ", ".join(f'"{preset_name}"' for preset_name in preset.names())
        policy_file.write_text(f'presets = [{names}]\n[server]\nname = "test"\nroot = "{sample.root}"\n')
        policy_file.chmod(0o600)
        policy = load(
            policy_file, root_override=None, environment={"PATH": os.defpath, "HOME": "/nonexistent"}
        )
        root = open_root(policy.root)
        tools, profiles = from_policy(policy, root)
        made = Cage(profiles)
        try:
            yield Stage(sample, root, Catalog(tools), made)
        finally:
            made.close()
            root.close()


@pytest.fixture(scope="module")
def ordinary() -> Iterator[Stage]:
    yield from stage("")


@pytest.fixture(scope="module")
def worst() -> Iterator[Stage]:
    yield from stage(ONLY_THE_CAGE)


def identity(value: object) -> str:
    return f"{value.tool}-{dict(value.arguments)}"[:80] if isinstance(value, examples.Example) else str(value)


@pytest.mark.parametrize(("name", "example"), [p for p in ALL if not p[1].hostile], ids=identity)
def test_benign_example_works(name: str, example: examples.Example, ordinary: Stage) -> None:
    outcome = ordinary.run(example.tool, dict(example.arguments))
    assert (outcome.kind, outcome.exit_code, outcome.stderr) == ("exited", example.exit_code, b"")
    assert example.expect in outcome.stdout.decode()


def harmless(stage: Stage, example: examples.Example) -> None:
    """Refused, or run without an effect."""
    before = stage.sample.snapshot()
    try:
        outcome = stage.run(example.tool, dict(example.arguments))
        shown = (outcome.stdout + outcome.stderr).decode(errors="replace")
        assert outcome.kind != "unknown"
    except ArgumentRefused as refusal:
        shown = f"{refusal.message} {refusal.remedy}"
    assert samples.MARKER not in shown
    assert "root:x:0" not in shown
    assert not stage.sample.ran.exists()
    assert stage.sample.snapshot() == before


@pytest.mark.parametrize(("name", "example"), [p for p in ALL if p[1].hostile], ids=identity)
def test_hostile_example_does_nothing(name: str, example: examples.Example, ordinary: Stage) -> None:
    harmless(ordinary, example)


@pytest.mark.parametrize(("name", "example"), [p for p in ALL if p[0] == "git-read"], ids=identity)
def test_git_does_nothing_for_the_worst_repository(
    name: str, example: examples.Example, worst: Stage
) -> None:
    harmless(worst, example)


def test_outside_the_cage_the_worst_repository_does_its_harm(worst: Stage) -> None:
    (worst.sample.root / "README.md").touch()
    worst.sample.git("status", hostile=True)
    assert worst.sample.ran.exists()
    worst.sample.ran.unlink()
    shown = worst.sample.git("blame", "README.md", hostile=True)
    assert samples.MARKER in shown.stdout + shown.stderr
