"""On a host that denies something: doctor and serve name the layer and the remedy, and no tool is started.

Nothing is played: a filter around the process really refuses the calls, as a container's or a security module's would.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.server import REPO

DENY = """\
import errno, os, sys
import pyseccomp as s
from sandbox import abi, syscalls
f = s.SyscallFilter(s.ALLOW)
what = sys.argv[1]
f.add_rule(s.ERRNO(errno.ENOSYS), abi.NUMBERS["clone3"])  # as Docker does; everything falls back to clone
if what == "namespaces":
    f.add_rule(s.ERRNO(errno.EPERM), abi.NUMBERS["clone"], s.Arg(0, s.MASKED_EQ, abi.CLONE_NEWUSER, abi.CLONE_NEWUSER))
elif what == "mounts":
    for name in ("mount", "fsopen"):
        f.add_rule(s.ERRNO(errno.EPERM), s.resolve_syscall(s.Arch.NATIVE, name))
elif what == "landlock":
    f.add_rule(s.ERRNO(errno.EOPNOTSUPP), abi.NUMBERS["landlock_create_ruleset"])
elif what == "keyring":
    f.add_rule(s.ERRNO(errno.EPERM), abi.NUMBERS["keyctl"])
syscalls.prctl(abi.PR_SET_NO_NEW_PRIVS, 1)
f.load()
os.execv(sys.executable, [sys.executable, "-m", "runner", *sys.argv[2:]])
"""


def denied(what: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", DENY, what, *words], input=stdin, capture_output=True, text=True, timeout=60,
        cwd=REPO, check=False,
    )  # fmt: skip


def test_without_clone3_alone_everything_works() -> None:
    assert denied("nothing", "doctor").returncode == 0


@pytest.mark.parametrize("layer", ["namespaces", "mounts", "landlock", "keyring"])
def test_doctor_names_the_layer_and_the_remedy(layer: str) -> None:
    done = denied(layer, "doctor", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"]) == (2, False)
    states = {entry["layer"]: entry["state"] for entry in report["layers"]}
    assert states[layer] == "failed"
    assert "available" not in states.values()
    assert len(report["remedy"]) > 20
    shown = denied(layer, "doctor").stdout
    assert "What to do:" in shown
    assert "never runs a tool in half a cage" in shown


@pytest.mark.parametrize("layer", ["namespaces", "mounts", "landlock", "keyring"])
def test_serve_ends_with_the_layer_before_a_tool_is_listed(layer: str, place: Path) -> None:
    (place / "policy.toml").write_text('presets = ["files"]\n[server]\nname = "x"\nroot = "root"\n')
    (place / "policy.toml").chmod(0o600)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
             "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    done = denied(
        layer, "serve", str(place / "policy.toml"), stdin=f"{json.dumps(hello)}\n{json.dumps(listing)}\n"
    )
    assert done.returncode == 2, done.stderr
    assert layer in done.stderr
    assert "what to do" in done.stderr
    assert '"id":2' not in done.stdout
