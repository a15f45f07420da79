"""Every rule's own examples: what it hides goes, what it leaves stays."""

from __future__ import annotations

import re

import pytest

from runner.redaction.engine import Redactor
from runner.redaction.rule import CHARSETS, Rule
from runner.redaction.rules import TOKEN_RULES
from runner.redaction.shapes import SHAPES
from runner.redaction.structures import STRUCTURES, Structure
from tests.runner.redaction.tokens import made, token

PLAIN = Redactor(())
ALL: list[Rule | Structure] = [*TOKEN_RULES, *STRUCTURES]
KINDS_AT_LEAST = 115


def test_rules_are_many_and_each_says_what_it_is() -> None:
    assert len({rule.id for rule in ALL}) == len(ALL)
    assert len({rule.kind for rule in TOKEN_RULES}) >= KINDS_AT_LEAST
    for rule in ALL:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.kind)
        assert len(rule.kind) <= 40  # visible.py cuts no placeholder up to this length
        assert rule.why.endswith(".")
        assert rule.leaves
    for rule in TOKEN_RULES:
        assert rule.charset in CHARSETS
        assert rule.length >= rule.least, rule.id
    assert {shape.id for shape in STRUCTURES if shape.anchors} == set(SHAPES)


@pytest.mark.parametrize("rule", TOKEN_RULES, ids=lambda rule: rule.id)
def test_a_rule_hides_its_tokens(rule: Rule) -> None:
    for anchor in rule.anchors:
        for seed in (7, 8, 9):
            secret = token(rule, anchor, seed)
            for text in (
                f"using {secret} now\n",
                f'"{secret}"',
                f"<{secret}>",
                f"a\\n{secret}\\nb",
                f"({secret}).",
            ):
                out, counts = PLAIN.text(text)
                assert secret[-12:] not in out, (text, out)
                assert sum(counts.values()) == 1, (text, out)
                assert rule.kind in counts, (text, out)


@pytest.mark.parametrize("rule", TOKEN_RULES, ids=lambda rule: rule.id)
def test_a_rule_leaves_its_anchors_and_its_counterexamples(rule: Rule) -> None:
    for template in (*rule.leaves, *rule.anchors):
        text = f"using {made(template)} now\n"
        assert PLAIN.text(text) == (text, {})


@pytest.mark.parametrize("shape", STRUCTURES, ids=lambda shape: shape.id)
def test_a_structure_hides_and_leaves_its_examples(shape: Structure) -> None:
    for template in shape.hides:
        text = made(template)
        secrets = re.findall(r"\[\[(.*?)\]\]", text, re.DOTALL)
        out, counts = PLAIN.text(text.replace("[[", "").replace("]]", ""))
        expected = re.escape(re.sub(r"\[\[.*?\]\]", "\0", text, flags=re.DOTALL))
        assert re.fullmatch(expected.replace("\0", r"\[REDACTED:[a-z-]+\]").replace("\x00", ""), out), (
            template,
            out,
        )
        assert sum(counts.values()) == len(secrets)
    for template in shape.leaves:
        text = made(template)
        assert PLAIN.text(text) == (text, {})
