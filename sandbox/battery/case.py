"""What a case of the escape battery is, and what its two answers mean. Pure; used by the front side of `verify`.

An attempt is made twice by the same program: in a worker, where it must be stopped in an expected way, and outside,
where it must not be, since an attempt that fails everywhere proves nothing. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HELD, ESCAPED, NOT_APPLICABLE, CONTROL_FAILED = "held", "escaped", "not_applicable", "control_failed"
RESULTS = (HELD, ESCAPED, NOT_APPLICABLE, CONTROL_FAILED)
# What a case may need of a cage or a machine -> why it is not applicable without.
NEEDS = {
    "x86": "these calls exist on x86-64 only",
    "alone": "the policy lets this tool start other programs",
    "no_pairs": "the policy allows this tool socket pairs",
    "apart": "the policy lends a folder that holds what this case aims at",
    "home": "nothing of the home folder lies outside what the policy lends",
    "source": "the policy or the system folders lend the source",
    "small": "the memory limit is above 2 GiB: trying it could hurt this machine",
}
_FRAME = """\
import errno, os
try:
{body}
    print("WORKED")
except OSError as e:
    print("BLOCKED", errno.errorcode.get(e.errno, e.errno))
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One attack.

    attempt     Python statements; {name} stands for a fact of the site, written as a literal. OSError means stopped.
    expected    answers that say the cage held: "BLOCKED EPERM", or "ENDED out_of_memory" for the outcome of the call.
    control     statements for outside where they have to differ ("" for the same ones).
    needs       keys of NEEDS.
    privileged  outside only root may do it: without root the control proves nothing, and that is nobody's fault.
    untouched   facts that name paths which must not exist afterwards, as seen from outside; that decides, since the
                same path may lie in the private /tmp inside.
    """

    id: str
    group: str
    sentence: str
    attempt: str
    expected: tuple[str, ...]
    control: str = ""
    needs: tuple[str, ...] = ()
    privileged: bool = False
    untouched: tuple[str, ...] = ()

    def program(self, facts: Mapping[str, object]) -> str:
        """The program that runs in the worker."""
        return _program(self.attempt, facts)

    def outside(self, facts: Mapping[str, object]) -> str:
        """The program of the control."""
        return _program(self.control or self.attempt, facts)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a case showed in one cage. `why` is empty when it held."""

    case: Case
    result: str
    why: str = ""


def blocked(*names: str) -> tuple[str, ...]:
    """Answers for errno names."""
    return tuple(f"BLOCKED {name}" for name in names)


def missing(case: Case, have: frozenset[str]) -> Verdict | None:
    """The verdict without a run, when the cage or machine lacks what the case needs."""
    lacking = next((need for need in case.needs if need not in have), None)
    return None if lacking is None else Verdict(case, NOT_APPLICABLE, NEEDS[lacking])


def judge(case: Case, inside: str, outside: str, *, root: bool, touched: str = "") -> Verdict:
    """From both answers to a verdict. An escape counts before everything else."""
    if touched:
        return Verdict(case, ESCAPED, f"it exists outside now: {touched}")
    if inside not in case.expected and not (case.untouched and inside == "WORKED"):
        if _answered(inside):
            return Verdict(case, ESCAPED, f"inside: {inside}, expected {' or '.join(case.expected)}")
        return Verdict(case, CONTROL_FAILED, f"the attempt did not run to its answer: {inside}")
    if outside not in case.expected and _answered(outside):
        return Verdict(case, HELD)
    if case.privileged and not root:
        return Verdict(case, NOT_APPLICABLE, f"{inside} inside, but outside only root may do it")
    return Verdict(case, CONTROL_FAILED, f"outside it is stopped as well: {outside}")


def _answered(answer: str) -> bool:
    return answer == "WORKED" or answer.startswith(("BLOCKED ", "KILLED "))


def _program(body: str, facts: Mapping[str, object]) -> str:
    for name, value in facts.items():
        body = body.replace("{" + name + "}", repr(value))
    return framed(body)


def framed(body: str) -> str:
    """A program that says WORKED, or BLOCKED and the errno that stopped `body`."""
    return _FRAME.format(body="\n".join("    " + line for line in body.splitlines()))
