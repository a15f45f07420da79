"""A secret that a tool prints reaches neither the client, on whatever way, nor a log. How many were masked is told."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.mcp import eras
from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Server
from tests.runner.mcp.schema_check import modern

VALUE = "correct-horse/battery+staple=9"  # of the variable SERVICE_TOKEN: no form, known only by its value
FILED = "kX-from-a-file-7731-zz"  # from a file that the policy names
GITHUB = "ghp_" + "R4nd0mTk7QpLz8Xw2VbN5mKj3HgF6dSa9QeW"  # in two parts, so that no scanner finds it here
KEY_BODY = base64.b64encode(hashlib.sha512(b"made up").digest()).decode()
KEY = f"-----BEGIN PRIVATE KEY-----\n{KEY_BODY}\n-----END PRIVATE KEY-----"
SECRETS = {"secret-value": VALUE, "github-token": GITHUB, "private-key": KEY, "filed": FILED}
NEVER = (VALUE, FILED, GITHUB, KEY_BODY, base64.b64encode(f"x:{VALUE}".encode()).decode()[4:-4])


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    """The secrets lie in files of the root, so that only what tools print can tell them."""
    (place / "filed").write_text(FILED + "\n")
    for name, secret in SECRETS.items():
        (place / "root" / name).write_text(f"before {secret} after\n")
    (place / "root" / "all").write_text("\n".join(SECRETS.values()))
    code = "import json, sys; t = open(sys.argv[2]).read(); {}"
    named = {
        name: python(code.format(ending), "{path}", params=tools.PATH, **keys)
        for name, ending, keys in (
            ("as_json", "print(json.dumps({'text': t, t: [t, {'deep': t}]}))", {"output": "json"}),
            ("as_error", "sys.exit(t)", {}),
            ("as_json_error", "print('no json', t); sys.exit(t)", {"output": "json"}),
            ("as_not_json", "print('no json', t)", {"output": "json"}),
            ("as_message", "print('[]'); print(t, file=sys.stderr)", {"output": "json"}),
            (
                "as_base64",
                "import base64; print(base64.b64encode(b'x:' + t.split()[1].encode()).decode())",
                {},
            ),
            ("as_bulk", "[print(n, t) for n in range(2000)]", {}),
            ("in_pieces", "[print(t[:n]) for n in range(len(t))]; print(t)", {}),
        )
    }
    named |= {"echo": tools.ECHO, "read": tools.READ}
    policy = write_policy(place, named, presets=["files"], redact={"files": ["filed"]})
    env = {"SERVICE_TOKEN": VALUE, "SHORT_TOKEN": "ab"}
    with Server(policy, "--log-json", str(place / "log"), env=env) as made:
        yield made


def clean(server: Server, place: Path) -> None:
    """Nothing of a secret in anything that ever came out; the logs say something, but not that."""
    log = (place / "log").read_text()
    assert '"redactions":' in log
    wire = server.received.decode()
    plain = json.dumps([json.loads(line) for line in wire.splitlines()], ensure_ascii=False)
    for secret in NEVER:
        for where in (wire, plain, wire.replace("\\n", "\n"), server.stderr(), log):
            assert secret not in where, secret[:12]


@pytest.mark.parametrize("revision", ["2025-11-25", "2024-11-05", eras.MODERN])
def test_every_secret_on_every_way(server: Server, place: Path, revision: str) -> None:
    if revision != eras.MODERN:
        server.shake(revision)
    ways = ("read", "read_file", "as_json", "as_error", "as_json_error", "as_not_json", "as_message")
    for kind in SECRETS:
        for way in ways:
            result = server.call(way, {"path": kind})
            assert "[REDACTED:" in result.text, (way, kind, result)
            expected = "secret-value" if kind == "filed" else kind
            assert result.meta["redactions"][expected] >= 1, (way, kind)
            if result.structured is not None:
                assert "[REDACTED:" in json.dumps(result.structured)
    assert server.call("read", {"path": "secret-value"}).body == "before [REDACTED:secret-value] after"
    clean(server, place)


def test_the_counts_are_right(server: Server, place: Path) -> None:
    server.shake()
    assert server.call("read", {"path": "all"}).meta["redactions"] == {
        "secret-value": 2, "github-token": 1, "private-key": 1,
    }  # fmt: skip
    document = server.call("as_json", {"path": "github-token"})
    assert document.meta["redactions"] == {"github-token": 4}
    assert "redactions" not in server.call("read", {"path": "inside.txt"}).meta
    server.ping()  # a call is logged after it was answered
    lines = [json.loads(line) for line in (place / "log").read_text().splitlines()]
    assert [line["redactions"] for line in lines] == [4, 4, 0]
    assert [line["tool"] for line in lines] == ["read", "as_json", "read"]
    clean(server, place)


def test_disguises_of_a_known_value(server: Server, place: Path) -> None:
    server.shake()
    encoded = server.call("as_base64", {"path": "secret-value"})
    assert encoded.meta["redactions"]["secret-value"] == 1
    server.call("in_pieces", {"path": "github-token"})
    assert GITHUB.encode() not in server.received
    clean(server, place)


def test_stored_output(server: Server, place: Path) -> None:
    server.shake()
    result = server.call("as_bulk", {"path": "all"})
    found = re.search(r"out_[\w-]{24}", result.text)
    assert found
    for arguments in (
        {},
        {"tail": 20},
        {"grep": "before"},
        {"offset": 5000},
        {"grep": GITHUB},
        {"grep": VALUE[3:20]},
    ):
        page = page_of(server, {"handle": found[0], **arguments})
        assert page
    [contents] = server.ask("resources/read", {"uri": f"toolcage://output/{found[0]}"})["contents"]
    assert contents["text"].count("[REDACTED:github-token]") > 1000
    clean(server, place)


def page_of(server: Server, arguments: dict[str, object]) -> str:
    """The text of a page; grep for a secret finds nothing, because nothing of it was stored."""
    result = server.ask("tools/call", {"name": "read_output", "arguments": arguments})
    assert not result["isError"]
    text: str = result["content"][0]["text"]
    if arguments.get("grep") in (GITHUB, VALUE[3:20]):
        assert "characters 0-0 of 0" in text
    return text


def test_a_secret_in_a_request_is_not_echoed(server: Server, place: Path) -> None:
    """It came from the client, but what answers it may be stored and shown elsewhere."""
    server.shake()
    for secret in (GITHUB, VALUE):
        for arguments in ({secret: 1}, {"path": secret}, {"path": f"../{secret}"}, {"path": [secret]}):
            refused = server.call("read_file", arguments)
            assert refused.is_error
        assert server.call("echo", {"text": secret}).body.startswith("[REDACTED:")
    assert not server.aside
    clean(server, place)


def test_the_environment_of_the_server_is_not_the_tools(place: Path) -> None:
    code = "import os; print(sorted(os.environ), open('/proc/self/environ').read())"
    with Server(write_policy(place, {"look": python(code)}), env={"SERVICE_TOKEN": VALUE}) as server:
        server.shake()
        look = server.call("look")
        assert "SERVICE_TOKEN" not in look.text
        assert "REDACTED" not in look.text
        assert "PATH" in look.text


def test_secrets_that_cannot_be_masked_are_named_at_the_start(server: Server) -> None:
    server.shake()
    server.call("echo", {"text": "x"})
    [line] = [line for line in server.stderr().splitlines() if "SHORT_TOKEN" in line]
    assert "cannot be masked" in line


def test_names_and_values_of_requests_are_not_logged(server: Server, place: Path) -> None:
    server.send(modern("tools/call", 1, name="no_such_tool_4711", arguments={"a": "argument-4711"}))
    assert server.answer(1)["error"]["code"] == -32602
    server.call("echo", {"text": "argument-4711"})
    server.call("read_file", {"path": "argument-4711"})
    for text in (server.stderr(), (place / "log").read_text()):
        assert "4711" not in text
        assert "tool" in text


@pytest.mark.parametrize("before", [*range(470, 510, 8), *range(1970, 2010, 8), 8000])
def test_a_long_line_is_not_cut_before_it_is_searched(place: Path, before: int) -> None:
    """A search that shortened long lines would leave half a secret, which nobody would know."""
    (place / "root" / "bundle.js").write_text(f"needle{'a' * before}'{VALUE}'{'b' * 4000}\n")
    policy = write_policy(place, {}, presets=["search"])
    with Server(policy, env={"SERVICE_TOKEN": VALUE}) as server:
        server.shake()
        found = server.call("search_text", {"pattern": "needle", "path": "bundle.js"})
        assert VALUE[:6] not in found.text, found.text
        assert "bundle.js" in found.text
