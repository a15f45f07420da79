"""Passwords known by what stands in front of them: a flag, a command of SQL, the name of a function, a banner.

Runs in the front; pure over bytes. Each function is called at an anchor (structures.py) and answers as in shapes.py:
(span or nothing, how far it has looked).
"""

from __future__ import annotations

import re

from runner.redaction.spans import Found, Shape, Span
from runner.redaction.worth import is_drawn_word, is_gap, is_mixed_word, is_password, is_token

_LEAST_IN_URL = 4
_VARIABLE = re.compile(rb"[A-Z_]{1,40}$").match

_LOGIN = re.compile(rb"""[ ]?["']?[A-Za-z0-9_.@+\\-]{0,64}+[:%]["']?([^\s"'\xff]{4,256}+)""").match


def _login(text: bytes, _start: int, end: int) -> Found:
    """`-u user:password`, as curl, wget, smbclient (%) and httpie take it."""
    login = _LOGIN(text, end)
    if not login or login[1].startswith(b"//") or not (is_password(login[1]) or is_mixed_word(login[1])):
        return None, end
    return Span(login.start(1), login.end(1), "password"), login.end()


_WORD = re.compile(rb"""(?P<space> {0,2})(?:pass:)?["']?(?P<value>[^\s"'\xff=]{6,128}+)""").match
_GLUING = (
    b"mysql",
    b"mariadb",
    b"sshpass",
    b"7z",
    b"rar ",
    b"unzip",
    b"zip ",
    b"plink",
    b"docker",
    b"podman",
    b"helm",
    b"mongo",
)
_FLAGS = {
    b"-p": _GLUING,
    b"-a": (b"redis-cli",),
    b"-w": (b"ldap",),
    b"-P": (b"sqlcmd", b"ipmitool", b"unzip", b"zip ", b"bcp "),
    b"-pa": (b"openssl",),
}


def _flagged(text: bytes, start: int, end: int) -> Found:
    """`mysql -psecret`, `redis-cli -a secret`: only after the name of a program that takes its password so."""
    front = text[max(0, start - 160) : start]
    line = front[front.rfind(b"\n") + 1 :]
    flag = text[start + 1 : end].strip()[:3]
    word = _WORD(text, end)
    if (
        not word
        or not any(name in line for name in _FLAGS.get(flag, ()))
        or not is_password(word["value"], 6)
    ):
        return None, end
    return Span(*word.span("value"), "password"), word.end()


_STATEMENT = 160  # bytes of a statement in front of the password
_QUOTED = re.compile(rb"""[^'"\s\xff]{4,256}+(?=['"])""").match


def _sql_password(text: bytes, start: int, end: int) -> Found:
    """CREATE USER … IDENTIFIED BY '…'."""
    word = _QUOTED(text, end)
    if not word or is_gap(word.group()):
        return None, end
    if not is_password(word.group()) and b"user" not in text[max(0, start - _STATEMENT) : start].lower():
        return None, end  # prose: a library identified by 'name'
    return Span(*word.span(), "password"), word.end()


def is_in_url(password: bytes) -> bool:
    """Whether what stands in the place of a password in an address is one, and not the name of a variable or a gap."""
    return len(password) >= _LEAST_IN_URL and not is_gap(password) and not _VARIABLE(password)


_BEFORE_DSN = re.compile(rb"""[\s"'`=<>(]""").split


def _dsn_password(text: bytes, start: int, _end: int) -> Found:
    """user:password@tcp(host:port)/db, as Go's MySQL driver takes it."""
    login = _BEFORE_DSN(text[max(0, start - 200) : start])[-1]
    password = login.partition(b":")[2]
    if not is_in_url(password):
        return None, start
    return Span(start - len(password), start, "url-password"), start


_ORACLE = re.compile(rb"""[\w$.-]{1,64}/([^\s"'@/\xff]{4,128})@""").match


def _oracle_password(text: bytes, _start: int, end: int) -> Found:
    """jdbc:oracle:thin:user/password@host."""
    login = _ORACLE(text, end)
    if not login or not is_in_url(login[1]):
        return None, end
    return Span(*login.span(1), "url-password"), login.end()


_SETUP = re.compile(rb"\s{1,8}([A-Za-z0-9*_=+-]{16,64})(?![A-Za-z0-9])").match


def _setup_password(text: bytes, _start: int, end: int) -> Found:
    """What Jenkins prints when it is installed, and Elasticsearch when a password is reset."""
    found = _SETUP(text, end)
    if not found or not (is_token(found[1]) or is_drawn_word(found[1])):
        return None, end
    return Span(*found.span(1), "password"), found.end()


_ARGUMENTS = re.compile(
    rb"""\s{0,4}(?:["'][^"'\n\xff]{1,200}["'],\s{0,4}){1,2}["']([^"'\s\xff]{6,256})["']\s{0,4}[,)]"""
).match


def _second_argument(text: bytes, _start: int, end: int) -> Found:
    """Functions that take a user and a password: HTTPBasicAuth("user", "password")."""
    given = _ARGUMENTS(text, end)
    if not given or not (is_password(given[1]) or is_drawn_word(given[1])):
        return None, end
    return Span(*given.span(1), "password"), given.end()


LOGINS: dict[str, Shape] = {
    "login": _login,
    "flagged": _flagged,
    "sql-password": _sql_password,
    "dsn-password": _dsn_password,
    "oracle-password": _oracle_password,
    "setup-password": _setup_password,
    "second-argument": _second_argument,
}
