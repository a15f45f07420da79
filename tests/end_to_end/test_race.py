"""D5, the rename race: a path is swapped for a symlink to outside between every look and every open. Nothing escapes.

A flipper exchanges, as fast as it can, a folder of the root with a symlink to a folder outside that holds a file of the
same name (renameat2 RENAME_EXCHANGE). Whoever checks a path and then opens it by name reads the wrong file within
milliseconds; the control shows that.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.errors import PathRefused
from sandbox.root import open_root
from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Server
from tests.end_to_end.waiting import PATIENCE
from tests.live.cage import PYTHON, outside

TRIES = 10_000
FLIPPER = """\
import ctypes, os, sys
renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
folder, link = (os.fsencode(path) for path in sys.argv[1:])
if renameat2(-100, folder, -100, link, 2):
    raise OSError(ctypes.get_errno(), "renameat2")
print("flipping", flush=True)
while True:
    for _ in range(200):
        renameat2(-100, folder, -100, link, 2)
    os.sched_yield()
"""
READING = """\
import collections, json, sys
found = collections.Counter()
for _ in range({tries}):
    try:
        with open({path!r}) as file:
            text = file.read()
    except OSError:
        text = "refused"
    found[text.strip()] += 1
print(json.dumps(found))
"""
INSIDE, OUTSIDE = "inside", "OUTSIDE-MARKER-4711"


@pytest.fixture
def trap(place: Path) -> Path:
    """root/folder/file.txt says INSIDE; root/link leads to a folder whose file.txt says OUTSIDE."""
    for folder, word in ((place / "root" / "folder", INSIDE), (place / "elsewhere", OUTSIDE)):
        folder.mkdir()
        (folder / "file.txt").write_text(word)
    (place / "root" / "link").symlink_to(place / "elsewhere")
    return place


@contextmanager
def flipping(place: Path) -> Iterator[None]:
    paths = [str(place / "root" / name) for name in ("folder", "link")]
    command = [PYTHON, "-I", "-S", "-c", FLIPPER, *paths]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"flipping\n"
            yield
            assert process.poll() is None
        finally:
            process.kill()


def test_control_outside_the_cage_the_other_file_is_read(trap: Path) -> None:
    said = ""
    with flipping(trap):
        for _ in range(50):  # on a busy machine one run may fall between two flips
            said += outside(READING.format(tries=2000, path=str(trap / "root" / "folder" / "file.txt")))
            if OUTSIDE in said and INSIDE in said:
                break
    assert OUTSIDE in said
    assert INSIDE in said


def test_the_look_of_the_front_never_leaves_the_root(trap: Path) -> None:
    root = open_root(str(trap / "root"))
    beyond = os.stat(trap / "elsewhere" / "file.txt").st_ino
    found: Counter[str] = Counter()
    deadline = time.monotonic() + PATIENCE
    leaves = "the path leaves the root folder"
    with flipping(trap):
        while (
            found.total() < TRIES or min(found["looked"], found[leaves]) <= 100
        ):  # a busy machine may swap rarely
            assert time.monotonic() < deadline, found
            try:
                assert root.look("folder/file.txt", kind="file") == "folder/file.txt"
                descriptor = root._open("folder/file.txt")  # what the look itself opened a moment before
                assert os.fstat(descriptor).st_ino != beyond
                os.close(descriptor)
            except OSError:
                found["opened"] += 1
            except PathRefused as refused:
                found[refused.message] += 1
            else:
                found["looked"] += 1
    root.close()


def test_workers_never_read_the_other_file(trap: Path) -> None:
    code = READING.replace("{path!r}", "sys.argv[2]").format(tries=2000)
    named = {"batch": python(code, "{path}", params=tools.PATH), "read": tools.READ}
    with Server(write_policy(trap, named, presets=["files"])) as server:
        server.shake()
        totals: Counter[str] = Counter()
        with flipping(trap):
            while totals["tries"] < TRIES:
                result = server.call("batch", {"path": "folder/file.txt"})
                if result.meta["outcome"] == "refused":
                    continue
                counts = json.loads(result.body)
                totals.update(counts)
                totals["tries"] += sum(counts.values())
            single = single_calls(server)
    assert set(totals) == {INSIDE, "refused", "tries"}, totals
    assert min(totals[INSIDE], totals["refused"]) > 100
    assert single["read"] > 0
    assert single["refused"] > 10
    assert OUTSIDE.encode() not in server.received


def single_calls(server: Server) -> Counter[str]:
    """Some hundred calls of their own: each looks, then opens in its cage."""
    found: Counter[str] = Counter()
    names = ("read", "read_file", "read_file_end", "read_file_start") * 2
    for _ in range(50):
        ids = [server.begin(name, {"path": "folder/file.txt"}) for name in names]
        for id_ in ids:
            result = server.result(id_)
            assert OUTSIDE not in result.text
            if not result.is_error:
                assert result.body == INSIDE
                found["read"] += 1
            else:
                found[str(result.meta["outcome"])] += 1
    return found
