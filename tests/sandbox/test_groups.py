"""Cgroups without a kernel: awkward mount tables, paths, counters in strange forms, and the plan's value."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import cgroupfs
from sandbox.cgroupfs import GroupMount, Membership
from sandbox.steps.cgroup import Cgroup, Counted, Counters, Leaf
from sandbox.types import Limits

MOUNTINFO = rb"""22 27 0:21 / /proc rw,relatime - proc proc rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct
39 31 0:36 /docker/a\040b\134c /mnt/with\040space\011tab rw,relatime shared:3 - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 /../.. /sys/fs/cgroup/unified ro,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
42 31 0:38 /user.slice /other rw propagate_from:2 unbindable - cgroup2 none rw
43 31 0:50 / /data/-\040cgroup2 rw - ext4 /dev/a-b rw,memory
44 31 0:51 /x
45 31 0:52 / /cgroup rw - cgroup2

\xff\xfe - -
"""


def test_cgroup_mounts_are_found_and_nothing_else() -> None:
    found = cgroupfs.mounts(MOUNTINFO)
    assert [mount.point for mount in found] == [
        "/sys/fs/cgroup/memory",
        "/sys/fs/cgroup/cpu,cpuacct",
        "/mnt/with space\ttab",
        "/sys/fs/cgroup/systemd",
        "/sys/fs/cgroup/unified",
        "/other",
    ]
    assert found[2].root == "/docker/a b\\c"
    assert {"cpu", "cpuacct"} <= found[1].controllers
    assert found[4] == GroupMount("/../..", "/sys/fs/cgroup/unified")


def test_a_name_with_bytes_that_are_no_text_survives() -> None:
    line = b"1 2 0:3 / /sys/\\377\xfe rw - cgroup2 cgroup2 rw"
    assert os.fsencode(cgroupfs.mounts(line)[0].point) == b"/sys/\xff\xfe"


def test_memberships() -> None:
    text = b"12:cpu,cpuacct:/a:b\n1:name=systemd:/x\n0::/user.slice/a:b c\n\nnonsense\n5:pids:relative\n"
    assert cgroupfs.memberships(text) == (
        Membership("/a:b", frozenset({"cpu", "cpuacct"})),
        Membership("/x", frozenset({"name=systemd"})),
        Membership("/user.slice/a:b c"),
    )


@pytest.mark.parametrize(
    ("root", "path", "folder"),
    [
        ("/", "/", "/m"),
        ("/", "/a/b", "/m/a/b"),
        ("/docker/1", "/docker/1", "/m"),
        ("/docker/1", "/docker/1/x", "/m/x"),
        ("/docker/1", "/docker/12", None),  # the same letters, another cgroup
        ("/docker/1", "/", None),
        ("/docker/1", "/user.slice", None),
        ("/../..", "/", None),  # the mount shows more than our namespace, by names that we cannot know
        ("/", "/../other", None),
        ("//", "/a//b/", "/m/a/b"),
    ],
)
def test_where_a_cgroup_is_seen(root: str, path: str, folder: str | None) -> None:
    assert cgroupfs.folder_of(GroupMount(root, "/m"), path) == folder


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(text: bytes) -> None:
    for mount in cgroupfs.mounts(text + b"\n1 2 0:3 " + text + b" /m rw - cgroup2 a rw\n"):
        cgroupfs.folder_of(mount, "/a/b")
    for line in text.split(b"\n"):
        cgroupfs.memberships(b"0::/" + line)


def test_our_own_cgroup_is_only_where_our_pid_is(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("1\n")
    where, there = Membership("/"), [GroupMount("/", "/nowhere"), GroupMount("/", str(tmp_path))]
    with pytest.raises(FileNotFoundError, match="not mounted here"):
        cgroupfs.open_own(where, there)
    (tmp_path / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")
    folder = cgroupfs.open_own(where, there)
    assert os.path.samestat(os.fstat(folder), os.stat(tmp_path))
    os.close(folder)
    with pytest.raises(FileNotFoundError):  # v1 is another hierarchy
        cgroupfs.open_own(Membership("/", frozenset({"pids"})), there)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], int]:
    def make(text: str) -> int:
        path = tmp_path / str(len(os.listdir(tmp_path)))
        path.write_text(text)
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    return make


def test_counters_of_v2(file: Callable[[str], int]) -> None:
    counters = Counters(
        file("low 0\nhigh 0\nmax 31\noom 4\noom_kill 3\noom_group_kill 1\n"),
        file("max 7\n"),
        file("67108864\n"),
        file("9\n"),
        file("usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n"),
    )
    assert counters.read() == counters.read() == Counted(3, 7, 67108864, 9, 1.5)


def test_counters_of_v1(file: Callable[[str], int]) -> None:
    counters = Counters(
        file("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
        file("max 1\n"),
        file("4096\n"),
        -1,
        file("250000000\n"),
    )
    assert counters.read() == Counted(2, 1, 4096, 0, 0.25)
    assert len(counters.descriptors()) == 4


def test_what_is_not_there_or_no_number_is_nothing(file: Callable[[str], int]) -> None:
    assert Counters().read() == Counted()
    strange = Counters(
        file("oom_kill\noom_kill x\n"), file("max -1"), file("9" * 21), file("max"), file("usage_usec ²")
    )
    assert strange.read() == Counted()


def test_limits_of_a_plan() -> None:
    limits = Limits(memory_mb=100, tmp_mb=28, processes=5)
    assert Cgroup.build("v2", limits) == Cgroup("v2", 128 << 20, 5)
    assert Cgroup.build("none", limits) == Cgroup("none")


def test_a_plan_without_cgroup_enters_and_proves_none(file: Callable[[str], int]) -> None:
    assert Cgroup("none").apply(()) == {"cgroup": "none"}
    assert Cgroup("none").prove(None, 1) == {"cgroup": {"version": "none"}}
    leaf = Leaf(1, (file(f"{os.getpid()}\n"),), (file("1048576\n"), file("5\n")), Counters())
    for planned, given_leaf in ((Cgroup("none"), leaf), (Cgroup("v2", 1 << 20, 4), None)):
        with pytest.raises(PermissionError):
            planned.prove(given_leaf, os.getpid())
        with pytest.raises(PermissionError):
            planned.apply(given_leaf.procs if given_leaf else ())
    assert Cgroup("v2", 1 << 20, 4).prove(leaf, os.getpid())["cgroup"]  # the control
    leaf.close()
