"""What a case of the escape battery is, and what its two answers mean. Pure; used by the front side of `verify`.

An attempt is made twice by the same program: in a worker, where it must be stopped in an expected way, and outside,
where it must not be, since an attempt that fails everywhere proves nothing. Expected answers are exact, because layers
overlap: ENOENT comes from the mounts, EACCES from Landlock, EPERM from the filter, and where another one answers than
should, a layer does not hold although nothing got out. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sandbox.battery import program
from sandbox.battery.changed import AS_IS

HELD, ESCAPED, NOT_APPLICABLE, CONTROL_FAILED = "held", "escaped", "not_applicable", "control_failed"
RESULTS = (HELD, ESCAPED, NOT_APPLICABLE, CONTROL_FAILED)
ANOTHER = "VALUE, another one than outside"
# What a case may need of a cage or a machine -> why it is not applicable without.
NEEDS = {
    "x86": "these calls exist on x86-64 only",
    "call": "this machine does not have that system call",
    "alone": "the policy lets this tool start other programs",
    "many": "the policy does not let this tool start processes",
    "any": "the policy does not let this tool start any program",
    "no_pairs": "the policy allows this tool socket pairs",
    "name": "this host has the name that every cage has",
    "home": "nothing of the home folder lies outside what the policy lends",
    "own_root": "the root folder is the operator's: nothing is put there to be found",
    "root": "only root can do what this case looks for",
    "user": "this is about ordinary users; Toolcage runs as root",
    "starts": "the file system of the temporary folder outside is mounted noexec, so the control would prove nothing",
    "bounding": "an ordinary user without a user namespace cannot close what only root has (bounding set, securebits)",
    "own_count": "without a user namespace the kernel counts all processes of this user together",
    "five": "the policy allows fewer processes than this case starts",
    "cgroup": "this rung has no cgroups; the keeper samples what a call uses",
    "bash": "there is no bash on this machine",
    "loader": "the system's Python has no loader of its own",
    "landlock_net": "this kernel's Landlock does not know TCP (needed: Linux 6.7)",
    "landlock_ioctl": "this kernel's Landlock does not know ioctl (needed: Linux 6.10)",
    "landlock_scope": "this kernel's Landlock does not know scopes (needed: Linux 6.12)",
}
# Needs that a policy decides: with several cages a case runs in those that meet them.
OF_THE_POLICY = frozenset(("alone", "many", "any", "no_pairs"))
LENT = "the policy lends what this case aims at"
ABSENT = "this machine has nothing there"
REFUSED = "outside it is refused as well, by missing privileges or by this machine's own rules"
_LIMITS = ("ENDED out_of", "ENDED too_", "ENDED timed_out", "ENDED file_", "ENDED temp_")


@dataclass(frozen=True, slots=True)
class Case:
    """One attack.

    attempt     Python statements; {name} stands for a fact of the site, written as a literal, {sys_name} for the
                number of a system call, `temp` for the temporary folder; see `program` for the functions that exist.
                OSError means stopped.
    expected    answers that say the cage held: "BLOCKED EPERM", or "ENDED out_of_memory" for the outcome of the call.
    control     statements for outside where they have to differ ("" for the same ones).
    needs       keys of NEEDS.
    aims        paths, or facts in braces, that the case aims at: it does not apply where the policy lends one of them, or
                where none exists.
    cage        the cage as it is, or a name of `changed.KINDS`.
    earlier     statements of an earlier call in the same cage.
    look        what is looked at from outside: gone (no process of the call is left when its result is there); tool, keeper,
                cgroup (what the kernel says of it while it runs); flat (the front's own memory did not grow).
    optional    outside it may be refused as well: then it proves nothing, and that is nobody's fault.
    untouched   facts that name paths which must not exist afterwards, as seen from outside; that decides, since the
                same path may lie in the private /tmp inside.
    on          rung of the ladder -> what is expected there instead, or why the case does not apply there.
    """

    id: str
    group: str
    sentence: str
    attempt: str
    expected: tuple[str, ...]
    control: str = ""
    needs: tuple[str, ...] = ()
    aims: tuple[str, ...] = ()
    cage: str = AS_IS
    earlier: str = ""
    look: str = ""
    optional: bool = False
    untouched: tuple[str, ...] = ()
    on: Mapping[str, tuple[str, ...] | str] = field(default_factory=dict)

    @property
    def calls(self) -> set[str]:
        """Names of the system calls that are made by number."""
        return program.calls_in(self.attempt) | program.calls_in(self.control)

    def inside(self, facts: Mapping[str, object]) -> str:
        """The program that runs in the worker."""
        return program.framed(program.filled(self.attempt, facts))

    def before(self, facts: Mapping[str, object]) -> str:
        """The program of the earlier call, "" when there is none."""
        return program.framed(program.filled(self.earlier, facts)) if self.earlier else ""

    def outside(self, facts: Mapping[str, object]) -> str:
        """The program of the control; what an earlier call would do is part of it."""
        body = program.filled(self.control or self.attempt, facts)
        return program.framed(
            "\n".join((program.filled(self.earlier, facts), body)) if self.earlier else body
        )

    def expects(self, absent: Iterable[str]) -> tuple[str, ...] | str:
        """The answers that count as held, or why the case does not apply; `absent`: rungs whose layer is missing."""
        return next((self.on[rung] for rung in absent if rung in self.on), self.expected)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a case showed in one cage. `why` is empty when it held."""

    case: Case
    result: str
    why: str = ""


def blocked(*names: str) -> tuple[str, ...]:
    """Answers for errno names."""
    return tuple(f"BLOCKED {name}" for name in names)


def missing(case: Case, have: frozenset[str], absent: Iterable[str]) -> Verdict | None:
    """The verdict without a run, when the rung does not promise it, or cage or machine lack what the case needs."""
    expected = case.expects(absent)
    if isinstance(expected, str):
        return Verdict(case, NOT_APPLICABLE, expected)
    lacking = next((need for need in case.needs if need not in have), None)
    return None if lacking is None else Verdict(case, NOT_APPLICABLE, NEEDS[lacking])


def judge(case: Case, expected: tuple[str, ...], inside: str, outside: str, touched: str = "") -> Verdict:
    """From both answers to a verdict. An escape counts before everything else."""
    if touched:
        return Verdict(case, ESCAPED, f"it exists outside now: {touched}")
    if expected == (ANOTHER,):
        return _compare(case, inside, outside)
    if inside not in expected and not (case.untouched and inside == "WORKED"):
        return _unexpected(case, expected, inside, outside)
    if outside not in expected and _answered(outside):
        return Verdict(case, HELD)
    if case.optional and outside in expected:
        return Verdict(case, NOT_APPLICABLE, f"{REFUSED}: {outside}")
    return Verdict(case, CONTROL_FAILED, f"outside it is stopped as well: {outside}")


def _unexpected(case: Case, expected: tuple[str, ...], inside: str, outside: str) -> Verdict:
    wanted = " or ".join(expected)
    if not _answered(inside):
        return Verdict(case, CONTROL_FAILED, f"the attempt did not run to its answer: {inside}")
    if inside.startswith(("WORKED", "RUNS", "SEEN", "GREW")):
        return Verdict(case, ESCAPED, f"inside: {inside}, expected {wanted}")
    if inside == outside:
        return Verdict(case, ESCAPED, f"inside it goes as far as outside: {inside}, expected {wanted}")
    return Verdict(
        case, ESCAPED, f"a layer does not hold, another one stopped it: {inside}, expected {wanted}"
    )


def _compare(case: Case, inside: str, outside: str) -> Verdict:
    if outside == "BLOCKED ENOSYS":
        return Verdict(case, NOT_APPLICABLE, "this kernel does not have it")
    if case.optional and outside.startswith("BLOCKED "):
        return Verdict(case, NOT_APPLICABLE, f"{REFUSED}: {outside}")
    if not outside.startswith("VALUE "):
        return Verdict(case, CONTROL_FAILED, f"outside it finds nothing to compare: {outside}")
    if inside == outside:
        return Verdict(case, ESCAPED, f"inside and outside share it: {inside[6:]}")
    if inside.startswith("VALUE "):
        return Verdict(case, HELD)
    return _unexpected(case, (ANOTHER,), inside, outside)


def _answered(answer: str) -> bool:
    return answer.startswith(("WORKED", "BLOCKED ", "KILLED ", "GONE", "RUNS ", "SEEN ", "GREW ", *_LIMITS))
