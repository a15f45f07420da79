"""Fixtures for tests with a real server process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that a worker of another uid may enter: `root` to be lent, everything else beside it is outside."""
    with tempfile.TemporaryDirectory(prefix="tc-e2e-") as name:
        found = Path(name).resolve()
        found.chmod(0o755)
        (found / "root").mkdir()
        (found / "root").chmod(0o755)
        (found / "root" / "inside.txt").write_text("inside\n")
        (found / "outside.txt").write_text("outside\n")
        os.chmod(found / "root" / "inside.txt", 0o644)
        os.chmod(found / "outside.txt", 0o644)
        yield found
