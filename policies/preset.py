"""Presets: tools that ship with the program, one TOML file each, in the form of a policy's [tools.*].

A preset is data: the same checks hold for it as for a policy, and its examples are executed by the tests. Reads files
of this package; starts nothing.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from policies import locate
from policies.errors import BadKeyError, PolicyRefused, did_you_mean
from policies.model import ToolName, ToolTable
from policies.params import Table

FOLDER = Path(__file__).with_name("presets")


class _Head(Table, frozen=True, kw_only=True):
    description: str
    set_env: dict[str, str] = msgspec.field(default_factory=dict)


class _File(Table, frozen=True, kw_only=True):
    preset: _Head
    tools: Annotated[dict[ToolName, ToolTable], msgspec.Meta(min_length=1, max_length=20)]


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset. `digest` is the SHA-256 of its file, in hex."""

    name: str
    description: str
    tools: dict[str, ToolTable]
    digest: str


def names() -> list[str]:
    """The presets of this version, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str, key: str = "presets") -> Preset:
    """Read one preset. An unknown name raises BadKeyError at `key`."""
    if name not in names():
        raise BadKeyError(
            key, f'no preset "{name}"', f"there are: {', '.join(names())}{did_you_mean(name, names())}"
        )
    data = (FOLDER / f"{name}.toml").read_bytes()
    file = decode(data, f"preset {name}")
    tools = {
        tool: msgspec.structs.replace(table, set_env={**file.preset.set_env, **table.set_env})
        for tool, table in file.tools.items()
    }
    return Preset(name, file.preset.description, tools, hashlib.sha256(data).hexdigest())


def decode(data: bytes, file: str) -> _File:
    """Strictly decode a preset file."""
    raw = toml(data, file)
    try:
        return msgspec.convert(raw, _File)
    except msgspec.ValidationError:
        try:
            locate.locate(raw, _File)
        except BadKeyError as problem:
            raise problem.in_file(file) from None
        raise


def toml(data: bytes, file: str) -> dict[str, object]:
    """Parsed TOML; PolicyRefused with line and column when it is none."""
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise PolicyRefused(file, "", f"is not UTF-8 (byte {error.start})", "save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise PolicyRefused(file, "", f"is not TOML: {error}", "correct that line") from None
    except RecursionError:
        raise PolicyRefused(file, "", "is nested too deeply", "a policy needs four levels") from None
