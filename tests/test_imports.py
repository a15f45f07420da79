"""The import table and the one-place rules, read from the source itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent
PACKAGES = ("runner", "sandbox", "policies")
FORBIDDEN = {"sandbox": {"runner", "policies"}, "policies": {"runner"}}
POLICIES_MAY = {"sandbox.types", "sandbox.errors", "sandbox.root"}
# Modules that the launcher and the workers load: the standard library and each other, nothing else.
IN_THE_WORKER = (
    "launcher",
    "slots",
    "worker",
    "tool",
    "collect",
    "sample",
    "meter",
    "plan",
    "wire",
    "syscalls",
    "abi",
    "types",
    "errors",
    "ladder",
    "probing",
    "tree",
    "procfs",
    "scratch",
    "groups",
    "division",
    "cgroupfs",
    "denials",
    "judging",
    "filecalls",
)
STDLIB_ONLY = tuple(f"sandbox/{name}.py" for name in IN_THE_WORKER)
MAX_LINES, MAX_FUNCTION = 300, 40
ONE_PLACE = {  # name -> files that may use it
    "ctypes": {"sandbox/syscalls.py"},
    "os.fork": {"sandbox/tool.py"},
    "syscalls.spawn": {"sandbox/launcher.py", "sandbox/slots.py", "sandbox/probing.py"},
    "os.environ": {"runner/config.py"},
    "os.getenv": set(),
    "subprocess": set(),
    "os.posix_spawn": {"sandbox/spawn.py"},
    "os.system": set(),
    "os.execve": {"sandbox/tool.py"},
}


def files() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((HERE / package).rglob("*.py"))]


def name_of(path: Path) -> str:
    return str(path.relative_to(HERE))


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def uses(tree: ast.AST) -> Iterator[str]:
    yield from imports(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_module(path: Path) -> None:
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    name, package = name_of(path), path.relative_to(HERE).parts[0]
    assert len(source.splitlines()) <= MAX_LINES
    assert ast.get_docstring(tree), "no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < MAX_FUNCTION, node.name
    for imported in imports(tree):
        top = imported.split(".")[0]
        assert top not in FORBIDDEN.get(package, set()), imported
        if package == "policies" and top == "sandbox":
            assert any(imported == ok or imported.startswith(ok + ".") for ok in POLICIES_MAY), imported
    for used in uses(tree):
        for rule, allowed in ONE_PLACE.items():
            if used == rule or used.startswith(rule + "."):
                assert name in allowed, f"{used} belongs into {sorted(allowed)}"


@pytest.mark.parametrize(
    "path", [p for p in files() if name_of(p) in STDLIB_ONLY or "sandbox/steps" in str(p)], ids=name_of
)
def test_worker_module_needs_only_the_standard_library(path: Path) -> None:
    import sys

    for imported in imports(ast.parse(path.read_text("utf-8"))):
        top = imported.split(".")[0]
        assert top == "sandbox" or top in sys.stdlib_module_names, imported
        if top == "sandbox":
            part = imported.split(".")[1]
            assert part in (*IN_THE_WORKER, "steps"), (
                f"{imported} would drag the front's modules into a worker"
            )


def test_prints_only_in_the_command_line() -> None:
    for path in files():
        if name_of(path).startswith("runner/cli/"):
            continue
        calls = [
            n.func.id
            for n in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        ]
        assert "print" not in calls, name_of(path)
