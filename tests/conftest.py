"""Shared by all tests: where a thing must work, skipping is failing; nothing of ours may be left behind."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Generator, Iterator

import psutil
import pytest

from sandbox import host, scratch


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """MUST_WORK=1 turns a skip into a failure."""
    report = yield
    if os.environ.get("MUST_WORK") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although MUST_WORK=1: {report.longrepr}"
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of what does not exist here (root's part as a user, x86 on arm64) are left out, which is not skipping."""
    absent = {"root_only"} if os.geteuid() != 0 else set()
    absent |= {"x86_only"} if os.uname().machine != "x86_64" else set()
    others = [item for item in items if any(item.get_closest_marker(name) for name in absent)]
    if others:
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)


def _is_left(process: psutil.Process) -> bool:
    """A launcher or worker of this run, or one that nobody owns any more; those of another run are its business."""
    try:
        above = process.parents()
        owner = next((p for p in above if "sandbox.launcher" not in _words(p)), None)
    except psutil.NoSuchProcess:
        return False
    return os.getpid() in {p.pid for p in above} or owner is None or owner.pid == 1


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.ZombieProcess:
        return ""


def ours() -> dict[str, list[str]]:
    """Processes, mounts, cgroups and temporary folders that could be left by Toolcage."""
    processes = []
    for process in psutil.process_iter(["pid", "ppid", "cmdline", "status"]):
        words = " ".join(process.info["cmdline"] or ())
        if "sandbox.launcher" in words and _is_left(process):
            processes.append(f"{process.info['pid']} {process.info['status']} {words[:80]}")
        elif process.info["ppid"] == os.getpid() and process.info["status"] == psutil.STATUS_ZOMBIE:
            processes.append(f"{process.info['pid']} has ended, and nobody waited for it")
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line for line in file if "toolcage" in line.partition(" - ")[0]]
    temp = glob.glob("/tmp/toolcage-*") + glob.glob("/dev/shm/toolcage-*")
    cgroups = glob.glob("/sys/fs/cgroup/**/toolcage-*", recursive=True)
    return {
        "processes": processes,
        "mounts": mounts,
        "temporary": [path for path in temp if not _of_another_run(path)],
        "cgroups": [path for path in cgroups if not _of_another_run(path)],
    }


def _of_another_run(path: str) -> bool:
    """Whether the launcher named in the path lives and belongs to somebody else."""
    named = re.search(r"toolcage-(?:scratch-|front-)?(\d+)", path)
    if named is None or not psutil.pid_exists(int(named[1])):
        return False
    try:
        return os.getpid() not in {parent.pid for parent in psutil.Process(int(named[1])).parents()}
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="session", autouse=True)
def no_leftovers() -> Iterator[None]:
    """Whole run: what was not there before must not be there after."""
    before = ours()
    yield
    host.here()  # the next start removes what a launcher left that was killed
    scratch.sweep()
    after = ours()
    left = {kind: [item for item in items if item not in before[kind]] for kind, items in after.items()}
    assert not any(left.values()), f"left behind: {left}"
