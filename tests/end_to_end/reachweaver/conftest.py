"""One workspace, and both servers on it, for all tests of this folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.end_to_end.reachweaver import servers, workspace
from tests.end_to_end.reachweaver.servers import Server
from tests.end_to_end.reachweaver.workspace import Workspace


class Both(NamedTuple):
    """The two servers, and the workspace that is the root of both."""

    original: Server
    toolcage: Server
    place: Workspace


@pytest.fixture(scope="package")
def both() -> Iterator[Both]:
    with tempfile.TemporaryDirectory(prefix="tc-reachweaver-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        place = workspace.make(folder / "workspace")
        policy = servers.write_policy(folder / "policy.toml")
        started = Both(servers.original(place.folder), servers.toolcage(policy, place.folder), place)
        yield started
        for server in (started.original, started.toolcage):
            server.end()
            assert server.process.returncode == 0
