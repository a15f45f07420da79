"""The documents speak of things that exist: tests and cases that prove promises, rungs, links, verbs, scripts.

And the other way round: every rung and every case of the battery stands in them.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from runner.cli import VERBS
from sandbox import ladder
from sandbox.battery import registry

HERE = Path(__file__).resolve().parent.parent
TRUST = (HERE / "docs" / "trust.md").read_text("utf-8")
DOCUMENTS = [*HERE.glob("*.md"), *(HERE / "docs").rglob("*.md")]
CASES = [case.id for case in registry.CASES]
ID = re.compile(r"[A-Z]+-\d+")
CASE = re.compile(r"`([A-Z]{2}-\d{2}(?:-\w+)?)`")
TEST = re.compile(r"`([^`:]*)::(\w+)`")
# Files whose tests run on every rung to which a machine can be brought.
ON_EVERY_RUNG = (
    "live/test_rungs",
    "live/test_complaints",
    "end_to_end/test_denied",
    "end_to_end/test_complaints",
)
DOES_NOT_APPLY = "does not apply"


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in found)


def section(title: str) -> str:
    """The text below a heading of the second level."""
    return TRUST.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The cells of the table in a section, without its two head lines."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def proofs(text: str) -> list[tuple[str, str]]:
    """(file, test) of the tests that a cell names; a file that is left out is the one before."""
    found, path = [], ""
    for place, function in TEST.findall(text):
        path = place or path
        found.append((path, function))
    return found


def means(named: str, case: str) -> bool:
    """A bare number stands for all cases that begin with it."""
    return case == named or case.startswith(f"{named}-")


def below_the_usual(rungs: str) -> bool:
    """Whether a promise is said to hold on a rung below the default floor."""
    weakest = rungs.removeprefix("down to ")
    return weakest not in ladder.NAMES or not ladder.accepts(ladder.DEFAULT_FLOOR, weakest)


PROMISES = rows("Promises")
MET = rows("What users of other sandboxes met")
SHARED = rows("Battery cases of several promises")


def test_tables_are_whole() -> None:
    ids = [row[0] for row in PROMISES]
    assert len(ids) > 70
    assert len(ids) == len(set(ids))
    assert all(ID.fullmatch(name) for name in ids)
    assert len(MET) > 40
    for table, columns in ((PROMISES, 5), (MET, 4), (SHARED, 2)):
        assert [row for row in table if len(row) != columns or not all(row)] == []


@pytest.mark.parametrize("row", PROMISES, ids=lambda row: str(row[0]))
def test_every_promise_names_rungs_and_proofs_that_exist(row: list[str]) -> None:
    name, _, rungs, _, proof = row
    said = re.fullmatch(r"all|(?:down to|all but) ([\w-]+)", rungs)
    assert said, f"{name}: {rungs}"
    assert said[1] is None or said[1] in ladder.NAMES, f"{name}: {rungs}"
    assert proofs(proof), f"{name} has no test"
    exists(name, proof)


@pytest.mark.parametrize("row", PROMISES, ids=lambda row: str(row[0]))
def test_a_promise_for_weaker_rungs_is_proved_there(row: list[str]) -> None:
    """By the battery, by tests that go through the rungs, or by tests of what has nothing to do with a rung."""
    name, _, rungs, _, proof = row
    if below_the_usual(rungs):
        files = {path for path, _ in proofs(proof)}
        apart = [path for path in files if not path.startswith(("live/", "end_to_end/"))]
        assert CASE.search(proof) or apart or files.intersection(ON_EVERY_RUNG), f"{name} on {rungs}"


@pytest.mark.parametrize("row", MET, ids=lambda row: row[0][:30])
def test_what_others_met_is_tried_or_does_not_apply(row: list[str]) -> None:
    what, _, _, proof = row
    if proof != DOES_NOT_APPLY:
        assert proofs(proof) or CASE.search(proof), what
        exists(what, proof)


def exists(what: str, proof: str) -> None:
    """Every test and every case that is named is there."""
    for path, function in proofs(proof):
        file = HERE / "tests" / f"{path}.py"
        assert file.is_file(), f"{what}: {path}"
        assert function in functions(file), f"{what}: {path}::{function}"
    for named in CASE.findall(proof):
        assert any(means(named, case) for case in CASES), f"{what}: no case {named}"


@pytest.mark.parametrize("case", CASES)
def test_every_case_of_the_battery_belongs_to_a_promise(case: str) -> None:
    named = {name for row in PROMISES for name in CASE.findall(row[4])}
    named |= {name for row in SHARED for name in CASE.findall(row[0])}
    assert any(means(name, case) for name in named), f"{case}: no promise in docs/trust.md names it"


def test_shared_cases_name_promises_and_cases_that_exist() -> None:
    known = {row[0] for row in PROMISES}
    for cases, promises in SHARED:
        exists(cases, cases)
        assert CASE.findall(cases), cases
        assert known.issuperset(promises.split(", ")), promises


def test_the_ladder_is_told_in_its_own_words() -> None:
    parts = re.split(r"^### `([\w-]+)`$", section("The ladder"), flags=re.MULTILINE)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert tuple(told) == ladder.NAMES
    for rung in ladder.LADDER:
        found = re.findall(r"^\* (.+?)(?=^\* |^$|\Z)", told[rung.name], re.MULTILINE | re.DOTALL)
        assert tuple(" ".join(item.split()) for item in found) == rung.lost, rung.name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_rung_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text("utf-8")
    named = re.findall(r"\brungs? `([^`]+)`|\bfloor = \"([^\"]+)\"", text)
    assert {name for pair in named for name in pair if name} <= set(ladder.NAMES)


def test_the_decision_and_the_readme_name_every_rung() -> None:
    for path in ("docs/decisions/0005-ladder.md", "README.md"):
        text = (HERE / path).read_text("utf-8")
        assert [name for name in ladder.NAMES if f"`{name}`" not in text] == [], path


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text("utf-8")):
        assert (document.parent / target).exists(), target


def test_the_readme_names_the_two_commands_and_every_verb() -> None:
    readme = (HERE / "README.md").read_text("utf-8")
    assert "./scripts/demo" in readme
    assert "./scripts/test" in readme
    for verb in VERBS:
        assert f"toolcage {verb}" in readme, verb


def test_contributing_names_the_scripts() -> None:
    text = (HERE / "CONTRIBUTING.md").read_text("utf-8")
    for script in ("demo", "test", "check", "bench"):
        assert f"scripts/{script}" in text
        assert (HERE / "scripts" / script).exists()
