"""Is a tool's command safe for whatever its parameters allow? One function per rule, each raises BadKeyError.

The rules keep a value from becoming a flag, a file list or another program. Pure; knows nothing of files or PATH.
"""

from __future__ import annotations

import itertools
import math
import os.path
import re
from collections.abc import Iterable

from policies import pattern, template, values
from policies.errors import BadKeyError, did_you_mean, join
from policies.model import ToolTable
from policies.params import (
    AnyParam,
    BooleanParam,
    EnumParam,
    IntegerParam,
    ListParam,
    NumberParam,
    PathParam,
    Scalar,
    StringParam,
)
from policies.programs import RUN_OPERANDS

# A class of single signs and ranges without "-", once, at the start of a pattern.
_FIRST = re.compile(r"\[(?!\^)(?:[A-Za-z0-9_]-[A-Za-z0-9_]|[A-Za-z0-9_@.,:^~+/](?!-))+\](?![*?{])")
_INTERPRETER = re.compile(
    r"(?:ba|da|k|z|fi|tc|c)?sh|(?:python|perl|ruby|lua|php)[0-9.]*|node|deno|bun|[gm]?awk|sed|make|gdb|vim?|emacs|tclsh|osascript|jq"
)
RESERVED = frozenset({"read_output"})  # the server's own tool


def tool(name: str, table: ToolTable, key: str) -> None:
    """Check everything about a tool that does not depend on this host."""
    if name in RESERVED:
        raise BadKeyError(key, "this name belongs to the server itself", "choose another name")
    words = command(table.command, table.params, join(key, "command"))
    for param_name, param in table.params.items():
        parameter(param, words, param_name, join(join(key, "params"), param_name))
    groups(table, key)
    folder(table.cwd, join(key, "cwd"))


def command(words: Iterable[str], params: dict[str, AnyParam], key: str) -> list[template.Word]:
    """The parsed words, after checking that placeholders and parameters match and that no value can become a flag."""
    parsed: list[template.Word] = []
    ended = False
    for index, text in enumerate(words):
        where = f"{key}[{index}]"
        try:
            word = template.parse(text)
        except ValueError as error:
            raise BadKeyError(where, str(error)) from None
        if word.param is not None:
            param = _param(word.param, params, where)
            if index == 0:
                raise BadKeyError(
                    where, "the program itself cannot be a parameter", "write the program's name"
                )
            place(param, word, ended, where)
        ended = ended or word.text in template.ENDS_OPTIONS
        parsed.append(word)
    _runs_operands(parsed, params, key)
    _shifts(parsed, params, key)
    return parsed


def _param(name: str, params: dict[str, AnyParam], where: str) -> AnyParam:
    if name not in params:
        raise BadKeyError(
            where,
            f'no parameter "{name}"',
            f"add params.{name} = {{ type = ... }}{did_you_mean(name, list(params))}",
        )
    return params[name]


def place(param: AnyParam, word: template.Word, ended: bool, where: str) -> None:
    """A value that stands alone must not be able to start with "-" while the tool still reads flags."""
    if isinstance(param, BooleanParam):
        if not word.whole:
            raise BadKeyError(where, "a boolean emits its own flag", f'write "{{{word.param}}}" alone')
        if ended:
            raise BadKeyError(where, 'a flag after "--" would be read as an operand', 'move it before "--"')
        return
    if not word.whole:
        return
    _place_whole(param.items if isinstance(param, ListParam) else param, word.param or "", ended, where)


def _place_whole(item: Scalar, name: str, ended: bool, where: str) -> None:
    if isinstance(item, EnumParam):
        if any(str(value).startswith("-") for value in item.values):
            raise BadKeyError(
                where, 'an enum value that starts with "-" would be a flag', f'write "--flag={{{name}}}"'
            )
    elif ended or (isinstance(item, StringParam) and _never_a_flag(item.pattern)):
        return
    elif isinstance(item, (StringParam, PathParam)):
        fix = f'write "--flag={{{name}}}", put it after a word "--", or give it a pattern like [A-Za-z0-9][a-z-]*'
        raise BadKeyError(where, "this value could be read as a flag", fix)
    elif item.min is None or item.min < 0:
        raise BadKeyError(
            where, "a negative number could be read as a flag", f'give it min = 0, or "--flag={{{name}}}"'
        )


def _never_a_flag(text: str | None) -> bool:
    """The pattern says itself that a value starts with a letter, a digit or a harmless sign: no "-", never empty."""
    return text is not None and _FIRST.match(text) is not None and "|" not in text


