"""What a case expects on a weaker rung of the ladder, where the honest answer is another one. Pure data for `Case.on`.

A tuple of answers says that the rung still stops it, in its own way; a sentence says that the rung does not promise it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sandbox import ladder
from sandbox.battery.case import blocked

_NO_PROC = "there is no /proc inside on this rung"
_ONE_LAYER = "on this rung nothing stands behind the layer that this case opens"
_BARE = ladder.NO_NAMESPACES.name
On = Mapping[str, tuple[str, ...] | str]

# It is asked through /proc.
PROC: On = {ladder.NO_PROC.name: _NO_PROC, _BARE: _NO_PROC}
# The name or metadata of something outside.
NAME: On = {_BARE: "this rung does not hide which files exist outside"}
# What a file outside says: there, but not to be opened.
CONTENT: On = {_BARE: blocked("EACCES")}
# A new name where everything is read-only: Landlock's word instead of the mount's.
NEW: On = {_BARE: blocked("EACCES")}
# A change that Landlock does not know (modes, times): the filter's word.
CHANGE: On = {_BARE: blocked("EPERM")}
# Landlock alone stops it.
LANDLOCK: On = {
    ladder.NO_LANDLOCK.name: "there is no Landlock on this rung",
    _BARE: _ONE_LAYER,
}
# Landlock alone, without namespaces as well.
SCOPE: On = {ladder.NO_LANDLOCK.name: "there is no Landlock on this rung"}
# It needs the namespaces.
NAMESPACES: On = {_BARE: "there are no namespaces on this rung"}
# It looks for the user namespace.
USER: On = {
    ladder.ROOT_NAMESPACES.name: "there is no user namespace on this rung",
    **PROC,
}
# Another process: there, but not to be touched.
PROCESS: On = {_BARE: blocked("EPERM")}
# What stands behind an opened filter.
BEHIND: On = {_BARE: _ONE_LAYER}
