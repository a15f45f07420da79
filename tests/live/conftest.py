"""Fixtures for tests in real cages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.cage import Cage, cage


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    """A folder that a worker of another uid may enter: `root` to be lent, everything else beside it is outside."""
    with tempfile.TemporaryDirectory(prefix="tc-live-") as name:
        found = Path(name).resolve()
        found.chmod(0o755)
        (found / "root").mkdir()
        (found / "root" / "inside.txt").write_text("inside\n")
        (found / "outside.txt").write_text("outside\n")
        yield found


@pytest.fixture(scope="session")
def held(place: Path) -> Iterator[Cage]:
    """The strictest cage."""
    with cage(place / "root") as made:
        yield made


@pytest.fixture(scope="session")
def many(place: Path) -> Iterator[Cage]:
    """A cage whose tool may start processes."""
    with cage(place / "root", processes="any") as made:
        yield made