def _runs_operands(words: list[template.Word], params: dict[str, AnyParam], key: str) -> None:
    """Programs that run what they are given, and interpreters: no value of a client may be the program or the script."""
    program = os.path.basename(words[0].text)
    free = [word for word in words if word.param is not None and _is_free(params[word.param])]
    if program in RUN_OPERANDS and free:
        raise BadKeyError(
            key,
            f'"{program}" runs its operands, so "{free[0].param}" would choose a program',
            "name the program itself",
        )
    script = next((index for index, word in enumerate(words[1:], 1) if _is_operand(word)), len(words))
    if _INTERPRETER.fullmatch(program) and free and words.index(free[0]) < script:
        raise BadKeyError(
            key,
            f'"{program}" runs the script it is given, and "{free[0].param}" would be it',
            "write the script, or the file that holds it, before the first placeholder",
        )


def _shifts(words: list[template.Word], params: dict[str, AnyParam], key: str) -> None:
    """Of two operands in a row the first must always be there: without it the second would take its place."""
    for first, second in itertools.pairwise(words):
        if not (first.whole and second.whole) or first.param is None or second.param is None:
            continue
        ahead, behind = params[first.param], params[second.param]
        if isinstance(ahead, BooleanParam) or isinstance(behind, BooleanParam):
            continue
        if not ahead.required and ahead.default is None:
            raise BadKeyError(
                key,
                f'without "{first.param}" the value of "{second.param}" would stand in its place',
                f'make "{first.param}" required, give it a default, or write "--flag={{{first.param}}}"',
            )


def _is_free(param: AnyParam) -> bool:
    """Whether a client may write any text there."""
    inner = param.items if isinstance(param, ListParam) else param
    return isinstance(inner, (StringParam, PathParam))


def _is_operand(word: template.Word) -> bool:
    return word.param is None and not word.text.startswith("-")


def parameter(param: AnyParam, words: list[template.Word], name: str, key: str) -> None:
    """One parameter: used in the command, with a sound type and a default that it would accept itself."""
    uses = [word for word in words if word.param == name]
    if not uses:
        raise BadKeyError(key, "no word of the command uses this parameter", f'add "{{{name}}}" or remove it')
    kind(param.items if isinstance(param, ListParam) else param, key)
    if isinstance(param, ListParam) and (param.items.required or param.items.default is not None):
        raise BadKeyError(
            join(key, "items"), "an item has no default and is not required", "say it of the list"
        )
    if param.default is None:
        return
    if param.required:
        raise BadKeyError(
            join(key, "default"), "a required parameter has no use for a default", "remove one of them"
        )
    try:
        values.texts(param, param.default, whole=uses[0].whole, look=_any_path)
    except values.BadValueError as problem:
        raise BadKeyError(join(key, "default"), str(problem)) from None


def _any_path(_param: PathParam, text: str) -> str:
    return text


def _finite(param: AnyParam, key: str) -> None:
    for name in ("min", "max", "default", "values"):
        value = getattr(param, name, None)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, float) and not math.isfinite(one):
                raise BadKeyError(join(key, name), "is not a finite number", "JSON has no nan and no inf")


def kind(param: AnyParam, key: str) -> None:
    """The type's own keys fit together."""
    _finite(param, key)
    match param:
        case StringParam(pattern=str(text)):
            if problem := pattern.problem(text, param.max_length):
                raise BadKeyError(join(key, "pattern"), problem, "see docs/policy.md, type string")
        case IntegerParam() | NumberParam():
            if param.min is not None and param.max is not None and param.min > param.max:
                raise BadKeyError(join(key, "min"), "is larger than max")
        case EnumParam():
            _choices(param, key)
        case BooleanParam() | PathParam() | ListParam() | StringParam():
            pass


def _choices(param: EnumParam, key: str) -> None:
    where = join(key, "values")
    if len({isinstance(value, str) for value in param.values}) != 1:
        raise BadKeyError(where, "mixes text and numbers", "give all as text or all as numbers")
    if len(set(param.values)) != len(param.values):
        raise BadKeyError(where, "has a value twice")
    if any(set("\0\r\n") & set(str(value)) or not str(value) for value in param.values):
        raise BadKeyError(where, "has a value that is empty or more than one line")


def groups(table: ToolTable, key: str) -> None:
    """Exclusive groups name parameters that can be left out."""
    for index, group in enumerate(table.groups):
        where = f"{join(key, 'groups')}[{index}]"
        for name in group.params:
            if name not in table.params:
                raise BadKeyError(
                    where, f'no parameter "{name}"', f"one of params{did_you_mean(name, list(table.params))}"
                )
            if table.params[name].required or table.params[name].default is not None:
                raise BadKeyError(
                    where, f'"{name}" is required or has a default', "a group's members can be left out"
                )


def folder(text: str, key: str) -> None:
    """A fixed folder beneath the root, as text."""
    if text.startswith(("/", "~", "-")) or ".." in text.split("/"):
        raise BadKeyError(key, "must be a folder beneath the root", 'write a relative path without ".."')
