"""100,000 mutated lines into a real server process. Seeded, so that a failure can be repeated.

What must hold: it still answers, every line it wrote is a message that some revision's schema accepts, it has started
nothing, and it has not grown.
"""

from __future__ import annotations

import os
import random
import select
import threading
import time
from pathlib import Path

from runner.mcp import eras
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Server
from tests.end_to_end.waiting import PATIENCE
from tests.properties.test_protocol_fuzz import MUTATIONS, Judge, corpus
from tests.runner.mcp.schema_check import line, modern, request

LINES = 100_000
CHUNK = 500
SEED = 4711
GROWTH = 64 << 20
NEEDS = {"x": {"type": "string", "required": True}}  # no line of the corpus gives it: nothing is ever started


def seeds() -> list[bytes]:
    """The corpus of the protocol's own fuzz test, and calls that reach the tools and the store."""
    arguments: list[dict[str, object]] = [
        {},
        {"y": 1},
        {"x": None},
        {"x": 7},
        {"handle": "out_x"},
        {"path": "../x"},
    ]
    calls = [
        line(shape("tools/call", number, {"name": name, "arguments": given}))
        for shape in (request, lambda method, id_, params: modern(method, id_, **params))
        for number, given in enumerate(arguments)
        for name in ("tt", "read_output", "read_file")
    ]
    return corpus() + calls


def mutated(rng: random.Random, known: list[bytes]) -> bytes:
    data = rng.choice(known)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if data:
            data = rng.choice(MUTATIONS)(rng, data, known)
    if rng.random() < 0.001:
        data = data * rng.randrange(1, 3000)  # some of these are beyond the cap of a line
    if rng.random() < 0.01:
        data = rng.randbytes(rng.randrange(1, 200))
    return data + rng.choice((b"\n", b"\n", b"\n", b"\r\n", b"\n\n"))


def exchange(server: Server, data: bytes, number: int, judge: Judge) -> None:
    """Send the lines and a last request; read and judge everything up to its answer."""
    last = f"last of {number}"
    writer = threading.Thread(
        target=server.write, args=(data + line(modern("server/discover", last)) + b"\n",), daemon=True
    )
    writer.start()
    rest = b""
    while True:
        assert select.select([server.output], [], [], PATIENCE)[0], "no answer"
        found = os.read(server.output.fileno(), 1 << 20)
        assert found, server.stderr()[-2000:]
        *lines, rest = (rest + found).split(b"\n")
        answered = [judge(text + b"\n", set(eras.SUPPORTED)) for text in lines]
        if any(isinstance(message, dict) and message.get("id") == last for message in answered):
            break
    assert rest == b""
    writer.join()


def test_mutated_lines(place: Path) -> None:
    policy = write_policy(place, {"tt": python("pass", "{x}", params=NEEDS)}, presets=["files"])
    rng, known, judge = random.Random(SEED), seeds(), Judge()
    begun = time.monotonic()
    with Server(policy, "--log-json", str(place / "log")) as server:
        server.ping()
        launcher, memory = server.launcher, server.me.memory_info().rss
        for number in range(LINES // CHUNK):
            exchange(server, b"".join(mutated(rng, known) for _ in range(CHUNK)), number, judge)
        server.ping()
        assert server.me.memory_info().rss - memory < GROWTH
        assert server.me.children() == [launcher]
        assert not server.workers()
        log = (place / "log").read_bytes()
        assert b"argument_refused" in log
        assert b"rate_limited" in log
        assert b"exited" not in log
        assert "Traceback" not in server.stderr()
        assert server.stop() == 0
    assert judge.messages > LINES // 2
    assert judge.codes >= {-32700, -32600, -32601, -32602, -32022}
    assert time.monotonic() - begun < 40
