"""Which files exist inside, and that nothing but /tmp can be written. Each probe works outside first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.live.cage import ROOT, Cage, cage, outside, probe, said


def refused(held: Cage, body: str, *errnos: str) -> None:
    """The probe works outside, and inside it is stopped with one of `errnos`."""
    assert outside(probe(body)) == "WORKED"
    answer = said(held.call("python", probe(body)))
    assert answer in {f"BLOCKED {name}" for name in errnos}, answer


def test_the_root_folder_is_readable(held: Cage, place: Path) -> None:
    assert said(held.call("python", f"print(open({str(place / 'root/inside.txt')!r}).read())")) == "inside"
    assert said(held.call("python", "print(open('inside.txt').read())")) == "inside"


def test_a_file_beside_the_root_does_not_exist(held: Cage, place: Path) -> None:
    refused(held, f"open({str(place / 'outside.txt')!r}).read()", "ENOENT")


def test_a_relative_path_does_not_leave_the_root(held: Cage, place: Path) -> None:
    assert said(held.call("python", probe("open('../outside.txt').read()"))) == "BLOCKED ENOENT"
    assert (
        outside(probe(f"import os\nos.chdir({str(place / 'root')!r})\nopen('../outside.txt').read()"))
        == "WORKED"
    )


@pytest.mark.parametrize("target", ["{place}/outside.txt", "../outside.txt"])
def test_a_symlink_out_of_the_root_leads_nowhere(held: Cage, place: Path, target: str) -> None:
    link = place / "root" / "link"
    link.symlink_to(target.format(place=place))
    try:
        refused(held, f"open({str(link)!r}).read()", "ENOENT")
    finally:
        link.unlink()


def test_the_home_folder_does_not_exist(held: Cage) -> None:
    refused(held, f"import os\nos.listdir({os.path.expanduser('~')!r})", "ENOENT")


def test_shadow_does_not_exist(held: Cage) -> None:
    body = "import os\nos.stat('/etc/shadow')"
    refused(held, body, "ENOENT")
    if ROOT:
        refused(held, "open('/etc/shadow').read()", "ENOENT")


def test_passwd_names_nobody_of_this_host(held: Cage) -> None:
    assert "root:" in outside("print(open('/etc/passwd').read())")
    assert "root" not in said(held.call("python", "print(open('/etc/passwd').read())"))


def test_another_process_has_no_environment_here(held: Cage) -> None:
    refused(held, f"open('/proc/{os.getpid()}/environ').read()", "ENOENT")
    assert said(held.call("python", probe("open('/proc/1/environ').read()"))).startswith("BLOCKED")
    assert said(held.call("python", probe("open('/proc/self/environ').read()"))) == "WORKED"


def test_no_sysctl_and_no_sysfs(held: Cage) -> None:
    refused(held, "open('/proc/sys/kernel/core_pattern').read()", "ENOENT")
    refused(held, "import os\nos.listdir('/sys')", "ENOENT")


@pytest.mark.parametrize("device", ["/dev/tty", "/dev/shm", "/dev/pts", "/dev/mem", "/dev/kmsg"])
def test_no_device_besides_four(held: Cage, device: str) -> None:
    assert said(held.call("python", probe(f"import os\nos.lstat({device!r})"))) == "BLOCKED ENOENT"
    assert said(held.call("python", probe("open('/dev/urandom', 'rb').read(8)"))) == "WORKED"


def test_tmp_is_private_and_writable(held: Cage) -> None:
    assert said(held.call("python", probe("open('/tmp/mine', 'w').write('x')"))) == "WORKED"
    refused_again = probe("open('/tmp/mine').read()")
    assert said(held.call("python", refused_again)) == "BLOCKED ENOENT"  # the next call has another /tmp


@pytest.mark.parametrize(
    "target", ["/usr/x", "/etc/x", "/x", "/dev/x", "/home/x", "{root}/x", "/proc/self/comm"]
)
def test_nothing_else_is_writable(held: Cage, place: Path, target: str) -> None:
    path = target.format(root=place / "root")
    answer = said(held.call("python", probe(f"open({path!r}, 'w').write('x')")))
    assert answer in {"BLOCKED EROFS", "BLOCKED EACCES", "BLOCKED ENOENT", "BLOCKED EPERM"}, answer
    assert outside(probe(f"open({str(place / 'root/x')!r}, 'w').write('x')")) == "WORKED"
    (place / "root/x").unlink()


@pytest.mark.parametrize(
    "body",
    [
        "import os\nos.unlink({file!r})",
        "import os\nos.rename({file!r}, {file!r} + '2')",
        "import os\nos.chmod({file!r}, 0o777)",
        "import os\nos.truncate({file!r}, 0)",
        "import os\nos.mkdir({file!r} + '.d')",
        "import os\nos.symlink('x', {file!r} + '.l')",
        "import os\nos.utime({file!r})",
        "import os\nos.setxattr({file!r}, 'user.x', b'1')",
        "import os\nos.mkfifo({file!r} + '.f')",
    ],
)
def test_the_root_folder_cannot_be_changed(held: Cage, place: Path, body: str) -> None:
    victim = place / "root" / "victim"
    victim.write_text("v")
    before = os.stat(victim)
    answer = said(held.call("python", probe(body.format(file=str(victim)))))
    assert answer in {"BLOCKED EROFS", "BLOCKED EACCES", "BLOCKED EPERM"}, answer
    after = os.stat(victim)
    assert (before.st_mtime_ns, before.st_mode, before.st_size) == (
        after.st_mtime_ns,
        after.st_mode,
        after.st_size,
    )
    assert outside(probe(body.format(file=str(victim)))) == "WORKED"
    for left in (place / "root").glob("victim*"):
        left.rmdir() if left.is_dir() else left.unlink()


@pytest.mark.root_only
def test_as_root_the_files_of_the_root_folder_stay_readable(place: Path) -> None:
    private = place / "private"
    private.mkdir(mode=0o700)
    (private / "secret").write_text("mine\n")
    (private / "secret").chmod(0o600)
    with cage(private) as made:
        assert said(made.call("python", "print(open('secret').read())")) == "mine"
        assert said(made.call("python", "import os; print(os.getuid(), os.getgid())")) == "1000 1000"


def test_no_inherited_descriptor(held: Cage) -> None:
    code = "import os\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
    assert said(held.call("python", code)) == "[0, 1, 2, 3]"  # 3 is the listing itself


def test_the_environment_is_built_from_nothing(held: Cage) -> None:
    code = "import os\nprint(sorted(os.environ))"
    expected = ["HOME", "LANG", "NO_COLOR", "PAGER", "PATH", "TERM", "TMPDIR", "TZ"]
    assert said(held.call("python", code)) == str(expected)
    assert "CANARY" in outside(code, env={"CANARY": "1"})


def test_stdin_is_what_the_call_gives(held: Cage) -> None:
    code = "import sys\nprint(len(sys.stdin.read()))"
    assert said(held.call("python", code)) == "0"
    assert said(held.call("python", code, stdin=b"x" * 300_000)) == "300000"
