"""A ReachWeaver workspace with accounts, posts and input files, made by ReachWeaver itself outside any cage."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.end_to_end.reachweaver import inputs
from tests.end_to_end.reachweaver.servers import ENVIRONMENT, PROGRAM


@dataclass(frozen=True, slots=True)
class Workspace:
    """`post` is the id of a draft; `made_ns` the time after which nothing may change any more."""

    folder: Path
    post: str
    made_ns: int


def make(folder: Path) -> Workspace:
    """Fails with ReachWeaver's words when it refuses a step."""
    folder.mkdir()
    _run(folder, "workspace", "--init")
    _run(folder, "init")
    _run(folder, "account-add", "bluesky", "--id", "blue", "--handle", "lab.bsky.social")
    _run(
        folder,
        "account-add",
        "mastodon",
        "--id",
        "mast",
        "--handle",
        "lab",
        "--server",
        "https://mastodon.social",
    )
    post = _draft(folder, "blue", "The release is out. It reads old files.")
    _draft(folder, "mast", "Ein Test · 日本語 🎉 for all of you.")
    _run(
        folder, "posted", "https://bsky.app/profile/lab.bsky.social/post/3kabcdefgh2a", "--likes", "12",
        "--views", "300", "--at", "2026-10-20T10:00:00Z", "--text", "By hand", "--account", "blue",
    )  # fmt: skip
    _run(folder, "review-packet", "--post-id", post, "--out", "packet")
    (folder / "in").mkdir()
    for name, data in inputs.files(post).items():
        (folder / "in" / name).write_bytes(data)
    (folder / "in" / "link.txt").symlink_to("text.txt")
    (folder / "in" / "out.txt").symlink_to("/etc/hostname")
    return Workspace(folder, post, max(path.lstat().st_mtime_ns for path in folder.rglob("*")))


def _draft(folder: Path, account: str, text: str) -> str:
    said = json.loads(_run(folder, "draft", "--account", account, "--text", text, "--json"))
    return str(said["created"][0]["post_id"])


def _run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [PROGRAM, *words],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout
