"""What can be wrong before a tool runs: each error says what to do next.

What became of a tool is an Outcome, not an exception. Anything else that is raised is a bug.
"""

from __future__ import annotations


class Refused(Exception):
    """Base of the errors that carry a remedy. `code` is stable and machine readable."""

    code = "refused"

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def as_json(self) -> dict[str, dict[str, str]]:
        """The document that every verb prints with --json: {"error": {"code", "message", "remedy"}}."""
        return {"error": {"code": self.code, "message": self.message, "remedy": self.remedy}}


class HostRefused(Refused):
    """This host cannot enforce what the policy asks for."""

    code = "host_unsupported"


class ProfileRefused(Refused):
    """The profile itself is not acceptable: a missing program, a dangerous root."""

    code = "profile_refused"


class PathRefused(Refused):
    """A path argument that is not a plain file or folder beneath the root."""

    code = "path_refused"


class WireError(Exception):
    """Bytes from another process that are not what the protocol allows: truncated, oversized, forged."""
