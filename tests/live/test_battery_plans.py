"""The battery against cages whose plan allows more than planning would: one mount, one path, one limit, one rule more."""

from __future__ import annotations

import dataclasses
import os
import resource
from collections.abc import Iterator
from typing import Any

import pytest

from policies.syscalls import names
from runner.verify import NEWER_CALLS
from runner.verify_site import Site
from sandbox import abi, filters
from sandbox.battery import kernel_calls, program
from sandbox.battery.changed import ALLOW_ALL
from sandbox.battery.resources import LIMITS
from sandbox.plan import Plan
from sandbox.planning import Filters
from sandbox.steps.limits import ResourceLimits
from sandbox.steps.mounts import Mount
from sandbox.types import Limits
from tests.live.attack import Seen, Weaken, attack, made_site

WIDE = Limits(wall_seconds=120, memory_mb=8192, open_files=1024, file_mb=4096, processes=900, cpu_seconds=100)


@pytest.fixture
def site() -> Iterator[Site]:
    with made_site() as made:
        yield made


def _mounts(plan: Plan, *mounts: Mount, hostname: str = "") -> Plan:
    both = tuple(sorted((*plan.mounts.mounts, *mounts), key=lambda mount: mount.target.split("/")))
    changed = dataclasses.replace(plan.mounts, mounts=both, hostname=hostname or plan.mounts.hostname)
    return dataclasses.replace(plan, mounts=changed)


def _landlock(plan: Plan, **more: tuple[str, ...]) -> Plan:
    wider: dict[str, Any] = {name: (*getattr(plan.landlock, name), *paths) for name, paths in more.items()}
    return dataclasses.replace(plan, landlock=dataclasses.replace(plan.landlock, **wider))


def _outside_mounted(plan: Plan, site: Site) -> Plan:
    path = str(site.folder / "outside.txt")
    return _mounts(plan, Mount("tree", path, path))


def _outside_lent(plan: Plan, site: Site) -> Plan:
    return _landlock(_outside_mounted(plan, site), read=(str(site.folder / "outside.txt"),))


def _elsewhere(plan: Plan, site: Site) -> Plan:
    return _landlock(_mounts(plan, Mount("temp", "/elsewhere", size=1 << 20)), write=("/elsewhere",))


def _host_name(plan: Plan, _site: Site) -> Plan:
    return _mounts(plan, hostname=os.uname().nodename)


def _variable(plan: Plan, _site: Site) -> Plan:
    return dataclasses.replace(plan, environment=(*plan.environment, ("TOKEN", "x")))


def _device(plan: Plan, _site: Site) -> Plan:
    return _mounts(plan, Mount("device", "/dev/zero", "/dev/zero"))


def _allow_all(plan: Plan, _site: Site) -> Plan:
    return dataclasses.replace(plan, seccomp=ALLOW_ALL)


HOLES: dict[str, tuple[Weaken, str, set[str]]] = {
    "a file outside": (_outside_lent, "files_read", {"FR-01", "FR-03", "FR-04", "FR-04-up", "FR-04-root", "FR-07", "FR-07-cwd"}),
    "a file outside that Landlock refuses": (_outside_mounted, "files_read", {"FR-01", "FR-03", "FR-04", "FR-07"}),
    "a writable folder": (_elsewhere, "files_read,files_write", {"FW-01-any", "FR-16-ro"}),
    "a device": (_device, "files_read", {"FR-12-zero"}),
    "Landlock reads all": (lambda plan, _: _landlock(plan, read=("/",)), "files_read", {"FR-01-shelf", "FR-01-shelf-file"}),
    "Landlock writes all": (lambda plan, _: _landlock(plan, write=("/",)), "files_write", {"FW-01-shelf", "FW-01-shelf-folder"}),
    "Landlock starts all": (lambda plan, _: _landlock(plan, execute=("/",)), "kernel", {"KE-09-exec", "KE-09-shelf"}),
    "host name": (_host_name, "information", {"IL-04"}),
    "variable": (_variable, "information", {"IL-01", "IL-01-start"}),
    "filter": (
        _allow_all, "files_write,network,kernel,processes,terminal",
        {"NE-03", "NE-07", "NE-08", "KE-02-userfaultfd", "KE-02-keyctl", "KE-03-ptrace", "KE-06-int80", "KE-15", "PS-03", "TT-01",
         "FW-10", "KE-07"},
    ),
}  # fmt: skip
# A rule that depends on arguments, allowed with all of them: (processes of the cage, cases that see it).
RULES: dict[str, tuple[str, set[str]]] = {
    "clone": ("none", {"PS-03", "KE-01-clone-user", "KE-01-clone-net", "KE-14"}),
    "clone, with processes": ("any", {"KE-01-clone-user", "KE-01-clone-mount"}),
    "fork": ("none", {"PS-03-fork"}),
    "vfork": ("none", {"PS-03-vfork"}),
    "ioctl": ("none", {"TT-01", "TT-01-high", "TT-01-linux", "KE-12-ioctl", "KE-12-ioctl-file"}),
    "prctl": ("none", {"KE-12-prctl", "KE-07-prctl"}),
    "mmap": ("none", {"RE-03", "RE-03-huge"}),
    "fcntl": ("none", {"KE-12-fcntl"}),
    "chmod": ("none", {"FW-10", "FW-10-group"}),
    "fchmod": ("none", {"FW-10-fd"}),
    "fchmodat": ("none", {"FW-10-at"}),
    "prlimit64": ("none", {"PS-09", "IL-11-set"}),
    "socketpair": ("none", {"NE-09-pair", "NE-09-pair-datagram"}),
    "sendto": ("none", {"NE-11-to"}),
}
# The kernel refuses these to a worker as the filter does, or may do so: they need a capability first of all.
PRIVILEGED = {
    "pivot_root", "fsopen", "fsmount", "fspick", "move_mount", "reboot", "swapoff", "acct", "syslog", "sethostname",
    "setdomainname", "vhangup", "bpf", "perf_event_open", "init_module", "finit_module", "delete_module", "kexec_load",
    "kexec_file_load", "lookup_dcookie",
}  # fmt: skip
NOT_SEEN = {"KE-02-userfaultfd-any"}  # the other mode of a call that is seen; this one needs a capability


