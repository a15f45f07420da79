"""As root: nothing that a call mounts appears on the host, and nothing that the host mounts appears in a cage.

Played in a mount namespace of its own whose mounts are shared, as on every host with systemd.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """\
import subprocess, sys
from pathlib import Path
from sandbox.types import Profile
from tests.live.cage import PYTHON, cage, said

def mounts():
    with open("/proc/self/mountinfo") as file:
        return file.readlines()

place = Path(sys.argv[1])
root, data = place / "root", place / "root" / "data"
data.mkdir(parents=True)
(data / "word").write_text("data")
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(place / "root")], check=True)
data.mkdir()
(data / "word").write_text("data")
assert any("shared:" in line for line in mounts()), "the control: mounts here are shared"
before = mounts()
look = "import os\\nprint(open('data/word').read(), os.listdir('late'))"
(root / "late").mkdir()
profile = Profile("more", (PYTHON, "-I", "-S", "-c"), str(root), read_only=(str(data),))
with cage(root, profile) as made:
    for _ in range(3):
        assert said(made.call("more", look)) == "data []"
        assert mounts() == before, "a call mounted something here"
    waiting = "import os, sys\\nsys.stdout.write('up'); sys.stdout.flush(); sys.stdin.read(); print(os.listdir('late'))"
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(root / "late")], check=True)
    (root / "late" / "x").write_text("x")
    (data / "new").write_text("n")
    assert "new" in said(made.call("more", "import os\\nprint(os.listdir('data'))"))
    flags = "import os\\nprint(os.statvfs('late').f_flag & os.ST_RDONLY, os.statvfs('late').f_flag & os.ST_NODEV)"
    assert said(made.call("more", flags)) == f"{1} {4}", "a later mount is as read-only as the rest"
(data / "still").write_text("writable")
print("held")
"""


@pytest.mark.root_only
def test_calls_and_host_do_not_see_each_others_mounts(place: Path) -> None:
    target = place / "propagation"
    target.mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "shared", sys.executable, "-c", SCRIPT, str(target)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("held\n", 0), done.stderr
