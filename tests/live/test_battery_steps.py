"""The battery against cages in which one step is missing or weaker, as the launcher and its workers really do it.

A hole is seen when the cage cannot be built without the step, and says so by name, or when a case escapes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from runner.verify_site import Site
from tests.live.attack import ROOT, attack, made_site
from tests.live.weakened import HOLES

# hole -> the step that refuses to go on without it
REFUSED = {
    "namespace user": "identity" if ROOT else "namespaces",
    "namespace mnt": "mounts",
    "namespace pid": "mounts",
    "namespace uts": "mounts",
    "namespace net": "attestation",
    "namespace ipc": "attestation",
    "namespace cgroup": "attestation",
    "descriptors of the keeper": "descriptors",
    "kernel uid 0": "identity",
    "mounts with ro, checked": "mounts",
    "mounts with nosuid, checked": "mounts",
    "mounts with nodev, checked": "mounts",
    "mounts with noexec, checked": "mounts",
    "mounts tied, checked": "mounts",
    "privileges": "attestation",
    "capabilities": "attestation",
    "bounding set": "attestation",
    "no_new_privs": "landlock",
    "filter of the keeper": "attestation",
    "cgroup": "cgroup",
}
# hole -> (cases that run, those of them that see it)
SEEN: dict[str, tuple[str, set[str]]] = {
    "namespace net, unsaid": ("network,kernel", {"KE-01-in-net", "NE-01-send", "NE-06-behind", "NE-06-list"}),
    "namespace ipc, unsaid": ("kernel", {"KE-01-in-ipc"}),
    "namespace cgroup, unsaid": ("kernel", {"KE-01-in-cgroup"}),
    "descriptors of the tool": ("files_read", {"FR-08"}),
    "signals": ("processes", {"PS-02"}),
    "session": ("processes", {"PS-01-group"}),
    "groups": ("information", {"IL-05-groups"}),
    "dumpable": ("information", {"TC-09-keeper"}),
    "mounts with ro": (
        "files_read,files_write",
        {"FR-16-ro", "FW-01", "FW-01-any", "FW-03", "FW-04", "FW-05", "FW-06", "FW-07", "FW-08", "FW-09", "FW-09-mode"},
    ),
    "mounts with nosuid": ("files_read", {"FR-16-nosuid"}),
    "mounts with nodev": ("files_read", {"FR-16-nodev"}),
    "mounts with noexec": ("files_read,KE-09-map", {"FR-16-noexec", "KE-09-map"}),
    "mounts tied": ("files_read", {"FR-16-tied"}),
    "proc with the kernel's files": ("FR-01-sysctl,KE-10,IL-03,IL-04-boot", {"FR-01-sysctl", "KE-10", "IL-03", "IL-04-boot"}),
    "proc with the keeper": ("files_read,information", {"FR-07-init", "IL-02-keeper", "IL-02-list"}),
    "keyring": ("information", {"IL-03-session"}),
    "securebits": ("kernel", {"KE-11-bits"}),
    "landlock": (
        "files_read,files_write,network,PS-01-keeper,KE-09-exec,KE-09-shelf,KE-12-ioctl-device",
        {"FR-01-shelf", "FR-01-shelf-file", "FW-11-socket", "FW-01-shelf", "KE-09-exec", "KE-09-shelf", "KE-12-ioctl-device",
         "NE-01-bind", "NE-01-tcp", "PS-01-keeper"},
    ),
    "landlock network": ("network", {"NE-01-bind", "NE-01-tcp"}),
    "landlock signals": ("processes", {"PS-01-keeper"}),
    "landlock devices": ("kernel", {"KE-12-ioctl-device"}),
    "landlock execute": ("kernel", {"KE-09-exec"}),
    "landlock make": ("files_write", {"FW-01-shelf-folder"}),
}  # fmt: skip
ROOTS = {"groups", "cgroup", "mounts tied", "mounts tied, checked"}


@pytest.fixture
def site() -> Iterator[Site]:
    with made_site() as made:
        yield made


def _holes(names: object) -> list[object]:
    assert isinstance(names, dict)
    return [pytest.param(name, marks=pytest.mark.root_only if name in ROOTS else ()) for name in names]


@pytest.mark.parametrize("hole", _holes(REFUSED))
def test_a_cage_without_it_is_not_built(site: Site, hole: str) -> None:
    seen = attack(site, "FR-01", hole=hole)
    assert (seen.step, seen.verdicts) == (REFUSED[hole], ()), seen
    assert "was not started" in seen.detail


@pytest.mark.parametrize("hole", _holes(SEEN))
def test_a_case_sees_that_it_is_missing(site: Site, hole: str) -> None:
    only, wanted = SEEN[hole]
    seen = attack(site, only, hole=hole)
    assert not seen.step, seen
    assert wanted <= seen.escaped, [(v.case.id, v.result, v.why) for v in seen.verdicts if v.result != "held"]


# In a mount namespace of its own: a file system below the root folder, with a flag of every kind missing.
BELOW = """
import subprocess, sys
from tests.live.attack import attack, made_site
with made_site() as site:
    (site.root / "below").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "dev,suid,exec", "tmpfs", str(site.root / "below")], check=True)
    seen = attack(site, "FR-16-ro,FR-16-nosuid,FR-16-nodev,FR-16-noexec,FW-01-any", hole=sys.argv[1])
    subprocess.run(["umount", str(site.root / "below")], check=True)
print(len(seen.verdicts), *sorted(seen.escaped))
"""


@pytest.mark.root_only
@pytest.mark.parametrize(("hole", "wanted"), [
    ("", "5"), ("mounts below", "5 FR-16-nodev FR-16-noexec FR-16-nosuid FR-16-ro FW-01-any"),
])  # fmt: skip
def test_what_is_mounted_below_the_root_folder_is_no_way_out(hole: str, wanted: str) -> None:
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", BELOW, hole], capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.returncode) == (wanted, 0), done.stderr


def test_every_hole_is_tried() -> None:
    assert set(REFUSED) | set(SEEN) | {"mounts below"} == set(HOLES)
    assert not set(REFUSED) & set(SEEN)


def test_a_layer_behind_which_another_one_holds_is_told_apart(site: Site) -> None:
    """Nothing gets out: the root folder is writable, and Landlock still refuses. The battery says which layer is gone."""
    seen = attack(site, "FW-03,FW-09", hole="mounts with ro")
    assert (
        seen.why("FW-03")
        == "a layer does not hold, another one stopped it: BLOCKED EACCES, expected BLOCKED EROFS"
    )
    assert seen.why("FW-09") == "inside: WORKED, expected BLOCKED EROFS"
