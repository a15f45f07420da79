"""A report that is cut, too long, forged, early or doubled never counts as success. The worker's side is played here."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.prepare import compiled_filters
from sandbox import attest, flight, host, planning, wire
from sandbox.errors import WireError
from sandbox.plan import Plan
from sandbox.steps.identity import NAMESPACE_KINDS
from sandbox.steps.keyring import FRESH
from sandbox.types import Call, Outcome, Profile


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    root = str(tmp_path_factory.mktemp("root").resolve())
    return planning.make(Profile("t", ("/bin/true",), root), host.here(), compiled_filters())


def facts(plan: Plan) -> dict[str, object]:
    """What an honest worker attests."""
    expected = plan.expected()
    return {
        "uid": 1000,
        "kernel_uid": 4711,
        "capabilities": 0,
        "no_new_privs": True,
        "landlock": {"abi": expected["landlock_abi"]},
        "seccomp": {"sha256": expected["seccomp"]},
        "mounts": expected["mounts"],
        "cgroup": {"version": expected["cgroup"]},
        "keyring": FRESH,
        "namespaces": dict.fromkeys(NAMESPACE_KINDS, 1),
    }


def report(token: str) -> dict[str, object]:
    """What an honest worker reports."""
    usage = {
        "wall_seconds": 0.1,
        "cpu_seconds": 0.1,
        "memory_bytes": 1,
        "processes": 1,
        "open_files": 3,
        "tmp_bytes": 0,
    }
    return {
        "token": token,
        "status": 0,
        "stopped": None,
        "usage": usage,
        "temp_full": False,
        "file_at_limit": False,
        "stdout": base64.b64encode(b"hello").decode(),
        "stderr": "",
        "stdout_total": 5,
        "stderr_total": 0,
    }


Worker = Callable[[flight.Flight, Plan, int, int], None]


def fly(plan: Plan, monkeypatch: pytest.MonkeyPatch, worker: Worker) -> tuple[Outcome, int]:
    """Play `worker(flight, plan, go, report)` against a real flight. Returns the outcome and how often it asked to kill."""
    monkeypatch.setattr(attest, "look", lambda _keeper, _plan: ("", True))  # there is no process to look at
    kills = []

    async def play() -> Outcome:
        made = flight.Flight(plan, asyncio.get_running_loop(), lambda: kills.append(1))
        made.begin(Call("t"))
        go, report_end = made.open_pipes()
        made.started(1)
        worker(made, plan, go, report_end)
        os.close(report_end)
        asyncio.get_running_loop().call_later(0.02, made.ended)
        try:
            return await asyncio.wait_for(made.outcome(), 5)
        finally:
            made.close()
            os.close(go)

    return asyncio.run(play()), len(kills)


def token_of(made: flight.Flight) -> str:
    return made._token


def send(descriptor: int, document: object) -> None:
    os.write(descriptor, wire.frame(document))  # type: ignore[arg-type]


def honest(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    send(out, {"attested": facts(plan)})
    send(out, {"report": report(token_of(made))})


def test_an_honest_report_counts(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, kills = fly(plan, monkeypatch, honest)
    assert (outcome.kind, outcome.exit_code, outcome.stdout, kills) == ("exited", 0, b"hello", 0)


def cut(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    send(out, {"attested": facts(plan)})
    os.write(out, wire.frame({"report": report(token_of(made))})[:-3])


def oversized(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    send(out, {"attested": facts(plan)})
    os.write(out, struct.pack("!I", 2**31) + b"{}")


def wrong_token(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    send(out, {"attested": facts(plan)})
    send(out, {"report": report("0" * 32)})


def twice(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    honest(made, plan, go, out)
    send(out, {"report": report(token_of(made))})


def attested_twice(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    send(out, {"attested": facts(plan)})
    send(out, {"attested": facts(plan)})


def not_json(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    send(out, {"attested": facts(plan)})
    os.write(out, struct.pack("!I", 3) + b"{{{")


def trailing(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    honest(made, plan, go, out)
    os.write(out, b"\0\0")


def silent(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    send(out, {"attested": facts(plan)})


def failed_late(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    send(out, {"attested": facts(plan)})
    send(out, {"failed": {"step": "collect", "errno": 5, "detail": "x"}})


@pytest.mark.parametrize(
    "worker", [cut, oversized, wrong_token, twice, attested_twice, not_json, trailing, silent, failed_late]
)
def test_anything_else_is_unknown(plan: Plan, monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    outcome, _ = fly(plan, monkeypatch, worker)
    assert outcome.kind == "unknown"
    assert outcome.stdout == b""
    for words in ("may have run", "not a success", "before you repeat"):
        assert words in outcome.detail


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "0"), ("status", True), ("status", None), ("status", 2**40), ("status", -1), ("stopped", "done"), ("stopped", []), ("stopped", {}),
        ("stdout_total", -1), ("usage", None), ("stdout", 5),
        ("stdout", "***"), ("stdout_total", "5"), ("temp_full", 0), ("usage", {"wall_seconds": float("1e12")}),
    ],
)  # fmt: skip
def test_a_report_with_a_wrong_field_is_unknown(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, field: str, value: object
) -> None:
    def worker(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
        send(out, {"attested": facts(plan)})
        send(out, {"report": report(token_of(made)) | {field: value}})

    assert fly(plan, monkeypatch, worker)[0].kind == "unknown"


def early(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
    send(out, {"report": report(token_of(made))})


@pytest.mark.parametrize("worker", [early, lambda *_: None])
def test_before_the_go_nothing_can_have_happened(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, worker: Worker
) -> None:
    outcome, _ = fly(plan, monkeypatch, worker)
    assert outcome.kind == "setup_failed"
    assert "was not started" in outcome.detail


@pytest.mark.parametrize(
    "change",
    [
        {"uid": 0}, {"kernel_uid": 0}, {"kernel_uid": None}, {"capabilities": 1}, {"no_new_privs": False}, {"mounts": 1},
        {"landlock": {"abi": 1}}, {"landlock": None}, {"seccomp": {"sha256": "0"}}, {"seccomp": None},
        {"cgroup": {"version": "other"}}, {"keyring": "old"}, {"namespaces": None},
        {"namespaces": dict.fromkeys(NAMESPACE_KINDS, 1) | {"net": os.stat("/proc/self/ns/net").st_ino}},
    ],
)  # fmt: skip
def test_a_wrong_attestation_never_gets_its_go(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    received = []

    def worker(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
        send(out, {"attested": facts(plan) | change})
        os.set_blocking(go, False)
        asyncio.get_running_loop().call_later(0.01, lambda: received.append(_read(go)))

    outcome, kills = fly(plan, monkeypatch, worker)
    assert (outcome.kind, outcome.step, kills) == ("setup_failed", "attestation", 1)
    assert received == [b""]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 100)
    except BlockingIOError:
        return b""


def test_the_go_carries_the_call(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    got = []

    def worker(made: flight.Flight, plan: Plan, go: int, out: int) -> None:
        send(out, {"attested": facts(plan)})
        asyncio.get_running_loop().call_later(0.01, lambda: got.append(wire.read_frame(go, 1 << 20)))

    fly(plan, monkeypatch, worker)
    assert got[0] is not None
    assert json.loads(json.dumps(got[0]))["cwd"] == "."


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x02" + b"\0" * 11, b"\x01\x63" + b"\0" * 10])
def test_packets_that_are_none(data: bytes) -> None:
    with pytest.raises(WireError):
        wire.unpack(data)


def test_packets_come_back() -> None:
    message = wire.Message(wire.Packet.CALL, 3, 2**40, b"x")
    assert wire.unpack(wire.pack(message)) == message


def test_plans_come_back(plan: Plan, tmp_path: Path) -> None:
    from sandbox.plan import from_json

    again = from_json(json.loads(json.dumps(plan.as_json())))
    assert again == plan
    assert again.digest == plan.digest
