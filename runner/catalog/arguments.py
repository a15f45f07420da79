"""From a client's arguments to words: everything is checked here, before anything is started.

Runs in the front on text that a model wrote. Nothing a client sends is used as a flag, a program or a path that was
not looked up beneath the root. Errors name the argument and what is allowed, and repeat at most 80 characters.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping, Sequence

from policies import values
from policies.errors import nearest
from policies.params import AnyParam, GroupTable, PathParam
from policies.template import Word
from runner.visible import PLACEHOLDER
from sandbox.errors import PathRefused, Refused
from sandbox.root import Root

# The kernel takes at most 128 KiB in one argument (MAX_ARG_STRLEN, execve(2)); all together are held to the same.
MAX_ARGV_BYTES = 128 * 1024


class ArgumentRefused(Refused):
    """An argument that the tool's schema does not allow."""

    code = "argument_refused"


class PlaceholderRefused(ArgumentRefused):
    """An argument that holds what stands in results in place of a secret: a model copied it back."""

    code = "placeholder_refused"


def check(
    arguments: object, params: Mapping[str, AnyParam], groups: Iterable[GroupTable], tool: str = "this tool"
) -> dict[str, object]:
    """The arguments that were given, after checking their names, the required ones and the exclusive groups.

    None is the empty object; a member that is null counts as not given. `tool`: its name, for messages. Raises
    ArgumentRefused.
    """
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise ArgumentRefused("arguments must be an object", f"give an object with: {_names(params)}")
    for name in arguments:
        if name not in params:
            raise ArgumentRefused(
                f"unknown argument {values.shown(str(name))}: `{tool}` has no such argument",
                _allowed(str(name), params),
            )
    given = {name: value for name, value in arguments.items() if value is not None}
    for name, value in given.items():
        _check_placeholders(name, value)
    for name, param in params.items():
        if param.required and name not in given:
            raise ArgumentRefused(f'argument "{name}" is missing', _meaning(name, param))
    for group in groups:
        _check_group(group, given)
    return given


def _check_placeholders(name: str, value: object) -> None:
    """Raises PlaceholderRefused. What a tool would do with it is never what was meant."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text) if hit := PLACEHOLDER.search(text):
                raise PlaceholderRefused(
                    f'argument "{name}" holds {hit[0]}: results have it in place of a secret, it is not the text itself',
                    "give another part of the text, or the file or line it stands in, so that the secret is not needed",
                )
            case list(items):
                waiting += items
            case dict(members):
                waiting += [*members, *members.values()]
            case _:
                pass


def _check_group(group: GroupTable, given: Mapping[str, object]) -> None:
    chosen = [name for name in group.params if name in given and given[name] is not False]
    if len(chosen) > 1:
        raise ArgumentRefused(
            f"{_quoted(chosen)} exclude each other", f"give one of: {', '.join(group.params)}"
        )
    if group.required and not chosen:
        raise ArgumentRefused(
            f"one of {_quoted(group.params)} is needed", f"give one of: {', '.join(group.params)}"
        )


def words(
    template: Iterable[Word],
    params: Mapping[str, AnyParam],
    given: Mapping[str, object],
    root: Root,
    cwd: str,
) -> tuple[str, ...]:
    """The words of the template with the values in place; a placeholder without a value disappears."""
    found: list[str] = []
    for word in template:
        if word.param is None:
            found.append(word.text)
        elif word.param in given:
            param = params[word.param]
            texts = value_texts(word.param, param, given[word.param], whole=word.whole, root=root, cwd=cwd)
            if word.needs_text and "" in texts:
                raise ArgumentRefused(
                    f'argument "{word.param}" must not be empty', _meaning(word.param, param)
                )
            found.extend(word.text + text for text in texts)
    if sum(len(text.encode()) + 1 for text in found) > MAX_ARGV_BYTES:
        raise ArgumentRefused(
            f"the arguments are longer than {MAX_ARGV_BYTES} bytes together", "give fewer or shorter ones"
        )
    return tuple(found)


def value_texts(name: str, param: AnyParam, value: object, *, whole: bool, root: Root, cwd: str) -> list[str]:
    """The words for one argument's value. Raises ArgumentRefused that names the argument."""

    def look(kind: PathParam, text: str) -> str:
        try:
            return beneath(root.look(text, kind=kind.kind, must_exist=kind.must_exist), cwd)
        except PathRefused as refusal:
            raise ArgumentRefused(
                f'argument "{name}" ({values.shown(text)}): {refusal.message}', refusal.remedy
            ) from None

    try:
        return values.texts(param, value, whole=whole, look=look)
    except values.BadValueError as problem:
        raise ArgumentRefused(f'argument "{name}" {problem}', _meaning(name, param)) from None


def beneath(path: str, cwd: str) -> str:
    """A root-relative path as the tool in `cwd` (root-relative, free of symlinks) must write it: never a flag."""
    up = "" if cwd == "." else "../" * len(cwd.split("/"))
    relative = up + path if path != "." else up.rstrip("/") or "."
    return relative if relative.startswith(".") else f"./{relative}"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _names(params: Mapping[str, AnyParam]) -> str:
    return ", ".join(params) or "no members; this tool takes no arguments"


def _allowed(name: str, params: Mapping[str, AnyParam]) -> str:
    near = nearest(name.lower().replace("-", "_"), params)
    return (f'did you mean "{near}"? ' if near else "") + f"allowed: {_names(params)}"


def _meaning(name: str, param: AnyParam) -> str:
    return (
        f"{name}: {param.description}" if param.description else f'give "{name}" as the tool\'s schema says'
    )


def is_plain_folder(root: Root, cwd: str) -> bool:
    """True if `cwd` is a folder beneath the root on whose way no symlink stands."""
    path = os.path.normpath(os.path.join(root.path, cwd))
    return os.path.realpath(path) == path and os.path.isdir(path)
