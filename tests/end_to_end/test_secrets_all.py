"""A token of every kind, printed by a real tool: none reaches a client, in either era, on any way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.mcp import eras
from runner.redaction.rules import TOKEN_RULES
from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Server
from tests.runner.redaction.tokens import token

READ = "import json, sys; t = open(sys.argv[2]).read().splitlines(); "
WAYS = {
    "as_text": python(READ + r"print('\n'.join(t))", "{path}", params=tools.PATH),
    "as_json": python(
        READ + "print(json.dumps({'list': t, 'names': {x: 1 for x in t}}))",
        "{path}",
        params=tools.PATH,
        output="json",
    ),
    "as_error": python(READ + r"sys.exit('\n'.join(t))", "{path}", params=tools.PATH),
}


@pytest.mark.parametrize("revision", ["2025-11-25", eras.MODERN])
def test_no_kind_of_token_reaches_a_client(place: Path, revision: str) -> None:
    found = {rule.id: token(rule, rule.anchors[0], 11) for rule in TOKEN_RULES}
    names = {rule.id: rule.words[0] if rule.words else "using" for rule in TOKEN_RULES}
    log = place / "log"
    with Server(write_policy(place, WAYS), "--log-json", str(log)) as server:
        if revision != eras.MODERN:
            server.shake(revision)
        for start in range(0, len(TOKEN_RULES), 20):
            some = list(found)[start : start + 20]
            (place / "root" / "tokens").write_text("".join(f"{names[n]} {found[n]} now\n" for n in some))
            for way in WAYS:
                result = server.call(way, {"path": "tokens"})
                assert "[REDACTED:" in result.text, (way, some)
        wire = server.received.decode()
        plain = json.dumps([json.loads(line) for line in wire.splitlines()], ensure_ascii=False)
        for where in (wire, plain, server.stderr(), log.read_text()):
            assert [name for name, secret in found.items() if secret in where] == []
