from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from runner.redaction import engine
from runner.redaction.engine import WITHHELD, WITHHELD_TEXT, Redactor
from runner.redaction.values import SecretValue
from tests.runner.redaction.tokens import drawn, github, private_key

PLAIN = Redactor(())
SECRET = 'p@ss/w0rd "x"\\é&zntOGN2D'
KNOWN = Redactor((SecretValue("DB", SECRET), SecretValue("API", "k4o9pM324jHOoPWvMmgG")))


def test_private_keys_whole_truncated_and_escaped() -> None:
    whole = private_key()
    assert PLAIN.text(f"a\n{whole}\nb") == ("a\n[REDACTED:private-key]\nb", {"private-key": 1})
    truncated = whole[: len(whole) // 2]
    assert PLAIN.text(f"a\n{truncated}")[0] == "a\n[REDACTED:private-key]"
    escaped = whole.replace("\n", "\\n")
    assert PLAIN.text(f'k = "{escaped}" end')[0] == 'k = "[REDACTED:private-key]" end'
    quoted = "> " + whole.replace("\n", "\n> ")
    assert PLAIN.text(quoted)[0] == "> [REDACTED:private-key]"
    public = whole.replace("RSA PRIVATE", "PUBLIC")
    mention = 'looks for "-----BEGIN RSA PRIVATE KEY-----" at the start of the file.\nSee the manual.'
    for text in (public, mention):
        assert PLAIN.text(text) == (text, {})


@pytest.mark.parametrize(
    "template",
    [
        "{}", "DB_PASSWORD={}", 'export DB_PASSWORD="{}"', "password: {}\n", '{{"password": "{}"}}', '{{\\"password\\":\\"{}\\"}}',
        "--password {} --verbose", "--password={}", "X-Api-Key: {}", "https://user:{}@host/x", "postgres://:{}@db:5432/app",
        "Server=db;Password={};Encrypt=true", "- name: DB_PASSWORD\n  value: {}\n", "<password>{}</password>",
        "token%3D{}", "curl -u admin:{} https://x", '"name":"API_TOKEN","value":"{}"', "Authorization: Bearer {}",
        "?access_token={}&x=1", "//registry/:_authToken={}",
    ],
)  # fmt: skip
def test_values_beside_secret_names(template: str) -> None:
    secret = "a7Kq2" + drawn("alnum", 20)
    if template == "{}":
        assert PLAIN.text(secret)[0] == secret  # the control: without a name this value has no form
        return
    out, counts = PLAIN.text("before " + template.format(secret) + " after")
    if template.startswith("DB_PASSWORD"):
        out, counts = PLAIN.text(template.format(secret))
    assert secret not in out
    assert sum(counts.values()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096", "session: tuesday", "password: null", "password: true", "password: <your password>", "password: ${DB_PASSWORD}",
        "password=$DB_PASSWORD", "token: ${{ secrets.GITHUB_TOKEN }}", 'token = os.environ["TOKEN"]', "abcd-1234-efgh-5678",
        "password = get_password(user)", "def login(user: str, password: str) -> None:", "CACHE_KEY=build-cache-linux-x64-release",
        '{"NextToken": "jqcRddfuwHQmmPYUFpUbt5RsToqgufGtWInxoHl0WNGi"}', "commit 6619981b9f77737fafd4269a9e6c7184a2d27985",
        "password=[REDACTED]", "AKIAIOSFODNN7EXAMPLE", "sk-learn-something-with-a-long-name-in-css", "3bbf2b82-a9aa-4f3f-8c1c-c6356e4bd4e6",
        "https://example.com:8443/path@v2/x?key=name", "PASSWORD_MIN_LENGTH=12", "secret_path=/run/secrets/db1", "if password == confirm2:",
        "Bearer <token>", "the password is wrong", "tests/test_auth.py::test_token_0 PASSED",
    ],
)  # fmt: skip
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert PLAIN.text(text) == (text, {})


def test_known_values_in_every_common_form() -> None:
    raw = SECRET.encode()
    forms = [
        SECRET, json.dumps(SECRET)[1:-1], json.dumps(SECRET, ensure_ascii=False)[1:-1], json.dumps(json.dumps(SECRET))[3:-3],
        quote(SECRET, safe=""), quote(SECRET), raw.hex(), raw.hex().upper(), repr(SECRET)[1:-1],
    ]  # fmt: skip
    for shift in range(3):
        forms += [
            base64.b64encode(b"x" * shift + raw).decode(),
            base64.urlsafe_b64encode(b"x" * shift + raw + b"yz").decode(),
        ]
    for form in forms:
        out, counts = KNOWN.text(f"| {form} |")
        assert counts.get("secret-value") == 1, form
        assert len(out) <= len("|  |") + len("[REDACTED:secret-value]") + 6, (form, out)
        assert PLAIN.text(f"| {form} |")[0] == f"| {form} |"  # the control: only knowing it hides it


