"""All rules about tokens, the places whose surroundings are verified by code, and the words of secret names.

Read by the front. Nothing here acts, compiles or holds a secret. A rule never is a regular expression that is
searched: an anchor is found by one multi-literal pass, then one run of a single character class is measured at
that place, which keeps the cost linear on every input.
"""

from __future__ import annotations

from runner.redaction import rules_cloud, rules_code, rules_services
from runner.redaction.rule import Rule
from runner.redaction.structures import STRUCTURES

TOKEN_RULES: tuple[Rule, ...] = (*rules_code.RULES, *rules_cloud.RULES, *rules_services.RULES)

# Anchors whose surroundings are verified by code: see shapes.SHAPES.
SHAPE_ANCHORS: dict[str, tuple[str, ...]] = {shape.id: shape.anchors for shape in STRUCTURES if shape.anchors}

# Lower-case words whose neighbourhood may hold "name = value". One must occur in every secret name (keys.py).
KEY_WORDS: tuple[str, ...] = (
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "auth",
    "cookie",
    "session",
    "bearer",
    "basic",
    "_pat",
    "-pat",
    " pat ",
    "pat:",
    "pat=",
    "pat =",
    'pat"',
    "pat'",
    "pat>",
    "_pw",
    "bindpw",
    "rootpw",
    "psk",
)

# Values that are examples or gaps wherever they occur inside a token.
EXAMPLE_MARKS: tuple[bytes, ...] = (b"example", b"your_", b"your-", b"placeholder", b"xxxxxx", b"123456789")
