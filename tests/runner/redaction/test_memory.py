"""Checking a text takes some times its size in memory, whatever it is made of. Each in a process of its own: peaks stay."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """\
import resource, sys
from runner import visible
from runner.redaction.engine import Redactor
from runner.redaction.values import SecretValue
redactor = Redactor((SecretValue("A", "k4o9pM324jHOoPWvMmgG"),))
redactor.text("warm")
unit, size = eval(sys.argv[1]), 2 << 20
text = unit * (size // len(unit))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
shown, _ = redactor.text(text)
visible.joined_repeats(visible.visible(visible.last_frames(shown)))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 // size)
"""
MOST = 60  # bytes for one of the text; measured: 4 to 45, before it was up to 140


@pytest.mark.parametrize(
    "unit",
    [
        "x\n",
        "\0",
        "a\x01",
        "\0\x01",
        "a\0",
        "%41",
        "\\u0041",
        "eyJ",
        "://",
        "pass ",
        "\n",
        "\r\n",
        "\x08",
        "\x1b[0m",
        "é",
    ],
)
def test_memory_grows_with_the_text_and_not_with_what_it_is_made_of(unit: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, repr(unit)], capture_output=True, text=True, timeout=120, check=True
    )
    assert int(done.stdout) <= MOST
