"""Is a regular expression safe to run on what clients send? A policy is refused when it is not.

Python's engine backtracks, so `(a+)+` takes exponential time. Patterns are short and simple here; the check reads the
text once and refuses more than it must. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_STEPS = 10**7  # ways in which the repeats can share a value: about a second of backtracking
_REPEAT = re.compile(r"[*+?]\??|\{(\d*)(,?)(\d*)\}\??")


@dataclass(slots=True)
class _Group:
    """What was seen inside an open parenthesis."""

    varies: bool = False  # it holds a repeat or an alternative, so its own length is not fixed


def problem(pattern: str, longest: int) -> str | None:
    """What is wrong with `pattern` for values of at most `longest` characters, or None."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a regular expression: {error}"
    if re.search(r"\(\?(?!:)", pattern):
        return 'uses "(?": only the plain group "(?:" is allowed'
    if re.search(r"\\[0-9AZbB]", re.sub(r"\\\\", "", pattern)):
        return "uses a back-reference or an anchor; the whole value is matched anyway"
    return _repeats(pattern, longest)


def _repeats(pattern: str, longest: int) -> str | None:
    groups = [_Group()]
    ways, closed, index = 1, False, 0
    while index < len(pattern):
        found = _REPEAT.match(pattern, index)
        if found:
            if closed and groups[-1].varies and _several(found):
                return (
                    "repeats a group that itself repeats or has alternatives: that can take exponential time"
                )
            ways *= _ways(found, longest)
            groups[-1].varies = True
            closed, index = False, found.end()
            continue
        closed, index = _step(pattern, index, groups)
    if ways > MAX_STEPS:
        return f"has repeats that can share {longest} characters in {ways:.0e} ways: bound them or lower max_length"
    return None


def _ways(found: re.Match[str], longest: int) -> int:
    """How many lengths a repeat can choose from."""
    if found[0][0] == "?":
        return 2
    if _open_ended(found):
        return max(longest, 10) + 1
    return int(found[3] or found[1] or 0) - int(found[1] or 0) + 1


def _step(pattern: str, index: int, groups: list[_Group]) -> tuple[bool, int]:
    """(a group was closed here, the next index). A closed group passes what it saw to the one around it."""
    match pattern[index]:
        case "\\":
            return False, index + 2
        case "[":
            return False, _after_class(pattern, index)
        case "(":
            groups.append(_Group())
            return False, index + (3 if pattern.startswith("(?:", index) else 1)
        case ")":
            inner = groups.pop()
            groups[-1].varies = groups[-1].varies or inner.varies
            return inner.varies, index + 1
        case "|":
            groups[-1].varies = True
        case _:
            pass
    return False, index + 1


def _after_class(pattern: str, index: int) -> int:
    index += 2 if pattern.startswith("[^", index) else 1
    index += 1 if pattern.startswith("]", index) else 0  # "]" right after "[" is a member
    while pattern[index] != "]":
        index += 2 if pattern[index] == "\\" else 1
    return index + 1


def _open_ended(found: re.Match[str]) -> bool:
    return found[0][0] in "*+" or (found[2] == "," and not found[3])


def _several(found: re.Match[str]) -> bool:
    """The repeat can apply more than once."""
    if found[0][0] in "*+":
        return True
    return found[0][0] == "{" and (_open_ended(found) or int(found[3] or found[1] or 0) > 1)
