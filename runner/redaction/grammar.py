"""The forms in which text puts a value beside a name, and how far such a value reaches.

Runs in the front; pure data and bounded expressions, each used with `match` at one place. Quotes may be escaped as in
JSON inside JSON, or written as entities.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Matcher = Callable[[bytes, int], "re.Match[bytes] | None"]

# of Authorization headers (RFC 9110, section 11), and those that services made up
SCHEMES = (
    b"bearer", b"basic", b"token", b"ssws", b"apikey", b"bot", b"digest", b"negotiate", b"oauth", b"aws4-hmac-sha256",
)  # fmt: skip
QUOTE = rb"""\\{0,7}["'`]|&quot;|&\#34;|&\#39;"""
_SPACE = rb"[ \t]{0,32}+"
_TYPE = rb"""(?(close)|(?::[ ]?[A-Za-z&*?\[][A-Za-z0-9_.&*'<>?\[\]| ]{0,40}?(?=[ ]=[ ][^=>\s]|=[ ]?[\"'])|[ ](?:string|str|\[\]byte|String|As[ ]String)(?=[ ]=)|\[[0-9]{0,6}\]|[ ]\[[A-Za-z0-9*]{0,24}\](?=:))?)"""
_WRAPPER = rb"(?:(?:Some|String|SecretStr|SecretString|Secret|Just|Optional|str|bytes|b|r|u|rb|br|f|L|N|@|\$|Ok)?\(?\[?(?=\\{0,7}[\"'`]))?"

# an anchor or a type of YAML, a type and length as var_dump of PHP shows it
_LEAD = rb"(?:&\w{1,24}[ ]|!!str[ ]|\r?\n[ ]{0,16}string\([0-9]{1,5}\)[ ])?"

# name, perhaps quoted or indexed; an operator; an opening quote or none
ASSIGN = re.compile(
    rb"(?x)(?P<close>" + QUOTE + rb")?[\]})]{0,2}" + _TYPE + _SPACE +
    rb"(?P<op>:=|=>|->|\xe2\x86\x92|<-|\?=|\+=|\|=|==|=|:(?!:)|\xef\xbc\x9a|(?:\|\||\?\?|or)(?=[ ]?[\"'`]))" + _SPACE + _LEAD + _WRAPPER + rb"(?P<open>" + QUOTE + rb")?"
).match  # fmt: skip
# {"name": "X", "value": "…"}, name: X / value: …, <add key="X" value="…"/>
MEMBER = re.compile(
    rb"(?x)(?P<close>" + QUOTE + rb")?,?\s{0,64}+(?:[\"']?[a-zA-Z_]{1,16}[\"']?[ ]?[:=][ ]?[\"']?[A-Za-z_]{1,16}[\"']?,?\s{0,64}+){0,2}"
    rb"(?P<mark>" + QUOTE + rb")?(?:[A-Za-z]{0,16}[vV]alue|VALUE|val|content|default)(?(mark)(?:" + QUOTE + rb"))"
    rb"[ \t]{0,8}+[:=]\s{0,32}+(?P<open>" + QUOTE + rb")?"
).match  # fmt: skip
# a list of strings: ("X-Api-Key", "…"), ['token', '…'], define('KEY', '…'), ("key" . "…"), "KEY" to "…"
LISTED = re.compile(
    rb"(?x)(?P<close>" + QUOTE + rb")[ \t]{0,8}+(?:,|\.(?=[ ])|:?to(?=[ ])|is(?=[ ]))?[ \t]{0,32}+(?:b|u|r)?(?P<open>" + QUOTE + rb")"
).match  # fmt: skip
# name "value", as in set(NAME "…"), #define NAME "…", proxy_set_header NAME "…"
BESIDE = re.compile(rb"(?P<close>)[ \t]{1,16}+(?P<open>[\"'`])").match
# --name value, NAME<tab>value, | NAME | value |, NAME,value, [name] value
SPACED = re.compile(
    rb"(?x)(?P<close>" + QUOTE + rb")?\]?(?:[ \t]{1,40}+(?P<bar>\||\xe2\x94\x82|\xe2\x94\x83)[ \t]{1,40}+|(?P<comma>,)[ ]?|[ \t]{1,60}+)(?P<open>[\"'`])?"
).match  # fmt: skip
IS = re.compile(
    rb"(?P<close>[`\"'])?(?: (?:is|was) generated for [\w@.%'-]{1,64}:"
    rb"|(?: for [\w@.%'-]{1,64})?:? (?:is|was|to|as|changed to|set to|=):?) (?P<open>[\"'`])?"
).match
# {"name": {…, "value": "…"}}, variable "name" { … default = "…" }
NESTED = re.compile(
    rb"(?P<close>[\"'])(?:\s{0,4}:\s{0,8}|[ ])\{[^{}\xff]{0,160}?[\"']?\b(?:value|default)[\"']?\s{0,8}[:=]\s{0,8}(?P<open>[\"'])"
).match
# a part of multipart/form-data: name="password", an empty line, the value
MULTIPART = re.compile(rb"(?P<close>\")\r?\n\r?\n(?P<open>)").match
# "old" -> "new", as plans of Terraform show a change
CHANGED = re.compile(rb"[\"'] (?:->|=>|\xe2\x86\x92) (?P<open>[\"'])").match
ELEMENT = re.compile(
    rb"(?P<close>[\"'])?(?: [\w:-]{1,40}=[\"'][^\"'<>\n]{0,160}[\"']){0,4}>\s{0,16}+(?:<!\[CDATA\[)?(?P<open>)"
).match
PLIST = re.compile(rb"(?P<close>)</(?i:key|name|string)>\s{0,64}+<[a-zA-Z]{1,16}>(?P<open>)").match
CALL = re.compile(rb"(?P<close>)\((?P<open>[\"'])").match
# the value on the next, deeper line: YAML blocks and wrapped output
BLOCK = re.compile(
    rb"(?P<close>[\"'])?[ \t]{0,8}+[:=][ \t]{0,8}+(?P<block>[|>][+-]?[1-9]?[ \t]{0,8}+)?\\?\r?\n(?P<open>)[ \t]{1,32}+(?P<inner>[\"'])?"
).match

BARE_BYTES = 256  # of a value without quotes that are read before it is judged
BARE = re.compile(
    rb"""[^\s"'<>,;&|)}\]`\\\xff]{0,256}+(?:\\(?![nrtu"'\\])[^\s"'<>,;&|)}\]`\\\xff]{0,64}+){0,4}+"""
).match
# A password holds punctuation, unless what follows is the end, or the next name of a list.
BARE_PASSWORD = re.compile(
    rb"""(?:[^\s"'`<>,;&|)}\]\\\xff]|\\(?![nrtu"'\\])
      |[,;&|)}\]](?![\s"'`<>,;:&|)}\]\\\xff]|\Z|[A-Za-z_][\w.-]{0,40}[=:])){1,256}+""", re.VERBOSE
).match  # fmt: skip
BARE_LINE = re.compile(rb"""(?:[^\s"'`;\xff]|;(?![A-Za-z_]\w{0,40}=|\s|\Z)){1,256}+""").match
ON = re.compile(
    rb"""[^\s"'<>,;&|)}\]`\\\xff]{0,8192}+"""
).match  # the rest of a long one, read only when it is hidden
_IN_DOUBLE = re.compile(rb"""(?:[^"\\\n\xff]|\\[^\n]){0,4096}+""").match
_IN_SINGLE = re.compile(rb"""(?:[^'\\\n\xff]|\\[^\n]){0,4096}+""").match
_IN_TICKS = re.compile(rb"""[^`\n\xff]{0,4096}+""").match
_IN_ESCAPED = re.compile(rb"""(?:[^"'`\\\n\xff]|\\\\\\[^\n"']|\\[^"'\n\\]){0,4096}+""").match
_IN_ENTITY = re.compile(rb"""[^&\n\xff]{0,4096}+""").match
IN_ELEMENT = re.compile(rb"""[^<\]\n\xff]{0,4096}+""").match
REST = re.compile(rb"""[^\s"'\xff]{1,4096}+(?=["']?[ \t]*(?:\r?\n|\Z))""").match
_READERS = {b'"': _IN_DOUBLE, b"'": _IN_SINGLE, b"`": _IN_TICKS}


def inside(opening: bytes) -> Matcher:
    """The reader of what stands behind an opening quote."""
    if opening.startswith(b"&"):
        return _IN_ENTITY
    return _IN_ESCAPED if opening.startswith(b"\\") else _READERS[opening]
