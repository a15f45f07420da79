"""`socket_pairs`: an event loop works, and the pair reaches nothing. Without it there is no socket at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.types import Profile
from tests.live.cage import LIMITS, PYTHON, Cage, cage, outside, probe, said

LOOP = "import asyncio\nasync def main():\n await asyncio.sleep(0)\n return 'ran'\nprint(asyncio.run(main()))"
PAIR = "import _socket\na, b = _socket.socketpair(_socket.AF_UNIX, _socket.{type}, 0)\n{then}"


@pytest.fixture(scope="module")
def paired(place: Path) -> Iterator[Cage]:
    command = (PYTHON, "-I", "-S", "-c")
    profile = Profile("paired", command, str(place / "root"), limits=LIMITS, socket_pairs=True)
    with cage(place / "root", profile) as made:
        yield made


def test_an_event_loop_works_with_it_and_not_without(paired: Cage) -> None:
    assert outside(LOOP) == "ran"
    assert said(paired.call("paired", LOOP)) == "ran"
    refused = paired.call("python", LOOP)
    assert (refused.exit_code, b"PermissionError" in refused.stderr) == (1, True)


def test_the_pair_talks_to_itself(paired: Cage) -> None:
    code = PAIR.format(type="SOCK_STREAM", then="a.send(b'hi')\nprint(b.recv(2))")
    assert said(paired.call("paired", code)) == outside(code) == "b'hi'"


@pytest.mark.parametrize(
    "then",
    [
        "a.bind(b'\\0toolcage-x')",
        "a.sendmsg([b'x'], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, b'\\0\\0\\0\\0')])",
        "a.getpeername()",
    ],
)
def test_the_pair_can_do_nothing_else(paired: Cage, then: str) -> None:
    body = PAIR.format(type="SOCK_STREAM", then=then)
    assert outside(probe(body)) == "WORKED"
    assert said(paired.call("paired", probe(body))) == "BLOCKED EPERM"


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_SEQPACKET"])
def test_other_kinds_of_pairs_are_refused(paired: Cage, kind: str) -> None:
    body = PAIR.format(type=kind, then="")
    assert outside(probe(body)) == "WORKED"
    assert said(paired.call("paired", probe(body))) == "BLOCKED EPERM"


@pytest.mark.parametrize(
    "body", ["socket(1, 1, 0)", "socket(2, 1, 0)", "socket(2, 2, 0)", "socket(10, 1, 0)"]
)
def test_there_is_still_no_socket(paired: Cage, body: str) -> None:
    code = f"import _socket\n_socket.{body}"
    assert outside(probe(code)) == "WORKED"
    assert said(paired.call("paired", probe(code))) == "BLOCKED EPERM"


def test_an_address_in_sendto_is_refused(paired: Cage) -> None:
    body = PAIR.format(type="SOCK_STREAM", then="a.sendto(b'x', b'\\0toolcage-x')")
    assert said(paired.call("paired", probe(body))) == "BLOCKED EPERM"
    assert (
        outside(probe(body)) != "BLOCKED EPERM"
    )  # the kernel's own answer is another one: EISCONN or EOPNOTSUPP
