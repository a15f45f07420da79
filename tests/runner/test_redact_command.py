"""`toolcage redact` as a process: what a pipeline sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.runner.redaction.tokens import github

HERE = Path(__file__).resolve().parents[2]
POLICY = """
[server]
name = "x"
root = "root"

[redact]
env = ["WIFI"]
files = ["secret.txt"]

[[redact.rules]]
kind = "acme-token"
prefix = ["acme_"]
"""


def redact(
    data: bytes, *words: str, cwd: Path = HERE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "runner", "redact", *words],
        input=data,
        capture_output=True,
        cwd=cwd,
        env={**kept, **environment, "PYTHONPATH": str(HERE)},
        timeout=60,
        check=False,
    )


def test_a_filter() -> None:
    done = redact(f"a {github()} b\n".encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a [REDACTED:github-token] b\n", b"")


def test_bytes_that_are_no_text_pass_unchanged() -> None:
    data = b"a \xff\xfe\x00 b\r\nc"
    assert redact(data).stdout == data


def test_values_of_the_environment_and_names_of_those_too_short() -> None:
    done = redact(b"x s3cret-Value-1 y 12", API_TOKEN="s3cret-Value-1", PIN_TOKEN="12")
    assert done.stdout == b"x [REDACTED:secret-value] y 12"
    assert b"PIN_TOKEN" in done.stderr
    assert b"API_TOKEN" not in done.stderr
    assert redact(b"x s3cret-Value-1 y").stdout == b"x s3cret-Value-1 y"  # the control


def test_json_has_kinds_and_counts() -> None:
    done = redact(f"{github(1)} {github(2)} password: a1b2c3d4".encode(), "--json")
    assert json.loads(done.stdout) == {
        "text": "[REDACTED:github-token] [REDACTED:github-token] password: [REDACTED:password]",
        "redactions": {"github-token": 2, "password": 1},
        "withheld": False,
    }


def test_a_policy_brings_its_values_files_and_rules(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret.txt").write_text("from-a-file-77\n", "utf-8")
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY, "utf-8")
    policy.chmod(0o600)
    text = b"wlan-pass-1 from-a-file-77 acme_a1b2c3d4e5f6g7h8"
    done = redact(text, "--policy", str(policy), WIFI="wlan-pass-1")
    assert done.stdout == b"[REDACTED:secret-value] [REDACTED:secret-value] [REDACTED:acme-token]", (
        done.stderr
    )
    assert redact(text).stdout == text  # the control


def test_what_cannot_be_checked_is_withheld() -> None:
    done = redact(b"SK0" * 80_000)
    assert done.returncode == 2
    assert b"SK0" not in done.stdout
    assert done.stderr
    missing = redact(b"a", "--policy", "no-such-file.toml")
    assert (missing.returncode, missing.stdout) == (2, b"")
