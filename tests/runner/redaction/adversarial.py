"""Inputs made to be slow: every anchor, every key word and every form, repeated. Used by the growth test."""

from __future__ import annotations

from runner.redaction.rules import KEY_WORDS, SHAPE_ANCHORS, TOKEN_RULES
from runner.redaction.view import SEPARATOR

_KEY_ENDS = ("=", '="', ".", '":"', " --", "\t", "(", ",", "|", " is ", ": |\n ", '=\\"', "]")
_NEAR = {"hex": "0123456789abcdef", "digit": "1234567890"}
_STRUCTURES = (
    "\\", "\x1b", "\x1b[", "\x1b[0m", "\x1b]a\x07", "\\u0041", "\x08", "\x00", "a\x00", "%41", "\\/", "eyJa.", "eyJhbGciOi.", "http://a:b@",
    "http://a:b", "://:", "Bearer ", "Bearer a", "Basic ", "Authorization: ", "Authorization: Basic YTpi ", "Cookie: a=b; ", "cookie: a=",
    '"name":"password",', '"value":"a","name":"', "value name='token'", "aaaaaaaaa", "-----BEGIN RSA PRIVATE KEY-----\nAAAA",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nComment: a\n", "AAAAAAAAAAAAAAAAAAAA\n-----END PRIVATE KEY-----\n",
    "Private-Lines: 1\nAAAA\n", "a,token\n", "token,a\n", "token,token,", "a\ttoken\n", "| token | a |\n", "token;", "key ", "Key 1: ", "api key ",
    "AAAA\n", "QUJD" * 8 + "\n", "41" * 16 + " ", "dG9rZW46IGFiY2RlZmdoaWprbG1ub3A= ", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=\n",
    "AKIAABCDEFGHIJKLMNOP,", "curl -u a:", " -u a:b1cd", "mysql -p", "mysql -pa1b2c3d4 ", ":5432:a:b:", ":*:", '"d":"' + "a" * 30, '"kty"',
    "M" + "a1" * 12 + ".abcdef.", ".abcdef.", ".a1b2c3." + "x" * 27, "machine login password ", "machine a login b password c ", "IDENTIFIED BY 'a1b2'",
    "<password>", "<token>a</token>", "&quot;token&quot;", "\"token\" : ", "token: str = ", "token: " + "a" * 40, "password: a,", "password:;a;",
    "password=a&b", "PASSWORD=a;B=", "password=\\a", "password='\\a", 'token="' + "\\\\" * 8, "\n", "\n  ", "\r\n", "é", "\u200b", "\ud800",
    "[REDACTED:token]", "ghp_" + "a1B2c3D4" * 3 + "\n", "github_pat_" + "a1B2c3D4" * 4 + "\n  ", "sk-ant-" + "a1" * 20 + "\\\n",
    "hooks.slack.com/services/T/", "1234567890:AA", "-us1", "8Q~", "a.atlasv1.", "a" * 70 + "+ASt", "KeyKeyKey", "passpass", "secret_access_key",
    "token.token-token_", "token-" * 3 + "=", "{\"token\":", "[\"token\",", "('token', ", "token => ", "token -> ", "token := ", "token ?= ",
    SEPARATOR.decode("utf-8", "replace"), "=", "==", ":", "\"", "'", "`", "$(", "${", "{{", "<", "[", "(", ".", "-", "_", "/", "%", "@", "~", "|",
)  # fmt: skip


def seeds() -> list[str]:
    """Some 700 short texts; each is repeated to any length."""
    anchors = [anchor for rule in TOKEN_RULES for anchor in rule.anchors]
    anchors += [anchor for group in SHAPE_ANCHORS.values() for anchor in group]
    out = [text for anchor in anchors for text in (anchor, anchor + "a1B ")]
    for rule in TOKEN_RULES:  # almost a token: one character short of what the rule asks for
        run = _NEAR.get(rule.charset, "aB3dE5gH")
        out.append(rule.anchors[0] + (run * (rule.least // len(run) + 1))[: max(1, rule.least - 1)] + " ")
    out += [word + end for word in KEY_WORDS for end in _KEY_ENDS]
    return list(dict.fromkeys([*out, *_STRUCTURES]))
