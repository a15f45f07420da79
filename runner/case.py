"""One call's outcome and all that decides how it is told, for the two ways of telling (text_results, json_results).

Runs in the front; pure but for the store of outputs. What a tool printed leaves this file redacted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from runner import error_texts, wording
from runner.outputs import Outputs
from runner.redaction.engine import WITHHELD, Redactor
from runner.wording import Words
from sandbox.types import Kind, Outcome

# What is always said, under the smallest max_output_bytes too: an error of at most 4,000 characters, the facts about the
# call (MAX_META_BYTES) and the frame of the message.
LEAST_MESSAGE_BYTES = 32 * 1024
MAX_META_BYTES = 8192
_FRAME_BYTES = 2048  # besides the client's own id


class ToolFacts(Protocol):
    """What is needed of a tool: runner.catalog.tools.Tool."""

    @property
    def name(self) -> str: ...
    @property
    def output(self) -> str: ...
    @property
    def ok_exit_codes(self) -> tuple[int, ...]: ...
    @property
    def findings_exit_codes(self) -> tuple[int, ...]: ...
    @property
    def redact_exempt(self) -> frozenset[str]: ...
    @property
    def params(self) -> Mapping[str, object]: ...


class PolicyFacts(Protocol):
    """What is needed of a policy: policies.policy.Policy."""

    @property
    def max_output_bytes(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def root_at(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Case:
    """See the module. counts: redactions by kind, added to while the case is told."""

    tool: ToolFacts
    outcome: Outcome
    redactor: Redactor
    outputs: Outputs
    policy: PolicyFacts
    counts: Counter[str] = field(default_factory=Counter)

    def masked(self, text: str) -> str:
        """`text` without secrets."""
        redacted, found = self.redactor.text(text)
        self.counts.update(found)
        return redacted

    def stdout(self) -> str:
        """What it printed, redacted, not yet made visible."""
        return self._printed(self.outcome.stdout, self.outcome.stdout_total)

    def stderr(self) -> str:
        """Its messages, redacted, not yet made visible."""
        return self._printed(self.outcome.stderr, self.outcome.stderr_total)

    def _printed(self, data: bytes, total: int) -> str:
        return self.masked(error_texts.decoded(data, total, self.outcome.kind))

    def words(self) -> Words | None:
        """What is said of an outcome that is no exit; None for an exit."""
        if self.outcome.kind is Kind.EXITED:
            return None
        return wording.explain(self.outcome).mapped(lambda text: self.ours(self.masked(text)))

    def ours(self, text: str) -> str:
        """Redacted text as it may stand in a message of ours: without paths outside the root."""
        return error_texts.relative(text, self.roots())

    def roots(self) -> Iterable[str]:
        """The root folder as it may be written."""
        return [place for place in (self.policy.root_at, self.policy.root) if place is not None]

    def status(self) -> str:
        """ "ok", "findings" or "error"."""
        if self.outcome.kind is not Kind.EXITED or self.outcome.exit_code is None:
            return "error"
        if self.outcome.exit_code in self.tool.ok_exit_codes:
            return "ok"
        return "findings" if self.outcome.exit_code in self.tool.findings_exit_codes else "error"

    def is_withheld(self) -> bool:
        """Whether something could not be checked for secrets, so far."""
        return WITHHELD in self.counts

    def room(self) -> int:
        """Bytes of the content on the wire."""
        return content_room(self.policy.max_output_bytes)


@dataclass(frozen=True, slots=True)
class Told:
    """What a client is told. words: of everything that is no good exit. handle: of what was stored. size: bytes of a
    content that was too large for `max_output_bytes`.
    """

    text: str
    structured: dict[str, object] | None
    status: str
    words: Words | None = None
    handle: str | None = None
    size: int | None = None


def content_room(cap: int) -> int:
    """How many bytes the content of a result (text and structured copy, escaped) may have on the wire.

    A whole message then has at most `cap` bytes (max_output_bytes), or LEAST_MESSAGE_BYTES where `cap` is below that; the
    client's own id comes on top.
    """
    return min(cap, max(cap, LEAST_MESSAGE_BYTES) - MAX_META_BYTES - _FRAME_BYTES)
