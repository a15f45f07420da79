"""What `doctor` reports: each layer with a verdict, what is lost without it, the fix for this host, and the rung.

Pure: from the launcher's findings, one real cage and the settings of this host to a document. Front only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runner import remedies
from sandbox import ladder
from sandbox.errors import Refused
from sandbox.host import Host
from sandbox.types import Kind, Outcome

AVAILABLE, MISSING, FAILED, NOT_REACHED = "available", "missing", "failed", "not reached"
_GIVES = {
    "machine": "system call numbers of this machine are known",
    "identity": "a kernel uid that is never 0",
    "namespaces": "user, mount, pid, net, ipc, uts and cgroup namespaces: nothing outside can be named",
    "mounts": "a file system of nothing but what is listed",
    "proc": "a /proc that shows the call's own processes only",
    "keyring": "the session's keys stay outside",
    "privileges": "no capability, no_new_privs",
    "landlock": "second word on files, no TCP, no signals to the outside",
    "seccomp": "allow-list of system calls, no sockets, no new processes unless allowed",
    "cgroup": "memory, processes and processor time of a whole call bounded by the kernel",
    "limits": "processor, memory, processes, files, output: setrlimit and sampling",
}


@dataclass(frozen=True, slots=True)
class Layer:
    """One line of the report. `known_by`: the observation behind the verdict."""

    name: str
    state: str
    known_by: str = ""
    lost: tuple[str, ...] = ()
    remedy: str = ""

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return {
            "layer": self.name,
            "state": self.state,
            "gives": _GIVES[self.name],
            "known_by": self.known_by,
            "lost": list(self.lost),
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole report. `ok`: a policy with the default floor is served here."""

    ok: bool
    rung: str  # "" when no cage can be built at all
    layers: tuple[Layer, ...]
    problem: str = ""
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return {
            "ok": self.ok,
            "rung": self.rung or None,
            "floor": ladder.DEFAULT_FLOOR,
            "ladder": list(ladder.NAMES),
            **self.facts,
            "layers": [layer.as_json() for layer in self.layers],
            "problem": self.problem,
            "remedy": self.remedy,
        }


def diagnose(host: Host, tried: Outcome | Refused, settings: remedies.Facts) -> Diagnosis:
    """`tried`: what became of one real cage around `true`, on the weakest floor."""
    worked = isinstance(tried, Outcome) and tried.kind is Kind.EXITED and tried.exit_code == 0
    failed, problem, remedy = ("", "", "") if worked else _failure(tried, settings)
    facts = (tried.attestation or {}) if isinstance(tried, Outcome) else {}
    layers: list[Layer] = []
    for name in _GIVES:
        layer = _layer(name, host, settings, facts)
        if failed and layer.state == AVAILABLE:
            past = failed in {known.name for known in layers}
            layer = Layer(
                name, FAILED if name == failed else NOT_REACHED if past else AVAILABLE, layer.known_by
            )
        layers.append(layer)
    rung = host.rung if worked else ""
    return Diagnosis(
        ok=worked and ladder.accepts(ladder.DEFAULT_FLOOR, host.rung),
        rung=rung,
        layers=tuple(layers),
        problem=problem,
        remedy=remedy,
    )


def _failure(tried: Outcome | Refused, settings: remedies.Facts) -> tuple[str, str, str]:
    """(layer, what happened, what to do) when no cage can be built."""
    if isinstance(tried, Refused):
        layer = tried.message.partition(":")[0]
        own = layer in ("machine", "identity") or layer not in _GIVES
        return layer, tried.message, tried.remedy if own else remedies.remedy(layer, settings)
    step = tried.step or "cage"
    return step, tried.detail, remedies.remedy(step, settings)


def _layer(name: str, host: Host, settings: remedies.Facts, facts: dict[str, Any]) -> Layer:
    lost = {rung.missing: rung.lost for rung in host.missing}
    match name:
        case "namespaces" if host.namespaces == "none":
            return _missing(name, host, lost["namespaces"], settings)
        case "namespaces" if host.namespaces == "root":
            return _missing(name, host, lost["user namespace"], settings)
        case "mounts" | "proc" if host.namespaces == "none":
            return Layer(name, MISSING, "it needs namespaces")
        case "proc" if not host.proc:
            return _missing(name, host, lost["proc"], settings)
        case "landlock" if not host.landlock:
            return _missing(name, host, lost["landlock"], settings)
        case "cgroup" if host.cgroup != "v2":
            worst = lost.get("cgroup", lost.get("cgroup v2", ()))
            told = (
                f"version 1, as root; version 2: {host.cgroup_why}"
                if host.cgroup == "v1"
                else host.cgroup_why
            )
            return Layer(name, MISSING, told, worst, remedies.remedy("cgroup", settings))
        case _:
            return Layer(name, AVAILABLE, _known(name, facts, host))


def _missing(name: str, host: Host, lost: tuple[str, ...], settings: remedies.Facts) -> Layer:
    found = host.why(name)
    step = found.step if found else name
    told = f"refused at step {step}: {found.detail}" if found else "the kernel does not have it"
    return Layer(name, MISSING, told, lost, remedies.remedy(step if name == "namespaces" else name, settings))


def _known(name: str, facts: dict[str, Any], host: Host) -> str:
    """The observation: from the kernel's own answers, or from the worker that ran."""
    told = {
        "machine": host.machine,
        "landlock": f"the kernel says ABI {host.landlock}, and a process restricted itself",
        "namespaces": "a process was started in them and mapped its ids",
        "proc": "one was mounted",
        "cgroup": "version 2, delegated to this process",
    }
    if not facts or name in told:
        return told.get(name, "")
    by_worker = {
        "identity": f"a worker ran with kernel uid {facts['kernel_uid']}",
        "seccomp": f"a worker ran under {facts['seccomp']['instructions']} instructions",
        "mounts": f"a worker checked {facts.get('mounts')} mounts from inside",
        "privileges": "read from outside in the worker's /proc status" if facts["seen_from_outside"] else "",
        "keyring": str(facts["keyring"]),
    }
    return by_worker.get(name, "a worker did it")
