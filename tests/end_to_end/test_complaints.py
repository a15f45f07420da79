"""What users of other sandboxes met, tried with the real server: it never opens without its cage, and leaves nothing.

The hosts are those of tests/live/rungs.py: the launcher, and with it every worker, is really refused something.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.cli import VERBS
from runner.mcp.eras import CALL_KEY
from sandbox import ladder
from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import REPO, SYSTEM_PATH, Server
from tests.end_to_end.waiting import PATIENCE, all_gone
from tests.live.cage import PYTHON, outside
from tests.live.rungs import HOSTS

WEAKEST = ladder.NAMES[-1]
# Runs `toolcage` with a launcher that is on a host of its own; `before` are statements for the front.
ON_HOST = """\
import sys
from sandbox import spawn
{before}
path, main = spawn._START.split("; from sandbox.launcher", 1)
spawn._START = f"{{path}}\\n" + {prelude!r} + f"\\nfrom sandbox.launcher{{main}}"
from runner.cli import main
sys.exit(main(sys.argv[1:]))
"""
TOOLS = {"hang": tools.HANGS, "echo": tools.ECHO, "read": tools.READ}
ACCEPTS_ALL = {"floor": WEAKEST}


def on(host: str, before: str = "") -> str:
    return ON_HOST.format(prelude=HOSTS[host][0] if host != "here" else "pass", before=before)


def toolcage(
    *words: str, wrapper: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", wrapper, *words], cwd=REPO, capture_output=True, text=True, check=False,
        env={"PATH": SYSTEM_PATH, "HOME": "/nonexistent", **(env or {})}, input=conversation(), timeout=PATIENCE * 2,
    )  # fmt: skip


def conversation() -> str:
    """A client that wants tools and a call, whatever it takes, and asks for less of a cage in every place it has."""
    less = {"sandbox": False, "floor": WEAKEST, "dangerouslyDisableSandbox": True}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"experimental": {"toolcage": less}},
             "clientInfo": {"name": "claude-code", "version": "1"}, "_meta": less}  # fmt: skip
    call = {"name": "echo", "arguments": {"text": "ran"}, "_meta": {"io.github.toolcage/floor": WEAKEST}}
    lines: list[tuple[str, dict[str, Any]]] = [
        ("initialize", hello), ("tools/list", {}), ("sandbox/disable", less), ("tools/call", call),
    ]  # fmt: skip
    return "".join(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
        for number, (method, params) in enumerate(lines, 1)
    )


def listed_or_called(done: subprocess.CompletedProcess[str]) -> bool:
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return any(answer.get("id") in (2, 4) and "result" in answer for answer in answers)


def nothing_ran(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """The server ended with a reason and a remedy, and neither listed nor called a tool."""
    assert done.returncode == 2, done
    assert not listed_or_called(done)
    for word in words:
        assert word in done.stderr, done.stderr


# ---- never without a cage --------------------------------------------------------------------------------------------


LESS = (
    "--floor",
    "--no-sandbox",
    "--unsafe",
    "--force",
    "--dangerously-skip-permissions",
    "--sandbox",
    "--rung",
)


@pytest.mark.parametrize("host", ["no-landlock", "container"])
def test_no_flag_no_variable_and_no_message_lowers_the_floor(place: Path, host: str) -> None:
    rung, wrapper = HOSTS[host][1], on(host)
    policy = str(write_policy(place, TOOLS))
    variables = {f"{start}{name}": value for start in ("TOOLCAGE_", "") for name, value in
                 (("FLOOR", WEAKEST), ("SANDBOX", "0"), ("NO_SANDBOX", "1"), ("UNSAFE", "1"))}  # fmt: skip
    nothing_ran(toolcage("serve", policy, wrapper=wrapper, env=variables), "what to do", f'floor = "{rung}"')
    for flag in LESS:
        nothing_ran(toolcage("serve", policy, f"{flag}={WEAKEST}", wrapper=wrapper), "usage: toolcage")
    # the controls: the operator's file can, and then the client gets the rung of the host, whatever it asks for
    accepting = str(write_policy(place, TOOLS, name="accepting.toml", server={"floor": rung}))
    done = toolcage("serve", accepting, wrapper=wrapper)
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0, done.stderr
    assert answers[3]["error"]["code"] == -32601
    cage = answers[4]["result"]["_meta"][CALL_KEY]["cage"]
    assert (cage["rung"], bool(cage["lost"]), cage["no_new_privs"]) == (rung, True, True)


def test_no_verb_offers_less_of_a_cage() -> None:
    for words in ((), *((verb,) for verb in VERBS)):
        text = toolcage(*words, "--help", wrapper=on("here")).stdout
        assert "usage: toolcage" in text
        for flag in LESS:
            assert flag not in text


@pytest.mark.parametrize(
    ("server", "tool"),
    [({"floor": "none"}, {}), ({"floor": ""}, {}), ({"floor": []}, {}), ({}, {"floor": WEAKEST}), ({"sandbox": False}, {})],
)  # fmt: skip
def test_a_floor_that_is_no_rung_or_stands_elsewhere_is_refused(
    place: Path, server: dict[str, object], tool: dict[str, object]
) -> None:
    policy = write_policy(place, {"echo": tools.ECHO | tool}, server=server)
    nothing_ran(toolcage("serve", str(policy), wrapper=on("here")), "what to do")


# What goes wrong with the launcher -> statements that make it so, and a word of the reason.
TROUBLE = {
    "it ends at once": ("spawn._START = 'raise SystemExit(0); from sandbox.launcher'", "launcher"),
    "it says what it cannot do": (
        "spawn._START = spawn._START.replace('; from sandbox.launcher', '\\nimport dataclasses\\n"
        "from sandbox import probing, syscalls\\nlook = probing.look\\n"
        "probing.look = lambda base: dataclasses.replace(look(base), landlock=7)\\n"
        "def refuse(*_): raise OSError(95, \"refused\")\\nsyscalls.landlock_ruleset = refuse; from sandbox.launcher')",
        "landlock",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TROUBLE)
def test_a_cage_that_cannot_be_built_ends_the_server(place: Path, what: str) -> None:
    """Also where the launcher believes that it can: one cage is proved before a tool is listed."""
    before, word = TROUBLE[what]
    policy = str(write_policy(place, TOOLS, server=ACCEPTS_ALL))
    done = toolcage("serve", policy, wrapper=on("here", before))
    assert not listed_or_called(done)
    assert done.returncode == 2, done
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    control = toolcage("serve", policy, wrapper=on("here"))
    assert (control.returncode, listed_or_called(control)) == (0, True), control.stderr


def test_a_launcher_that_cannot_be_started_is_said_in_words(place: Path) -> None:
    policy = str(write_policy(place, TOOLS))
    done = toolcage("serve", policy, wrapper=on("here", "sys.executable = '/nonexistent/python'"))
    assert not done.stdout
    nothing_ran(done, "launcher", "what to do")


# ---- what a client says ----------------------------------------------------------------------------------------------


def test_a_client_chooses_neither_working_folder_nor_root(place: Path) -> None:
    where = python("import os; print(os.getcwd())")
    with Server(write_policy(place, TOOLS | {"where": where})) as server:
        server.shake()
        for name in ("cwd", "root", "workdir", "env", "command"):
            refused = server.call("where", {name: "/"})
            assert (refused.is_error, refused.meta["outcome"]) == (True, "refused")
            assert f"unknown argument '{name}'" in refused.text
        server.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        answer = server.ask(
            "tools/call", {"name": "where", "arguments": {}, "cwd": "/", "_meta": {"cwd": "/"}}
        )
        assert answer["content"][0]["text"].endswith(str(place / "root"))  # fmt: skip


WORDS = ("--root=/", f"--floor={WEAKEST}", "--ro-bind / /", "$(id)", "; id", "@/etc/passwd")


def test_values_are_words_of_the_tool_and_never_options_of_the_cage(place: Path) -> None:
    named = python("import sys; print(sys.argv)", "--text={text}", params=tools.TEXT | {
        "text": {"type": "string", "required": True, "allow_at": True}})  # fmt: skip
    with Server(write_policy(place, TOOLS | {"named": named})) as server:
        server.shake()
        for value in WORDS:
            result = server.call("named", {"text": value})
            assert result.body == str(["-c", "--", f"--text={value}"])
            assert result.meta["cage"]["rung"] in ladder.NAMES
        assert server.call("echo", {"text": "--root=/"}).meta["outcome"] == "refused"
        assert server.call("echo", {"text": "a\0--root=/"}).meta["outcome"] == "refused"
        (place / "root" / "--help").write_text("a file\n")
        assert server.call("read", {"path": "--help"}).meta["outcome"] == "refused"
        assert server.call("read", {"path": "./--help"}).body == "a file"


FORK = "import os\ntry:\n pid = os.fork()\nexcept OSError as e: print('refused', e.errno)\nelse:\n print('forked') if pid else os._exit(0)"


def test_an_empty_list_of_programs_is_none(place: Path) -> None:
    policy = write_policy(place, {"fork": python(FORK, processes=[]), "any": python(FORK, processes="any")})
    with Server(policy) as server:
        server.shake()
        assert server.call("any").body == "forked"
        assert server.call("fork").body == "refused 1"


def test_other_empty_lists_give_nothing(place: Path) -> None:
    reading = f"import os\nprint(sorted(os.environ), os.path.exists({str(place / 'outside.txt')!r}))"
    policy = write_policy(
        place, {"look": python(reading, env=[], read_only_paths=[])}, presets=[], withhold=[]
    )
    with Server(policy, env={"SOMETHING": "x"}) as server:
        server.shake()
        assert [tool["name"] for tool in server.ask("tools/list")["tools"]] == ["look", "read_output"]
        fixed = ["HOME", "LANG", "NO_COLOR", "PAGER", "PATH", "TERM", "TMPDIR", "TZ"]
        assert server.call("look").body == f"{fixed} False"
    assert outside(reading, env={"SOMETHING": "x"}).startswith("['LC_CTYPE', 'SOMETHING'] True")


@pytest.mark.parametrize("host", ["here", *sorted(HOSTS)])
def test_no_variable_of_the_client_reaches_a_tool(place: Path, host: str) -> None:
    injected = dict.fromkeys(
        ("BASH_ENV", "LD_AUDIT_X", "GIT_SSH_COMMAND", "PERL5LIB", "NODE_OPTIONS"), "/tmp/evil"
    )
    look = python("import os; print(sorted(os.environ))")
    policy = write_policy(place, {"look": look}, server=ACCEPTS_ALL)
    with Server(policy, env=injected, wrapper=on(host)) as server:
        server.shake()
        assert server.call("look").body == str(
            ["HOME", "LANG", "NO_COLOR", "PAGER", "PATH", "TERM", "TMPDIR", "TZ"]
        )
        assert set(injected) <= set(server.me.environ())  # fmt: skip


# ---- what is left ----------------------------------------------------------------------------------------------------


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=root, capture_output=True, text=True,
        check=True, env={"PATH": SYSTEM_PATH, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip
    return done.stdout


def left_by(launcher: int) -> list[str]:
    places = [*glob.glob("/sys/fs/cgroup/**/toolcage-*", recursive=True), *glob.glob("/tmp/toolcage-*")]
    return [path for path in places if str(launcher) in os.path.basename(path).split("-")]


@pytest.mark.parametrize("host", ["here", *sorted(HOSTS)])
def test_a_server_that_was_killed_leaves_the_root_as_it_was(place: Path, host: str) -> None:
    """SIGKILL in the middle of a call, and while a cage is being built. Nobody has time to clean up, nobody has to."""
    root = place / "root"
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "all")
    before = {path: path.lstat() for path in root.rglob("*") if ".git" not in path.parts}
    policy = write_policy(place, TOOLS, server=ACCEPTS_ALL)
    launchers = []
    for running in (True, False):
        with Server(policy, wrapper=on(host)) as server:
            server.shake()
            assert server.call("echo", {"text": "ran"}).body == "ran"
            launchers.append(server.launcher.pid)
            server.begin("hang")
            family = server.family(tools.HANGING) if running else [server.me, server.launcher]
            server.process.kill()
            all_gone(family, PATIENCE)
    assert {path: path.lstat() for path in root.rglob("*") if ".git" not in path.parts} == before
    assert git(root, "status", "--porcelain", "--ignored", "--untracked-files=all") == ""
    (root / ".bashrc").touch()
    assert git(root, "status", "--porcelain") == "?? .bashrc\n"  # the control: a placeholder would be seen
    with Server(policy, wrapper=on(host)) as server:
        server.shake()
        assert server.call("echo", {"text": "ran"}).body == "ran"
        assert [path for launcher in launchers for path in left_by(launcher)] == []
        server.stop()


def test_tools_need_no_program_of_ours_inside(place: Path) -> None:
    """There is no helper that a policy could hide from itself: what a tool sees names nothing of Toolcage."""
    code = f"import os\nprint(os.path.exists({str(REPO)!r}), os.readlink('/proc/self/exe'))"
    with Server(write_policy(place, {"look": python(code)})) as server:
        server.shake()
        assert server.call("look").body == f"False {os.path.realpath(PYTHON)}"
    assert outside(code).startswith("True")
