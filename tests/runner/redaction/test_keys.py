from __future__ import annotations

import pytest

from runner.redaction.keys import level
from runner.redaction.worth import worth_hiding


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("password", "password"), ("DB_PASSWORD", "password"), ("spring.datasource.password", "password"), ("PGPASSWORD1", "password"),
        ("client_secret", "secret"), ("clientSecret", "secret"), ("apiKey", "token"), ("X-Api-Key", "token"), ("AWS_SECRET_ACCESS_KEY", "token"),
        ("refresh_token", "token"), ("sessionid", "token"), ("EASYPOST_KEY", "weak"), ("key", ""), ("primaryKey", ""), ("cache_key", ""),
        ("max_tokens", ""), ("NextToken", ""), ("eos_token", ""), ("token_type", ""), ("password_hash", ""), ("PASSWORD_FILE", ""),
        ("secretName", ""), ("bypass", ""), ("compass", ""), ("author", ""), ("tokenizer", ""), ("", ""),
    ],
)  # fmt: skip
def test_level(name: str, expected: str) -> None:
    assert level(name.encode()) == expected


def test_sure_places_hide_words_and_unsure_ones_do_not() -> None:
    assert worth_hiding("password", b"letmein", sure=True)
    assert not worth_hiding("password", b"letmein", sure=False)
    assert worth_hiding("password", b"letmein2", sure=False)
    assert not worth_hiding("password", b"${X}", sure=True)
