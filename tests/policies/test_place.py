"""policies.place: whose policy is trusted, and which folder may be the root."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from policies import place
from policies.errors import BadKeyError, PolicyRefused
from policies.model import ServerTable


def test_a_private_policy_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text("x = 1")
    file.chmod(0o644)
    assert place.read(str(file)) == b"x = 1"


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_policy_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "p.toml"
    file.write_text("x = 1")
    file.chmod(mode)
    with pytest.raises(PolicyRefused, match="can be changed") as caught:
        place.read(str(file))
    assert "chmod go-w" in caught.value.remedy


def test_a_policy_in_a_folder_that_everyone_can_change_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    file = folder / "p.toml"
    file.write_text("x = 1")
    file.chmod(0o600)
    folder.chmod(0o1777)
    assert place.read(str(file))
    folder.chmod(0o777)
    with pytest.raises(PolicyRefused, match="everyone may replace"):
        place.read(str(file))


def test_a_policy_in_a_folder_that_a_group_can_change_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group of the folder is the caller's own; who else is in it, the group database says."""
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o775)
    folder.chmod(0o775)
    file = folder / "p.toml"
    file.write_text("x = 1")
    file.chmod(0o600)
    group = os.stat(folder).st_gid
    own, stranger = pwd.getpwuid(os.geteuid()), pwd.getpwnam("daemon")
    for members, refused in (([], False), ([own.pw_name], False), ([own.pw_name, stranger.pw_name], True)):
        entry = grp.struct_group(("shared", "x", group, members))
        monkeypatch.setattr(grp, "getgrgid", lambda _group, entry=entry: entry)
        monkeypatch.setattr(pwd, "getpwall", lambda: [own])
        if refused:
            with pytest.raises(PolicyRefused, match="its group or everyone may replace"):
                place.read(str(file))
        else:
            assert place.read(str(file)) == b"x = 1"
    folder.chmod(0o755)
    assert place.read(str(file)) == b"x = 1"


@pytest.mark.root_only
def test_as_root_the_home_of_no_person_is_a_root_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tools may read what is private to the owner of the root."""
    person = tmp_path / "people" / "joe"
    (person / "project").mkdir(parents=True)
    entry = pwd.struct_passwd(("joe", "x", 1000, 1000, "", str(person), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [entry])
    environment = {"HOME": "/root"}
    for path in (person, person.parent):
        with pytest.raises(BadKeyError, match="holds a home folder"):
            place.root(server(str(path)), "/", None, environment)
        assert place.root(server(str(path), allow_home=True), "/", None, environment) == str(path)
    assert place.root(server(str(person / "project")), "/", None, environment) == str(person / "project")


@pytest.mark.root_only
def test_a_policy_of_another_user_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text("x = 1")
    file.chmod(0o600)
    os.chown(file, 12345, 12345)
    with pytest.raises(PolicyRefused, match="another user"):
        place.read(str(file))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * (place.MAX_FILE + 1))
    (tmp_path / "large").chmod(0o600)
    for name, words in (
        ("pipe", "regular"),
        ("missing", "No such file"),
        ("large", "larger"),
        (".", "regular"),
    ):
        with pytest.raises(PolicyRefused, match=words):
            place.read(str(tmp_path / name))


def server(root: str | None, *, allow_home: bool = False, allow_root_dir: bool = False) -> ServerTable:
    return ServerTable(name="x", root=root, allow_home=allow_home, allow_root_dir=allow_root_dir)


def test_the_root_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert place.root(server("link"), str(tmp_path), None, {}) == str(tmp_path / "real")
    assert place.root(server(None), "/", str(tmp_path), {}) == str(tmp_path)


def test_dangerous_roots_need_a_word(tmp_path: Path) -> None:
    home = tmp_path / "home" / "me"
    home.mkdir(parents=True)
    environment = {"HOME": str(home)}
    for root in (str(home), str(tmp_path / "home")):
        with pytest.raises(BadKeyError, match="home folder"):
            place.root(server(root), "/", None, environment)
        assert place.root(server(root, allow_home=True), "/", None, environment) == root
    with pytest.raises(BadKeyError, match="whole machine"):
        place.root(server("/"), "/", None, {})
    with pytest.raises(BadKeyError, match="have already"):
        place.root(server("/", allow_root_dir=True), "/", None, {})
    whole = ServerTable(name="x", root="/", allow_root_dir=True, root_at="/host")
    assert place.root(whole, "/", None, {}) == "/"


@pytest.mark.parametrize("root", ["/proc", "/proc/self", "/sys", "/dev", "/run", "/etc", "/tmp"])
def test_what_the_kernel_or_the_cage_makes_cannot_be_lent(root: str) -> None:
    with pytest.raises(BadKeyError, match="own"):
        place.root(server(root), "/", None, {})
    with pytest.raises(BadKeyError, match="own"):
        place.existing((root,), "read_only_paths")
    assert place.existing(("/etc/hosts",), "read_only_paths") == ("/etc/hosts",)


@pytest.mark.parametrize("root", [None, "", "~", "missing", "file"])
def test_other_roots_are_refused(tmp_path: Path, root: str | None) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadKeyError):
        place.root(server(root), str(tmp_path), None, {})


def test_a_writable_root_must_not_hold_the_policy(tmp_path: Path) -> None:
    file = tmp_path / "root" / "policy.toml"
    place.outside(str(file), str(tmp_path / "root"), writable=False)
    place.outside(str(file), str(tmp_path / "roo"), writable=True)
    for root in (tmp_path / "root", tmp_path, Path("/")):
        with pytest.raises(BadKeyError, match="stands inside"):
            place.outside(str(file), str(root), writable=True)


@pytest.mark.parametrize("path", ["/usr", "/etc/x", "work", "/", "/work/../etc", "/tmp/x"])
def test_root_at_keeps_away_from_the_system(path: str) -> None:
    assert place.root_at("/work") == "/work"
    with pytest.raises(BadKeyError):
        place.root_at(path)
