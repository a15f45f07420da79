"""A tool that never stops printing keeps the front's memory flat.

TOOLCAGE_FLOOD_MB is how much is let through in all, over many calls; 10240 is the long form, which takes half an hour.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end import tools
from tests.end_to_end.policy_file import python, write_policy
from tests.end_to_end.server import Server
from tests.end_to_end.test_results_json import peak

MIB = 1 << 20
FLOOD = int(os.environ.get("TOOLCAGE_FLOOD_MB", "80")) * MIB
LIMIT = 8  # MiB of one call
TEN_GIB = 10 << 30
PRINTS = """\
import os
block = ({unit!r} * 65536)[:65536].encode()
left = {size}
while left > 0: left -= os.write({descriptor}, block)
"""
# What floods: each needs another way through redaction, display and store.
KINDS = {
    "lines": ("a line of ordinary text\n", 1, "text"), "one line": ("x", 1, "text"), "controls": ("\x00\x1b[2K\r", 1, "text"),
    "errors": ("error: something\n", 2, "text"), "json": ("[", 1, "json"),
}  # fmt: skip


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    named = {
        name.replace(" ", "_"): python(
            PRINTS.format(unit=unit, size=TEN_GIB, descriptor=descriptor),
            output=output,
            limits={"output_mb": LIMIT},
        )
        for name, (unit, descriptor, output) in KINDS.items()
    }
    policy = write_policy(place, named | {"echo": tools.ECHO}, limits={"cpu_seconds": 30})
    with Server(policy) as made:
        made.shake()
        yield made


def flood(server: Server, name: str) -> int:
    """One call of a tool that wants to print 10 GiB; returns how much of it was let through."""
    result = server.call(name.replace(" ", "_"))
    assert result.meta["outcome"] == "too_much_output", result
    assert (result.meta["limit"], result.meta["limit_value"]) == ("output_mb", LIMIT)
    assert len(result.text) <= 4000
    printed: float = result.meta["current"]
    assert LIMIT <= printed < LIMIT + 1
    return int(printed * MIB)


def test_ten_gib_of_output_keep_the_front_flat(server: Server) -> None:
    for name in (*KINDS, *KINDS):  # the store is full after four, and then each kind once more
        flood(server, name)
    before, through = peak(server), 0
    while through < FLOOD:
        for name in KINDS:
            through += flood(server, name)
    assert peak(server) - before < 40 * MIB
    assert server.ping() < 1
    assert server.call("echo", {"text": "fine"}).body == "fine"


def test_pings_are_answered_in_the_flood(server: Server) -> None:
    calls = [server.begin(name.replace(" ", "_")) for name in KINDS]
    waits = [server.ping() for _ in range(20)]
    for call in calls:
        assert server.result(call).meta["outcome"] == "too_much_output"
    assert max(waits) < 5