@pytest.mark.parametrize("hole", HOLES)
def test_the_battery_sees_a_hole_in_the_plan(site: Site, hole: str) -> None:
    weaken, only, wanted = HOLES[hole]
    seen = attack(site, only, weaken=weaken)
    assert wanted <= seen.escaped, _not_held(seen)


@pytest.mark.parametrize("rule", RULES)
def test_the_battery_sees_a_rule_that_no_longer_asks(site: Site, rule: str) -> None:
    processes, wanted = RULES[rule]
    more = (*names("tool"), rule.split(",")[0])
    loosened = Filters(more, names("keeper"), names("tool", "apart"))
    seen = attack(site, ",".join(wanted), filters=loosened, processes=processes)
    assert seen.escaped == wanted, _not_held(seen)


def test_the_battery_sees_each_call_that_is_allowed_besides(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        abi, "NEWER", {**abi.NEWER, **NEWER_CALLS}
    )  # an old libseccomp does not know them by name
    cases = [case for case in kernel_calls.CASES if not case.calls & {"clone", "clone3"}]
    called = {call for case in cases for call in case.calls}
    loosened = Filters((*names("tool"), *called), names("keeper"), names("tool", "apart"))
    seen = attack(site, ",".join(case.id for case in cases), filters=loosened)
    wanted = {case.id for case in cases if not program.calls_in(case.attempt) & PRIVILEGED} - NOT_SEEN
    assert wanted <= seen.escaped, sorted(wanted - seen.escaped)


def test_the_battery_sees_a_filter_without_its_prologue(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "_prologue", bytes)
    assert attack(site, "KE-15-newest").escaped == {"KE-15-newest"}


def _inherited(name: str) -> bool:
    """Whether a worker that does not set this limit has a higher one."""
    return resource.getrlimit(getattr(resource, name))[1] != 0


@pytest.mark.parametrize(
    "name", [name for name, _ in ResourceLimits.build(Limits()).values if _inherited(name)]
)
def test_the_battery_sees_a_limit_that_is_not_set(site: Site, name: str) -> None:
    def without(plan: Plan, _site: Site) -> Plan:
        left = tuple(entry for entry in plan.resources.values if entry[0] != name)
        return dataclasses.replace(plan, resources=dataclasses.replace(plan.resources, values=left))

    seen = attack(site, LIMITS[name], weaken=without)
    assert seen.escaped == {LIMITS[name]}, _not_held(seen)


def test_every_limit_has_a_case() -> None:
    assert LIMITS.keys() == {name for name, _ in ResourceLimits.build(Limits()).values}


def test_the_battery_sees_limits_that_are_too_wide(site: Site) -> None:
    def wide(plan: Plan, _site: Site) -> Plan:
        return dataclasses.replace(plan, limits=WIDE, resources=ResourceLimits.build(WIDE))

    seen = attack(site, "RE-01-limit,RE-02-limit,RE-04-limit,RE-04-open,PS-04-limit", weaken=wide)
    assert len(seen.escaped) == 5, _not_held(seen)


def _not_held(seen: Seen) -> object:
    return [(v.case.id, v.result, v.why) for v in seen.verdicts if v.result != "held"] or seen
