"""Values: is that a value worth hiding under such a name? Runs in the front; pure functions over bytes."""

from __future__ import annotations

import re

from runner.redaction.keys import Level

_HEAD = 96  # bytes of a value that are looked at
_GAP = re.compile(
    rb"""(?xi)
    \$\{ | \$\( | \$\{\{ | \{\{ | \$[A-Za-z_]\w*(?:$|->?|\[|\.|::) | \$\$ | <[^>]*>?$ | %\w+%$ | @[\w.-]+@$ | \\?\*+$ | x{3,}$ | \.{3,} | \[REDACTED
    | \[WITHHELD | \{[\w.!:\[\]'"()]*\}?$ | %s\b | %[vdqr]$ | %\( | \#\{ | !!?(?:vault|ref|sub|getatt|join|importvalue|null|str|binary|secret|env|include|lookup|reference)\b | :[a-z_]\w*$ | (?::[a-z]+)+:`? | [\[(<]?(?:redacted|hidden|masked|removed|sensitive\b) | [\[(<](?:secret|none|your|not)\b | \[[A-Z_\ -]+\]?$ | (?:string|int|float|id|boolean)[!?]+$
    | (?:your|my|some|the|insert|enter|replace|add|put)[_-] | &lt; | &\w+;
    | (?:your|example|sample|dummy|fake|placeholder|change[_-]?(?:me|this|it)|todo)
    | (?:null|none|nil|true|false|undefined|void|yes|no|on|off|string|str|text|bytes|int|integer|boolean|bool|object
        |optional|required|password|passwd|pass|passphrase|secret|token|key|value|redacted|hidden|masked|masking
        |unset|empty|default|enabled|disabled|n/a|foo|bar|baz|abc|test|any|varchar.*|char.*)$
    | (?:true|false|null|undefined|![01])[;,&|)}] | [a-z]{3,24}=$ | /[\[(^\\]
    | (?:os\.environ|process\.env|env\.|secrets\.|config\.|settings\.|self\.|this\.|request\.|req\.|args\.|vars?\.)
    | (?:arn:|sha(?:1|256|384|512)[:-]|data:|vault:|op://|ssm:|secretsmanager:|ref\+|keyring:|env:|file:|\$ANSIBLE_VAULT|ENC\[|\{cipher\})
    """
).match
_CODE = re.compile(
    rb"[A-Za-z_][A-Za-z0-9_]*(?:\(|\[|\.[A-Za-z_]\w*[.(\[]|\.[A-Za-z_]+$|::|->)|&?[a-z]{2,}\w*\.[A-Z][a-z]{3,}"
).match
_TYPES = (b"Key", b"Keys", b"Token", b"Tokens", b"Secret", b"Type", b"Types")  # names of classes, not values
_BRACKET = re.compile(rb"[()\[\]{}<>]").search
# Expressions and formats, the alphabet, rows of one character: written by people, not drawn.
_UNRANDOM = re.compile(rb"\(\?|\A\^|\[\^|%s[|)]|[aA][bB][cC][dD][eE][fF][gG]|[xX]{6}|([^A])\1{8}").search
_FORMAT = re.compile(rb"%s|\\[dwsb]|\]\+|\)\*|\.\*").search
_LONG = 40  # from here on brackets and such are what a generator of passwords put there
_CASES = bytes(ord("u") if chr(byte).isupper() else ord("l") for byte in range(256))
_FIELD = re.compile(rb"\{[A-Za-z_][\w.]*\}|\$\{").search
_NUMBER = re.compile(
    rb"[+-]?(?:0x[0-9a-fA-F]{1,8}[uUlL]{0,3}|\d{1,5}(?:\.\d{1,9})?%?|-\d+|\d{1,4}/\d{1,4})$"
).match
_DIGIT = re.compile(rb"[0-9]").search
_DATE = re.compile(rb"\d{4}-\d\d-\d\d(?:[T ]|$)").match
_UUID = re.compile(rb"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$").match
_HEX = re.compile(rb"[0-9a-fA-F]{24,}$").match
_PART = re.compile(
    rb"[A-Z]?[a-z]{2,}[0-9]{0,5}$|[a-z]{2,}[0-9]{1,4}[a-z]{3,}$|[a-z]*+(?:[A-Z]{1,5}[a-z]{2,14}+[0-9]?|Of|To|In|By|Is|Or|On|At|As|If|No|Up|Id|Do|My){1,12}+(?:[0-9]{1,3}[a-z]?[0-9]{0,2})?$|[A-Z]{2,}[0-9]{0,3}$|[0-9]{1,10}$|[A-Za-z][0-9]{0,3}$|$"
).match
_SPLIT = re.compile(rb"[-_./:+ $]").split
_PATH = re.compile(rb"(?:~|\.{1,2})?/[\w.-]+(?:/[\w.@-]*)+$|[A-Za-z]:\\|[A-Za-z][A-Za-z0-9+.-]*://").match
_ADDRESS = re.compile(rb"0x[0-9a-fA-F]{40}$").match  # of an account; keys have 64 digits
_RESOURCE = re.compile(
    rb"(?:[a-z]{2,}[-_.]){1,6}+[0-9a-z]{4,12}$|(?:[a-z]{2,}[-_.]){1,4}+[0-9a-f]{7,10}-[0-9a-z]{5}$"
).match
_NAMED = re.compile(
    rb"(?i)(?:password|passwd|secret|token|api[-_.]?key)[-_./][a-z0-9-_./]*$"
).match  # says what it is
# of a package too, with epoch and revision: 1:4.13+dfsg1-1+deb12u1 (deb-version(7))
_VERSION = re.compile(rb"[\^~<>=v]{0,2} ?(?:\d{1,3}:)?\d+\.\d+(?:\.\d+)*(?:[-+.~][\w.]*){0,4}$").match
_LETTERS = re.compile(rb"[A-Za-z_. \x80-\xff-]*$").match
_LABEL = re.compile(rb"[A-Z][a-z]+$|[^\x00-\x7f]").match
_NAMELIKE = re.compile(rb"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$").match  # the name of another variable


