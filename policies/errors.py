"""The error of a policy file: which file, which key, what is wrong and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.errors import Refused

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class PolicyRefused(Refused):
    """A policy that cannot be served. `file` and `key` say where (key "" = the file itself)."""

    code = "policy_refused"

    def __init__(self, file: str, key: str, problem: str, fix: str = "") -> None:
        super().__init__(": ".join(part for part in (file, key, problem) if part), fix)
        self.file = file
        self.key = key
        self.problem = problem


class BadKeyError(Exception):
    """A problem at a key, before it is known which file it stands in. Never leaves the package."""

    def __init__(self, key: str, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.key = key
        self.problem = problem
        self.fix = fix

    def in_file(self, file: str) -> PolicyRefused:
        """The same problem as the error that people see."""
        return PolicyRefused(file, self.key, self.problem, self.fix)


def join(where: str, key: str) -> str:
    """`tools` and `lint` -> `tools.lint`, quoted as in TOML where the key needs it."""
    text = key if BARE_KEY.fullmatch(key) else ascii(key[:80])
    return f"{where}.{text}" if where else text


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that `word` was probably meant to be."""
    import difflib  # only where something is wrong already: start-up does not pay for it

    found = difflib.get_close_matches(word[:80], list(allowed), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """`; did you mean "x"?` or nothing."""
    near = nearest(word, allowed)
    return f'; did you mean "{near}"?' if near else ""
