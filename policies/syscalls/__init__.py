"""System call lists as data, one file per process, a reason per entry."""

from __future__ import annotations

import os
import tomllib


def names(process: str, section: str = "allow") -> dict[str, str]:
    """The entries of `section` in `process`.toml ("tool", "keeper", "front"): system call name -> reason."""
    with open(os.path.join(os.path.dirname(__file__), f"{process}.toml"), "rb") as file:
        entries: dict[str, str] = tomllib.load(file)[section]
    return entries
