from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from runner.redaction import values
from runner.redaction.engine import Redactor
from runner.redaction.values import SecretFileRefused, SecretValue
from tests.runner.redaction.tokens import private_key


def test_environment_by_default_and_by_pattern() -> None:
    environment = {
        "MY_TOKEN": "tok-12345678",
        "api_key": "key-12345678",
        "HOME": "/home/u",
        "WIFI": "wlan-1234567",
        "X": "y",
    }
    assert {v.name for v in values.from_environment((), environment)} == {"MY_TOKEN", "api_key"}
    assert {v.name for v in values.from_environment(("wi*",), environment)} == {"MY_TOKEN", "api_key", "WIFI"}


def test_urls_give_their_password_under_any_name() -> None:
    found = values.from_environment(
        (), {"DATABASE_URL": "postgres://app:s3cr3t-pw@db/app", "PAGE": "https://example.org"}
    )
    assert found == (SecretValue("DATABASE_URL", "s3cr3t-pw"),)


def test_short_common_and_path_values_are_named_not_masked() -> None:
    environment = {
        "A_TOKEN": "1",
        "DB_PASSWORD": "test",
        "SECRET_DIR": "/home/ci/x",
        "B_TOKEN": "postgres",
        "C_TOKEN": "12345678",
        "D_TOKEN": "d3adb33f9",
    }
    found = values.from_environment((), environment)
    assert values.too_short(found) == ("A_TOKEN", "B_TOKEN", "C_TOKEN", "DB_PASSWORD")
    named = values.from_environment(("SECRET_*",), environment)  # what the operator names is a secret
    assert "SECRET_DIR" in values.too_short(named)
    text = "test 1 of 11 in /home/ci/x with postgres 12345678 and d3adb33f9"
    assert Redactor(found).text(text)[0] == text.replace("d3adb33f9", "[REDACTED:secret-value]")


def test_files_whole_lines_pairs_and_json(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("  line1-FcvzvLrs\nline2-MeikdtKt\n")
    env = tmp_path / "env"
    env.write_text("# a comment that stays\nexport DB='s3cret-value-1'\nOTHER: s3cret-value-2\n")
    document = tmp_path / "json"
    document.write_text(json.dumps({"key": "s3cret-value-3", "deep": [{"x": "s3cret-value-4"}]}))
    redactor = Redactor(values.from_files([str(plain), str(env), str(document)]))
    for secret in (
        "line1-FcvzvLrs",
        "line2-MeikdtKt",
        "s3cret-value-1",
        "s3cret-value-2",
        "s3cret-value-3",
        "s3cret-value-4",
    ):
        assert redactor.text(f"> {secret} <")[0] == "> [REDACTED:secret-value] <"
    assert redactor.text("# a comment that stays")[1] == {}


def test_key_files_hide_their_lines_but_not_their_frame(tmp_path: Path) -> None:
    path = tmp_path / "id"
    path.write_text(private_key(3))
    redactor = Redactor(values.from_files([str(path)]))
    assert redactor.text("x " + private_key(3).split("\n")[1] + " y")[0] == "x [REDACTED:secret-value] y"
    assert redactor.text("-----BEGIN RSA PRIVATE KEY-----")[1] == {}


def test_unusable_files_are_refused_by_name(tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_text("s3cret-value-1")
    assert values.from_files([str(good)])  # the control
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    large = tmp_path / "large"
    large.write_bytes(b"a" * (values.MAX_FILE_BYTES + 1))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for bad in (tmp_path / "missing", tmp_path, binary, large, pipe):
        with pytest.raises(SecretFileRefused, match=bad.name) as caught:
            values.from_files([str(bad)])
        assert caught.value.remedy
    with pytest.raises(SecretFileRefused, match="not a valid path"):
        values.from_files(["a\0b"])


def test_too_many_values_are_refused() -> None:
    with pytest.raises(SecretFileRefused):
        values.from_environment((), {f"A{n}_TOKEN": f"value-{n}-xyz" for n in range(values.MAX_VALUES + 1)})


def test_many_values_use_the_trie_with_the_same_result() -> None:
    many = tuple(SecretValue(f"N{n}", f"s3cret-{n:04d}-value") for n in range(100))
    out, counts = Redactor(many).text("a s3cret-0042-value b s3cret-0099-value c s3cret-0100-value")
    assert out == "a [REDACTED:secret-value] b [REDACTED:secret-value] c s3cret-0100-value"
    assert counts == {"secret-value": 2}
