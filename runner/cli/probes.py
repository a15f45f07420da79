"""The attacks of the demo: small programs that print WORKED, or BLOCKED and the errno that stopped them."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.battery.program import framed


@dataclass(frozen=True, slots=True)
class Probe:
    """`body`: Python statements with {outside}, {inside}, {port}, {pid} to fill in. `limit`: outcome that must end it."""

    name: str
    sentence: str
    body: str
    processes: str = "none"
    limit: str = ""

    def code(self, facts: dict[str, str]) -> str:
        """The program."""
        return framed(self.body.format_map(facts))


PROBES = (
    Probe("read_outside", "reads a file beside the root folder", 'open("{outside}").read()'),
    Probe("write_root", "writes into the root folder", 'open("{inside}", "a").write("")'),
    Probe(
        "connect",
        "connects to a port of this machine",
        "import _socket\n_socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0).connect(('127.0.0.1', {port}))",
    ),
    Probe(
        "unix_socket",
        "opens a Unix socket",
        "import _socket\n_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)",
    ),
    Probe(
        "start_program",
        "starts another program",
        'import os\nos.waitpid(os.posix_spawn("/bin/true", ["true"], {{}}), 0)',
    ),
    Probe("signal_demo", "sends a signal to the demo's process", "import os\nos.kill({pid}, 0)"),
    Probe("see_processes", "reads another process's command line", 'open("/proc/{pid}/cmdline").read()'),
    Probe(
        "eat_memory",
        "takes memory without end",
        "held = []\nwhile True: held.append(bytearray(1 << 20))",
        limit="out_of_memory",
    ),
)
