"""The tables of the eras, and negotiation."""

from __future__ import annotations

import pytest

from runner.mcp import eras


def test_revisions_are_dates_newest_first() -> None:
    assert list(eras.SUPPORTED) == sorted(eras.SUPPORTED, reverse=True)
    assert eras.SUPPORTED[0] == eras.MODERN


@pytest.mark.parametrize("revision", eras.LEGACY)
def test_a_legacy_revision_is_echoed(revision: str) -> None:
    assert eras.negotiate(revision) == revision


@pytest.mark.parametrize("revision", ["2026-07-28", "2099-01-01", "1.0", "", "2025-11-25 "])
def test_any_other_version_gets_the_newest_legacy_one(revision: str) -> None:
    assert eras.negotiate(revision) == "2025-11-25"


def test_modern_removes_the_handshake_and_nothing_else() -> None:
    assert set(eras.LEGACY_METHODS) - set(eras.MODERN_METHODS) == {"initialize", "ping"}
    assert set(eras.MODERN_METHODS) - set(eras.LEGACY_METHODS) == {"server/discover"}
    assert set(eras.BEFORE_HANDSHAKE) == {"initialize", "ping"}
