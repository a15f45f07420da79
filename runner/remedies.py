"""What to do when a step of the cage fails on this host: the exact words for what this host says about itself.

Pure text from facts; `look` gathers the facts by reading settings, it never guesses from version numbers. Front only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_DEBIAN = "/proc/sys/kernel/unprivileged_userns_clone"
_MAXIMUM = "/proc/sys/user/max_user_namespaces"
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_PROFILE = """\
sudo tee /etc/apparmor.d/toolcage >/dev/null <<'END'
abi <abi/4.0>,
include <tunables/global>
profile toolcage {interpreter} flags=(unconfined) {{
  userns,
}}
END
sudo apparmor_parser --replace /etc/apparmor.d/toolcage
(every program that {interpreter} runs may then use user namespaces; install Toolcage with an interpreter of its own,
`uv tool install --python-preference only-managed`, to keep that small)"""

_PROC = (
    "The container runtime covers parts of /proc, and the kernel does not show more in a new one. Docker and Podman: "
    "--security-opt systempaths=unconfined; Kubernetes: securityContext.procMount: Unmasked."
)


@dataclass(frozen=True, slots=True)
class Facts:
    """Settings of this host: None where there is no such setting."""

    apparmor: str | None = None
    debian: str | None = None
    maximum: str | None = None
    container: bool = False
    interpreter: str = "/usr/bin/python3"


def look(interpreter: str) -> Facts:
    """Read the settings. `interpreter`: the program that the launcher runs."""
    return Facts(
        apparmor=_setting(_APPARMOR),
        debian=_setting(_DEBIAN),
        maximum=_setting(_MAXIMUM),
        container=any(os.path.exists(path) for path in _CONTAINER_MARKS),
        interpreter=os.path.realpath(interpreter),
    )


def remedy(step: str, facts: Facts) -> str:
    """What to do about a failed step, by name."""
    if step in ("namespaces", "identity", "mounts"):
        return _namespaces(step, facts)
    fixed = {
        "landlock": "Add landlock to the lsm= list of the kernel command line (cat /sys/kernel/security/lsm shows it), or "
        "use Linux 6.2 or later.",
        "cgroup": _cgroup(facts),
        "proc": _PROC
        if facts.container
        else "Something covers a part of /proc (systemd: ProtectProc=, ProcSubset=, "
        "InaccessiblePaths=; or a sandbox around this process). Start Toolcage where /proc is whole.",
        "seccomp": "The kernel needs CONFIG_SECCOMP_FILTER.",
        "keyring": "Permit the keyctl system call: in a container, in its seccomp profile.",
        "attestation": "Something changed the cage while it was built. Report this with the text above.",
    }
    return fixed.get(step, "Report this with the text above.")


def _cgroup(facts: Facts) -> str:
    """A cgroup of one's own, in the ways that a person starts a server."""
    if facts.container:
        return (
            "In a container the runtime has to lend a cgroup that may be divided: Docker: --cgroupns=private with "
            "/sys/fs/cgroup mounted writable; Kubernetes does not offer it."
        )
    return (
        "Start it in a scope of its own: systemd-run --user --scope -p Delegate=yes toolcage serve POLICY\n"
        "(the same words before the command in the client's configuration), or for a service, in its unit file:\n"
        "[Service]\nDelegate=memory pids cpu\nDelegateSubgroup=front"
    )


def _namespaces(step: str, facts: Facts) -> str:
    """The settings that are known to forbid namespaces, in the order in which a host is likely to have them."""
    if facts.apparmor == "1":
        return (
            "AppArmor takes the rights of user namespaces away on this host. Allow them for Toolcage:\n"
            + _PROFILE.format(interpreter=facts.interpreter)
        )
    if facts.debian == "0":
        return "User namespaces are off for ordinary users: sudo sysctl kernel.unprivileged_userns_clone=1"
    if facts.maximum == "0":
        return "User namespaces are off on this host: sudo sysctl user.max_user_namespaces=16384"
    if facts.container:
        return (
            "This is a container. It needs a seccomp profile that permits clone and mount calls with namespaces, and an "
            "unmasked /proc. Docker: docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined "
            "(and --security-opt apparmor=unconfined on an AppArmor host). The cage has a filter of its own inside."
        )
    if step == "mounts":
        return "Something refuses mounts inside a user namespace: a security module or a filter around this process."
    return "Something refuses user namespaces: a security module, or a filter around this process (RestrictNamespaces=)."


def _setting(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return None
