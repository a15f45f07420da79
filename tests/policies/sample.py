"""A repository that a hostile author prepared, with marks that tell what a tool did to it.

folder/root       the root: files, two commits, hostile .git/config, hooks and attributes, links that leave, a FIFO
folder/outside    secret.txt, which holds MARKER
folder/ran        appears when a program of the hostile author was started
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

MARKER = "OUTSIDE-MARKER-4711"

_HOSTILE_CONFIG = """
[core]
\tfsmonitor = {canary}
\tpager = {canary}
\tsshCommand = {canary}
\thooksPath = {hooks}
\taskPass = {canary}
\teditor = {canary}
\talternateRefsCommand = {canary}
[pager]
\tlog = {canary}
\tdiff = {canary}
[diff]
\texternal = {canary}
\torderFile = {outside}
[diff "evil"]
\tcommand = {canary}
\ttextconv = {canary}
[gpg]
\tprogram = {canary}
[gpg "x509"]
\tprogram = {canary}
[gpg "ssh"]
\tprogram = {canary}
[log]
\tshowSignature = true
[credential]
\thelper = {canary}
[mailmap]
\tfile = {outside}
[remote "origin"]
\turl = ext::{canary} x
\tuploadpack = {canary}
\tpromisor = true
[protocol "ext"]
\tallow = always
[alias]
\tst = !{canary}
"""


@dataclass(frozen=True)
class Sample:
    """The paths of one sample."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def ran(self) -> Path:
        return self.folder / "ran"

    @property
    def canary(self) -> Path:
        return self.root / "canary"

    def snapshot(self) -> dict[str, tuple[int, int, str]]:
        """Every file below the folder: mode, time of change in ns, hash of the content."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            status = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found[str(path)] = (status.st_mode, status.st_mtime_ns, hashlib.sha256(content).hexdigest())
        return found

    def git(self, *arguments: str, hostile: bool = False) -> subprocess.CompletedProcess[str]:
        """Plain git with an empty home, as the author of the sample or (hostile) as a careless reader."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder / "home"), "LANG": "C.UTF-8"}
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=self.root, env=environment, check=not hostile, capture_output=True, text=True, timeout=20,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip


def build(folder: Path) -> Sample:
    """Create the sample in an empty folder."""
    sample = Sample(folder)
    (folder / "outside").mkdir()
    (folder / "home").mkdir()
    (folder / "outside" / "secret.txt").write_text(f"{MARKER}\n")
    (sample.root / "src").mkdir(parents=True)
    _write_files(sample)
    _commit(sample)
    _write_traps(sample)
    return sample


def _write_files(sample: Sample) -> None:
    (sample.root / "README.md").write_text("hello\n")
    (sample.root / "src" / "app.py").write_text("x = 1\n")
    (sample.root / "-r").write_text("dash\n")
    (sample.root / ".gitattributes").write_text("*.md diff=evil\n")
    sample.canary.write_text(f"#!/bin/sh\necho ran >>{sample.ran}\n")
    sample.canary.chmod(0o755)


def _commit(sample: Sample) -> None:
    sample.git("init", "--quiet", "--initial-branch=main", ".")
    sample.git("config", "user.name", "Sample Author")
    sample.git("config", "user.email", "sample@example.org")
    sample.git("add", "--", "README.md", "src", ".gitattributes", "canary", "./-r")
    sample.git("commit", "--quiet", "-m", "first")
    (sample.root / "README.md").write_text("hello\nmore\n")
    sample.git("commit", "--quiet", "-a", "-m", "second")
    sample.git("tag", "v1")
    (sample.root / "README.md").write_text("hello\nmore\nwork in progress\n")
    (sample.root / "scratch.txt").write_text("scratch\n")


def _write_traps(sample: Sample) -> None:
    hooks = sample.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\necho ran >>{sample.ran}\n")
        (hooks / name).chmod(0o755)
    config = _HOSTILE_CONFIG.format(
        canary=sample.canary, hooks=hooks, outside=sample.folder / "outside/secret.txt"
    )
    with (sample.root / ".git" / "config").open("a") as file:
        file.write(config)
    (sample.root / "leak").symlink_to("../outside/secret.txt")
    (sample.root / "leak_folder").symlink_to("../outside")
    (sample.root / "leak_proc").symlink_to("/proc/self/environ")
    os.mkfifo(sample.root / "pipe")
