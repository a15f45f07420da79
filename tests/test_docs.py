"""The documents speak of things that exist: tests that prove promises, links, verbs, scripts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from runner.cli import VERBS

HERE = Path(__file__).resolve().parent.parent
TRUST = (HERE / "docs" / "trust.md").read_text("utf-8")
ROW = re.compile(r"^\| ([A-Z]+-\d+) \|(.+)\|(.+)\|(.+)\|$", re.MULTILINE)
DOCUMENTS = [*HERE.glob("*.md"), *(HERE / "docs").rglob("*.md")]


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def promises() -> list[tuple[str, str, str]]:
    return [(found[1], found[3].strip(), found[4].strip()) for found in ROW.finditer(TRUST)]


def test_promises_have_ids_of_their_own() -> None:
    ids = [name for name, _, _ in promises()]
    assert len(ids) > 40
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("name", "layer", "proof"), promises(), ids=lambda value: str(value)[:12])
def test_every_promise_names_its_layer_and_a_test_that_exists(name: str, layer: str, proof: str) -> None:
    assert layer
    references = re.findall(r"`([^`]*)::(\w+)`", proof)
    assert references, name
    path = ""
    for place, function in references:
        path = place or path
        assert function in functions(HERE / path), f"{name}: {path}::{function}"


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
