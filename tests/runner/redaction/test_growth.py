"""No input makes redaction slower than its size: the time grows with the length, nothing is out of bounds."""

from __future__ import annotations

import time

import pytest

from runner.redaction.engine import Redactor
from runner.redaction.values import SecretValue
from tests.runner.redaction.adversarial import seeds

SMALL, LARGE = 8_192, 32_768
GROWTH = 6.0  # for four times the size: linear is 4, a square is 16
SECONDS_PER_BYTE = 1 / 400_000
KNOWN = Redactor((SecretValue("A", "aaaaaaaaaaab"), SecretValue("B", "k4o9pM324jHOoPWvMmgG")))


def _seconds(text: str, tries: int = 2) -> float:
    """Processor time of one scan, best of some: other processes do not count."""
    best = 9.0
    for _ in range(tries):
        begun = time.process_time()
        KNOWN.text(text)
        best = min(best, time.process_time() - begun)
    return best


def _repeated(seed: str, length: int) -> str:
    return seed * (length // len(seed) + 1)


@pytest.fixture(scope="module")
def measured() -> dict[str, tuple[float, float]]:
    """Seed -> seconds for SMALL and LARGE. One measure of the large one will do: too large a figure is measured again."""
    KNOWN.text("warm")
    return {seed: (_seconds(_repeated(seed, SMALL)), _seconds(_repeated(seed, LARGE), 1)) for seed in seeds()}


def test_time_grows_with_the_length_of_the_text(measured: dict[str, tuple[float, float]]) -> None:
    assert len(measured) >= 300
    suspects = [seed for seed, (small, large) in measured.items() if large > GROWTH * small and large > 0.02]
    assert [
        seed
        for seed in suspects
        if _seconds(_repeated(seed, 4 * LARGE), 4) > GROWTH * _seconds(_repeated(seed, LARGE), 4)
    ] == []


def test_no_input_is_slower_than_the_bound(measured: dict[str, tuple[float, float]]) -> None:
    slow = [seed for seed, (_, large) in measured.items() if large > LARGE * SECONDS_PER_BYTE]
    assert [seed for seed in slow if _seconds(_repeated(seed, LARGE), 4) > LARGE * SECONDS_PER_BYTE] == []


def test_ordinary_text_is_scanned_fast() -> None:
    line = "2026-01-01T00:00:0{0}Z INFO worker-{0} finished job {0} in 37 ms path=/srv/app/data/{0}.json status=ok\n"
    text = "".join(line.format(number % 10) for number in range(2700))[:262_144]
    KNOWN.text("warm")
    assert KNOWN.text(text)[1] == {}
    assert len(text) / _seconds(text, 4) > 8e6  # measured 35 MB/s; the bound leaves room for a loaded machine


def test_the_measure_sees_a_square() -> None:
    """The control: work that grows with the square of the length is seen as such."""

    def square(length: int) -> float:
        begun = time.process_time()
        sum(1 for _ in range(length // 16) for _ in range(length // 16))
        return time.process_time() - begun

    assert square(LARGE) > GROWTH * square(SMALL)
