"""What was looked at when the server started is what a worker gets, or nothing: swaps of folders lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.types import Outcome
from tests.live.cage import Cage, cage, outside, said

READ = "print(open('word').read())"


@pytest.fixture
def swapped(place: Path) -> Iterator[tuple[Path, Path, Cage]]:
    """A lent folder that says "lent", another one that says "foreign", and a cage for the first."""
    lent, foreign = place / "lent", place / "foreign"
    for folder in (lent, foreign):
        folder.mkdir()
        (folder / "word").write_text(folder.name)
    with cage(lent) as made:
        assert said(made.call("python", READ)) == "lent"
        yield lent, foreign, made
    for folder in (lent, foreign, place / "moved"):
        if folder.is_symlink():
            folder.unlink()
        elif folder.is_dir():
            (folder / "word").unlink()
            folder.rmdir()


def never_foreign(outcome: Outcome) -> None:
    """The folder of the start-up, or a step by name that failed; never another folder."""
    assert b"foreign" not in outcome.stdout
    if outcome.kind == "exited":
        assert said(outcome) == "lent"
    else:
        assert (outcome.kind, outcome.step) == ("setup_failed", "mounts"), outcome


def test_the_root_is_swapped_for_a_link(swapped: tuple[Path, Path, Cage], place: Path) -> None:
    lent, foreign, made = swapped
    lent.rename(place / "moved")
    lent.symlink_to(foreign)
    assert outside(f"import os\nos.chdir({str(lent)!r})\n{READ}") == "foreign"
    never_foreign(made.call("python", READ))


def test_the_root_is_swapped_for_another_folder(swapped: tuple[Path, Path, Cage], place: Path) -> None:
    lent, foreign, made = swapped
    lent.rename(place / "moved")
    foreign.rename(lent)
    assert outside(f"import os\nos.chdir({str(lent)!r})\n{READ}") == "foreign"
    never_foreign(made.call("python", READ))
    lent.rename(foreign)


def test_a_parent_of_the_root_is_swapped(place: Path) -> None:
    for name in ("one", "two"):
        (place / name / "root").mkdir(parents=True)
        (place / name / "root" / "word").write_text("lent" if name == "one" else "foreign")
    with cage(place / "one" / "root") as made:
        (place / "one").rename(place / "moved")
        (place / "one").symlink_to("two")
        never_foreign(made.call("python", READ))
    (place / "one").unlink()
    for name in ("two", "moved"):
        (place / name / "root" / "word").unlink()
        (place / name / "root").rmdir()
        (place / name).rmdir()


def test_the_working_folder_is_looked_up_inside(place: Path) -> None:
    link = place / "root" / "sub"
    link.symlink_to("../foreign2")
    (place / "foreign2").mkdir()
    (place / "foreign2" / "word").write_text("foreign")
    with cage(place / "root") as made:
        outcome = made.call("python", READ, cwd="sub")
        assert (outcome.kind, outcome.step) == ("setup_failed", "cwd")
    link.unlink()
    (place / "foreign2" / "word").unlink()
    (place / "foreign2").rmdir()
