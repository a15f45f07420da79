"""On a host that denies something: doctor and serve name the layer and the remedy, and no tool is started.

Nothing is played: a filter around the process really refuses the calls, as a container's or a security module's would.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runner.mcp.eras import CALL_KEY
from tests.end_to_end.server import REPO

DENY = """\
import errno, os, sys
import pyseccomp as s
from sandbox import abi, syscalls
f = s.SyscallFilter(s.ALLOW)
for what in sys.argv[1].split("+"):
    f.add_rule(s.ERRNO(errno.ENOSYS), abi.NUMBERS["clone3"])  # as Docker does; everything falls back to clone
    if what == "namespaces":
        for flag in (abi.CLONE_NEWUSER, abi.CLONE_NEWNS):  # root could do without the first
            f.add_rule(s.ERRNO(errno.EPERM), abi.NUMBERS["clone"], s.Arg(0, s.MASKED_EQ, flag, flag))
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


# what is denied -> (the layer that is missing, the rung that results)
WEAKER = {
    "namespaces": ("namespaces", "no-namespaces"),
    "mounts": ("namespaces", "no-namespaces"),
    "landlock": ("landlock", "no-landlock"),
    "keyring": (
        "namespaces",
        "no-namespaces",
    ),  # a container's filter: keys are refused, so nobody can use one
}


@pytest.mark.parametrize("what", WEAKER)
def test_doctor_names_the_layer_what_is_lost_the_fix_and_the_rung(what: str) -> None:
    layer, rung = WEAKER[what]
    done = denied(what, "doctor", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["rung"]) == (2, False, rung)
    found = next(entry for entry in report["layers"] if entry["layer"] == layer)
    assert found["state"] == "missing"
    assert "refused at step" in found["known_by"]
    assert found["lost"]
    assert len(found["remedy"]) > 20
    assert {entry["layer"] for entry in report["layers"] if entry["state"] == "failed"} == set()
    shown = denied(what, "doctor").stdout
    assert f"[{rung}]" in shown
    assert f'floor = "{rung}"' in shown
    assert "never runs a tool in half a cage" in shown


def test_doctor_says_when_nothing_can_be_built() -> None:
    done = denied("namespaces+landlock", "doctor", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["rung"]) == (2, False, None)
    states = {entry["layer"]: entry["state"] for entry in report["layers"]}
    assert (states["namespaces"], states["landlock"]) == ("missing", "missing")
    assert "neither namespaces nor Landlock" in report["problem"]
    assert "No cage can be built here" in denied("namespaces+landlock", "doctor").stdout


@pytest.mark.parametrize("layer", ["namespaces", "mounts", "landlock", "keyring"])
def test_serve_ends_with_the_layer_before_a_tool_is_listed(layer: str, place: Path) -> None:
    done = served(layer, place)
    assert done.returncode == 2, done.stderr
    assert layer in done.stderr
    assert "what to do" in done.stderr
    assert '"id":2' not in done.stdout


@pytest.mark.parametrize("what", WEAKER)
def test_a_policy_that_accepts_the_rung_is_served_there(what: str, place: Path) -> None:
    done = served(what, place, f'floor = "{WEAKER[what][1]}"\n')
    assert done.returncode == 0, done.stderr
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert "inside" in answers[3]["result"]["content"][0]["text"]
    assert answers[3]["result"]["_meta"][CALL_KEY]["cage"]["rung"] == WEAKER[what][1]


def served(what: str, place: Path, floor: str = "") -> subprocess.CompletedProcess[str]:
    """A short conversation with `serve` on a host that denies something."""
    policy = place / f"policy-{what}.toml"
    policy.write_text(f'presets = ["files"]\n[server]\nname = "x"\nroot = "root"\n{floor}')
    policy.chmod(0o600)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
             "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": {"name": "read_file", "arguments": {"path": "inside.txt"}}}  # fmt: skip
    lines = "".join(json.dumps(line) + "\n" for line in (hello, listing, call))
    return denied(what, "serve", str(policy), stdin=lines)
