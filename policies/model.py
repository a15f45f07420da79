"""The shape of a policy file: one frozen struct per TOML table, strict keys, every bound in the type.

Pure data, read in the front before a client connects. Nothing here reads a file, resolves a name or decides whether
a tool is safe (see load.py and check.py). The descriptions are the text of docs/policy.md (see reference.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from policies.params import MAX_PATH, AnyParam, GroupTable, ParamName, Table, doc

ToolName = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]{1,39}\Z")]
CatalogName = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_-]{1,39}\Z")]
EnvName = Annotated[str, Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]{0,63}\Z")]
Word = Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"\A[^\x00]*\Z")]
ExitCode = Annotated[int, Meta(ge=1, le=255)]
HostPath = Annotated[str, Meta(min_length=1, max_length=MAX_PATH, pattern=r"\A[^\x00]*\Z")]
RedactCharacters = Literal[
    "letters-digits", "letters-digits-_", "letters-digits-_-", "letters-digits-_-.", "base64", "hex", "digits",
    "upper-digits", "lower-digits"
]  # fmt: skip
Programs = Literal["none", "any"] | tuple[Word, ...]


class LimitsTable(Table, frozen=True, kw_only=True):
    """Limits of one call. In a tool or catalog they may only narrow those of the file."""

    wall_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=3600)] | None, doc("Seconds by the clock.", "45")
    ] = None
    cpu_seconds: Annotated[
        Annotated[int, Meta(ge=1, le=3600)] | None, doc("Seconds of processor time.", "30")
    ] = None
    memory_mb: Annotated[Annotated[int, Meta(ge=16, le=65536)] | None, doc("Memory in MiB.", "1024")] = None
    processes: Annotated[
        Annotated[int, Meta(ge=1, le=4096)] | None, doc("Processes and threads at the same time.", "128")
    ] = None
    open_files: Annotated[
        Annotated[int, Meta(ge=16, le=4096)] | None, doc("Open files of each process.", "256")
    ] = None
    file_mb: Annotated[
        Annotated[int, Meta(ge=1, le=16384)] | None, doc("Largest file written, in MiB.", "64")
    ] = None
    tmp_mb: Annotated[Annotated[int, Meta(ge=1, le=16384)] | None, doc("Private /tmp, in MiB.", "64")] = None
    output_mb: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | None, doc("Output after which the tool is stopped, in MiB.", "8")
    ] = None


class ServerTable(Table, frozen=True, kw_only=True):
    """The server as a whole."""

    name: Annotated[
        str,
        doc("Name shown to clients.", '"my-tools"'),
        Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z"),
    ]
    root: Annotated[
        HostPath | None,
        doc("The folder the tools may read; relative to the policy file. Required here or as --root.", '"."'),
    ] = None
    root_at: Annotated[HostPath | None, doc("Absolute path at which the tools see the root.", '"/work"')] = (
        None
    )
    allow_home: Annotated[bool, doc("The root may be, or contain, the home folder.", "true")] = False
    allow_root_dir: Annotated[bool, doc('The root may be "/".', "true")] = False
    floor: Annotated[
        Literal[
            "full",
            "cgroup-v1",
            "namespaces",
            "root-namespaces",
            "no-proc",
            "no-landlock",
            "no-namespaces",
        ],
        doc(
            "Weakest rung of enforcement that is accepted; docs/trust.md says what each loses.",
            '"namespaces"',
        ),
    ] = "namespaces"
    max_output_bytes: Annotated[
        int, doc("Largest message to the client in bytes.", "262144"), Meta(ge=1024, le=8388608)
    ] = 262144
    max_calls_per_minute: Annotated[int, doc("Calls in any 60 seconds.", "60"), Meta(ge=1, le=600)] = 60
    max_concurrent_calls: Annotated[int, doc("Calls at the same time.", "4"), Meta(ge=1, le=64)] = 4
    max_machine_calls: Annotated[
        Annotated[int, Meta(ge=1, le=1024)] | None,
        doc(
            "Calls at the same time of all servers of this user. Without it 4 for each processor.",
            "16",
        ),
    ] = None
    max_machine_memory_mb: Annotated[
        Annotated[int, Meta(ge=16, le=16777216)] | None,
        doc(
            "MiB that these may use together, each its `memory_mb` + `tmp_mb`. Without it 75 % of the memory.",
            "8192",
        ),
    ] = None


class RedactRule(Table, frozen=True, kw_only=True):
    """One format of secrets of your own. It needs `prefix` or `words`; there are no regular expressions."""

    kind: Annotated[
        str,
        doc("Word in the placeholder and in the counts.", '"acme-token"'),
        Meta(pattern=r"\A[a-z][a-z0-9-]{1,39}\Z"),
    ]
    prefix: Annotated[
        tuple[Annotated[str, Meta(pattern=r"\A[!-~]{2,64}\Z")], ...],
        doc("How such a secret begins; upper and lower case count.", '["acme_live_"]'),
        Meta(max_length=16),
    ] = ()
    words: Annotated[
        tuple[Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{3,40}\Z")], ...],
        doc(
            "With a prefix: words of which one must stand in front of it. Without: words after which such a secret stands.",
            '["acme"]',
        ),
        Meta(max_length=16),
    ] = ()
    characters: Annotated[RedactCharacters, doc("What it is made of, after the prefix.", '"hex"')] = (
        "letters-digits-_"
    )
    min_length: Annotated[int, doc("Fewest characters after the prefix.", "24"), Meta(ge=6, le=4096)] = 16
    max_length: Annotated[
        int, doc("Most characters after the prefix; 0 is any number.", "40"), Meta(ge=0, le=4096)
    ] = 0


class RedactTable(Table, frozen=True, kw_only=True):
    """Secrets that must not reach a client, besides those recognised by their form."""

    env: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=100)], ...],
        doc("Glob patterns of variable names whose values are secret.", '["*TOKEN*", "*_KEY"]'),
        Meta(max_length=100),
    ] = ()
    files: Annotated[
        tuple[HostPath, ...],
        doc("Files whose content is secret; relative to the policy file.", '["secrets/token"]'),
        Meta(max_length=100),
    ] = ()
    rules: Annotated[
        tuple[RedactRule, ...],
        doc("Formats of secrets of your own.", '[{ kind = "acme-token", prefix = ["acme_"] }]'),
        Meta(max_length=100),
    ] = ()


class Cage(Table, frozen=True, kw_only=True):
    """What the cage of a tool, or of all tools of a catalog, lets through."""

    processes: Annotated[
        Programs, doc('Programs it may start: "none", "any" or a list of programs.', '["gzip"]')
    ] = "none"
    socket_pairs: Annotated[
        bool,
        doc(
            "It may make pairs of Unix sockets that reach nothing but itself. Python's asyncio needs one.",
            "true",
        ),
    ] = False
    env: Annotated[
        tuple[EnvName, ...],
        doc("Variables taken from the operator's environment.", '["LANG"]'),
        Meta(max_length=64),
    ] = ()
    set_env: Annotated[
        dict[EnvName, Annotated[str, Meta(max_length=4096, pattern=r"\A[^\x00]*\Z")]],
        doc(
            "Variables with fixed values. Without them tools run in UTC and C.UTF-8.",
            '{ TZ = "Europe/Paris" }',
        ),
        Meta(max_length=128),
    ] = msgspec.field(default_factory=dict)
    unsafe_env: Annotated[bool, doc("Variables that can make a tool run code may be set.", "true")] = False
    limits: Annotated[LimitsTable, doc("Narrower limits.", "{ wall_seconds = 10 }")] = LimitsTable()
    read_only_paths: Annotated[
        tuple[HostPath, ...],
        doc("Further absolute paths it may read.", '["/opt/tool"]'),
        Meta(max_length=64),
    ] = ()
    redact_exempt: Annotated[
        tuple[Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_-]{0,63}\Z")], ...],
        doc("Kinds of secrets, or names of values, that stay in its output.", '["jwt"]'),
        Meta(max_length=64),
    ] = ()


class ToolTable(Cage, frozen=True, kw_only=True):
    """One tool."""

    description: Annotated[
        str,
        doc("What it does; clients choose by the first sentence.", '"Lint."'),
        Meta(min_length=1, max_length=500),
    ]
    command: Annotated[
        tuple[Word, ...],
        doc(
            'Program and words. "{param}" or "--flag={param}" is a placeholder, "{{param}}" the text "{param}".',
            '["ruff", "check", "--", "{path}"]',
        ),
        Meta(min_length=1, max_length=128),
    ]
    title: Annotated[str, doc("Name for people.", '"Lint"'), Meta(max_length=80)] = ""
    params: Annotated[
        dict[ParamName, AnyParam],
        doc("The parameters.", '{ path = { type = "path" } }'),
        Meta(max_length=40),
    ] = msgspec.field(default_factory=dict)
    groups: Annotated[
        tuple[GroupTable, ...],
        doc("Exclusive parameters.", '[{ params = ["a", "b"] }]'),
        Meta(max_length=10),
    ] = ()
    output: Annotated[
        Literal["json", "text"], doc('"json" is refused when too large, "text" is shortened.', '"json"')
    ] = "text"
    findings_exit_codes: Annotated[
        tuple[ExitCode, ...], doc("Exit codes besides 0 that are no error.", "[1]"), Meta(max_length=16)
    ] = ()
    cwd: Annotated[HostPath, doc("Working folder beneath the root.", '"docs"')] = "."


class CatalogTable(Cage, frozen=True, kw_only=True):
    """Tools from a command line program that describes itself (docs/catalog.md)."""

    describe: Annotated[
        tuple[Word, ...],
        doc("Command that prints the catalog, run in a cage at start-up.", '["rw", "describe"]'),
        Meta(min_length=1),
    ]
    command: Annotated[
        tuple[Word, ...],
        doc("Words before the subcommand.", '["rw", "--plain"]'),
        Meta(min_length=1, max_length=64),
    ]
    withhold: Annotated[
        tuple[Word, ...], doc("Commands that become no tool.", '["next"]'), Meta(max_length=500)
    ] = ()
    withhold_flags: Annotated[
        tuple[Word, ...],
        doc('Flags no tool offers: "--flag", or "command --flag" for one command.', '["--out"]'),
        Meta(max_length=500),
    ] = ()
    path_flags: Annotated[
        tuple[Word, ...],
        doc(
            '"command --flag" pairs whose value is a path though the catalog says string.', '["trace --log"]'
        ),
    ] = ()
    never: Annotated[
        tuple[Word, ...], doc("Start-up fails if one of these commands would become a tool.", '["publish"]')
    ] = ()
    findings_exit_codes: Annotated[
        tuple[ExitCode, ...], doc("Exit codes that are no error.", "[1]"), Meta(max_length=16)
    ] = (1,)


class Document(Table, frozen=True, kw_only=True):
    """A policy file. Keys without a table stand before the first [table]."""

    server: Annotated[ServerTable, doc("The server as a whole.")]
    presets: Annotated[
        tuple[Word, ...],
        doc("Presets whose tools are offered.", '["git-read", "search", "files"]'),
        Meta(max_length=16),
    ] = ()
    withhold: Annotated[
        tuple[ToolName, ...],
        doc("Tools of the presets that are not offered.", '["git_grep"]'),
        Meta(max_length=100),
    ] = ()
    limits: Annotated[LimitsTable, doc("Limits of every call.")] = LimitsTable()
    redact: Annotated[RedactTable, doc("Secrets.")] = RedactTable()
    tools: Annotated[dict[ToolName, ToolTable], doc("The tools, by name."), Meta(max_length=200)] = (
        msgspec.field(default_factory=dict)
    )
    catalogs: Annotated[
        dict[CatalogName, CatalogTable], doc("The catalogs, by name."), Meta(max_length=16)
    ] = msgspec.field(default_factory=dict)
