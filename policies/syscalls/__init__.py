"""System call lists as data, one file per process, a reason per entry."""

from __future__ import annotations

import tomllib
from importlib.resources import files


def names(process: str, section: str = "allow") -> dict[str, str]:
    """The entries of `section` in `process`.toml ("tool", "keeper", "front"): system call name -> reason."""
    text = (files("policies.syscalls") / f"{process}.toml").read_text("utf-8")
    entries: dict[str, str] = tomllib.loads(text)[section]
    return entries
