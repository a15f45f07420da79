"""Plans for any host: complete, or an error that names the layer. And what the layout puts into a cage."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.prepare import compiled_filters
from sandbox import host as hosts
from sandbox import planning
from sandbox.errors import HostRefused, ProfileRefused, Refused
from sandbox.host import Host
from sandbox.plan import Plan, from_json
from sandbox.steps import landlock
from sandbox.types import Limits, Profile

FILTERS = compiled_filters()
HOST = hosts.here()


def plan(profile: Profile, host: Host = HOST) -> Plan:
    return planning.make(profile, host, FILTERS)


def simple(folder: Path, **changes: object) -> Profile:
    return dataclasses.replace(Profile("t", ("/bin/true",), str(folder.resolve())), **changes)  # type: ignore[arg-type]


@given(
    abi=st.integers(0, 12),
    root_user=st.booleans(),
    base=st.sampled_from([0, 70_000]),
    machine=st.sampled_from(["x86_64", "aarch64", "riscv64", "i686"]),
)
def test_every_host_gets_a_whole_plan_or_an_error_with_a_remedy(
    abi: int, root_user: bool, base: int, machine: str
) -> None:
    host = dataclasses.replace(HOST, landlock=abi, root_user=root_user, base=base, machine=machine)
    profile = Profile("t", ("/bin/true",), "/usr/share")
    if abi == 0 or machine not in ("x86_64", "aarch64") or (root_user and not base):
        with pytest.raises(HostRefused) as refused:
            plan(profile, host)
        assert refused.value.remedy
        return
    made = plan(profile, host)
    assert made.landlock.version == abi
    assert made.identity.slots == (base > 0)
    assert from_json(made.as_json()) == made


@given(version=st.integers(1, 12))
def test_newer_landlock_versions_only_deny_more(version: int) -> None:
    older, newer = landlock.handled(version), landlock.handled(version + 1)
    assert all(new & old == old for old, new in zip(older, newer, strict=True))


def test_the_root_is_there_under_its_own_path_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    made = plan(simple(tmp_path / "root"))
    targets = {mount.target: mount for mount in made.mounts.mounts}
    assert targets[str(tmp_path / "root")].kind == "tree"
    assert not targets[str(tmp_path / "root")].execute
    assert str(tmp_path) not in targets
    assert "/home" not in targets
    assert all(mount.reason for mount in made.mounts.mounts)


def test_parents_are_mounted_before_children(tmp_path: Path) -> None:
    made = plan(simple(tmp_path))
    seen: list[str] = []
    for mount in made.mounts.mounts:
        assert not any(earlier.startswith(mount.target + "/") for earlier in seen)
        seen.append(mount.target)


def test_the_root_can_be_shown_elsewhere(tmp_path: Path) -> None:
    made = plan(simple(tmp_path, root_at="/work"))
    assert made.root_at == "/work"
    assert {mount.target for mount in made.mounts.mounts if mount.source == str(tmp_path)} == {"/work"}


def test_none_is_the_default_and_execute_is_a_list_of_files(tmp_path: Path) -> None:
    strict, loose = plan(simple(tmp_path)), plan(simple(tmp_path, processes="any"))
    assert strict.seccomp != loose.seccomp
    assert "/usr" not in strict.landlock.execute
    assert "/usr" in loose.landlock.execute


def test_named_programs_may_be_started_besides(tmp_path: Path) -> None:
    made = plan(simple(tmp_path, processes=("/bin/cat",)))
    assert "/bin/cat" in made.landlock.execute
    assert "/bin/sh" not in made.landlock.execute


@pytest.mark.parametrize(
    "changes",
    [
        {"command": ("true",)},
        {"command": ("/nowhere/true",)},
        {"root": "/nowhere/root"},
        {"root_at": "/"},
        {"root_at": "work"},
        {"read_only": ("/nowhere/else",)},
    ],
)
def test_what_does_not_exist_is_refused_with_a_remedy(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises((ProfileRefused, OSError)) as refused:
        plan(simple(tmp_path, **changes))
    assert isinstance(refused.value, Refused)
    assert refused.value.remedy


def test_the_environment_is_the_fixed_part_and_the_policys(tmp_path: Path) -> None:
    made = plan(simple(tmp_path, environment=(("EXTRA", "1"), ("LANG", "de"))))
    assert dict(made.environment)["EXTRA"] == "1"
    assert dict(made.environment)["LANG"] == "de"
    assert "HOME" in dict(made.environment)


def test_the_digest_follows_every_change(tmp_path: Path) -> None:
    first = plan(simple(tmp_path))
    assert first.digest == plan(simple(tmp_path)).digest
    assert first.digest != plan(simple(tmp_path, limits=Limits(memory_mb=99))).digest
