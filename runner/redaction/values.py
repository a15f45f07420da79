"""Known secrets: the values that this server's operator holds, and every common form in which they may be printed.

Runs in the front at start-up, once. Reads the files it is told to; the environment is handed in. Says nothing about a
value but its name.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from sandbox.errors import Refused

DEFAULT_PATTERNS = (
    "*TOKEN*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*PASSPHRASE*",
    "*PASSCODE*",
    "*_PASS",
    "*_PASS_*",
    "*_PWD",
    "*_PW",
    "*_KEY",
    "*_KEYS",
    "*_KEY_*",
    "*APIKEY*",
    "*API_KEY*",
    "*ACCESSKEY*",
    "*PRIVATEKEY*",
    "*AUTHKEY*",
    "*CREDENTIAL*",
    "*_AUTH",
    "*_PAT",
    "*_COOKIE",
    "*_SESSION",
    "*_DSN",
    "*WEBHOOK*",
    "*MNEMONIC*",
    "*SEED_PHRASE*",
    "*CONNECTION_STRING*",
)
# What a variable says about a secret, not the secret: a file that holds it, how long it lives, the kind of a session.
_ABOUT = re.compile(
    r"_(?:FILE|PATH|DIR|URL|URI|NAME|TYPE|MODE|TTL|EXPIRY|EXPIRES?|LENGTH|SIZE|COUNT|LIMIT|ENABLED|ALGORITHM|ALG|HEADER|FORMAT|"
    r"VERSION|BACKEND|PROVIDER|ENDPOINT|HOST|PORT|ISSUER|AUDIENCE|POLICY|STORE|ARN|SOCK|REGION|USER|USERNAME|EMAIL|SESSION|HELPER|SCOPES?)$"
)
MIN_LENGTH = 8  # characters; shorter values occur by chance in ordinary text
MAX_VALUES = 1000  # keeps the start-up and the scan cheap: about ten forms each, and some forty of one full of punctuation
MAX_FILE_BYTES = 65_536
_COMMON = frozenset(
    [
        "password",
        "passwords",
        "username",
        "production",
        "development",
        "postgres",
        "postgresql",
        "localhost",
        "disabled",
        "required",
        "optional",
        "internal",
        "external",
        "undefined",
        "changeme",
        "database",
        "template",
        "standard",
        "testing1",
        "administrator",
        "anonymous",
    ]
)
_PLACE = re.compile(r"(?:~|\.{1,2})?/[^\s:@]*$|[A-Za-z][A-Za-z0-9+.-]*://[^@]*$")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NAME = re.compile(r"[A-Za-z]{2,}[0-9]{0,3}(?:[-_. ][A-Za-z]{2,}[0-9]{0,3}){0,6}")
_USERINFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@]*:([^\s/?#]+)@")
_ASSIGNMENT = re.compile(r"(?:export\s+)?[A-Za-z_][\w.-]*\s*[=:]\s*(.+)")


class SecretFileRefused(Refused):
    """A configured secret file cannot be read, so its values could not be kept out of results."""

    code = "secret_file_refused"


@dataclass(frozen=True, slots=True)
class SecretValue:
    """One known secret. `name` is the variable or the file it came from; the value never shows in a repr."""

    name: str
    value: str = field(repr=False)


def from_environment(patterns: Iterable[str], environment: Mapping[str, str]) -> tuple[SecretValue, ...]:
    """Values of variables whose names match `patterns` or DEFAULT_PATTERNS (fnmatch, case ignored).

    Of a URL only the password in its userinfo counts, and that in a variable of any name. Lines of a value that has
    several count on their own too.
    """
    asked, usual = _named(patterns), _named(DEFAULT_PATTERNS)
    found: list[SecretValue] = []
    for name, value in environment.items():
        upper = name.upper()
        if password := _USERINFO.match(value):
            found.append(SecretValue(name, password[1]))
        elif asked.match(upper) or (usual.match(upper) and not (_ABOUT.search(upper) and is_plain(value))):
            found.extend(SecretValue(name, part) for part in _parts(value))
    return _unique(found)


def _named(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern.upper()) for pattern in patterns) or r"(?!)")


def from_files(paths: Iterable[str]) -> tuple[SecretValue, ...]:
    """Values in secret files: the whole content, each line, the values of NAME=value lines, the strings of JSON.

    Raises SecretFileRefused when a file is missing, unreadable, not a regular file, not text or over 64 KiB.
    """
    return _unique(SecretValue(path, part) for path in paths for part in _file_parts(_read(path)))


def too_short(values: Iterable[SecretValue]) -> tuple[str, ...]:
    """Names of secrets with no value that can be looked for: too short, a common word, a path. For a start-up note."""
    usable: dict[str, bool] = {}
    for value in values:
        usable[value.name] = usable.get(value.name, False) or is_maskable(value.value)
    return tuple(sorted(name for name, found in usable.items() if not found))


def is_maskable(value: str) -> bool:
    """Whether a value is distinctive enough to be hidden wherever it occurs."""
    if len(value) < MIN_LENGTH or value.lower() in _COMMON or _PLACE.match(value):
        return False
    if value.isdigit():
        return len(value) >= 10 and len(set(value)) > 2
    if _WORD.fullmatch(value):
        return len(value) >= 16
    return len(set(value)) > 2


def is_number(value: str) -> bool:
    """Whether a value that is hidden can stand in JSON as a number (RFC 8259, section 6)."""
    return bool(_NUMBER.fullmatch(value)) and is_maskable(value)


def is_plain(value: str) -> bool:
    """Whether a value is a word, a name of words, a number, a path or an address: nothing that was drawn at random."""
    return bool(_NAME.fullmatch(value) or value.isdigit() or _PLACE.match(value))


def _parts(value: str) -> Iterator[str]:
    yield value.strip()
    if value.lstrip()[:1] in ("{", "["):
        yield from _json_strings(value)
    elif "\n" in value:
        for line in value.splitlines():
            if not line.startswith("-----"):
                yield line.strip()


def _file_parts(content: str) -> Iterator[str]:
    yield content.strip()
    if content.lstrip()[:1] in ("{", "["):
        yield from _json_strings(content)
        return
    for line in content.splitlines():
        text = line.strip()
        if text.startswith(("#", "-----")):  # comments and the frame of a key are no secrets
            continue
        if pair := _ASSIGNMENT.match(text):
            yield pair[1].strip().strip("\"'")
        elif password := _USERINFO.search(text):
            yield password[1]
            continue
        yield text


def _json_strings(content: str) -> Iterator[str]:
    try:
        work: list[object] = [orjson.loads(content)]
    except orjson.JSONDecodeError:
        yield from (line.strip() for line in content.splitlines())
        return
    while work:
        item = work.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            work.extend(item.values())
        elif isinstance(item, list):
            work.extend(item)


def _unique(values: Iterable[SecretValue]) -> tuple[SecretValue, ...]:
    kept = tuple(dict.fromkeys(value for value in values if value.value))
    if len(kept) > MAX_VALUES:
        raise SecretFileRefused(
            f"There are {len(kept)} secret values; at most {MAX_VALUES} can be looked for.",
            "Name fewer variables in [redact] env, or point at smaller secret files.",
        )
    return kept


def _read(path: str) -> str:
    remedy = (
        "Correct the path in [redact] files, or make the file readable for the user who runs this server."
    )
    try:
        # O_NONBLOCK: a FIFO in place of the file must not hang the start.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        reason = (
            os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "not a valid path"
        )
        raise SecretFileRefused(f"The secret file {path!r} cannot be read: {reason}.", remedy) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SecretFileRefused(f"The secret file {path!r} is not a regular file.", remedy)
    with open(descriptor, "rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise SecretFileRefused(
            f"The secret file {path!r} is larger than {MAX_FILE_BYTES} bytes.",
            "List files that hold secrets only.",
        )
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise SecretFileRefused(
            f"The secret file {path!r} is not UTF-8 text.",
            "Binary key stores cannot be looked for; leave it out.",
        ) from error
