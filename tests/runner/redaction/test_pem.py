"""Private keys as tools really show them: numbered, blamed, quoted, cut at either end."""

from __future__ import annotations

import base64
import random

import pytest

from runner.redaction.engine import Redactor

BODY = base64.b64encode(random.Random(7).randbytes(1190)).decode()
LINES = [BODY[at : at + 64] for at in range(0, len(BODY), 64)]
KEY = ["-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"]
SHAPES = {
    "plain": KEY,
    "rg": [f"./k.pem:{n}:{line}" for n, line in enumerate(KEY, 1)],
    "rg context": [f"./k.pem-{n}-{line}" for n, line in enumerate(KEY, 1)],
    "blame": [f"^24bbfbc (somebody 2026-11-30 {n:3}) {line}" for n, line in enumerate(KEY, 1)],
    "diff": [f"+{line}" for line in KEY],
    "without its first line": KEY[1:],
    "its last lines": KEY[8:],
    "without its last line": KEY[:-1],
    "numbered": [f"{n:6}\t{line}" for n, line in enumerate(KEY, 1)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_line_of_the_key_is_left(shape: str) -> None:
    text, counts = Redactor(()).text("\n".join(["before it", *SHAPES[shape], "after it", ""]))
    assert not [line for line in LINES if line in text]
    assert "before it" in text
    if shape != "without its last line":  # there, what follows could be a line of the key
        assert "after it" in text
    assert counts


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY----- is how it starts\nand then\nsome words\n",
        "the footer is -----END PRIVATE KEY-----\n",
        "abc\n-----END PRIVATE KEY-----\n",
    ],
)
def test_words_about_keys_stay(text: str) -> None:
    assert Redactor(()).text(text) == (text, {})