def test_splits_by_escapes_and_invisible_characters_do_not_help() -> None:
    secret = github()
    for split in ("\x1b[0m", "\u200b", "\ufeff", "\x01", "\x1b[38;5;1m\x1b[1m", "\u00ad"):
        text = "\x1b[32m" + secret[:9] + split + secret[9:20] + split + secret[20:] + "\x1b[0m end"
        assert PLAIN.text(text)[0] == "\x1b[32m[REDACTED:github-token]\x1b[0m end"
    odd = Redactor((SecretValue("ODD", "odd\\x41\u200bvalue-1"),))
    assert odd.text("> odd\\x41\u200bvalue-1 <")[0] == "> [REDACTED:secret-value] <"
    value = "k4o9pM324jHOoPWvMmgG"
    assert KNOWN.text(value[:5] + "\x1b[0m" + value[5:])[0] == "[REDACTED:secret-value]"
    overstruck = "".join(f"{char}\b{char}" for char in secret)
    assert PLAIN.text(overstruck)[0] == "g\b[REDACTED:github-token]"
    escaped = "".join(f"\\u{ord(char):04x}" for char in secret)
    assert PLAIN.text(f'"{escaped}"')[0] == '"[REDACTED:github-token]"'
    link = f"\x1b]8;;https://x/?t={secret}\x07text\x1b]8;;\x07"
    assert secret not in PLAIN.text(link)[0]


def test_json_strings_keys_and_pairs() -> None:
    secret = github()
    document = {
        "password": "hunter2", "nested": [{"name": "DB_PASSWORD", "value": "letmein"}], secret: 1, "text": f"see {secret}",
        "pin": {"passcode": 123456}, "max_tokens": 4096, "ok": [None, True, 1.5, "plain"], "inner": json.dumps({"password": "letmein"}),
    }  # fmt: skip
    before = json.dumps(document)
    out, counts = PLAIN.value(document)
    assert json.dumps(document) == before  # what was given is not changed
    assert out == {
        "password": "[REDACTED:password]",
        "nested": [{"name": "DB_PASSWORD", "value": "[REDACTED:password]"}],
        "[REDACTED:github-token]": 1,
        "text": "see [REDACTED:github-token]",
        "pin": {"passcode": "[REDACTED:password]"},
        "max_tokens": 4096,
        "ok": [None, True, 1.5, "plain"],
        "inner": '{"password": "[REDACTED:password]"}',
    }
    assert counts == {"password": 4, "github-token": 2}
    assert PLAIN.value(out) == (out, {})


def test_two_hidden_keys_stay_two_members() -> None:
    out, _ = PLAIN.value({github(1): "a", github(2): "b"})
    assert out == {"[REDACTED:github-token]": "a", "[REDACTED:github-token]#2": "b"}


def test_strings_of_a_document_do_not_join() -> None:
    secret = github()
    halves = [secret[:15], secret[15:]]
    assert PLAIN.value(halves) == (halves, {})  # the control for the separator: neither half has the form
    assert PLAIN.text("".join(halves))[1] == {"github-token": 1}


def test_exemptions_cover_kinds_and_names_but_never_known_values() -> None:
    text = f"{github()} deploy_token=a8Kq2Zx9LmP4vT7wQ1 k4o9pM324jHOoPWvMmgG"
    exempt = KNOWN.exempting(frozenset({"github-token", "deploy_token", "secret-value"}))
    assert KNOWN.text(text)[1] == {"github-token": 1, "token": 1, "secret-value": 1}
    assert exempt.text(text)[1] == {"secret-value": 1}
    assert KNOWN.exempting(frozenset()) is KNOWN


def test_withheld_on_a_spent_budget_an_error_and_bad_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    flood = "SK0" * 80_000
    assert PLAIN.text(flood) == (WITHHELD_TEXT, {WITHHELD: 1})
    assert PLAIN.text(WITHHELD_TEXT) == (WITHHELD_TEXT, {})
    deep: object = "x"
    for _ in range(70):
        deep = [deep]
    assert PLAIN.value(deep) == (WITHHELD_TEXT, {WITHHELD: 1})
    assert PLAIN.value([0] * 200_001)[1] == {WITHHELD: 1}
    assert PLAIN.value({"a": b"bytes"})[1] == {WITHHELD: 1}
    monkeypatch.setattr(engine, "MAX_BYTES", 10)
    assert PLAIN.text("01234567890")[1] == {WITHHELD: 1}
    assert PLAIN.text("0123456789") == ("0123456789", {})


def test_repr_tells_no_secret() -> None:
    assert "k4o9" not in repr(KNOWN) + repr(KNOWN._values)


def test_importing_compiles_no_rules() -> None:
    code = "import runner.redaction.engine as e; r = e.Redactor(()); assert r._finders is None; r.text('x'); assert r._finders"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