def is_gap(value: bytes) -> bool:
    """True for what stands where a secret would: an example, a variable, a type name, an earlier placeholder."""
    head = value[:_HEAD]
    return not head or _GAP(head) is not None


def is_words(value: bytes) -> bool:
    """True for kebab, snake, camel and dotted names: every part is a word or a small number."""
    return all(_PART(part) for part in _SPLIT(value[:_HEAD]))


def is_code(head: bytes) -> bool:
    """True for a call, an index or a member: `os.getenv(`, `row[`, `settings.API_KEY`."""
    found = _CODE(head)
    return found is not None and is_words(re.split(rb"[(\[.:>-]", found.group(), maxsplit=1)[0])


def is_token(value: bytes, least: int = 16) -> bool:
    """True for what looks drawn at random: long, no spaces, digits among letters, not a path, date or name."""
    if len(value) < least or is_gap(value) or b" " in value:
        return False
    head = value[:_HEAD]
    if _UUID(head):
        return True
    digits = _DIGIT(head) is not None
    if _HEX(head):
        return digits and not head.isdigit() and not _UNRANDOM(head)
    if not digits:
        return len(value) >= 20 and _is_mixed(head) and not is_words(head)
    if head.isdigit() or _DATE(head) or _PATH(head) or is_code(head) or _VERSION(head) or _NAMELIKE(head):
        return False
    if _ADDRESS(head) or _RESOURCE(head) or head.endswith(_TYPES) or is_words(head):
        return False
    if b"example" in head.lower() or (len(value) < _LONG and (_BRACKET(head) or _FORMAT(head))):
        return False
    return _UNRANDOM(head) is None


def _is_mixed(value: bytes) -> bool:
    """Letters only, but with capitals where no name has them: `qZBvrTkDyLpXwgHs`."""
    letters = value.translate(None, b"+/_=-~.")
    if len(letters) < 16 or not letters.isalpha() or letters.islower() or letters.isupper():
        return False
    cases = letters.translate(_CASES)
    return (cases.count(b"ul") + cases.count(b"lu")) * 5 > len(letters) * 2


def is_mixed_word(value: bytes) -> bool:
    """Letters whose case changes inside the word: `yqDVtkqPEC`, not `Password` or `myPassword`."""
    cases = value.translate(_CASES)
    return value.isalpha() and cases.count(b"lu") + cases.count(b"ul") > 2


def is_drawn_word(value: bytes) -> bool:
    """Letters that are no words in any of the ways in which names are written: `IRwFOVgyPLumZtQ`."""
    return len(value) >= 10 and is_mixed_word(value) and not is_words(value)


def is_password(value: bytes, least: int = 4) -> bool:
    """True for a value with a digit or a symbol that is neither a gap, a path, a piece of code nor plain words."""
    if len(value) < least or is_gap(value):
        return False
    head = value[:_HEAD]
    if b" " in head and not _DIGIT(head):
        return False
    if (
        (_LETTERS(head) and not is_drawn_word(head))
        or _NUMBER(head)
        or _PATH(head)
        or is_code(head)
        or _VERSION(head)
        or not any(chr(byte).isalnum() for byte in head)
    ):
        return False
    if _is_template(head) or (_NAMED(head) and is_words(head)):
        return False
    return b"(" not in head or _DIGIT(head) is not None


def _is_template(head: bytes) -> bool:
    return _FIELD(head) is not None or (head[:1] in b"[({" and not _DIGIT(head))


def _sure_password(value: bytes) -> bool:
    """Name and value are quoted: words count too, but not labels of a form or what looks like text."""
    head = value[:_HEAD]
    if (
        len(value) < 3
        or is_gap(value)
        or _FIELD(head)
        or _PATH(head)
        or _LABEL(head)
        or _VERSION(head)
        or _NAMELIKE(head)
    ):
        return False
    return b" " not in head or _DIGIT(head) is not None


def worth_hiding(found: Level, value: bytes, *, sure: bool) -> bool:
    """The value test for a name of level `found`. `sure`: quoted name and value, so prose and code are unlikely."""
    value = value.rstrip(b",;:")
    if found == "password":
        return _sure_password(value) if sure else is_password(value)
    if found == "secret":
        return is_password(value, 8) and not is_words(value) and (sure or is_token(value, 12))
    if found == "token":
        return is_token(value, 12 if sure else 16)
    return found == "weak" and is_token(value, 20) and not value.islower()
