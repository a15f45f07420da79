"""The nouns of the cage: what is asked for, what was done, what became of it.

Plain frozen data, stdlib only, importable in every process. Nothing here acts.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one call. Times in seconds, sizes in MiB (2**20 bytes); every field must be > 0."""

    wall_seconds: float = 45.0  # below the 60 s after which some clients give up
    cpu_seconds: int = 30
    memory_mb: int = 1024
    processes: int = 128
    open_files: int = 256
    file_mb: int = 64
    tmp_mb: int = 64
    output_mb: int = 8  # stdout and stderr together; beyond it the tool is stopped


@dataclass(frozen=True, slots=True)
class Profile:
    """What one tool's cage shall allow, as a policy (or a test) states it. `plan.make` turns it into a Plan.

    command      fixed first words of the argv; command[0] is an absolute program path.
    root         absolute host path of the root folder; mounted read-only at `root_at` (default: the same path).
    read_only    further absolute host paths that the tool may read.
    processes    "none" (fork refused), "any", or absolute paths of programs that may be started besides the tool.
    socket_pairs whether it may make connected pairs of Unix stream sockets, which reach nothing but itself.
    environment  the whole environment of the tool besides the fixed part (PATH, HOME, LANG, ...).
    """

    name: str
    command: tuple[str, ...]
    root: str
    root_at: str | None = None
    read_only: tuple[str, ...] = ()
    processes: str | tuple[str, ...] = "none"
    socket_pairs: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a plan: argv tail, stdin and working folder. Made from validated arguments only.

    argv   appended to the plan's command.
    cwd    folder below the root, relative ("." is the root itself).
    """

    plan: str
    argv: tuple[str, ...] = ()
    stdin: bytes = b""
    cwd: str = "."


class Kind(enum.StrEnum):
    """What became of a call. The values are the words that clients see."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed_out"  # wall clock
    OUT_OF_CPU = "out_of_cpu_time"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MANY_PROCESSES = "too_many_processes"
    TOO_MANY_FILES = "too_many_open_files"
    TOO_MUCH_OUTPUT = "too_much_output"
    FILE_TOO_LARGE = "file_too_large"
    TEMP_FULL = "temp_space_full"
    CANCELLED = "cancelled"
    SETUP_FAILED = "setup_failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call used. Seconds, bytes and counts; peaks are sampled and therefore lower bounds."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    processes: int = 0
    open_files: int = 0
    tmp_bytes: int = 0


MAX_ENTRIES, MAX_PATH = 256, 4096  # of what is reported as refused: of calls and of files each; characters
OPERATIONS = ("look", "read", "write", "create", "remove", "change", "start")
REASONS = ("missing", "read-only", "not-lent", "not-a-program", "permission", "unreadable")


@dataclass(frozen=True, slots=True)
class DeniedCall:
    """A system call, by number, that the filter refused `count` times. `key`: the policy key that would allow it, or ""."""

    number: int
    count: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class DeniedFile:
    """A path, as the tool has it, that an attempted use (of OPERATIONS) did not get (for one of REASONS).

    missing        it does not exist inside, and nothing that is lent could hold it.
    read-only      it is not in a place that may be written.
    not-lent       it is there, but not among what may be read.
    not-a-program  it may be read, but not started.
    permission     the file's own mode or owner.
    unreadable     the path could not be read from the tool's memory; it is "".
    """

    path: str
    operation: str
    why: str
    count: int


@dataclass(frozen=True, slots=True)
class Denials:
    """What a call was refused, as far as its keeper saw it; only of a plan that reports. `more`: uses beyond the bounds.

    The tool's own word: it chooses what it tries, and may change a path between the look and the use.
    """

    calls: tuple[DeniedCall, ...] = ()
    files: tuple[DeniedFile, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call. Only `EXITED` says that the tool ran to its own end.

    exit_code  for EXITED; signal for SIGNALLED (number).
    step       for SETUP_FAILED: the name of the step, with errno.
    limit      name of the limit that ended the call, e.g. "wall_seconds"; limit_value in the unit of `Limits`.
    stdout, stderr            raw bytes as kept, at most Limits.output_mb together.
    stdout_total, stderr_total  bytes the tool really wrote before it ended.
    attestation  layers that were in force, as checked by the front before the tool started.
    detail     one plain sentence for people; never tool text.
    denials    what was refused, where the plan reports that.
    """

    kind: Kind
    exit_code: int | None = None
    signal: int | None = None
    step: str | None = None
    errno: int | None = None
    limit: str | None = None
    limit_value: float | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_total: int = 0
    stderr_total: int = 0
    usage: Usage = field(default_factory=Usage)
    attestation: dict[str, object] | None = None
    detail: str = ""
    denials: Denials = field(default_factory=Denials)
