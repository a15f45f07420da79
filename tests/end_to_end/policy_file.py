"""Writes policy files for tests, with tools that are small programs of the system's Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.live.cage import PYTHON


def toml(value: object) -> str:
    """A value as TOML. Text must be free of lone surrogates."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def python(code: str, *words: str, **keys: object) -> dict[str, object]:
    """A tool: the system's Python, isolated, with `code`; `words` follow a "--"."""
    tail = ["--", *words] if words else []
    return {
        "description": "A tool of the tests.",
        "command": [PYTHON, "-I", "-S", "-c", code, *tail],
        **keys,
    }


def write_policy(
    place: Path,
    tools: Mapping[str, Mapping[str, object]],
    *,
    name: str = "policy.toml",
    server: Mapping[str, object] | None = None,
    **tables: object,
) -> Path:
    """A policy file in `place` whose root is `place`/root. `tables`: presets, withhold, limits, redact, catalogs."""
    lines = [f"{key} = {toml(value)}" for key, value in tables.items()]
    settings = {"name": "end-to-end", "root": "root", "max_calls_per_minute": 600} | dict(server or {})
    lines += ["[server]", *(f"{key} = {toml(value)}" for key, value in settings.items() if value is not None)]
    for tool, keys in tools.items():
        lines += [f"[tools.{tool}]", *(f"{key} = {toml(value)}" for key, value in keys.items())]
    path = place / name
    path.write_text("\n".join(lines) + "\n", "utf-8")
    path.chmod(0o644)
    return path
