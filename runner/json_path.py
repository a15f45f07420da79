"""A part of a JSON document, named by a path: the subset of RFC 9535 in which no selector finds a node twice.

Runs in the front; pure. Iterative: a path never does more work than the document has nodes. Understood are $ and then

    .name  ['name']  ["name"]   the member of that name (RFC 9535, 2.3.1, 2.5.1)
    [0]  [-1]                   one element, from the end when negative (2.3.3)
    [2:10]  [:10]  [-5:]        elements from..to, without a step (2.3.4)
    [*]  .*                     all elements or members (2.3.2)

Not understood: .. (descendants), ?(filters), [a,b] (unions), steps and functions.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from policies.errors import nearest
from policies.values import shown
from sandbox.errors import Refused

MAX_PATH = 500  # characters
FORMS = "$ and then .name, ['name'], [0], [-1], [0:10] or [*]; for example $.items[0].name"
_INTEGER = r"0|-?[1-9][0-9]{0,8}"
_SEGMENT = re.compile(
    r"\.(?P<all>\*)|\.(?P<name>[^\W\d][\w-]*)|\[\s*(?:(?P<every>\*)|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<double>\"(?:[^\"\\]|\\.)*\")"
    rf"|(?P<start>{_INTEGER})?\s*(?P<colon>:)\s*(?P<stop>{_INTEGER})?|(?P<index>{_INTEGER}))\s*\]"
)
_SHOWN_NAMES = 10
_COMPARED = 500  # names that a wrong one is compared with: each takes some microseconds


class JsonPathRefused(Refused):
    """A path that is not understood, or that leads nowhere in this document."""

    code = "argument_refused"


@dataclass(frozen=True, slots=True)
class Step:
    """One segment of a path. selector: a name, an index, or a range of elements (all of them: slice(None)).

    text   as it was written, for messages.
    many   it may select several nodes.
    """

    selector: str | int | slice
    text: str
    many: bool


def parse(path: str) -> tuple[Step, ...]:
    """The steps of a path. Raises JsonPathRefused."""
    if len(path) > MAX_PATH:
        raise JsonPathRefused(
            f"json_path has {len(path):,} characters; at most {MAX_PATH} are read", f"give {FORMS}"
        )
    if not path.startswith("$"):
        raise JsonPathRefused("json_path does not begin with $", f"give {FORMS}")
    steps, position = [], 1
    while position < len(path):
        hit = _SEGMENT.match(path, position)
        if hit is None:
            raise JsonPathRefused(
                f"json_path is not understood at character {position + 1}: {shown(path[position : position + 20])}",
                f"give {FORMS}",
            )
        steps.append(_step(hit))
        position = hit.end()
    return tuple(steps)


def _step(hit: re.Match[str]) -> Step:
    text = hit.group()
    if hit["all"] or hit["every"]:
        return Step(slice(None), text, many=True)
    if hit["colon"]:
        start, stop = (int(bound) if bound else None for bound in (hit["start"], hit["stop"]))
        return Step(slice(start, stop), text, many=True)
    if hit["index"]:
        return Step(int(hit["index"]), text, many=False)
    if hit["name"]:
        return Step(hit["name"], text, many=False)
    quoted = hit["double"] or '"' + hit["single"].replace("\\'", "'").replace('"', '\\"') + '"'
    try:
        name: str = json.loads(quoted, strict=False)
    except ValueError:
        raise JsonPathRefused(
            f"json_path has a name that is not understood: {shown(text)}", f"give {FORMS}"
        ) from None
    return Step(name, text, many=False)


def select(document: object, steps: Iterable[Step]) -> object:
    """The node that the path names; of a path that may name several, the list of those there are.

    Raises JsonPathRefused where a name or an index leads nowhere before anything else could be selected.
    """
    nodes: list[object] = [document]
    done, many = "$", False
    for step in steps:
        found: list[object] = []
        for node in nodes:
            found += _below(node, step.selector)
        if not found and not many and not step.many:
            raise _nowhere(nodes[0], step, done)
        nodes, many, done = found, many or step.many, done + step.text
    return nodes if many else nodes[0]


def _below(node: object, selector: str | int | slice) -> list[object]:
    match selector, node:
        case str(), dict():
            return [node[selector]] if selector in node else []
        case int(), list():
            return [node[selector]] if -len(node) <= selector < len(node) else []
        case slice(), list():
            return node[selector]
        case slice(start=None, stop=None), dict():
            return list(node.values())
        case _:
            return []


def _nowhere(node: object, step: Step, done: str) -> JsonPathRefused:
    """Names what is there instead."""
    match node:
        case dict() if isinstance(step.selector, str):
            near = nearest(step.selector, itertools.islice(node, _COMPARED))
            meant = f"did you mean {shown(near)}? " if near else ""
            names = ", ".join(shown(name) for name in list(node)[:_SHOWN_NAMES]) or "no members"
            more = f" and {len(node) - _SHOWN_NAMES:,} more" if len(node) > _SHOWN_NAMES else ""
            return JsonPathRefused(f"{done} has no {shown(step.selector)}", f"{meant}it has: {names}{more}")
        case list():
            last = f"0 to {len(node) - 1}" if node else "none, it is empty"
            return JsonPathRefused(
                f"{done} is a list of {len(node):,} elements: {step.text} is not among them",
                f"give an index ({last}) or a range such as [0:10]",
            )
        case _:
            return JsonPathRefused(
                f"{done} is {kind(node)}: {step.text} selects nothing", f"read {done} itself"
            )


def kind(node: object) -> str:
    """What a node is, in words: "a list of 3 elements", "an object of 2 members", "text", ..."""
    match node:
        case dict():
            return f"an object of {len(node):,} members"
        case list():
            return f"a list of {len(node):,} elements"
        case str():
            return "text"
        case None:
            return "null"
        case bool():
            return "true or false"
        case _:
            return "a number"


def member(name: str) -> str:
    """The segment that selects the member `name`: `.name`, or `["a b"]` where that is needed."""
    return f".{name}" if re.fullmatch(r"[^\W\d][\w-]*", name) else f"[{json.dumps(name, ensure_ascii=False)}]"
