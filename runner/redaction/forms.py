"""Which form makes which value a secret: the forms of grammar.py, each with what a value in it must look like.

Runs in the front; pure over bytes. Where a name and a value are quoted, a word is enough; in prose and code, which also
have such forms, a value must look drawn at random.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from runner.redaction import grammar
from runner.redaction.grammar import Matcher
from runner.redaction.keys import Level
from runner.redaction.worth import is_drawn_word, is_gap, is_password, is_token, is_words, worth_hiding

_LEAST_LETTERS = 16  # a shorter word without quotes is a word
_SCHEME_WORD = re.compile(rb"(?i:" + b"|".join(grammar.SCHEMES) + rb")(?:[ +]|%20|\Z)").match
# Words before a name that takes the next word as its value.
_COMMANDS = frozenset(
    b"env arg setenv set -gx -x -ux export define #define setq (setq defvar proxy_set_header add_header fastcgi_param const let "
    b"var string with requirepass masterauth".split()
)
_TAKES_A_WORD = (b"requirepass", b"masterauth", b"bindpw", b"rootpw")
_NETRC = re.compile(rb"(?:machine|login)\s{1,8}\S{1,128}\s{1,16}\Z").search
_ASSIGNED = re.compile(rb"[A-Za-z_.-]{1,32}=[^=]").match
_MINIFIED = re.compile(rb"[A-Za-z_$][)};]").match  # url.password=e}get …
_CONTROLS = re.compile(rb"\[[a-z_]{1,24}=").match  # password [success=1 default=ignore]: pam.conf(5)
_ENV_NAME = re.compile(rb"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z").match


class Name(NamedTuple):
    """A secret name at text[start:end]. netrc: the text looks like a .netrc file."""

    text: bytes
    start: int
    end: int
    level: Level
    netrc: bool

    @property
    def word(self) -> bytes:
        """The name itself."""
        return self.text[self.start : self.end]

    @property
    def kind(self) -> str:
        """The word for the placeholder."""
        return self.level if self.level != "weak" else "key"


class Value(NamedTuple):
    """What a form found: the match of the form, and the value that ends at text[end]."""

    form: re.Match[bytes]
    value: bytes
    end: int

    @property
    def quoted(self) -> bool:
        return bool(self.form["open"])

    @property
    def sure(self) -> bool:
        """Name and value in quotes."""
        return bool(self.form["open"]) and bool(self.form["close"])


Accept = Callable[[Name, Value], bool]


class Form(NamedTuple):
    """match: where the value begins; reader: how far it reaches, None: by its quote; accept: is it a secret there?"""

    match: Matcher
    reader: Matcher | None
    accept: Accept
    loose: bool = False  # prose has this form too


def is_out(name: Name, found: Value, loose: bool) -> bool:
    """What is a secret in no form: words without quotes, a scheme, what a test passed."""
    value = found.value
    if (
        not found.quoted
        and not name.netrc
        and value.isalpha()
        and len(value) < _LEAST_LETTERS
        and not is_drawn_word(value)
    ):
        return True
    if _SCHEME_WORD(value):
        return True
    return name.word.lower() == b"pass" and (loose or is_words(value))


def _assign(name: Name, found: Value) -> bool:
    if not found.quoted and (found.form["op"] == b"==" or _MINIFIED(found.value)):
        return False
    return worth_hiding(name.level, found.value, sure=found.sure)


def _member(name: Name, found: Value) -> bool:
    return worth_hiding(name.level, found.value, sure=found.sure)


def _element(name: Name, found: Value) -> bool:
    closed = name.text[found.end : found.end + 2] in (b"</", b"]]")
    return closed and worth_hiding(name.level, found.value, sure=False)


def _plist(name: Name, found: Value) -> bool:
    closed = name.text[found.end : found.end + 2] == b"</"
    return closed and worth_hiding(name.level, found.value, sure=True)


def _block(name: Name, found: Value) -> bool:
    value = found.value
    if found.form["close"] and found.form["inner"]:
        return worth_hiding(name.level, value, sure=True)
    if value.endswith(b":") or b": " in value:
        return False  # the next member, not a value
    return worth_hiding(name.level, value, sure=False) and bool(found.form["block"] or not is_words(value))


def _is(name: Name, found: Value) -> bool:
    if found.quoted or name.level == "password":
        return _strong(name, found.value, 8)
    return is_token(found.value)


def _listed(name: Name, found: Value) -> bool:
    if b"," in found.form.group() and _ENV_NAME(name.word):
        return worth_hiding(name.level, found.value, sure=False)
    return _strong(name, found.value, 6)


def _beside(name: Name, found: Value) -> bool:
    return _strong(name, found.value, 6)


def _call(name: Name, found: Value) -> bool:
    # a function that takes a password is no place of one, a setter is: .password("…"), .setPassword("…")
    is_setter = b"." in name.word
    return (name.level != "password" or is_setter) and _strong(name, found.value, 6)


def _part(name: Name, found: Value) -> bool:
    in_header = name.text[max(0, name.start - 6) : name.start] == b'name="'
    return in_header and worth_hiding(name.level, found.value, sure=True)


def _spaced(name: Name, found: Value) -> bool:
    text, start, value = name.text, name.start, found.value
    if name.netrc and name.level == "password" and _NETRC(text, max(0, start - 200), start):
        return not is_gap(value) and len(value) > 3
    front = text[max(0, start - 32) : start].split()
    takes = name.word.startswith(b"-") or name.word.lower() in _TAKES_A_WORD
    if takes or (front and front[-1].lower() in _COMMANDS):
        return worth_hiding(name.level, value, sure=False)
    between = found.form.group()
    wide = found.form["bar"] or b"\t" in between or b"  " in between or _is_line(name, found)
    if wide and _ENV_NAME(name.word):
        return worth_hiding(name.level, value, sure=False)
    return _strong(name, value, 8) and (name.level != "password" or bool(wide))


def _is_line(name: Name, found: Value) -> bool:
    """A line of a configuration file that is nothing but name and value."""
    front = name.text[max(0, name.start - 33) : name.start]
    return not front.rpartition(b"\n")[2].strip() and name.text[found.end : found.end + 1] in (
        b"",
        b"\n",
        b"\r",
    )


def _strong(name: Name, value: bytes, least: int) -> bool:
    """For forms that prose and code also have: random for a token, no single word for a password."""
    if b" " in value:
        return False
    if name.level == "password":
        return is_password(value, least) and not is_words(value) and not _CONTROLS(value)
    if value.startswith((b"(", b"[", b"{")) or _ASSIGNED(value):
        return False
    return is_token(value) and (name.level != "weak" or worth_hiding("weak", value, sure=False))


_ASSIGN = Form(grammar.ASSIGN, None, _assign)
_MEMBER = Form(grammar.MEMBER, None, _member)
_ELEMENT = Form(grammar.ELEMENT, grammar.IN_ELEMENT, _element)
_PLIST = Form(grammar.PLIST, grammar.IN_ELEMENT, _plist)
_BLOCK = Form(grammar.BLOCK, grammar.REST, _block)
_LISTED = Form(grammar.LISTED, None, _listed, loose=True)
_IS = Form(grammar.IS, None, _is, loose=True)
_BESIDE = Form(grammar.BESIDE, None, _beside, loose=True)
_CALL = Form(grammar.CALL, None, _call)
_NESTED = Form(grammar.NESTED, None, _member)
_PART = Form(grammar.MULTIPART, grammar.REST, _part)
_SPACED = Form(grammar.SPACED, None, _spaced, loose=True)

_AFTER_QUOTE = (_ASSIGN, _MEMBER, _LISTED, _ELEMENT, _BLOCK, _IS, _NESTED, _PART)
_AFTER_SPACE = (_ASSIGN, _ELEMENT, _IS, _BESIDE, _SPACED)
_AFTER_OPERATOR = (_ASSIGN, _BLOCK, _IS)
_BY_NEXT: dict[bytes, tuple[Form, ...]] = {
    b">": (_ELEMENT,),
    b"<": (_PLIST,),
    b"(": (_CALL,),
    b"\r": (_ASSIGN, _MEMBER),
    b"\n": (_ASSIGN, _MEMBER),
    **dict.fromkeys((b'"', b"'", b"\\", b"&"), _AFTER_QUOTE),
    b"`": (*_AFTER_QUOTE, _SPACED),
    **dict.fromkeys((b" ", b"\t"), _AFTER_SPACE),
    **dict.fromkeys((b":", b"="), _AFTER_OPERATOR),
}
_ROW = (_ASSIGN, _SPACED)
_OTHER = (_ASSIGN,)


def forms(name: Name) -> tuple[Form, ...]:
    """The forms that are possible with what follows the name, in the order in which they are tried."""
    following = name.text[name.end : name.end + 1]
    before = name.text[max(0, name.start - 1) : name.start]
    if following == b">" and before not in (b"<", b":"):
        return ()
    if (following == b"]" and before == b"[") or (following == b"," and before in (b"\n", b"")):
        return _ROW
    return _BY_NEXT.get(following, _OTHER)
