"""What a rule about a token is. Data only: nothing here matches, compiles or holds a secret. Read by the front."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Names of the character classes a run may be made of. Values are the inside of a bracket expression.
CHARSETS: dict[str, str] = {
    "alnum": "A-Za-z0-9",
    "word": "A-Za-z0-9_",
    "dash": "A-Za-z0-9_-",
    "dot": "A-Za-z0-9_.-",
    "base64": "A-Za-z0-9+/=_-",
    "path": "A-Za-z0-9_/.-",
    "hex": "0-9a-f",
    "hexes": "0-9a-fA-F",
    "hexdash": "0-9a-fA-F-",
    "upper": "A-Z0-9",
    "lower": "a-z0-9",
    "money": "A-Za-z0-9$_",
    "tilde": "A-Za-z0-9_.~-",
    "digit": "0-9",
    "colon": "A-Za-z0-9_:.-",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One token format. A rule is never a regular expression: an anchor, then one run of a single character class.

    id        unique name of the rule.
    kind      word in the placeholder and in the counts: [REDACTED:kind]. Several rules may share one.
    why       what whoever holds such a token can do, or who issues it.
    anchors   case-sensitive literals; the token starts at the anchor (see `before`).
    charset   name in CHARSETS of the run after the anchor; the whole run belongs to the token.
    form      an example with `<charset:length>` in place of what is drawn at random, for the first anchor.
    leaves    texts that look like it and stay, in the same notation.
    least     fewest characters of the run; most: reject longer runs (0 = any length).
    bounded   the byte before the anchor and the byte after the run must not be alphanumeric. For anchors that are
              short or look like words; distinctive anchors match anywhere.
    need      what the run must contain: "d" digit, "l" lower case, "u" upper case, "m" two of these three.
    before    (charset, least, most): characters in front of the anchor that belong to the token.
    words     lower-case words of which one must stand within 256 bytes in front of the token; none = no condition.
    strict    what looks like an example is hidden too.
    gap       most bytes between the anchor and the run; then the anchor is a key word and no part of the token.
    """

    id: str
    kind: str
    why: str
    anchors: tuple[str, ...]
    charset: str
    form: str
    leaves: tuple[str, ...] = ()
    least: int = 20
    most: int = 0
    bounded: bool = False
    need: str = "m"
    before: tuple[str, int, int] | None = None
    words: tuple[str, ...] = ()
    gap: int = 0
    strict: bool = False

    @property
    def length(self) -> int:
        """Usual length of the run after the anchor, for tokens that were wrapped at the end of a line."""
        _, _, run = self.form.partition(self.anchors[0])
        return len(re.sub(r"<[\w]+:(\d+)>", lambda drawn: "x" * int(drawn[1]), run))
