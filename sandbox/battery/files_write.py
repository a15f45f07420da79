"""FW: changing anything but the private /tmp. Files that an escape would make are removed at once."""

from __future__ import annotations

from sandbox.battery.case import Case, blocked

_READ_ONLY = blocked("EROFS", "EACCES", "EPERM")
_GROUP = "files_write"
_CREATE = "os.close(os.open({0}, os.O_CREAT | os.O_EXCL | os.O_WRONLY))\nos.unlink({0})"
# Every mount point but /tmp: a folder gets a file that is removed at once.
_ANYWHERE = """\
places = [line.split()[4] for line in open('/proc/self/mountinfo')]
for place in places:
    if place in ('/tmp', {temp}) or not os.path.isdir(place): continue
    try: os.close(os.open(place + '/toolcage-verify', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError: continue
    os.unlink(place + '/toolcage-verify')
    break
else: raise OSError(errno.EROFS, '')"""


def _new(number: str, sentence: str, name: str) -> Case:
    made = _CREATE.format("{root} + " + repr("/" + name))
    return Case(number, _GROUP, sentence, made, _READ_ONLY)


CASES = (
    Case(
        "FW-01", _GROUP, "writes into /usr", _CREATE.format("'/usr/toolcage-verify'"), _READ_ONLY,
        control=_CREATE.format("{scratch} + '/usr'"),
    ),
    Case(
        "FW-01-etc", _GROUP, "writes into /etc", _CREATE.format("'/etc/toolcage-verify'"), _READ_ONLY,
        control=_CREATE.format("{scratch} + '/etc'"),
    ),
    Case(
        "FW-01-any", _GROUP, "writes at any mount point but /tmp", _ANYWHERE, _READ_ONLY,
        control=_CREATE.format("{scratch} + '/any'"),
    ),
    _new("FW-03", "creates a file in the root folder", "toolcage-verify-file"),
    Case(
        "FW-03-folder", _GROUP, "creates a folder in the root folder",
        "os.mkdir({root} + '/toolcage-verify-folder')\nos.rmdir({root} + '/toolcage-verify-folder')", _READ_ONLY,
    ),
    Case(
        "FW-03-link", _GROUP, "creates a symbolic link in the root folder",
        "os.symlink('x', {root} + '/toolcage-verify-link')\nos.unlink({root} + '/toolcage-verify-link')", _READ_ONLY,
    ),
    Case("FW-09", _GROUP, "sets the times of the root folder", "os.utime({root}, ns=(os.stat({root}).st_atime_ns, os.stat({root}).st_mtime_ns))", _READ_ONLY),
    Case("FW-09-mode", _GROUP, "sets the mode of the root folder", "os.chmod({root}, os.stat({root}).st_mode & 0o777)", _READ_ONLY),
    Case(
        "FW-10", _GROUP, "sets a set-user-id bit on its own file",
        "name = {temp} + '/setuid'\nopen(name, 'w').close()\nos.chmod(name, 0o4755)", blocked("EPERM"),
    ),
    Case(
        "FW-11", _GROUP, "leaves a FIFO in the root folder",
        "os.mkfifo({root} + '/toolcage-verify-fifo')\nos.unlink({root} + '/toolcage-verify-fifo')", _READ_ONLY,
    ),
    Case(
        "FW-17", _GROUP, "writes beside the root folder", "open({mark}, 'w').close()",
        blocked("EROFS", "EACCES", "ENOENT"), control="open({scratch} + '/mark', 'w').close()", untouched=("mark",),
    ),
)  # fmt: skip
