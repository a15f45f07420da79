"""FW: changing anything but the private /tmp. Nothing that exists is touched, and what an escape would make is removed
at once.
"""

from __future__ import annotations

from sandbox.battery import rungs
from sandbox.battery.case import Case, blocked
from sandbox.battery.changed import AS_IS, PROGRAMS_AT, SHELF, SHELF_AT, SMALL, UNFILTERED
from sandbox.battery.kernel_calls import IN_NAMESPACES
from sandbox.battery.program import raw

_READ_ONLY = blocked("EROFS")
_GROUP = "files_write"
_ROOT_EDITORS = (
    ".vscode/tasks.json", ".idea/workspace.xml", ".mcp.json", ".claude/settings.json", ".codex/config.toml",
    ".agents/tasks.md", ".cursor/mcp.json", ".envrc",
)  # fmt: skip
_BUILDS = (
    ".npmrc", ".pypirc", "pip.conf", "sitecustomize.py", "usercustomize.py", "conftest.py", "Makefile", "package.json",
    "setup.py", "build.rs", ".pre-commit-config.yaml", "node_modules/.bin/tool", ".venv/bin/python",
)  # fmt: skip
_GIT = (
    ".git/hooks/pre-commit", ".git/config.worktree", ".git/info/attributes", ".gitmodules", ".gitattributes",
    ".git/modules/x/config", ".GIT/hooks/pre-commit",
)  # fmt: skip
_NESTED = ("a/b/c/d/e/f/.git/hooks/post-checkout", "a/.git", "vendor/x/.git/config")
_SHELLS = (".bashrc", ".profile", ".bash_profile", ".zshrc", ".zshenv", ".config/fish/config.fish", ".pam_environment",
           ".ssh/authorized_keys", ".config/autostart/x.desktop", ".config/systemd/user/x.service")  # fmt: skip
# Every mount point but /tmp. Times, since that is refused in the same way on every file system; they stay what they are.
_ANYWHERE = """\
def touch(place): os.utime(place, ns=(os.stat(place).st_atime_ns, os.stat(place).st_mtime_ns))
each(errno.EROFS, touch, [at for at, words in mounted() if at != '/tmp' and os.path.isdir(at)])"""


def _in_root(number: str, sentence: str, names: tuple[str, ...]) -> Case:
    attempt = f"each(errno.EROFS, lambda name: plant({{root}}, name), {names!r})"
    return Case(number, _GROUP, sentence, attempt, _READ_ONLY, on=rungs.NEW)


def _new(number: str, sentence: str, folder: str) -> Case:
    return Case(
        number, _GROUP, sentence, f"plant({folder!r}, 'toolcage-verify')", _READ_ONLY,
        control="plant({scratch}, 'elsewhere')", on=rungs.NEW,
    )  # fmt: skip


def _remount(number: str, sentence: str, cage: str, attempt: str) -> Case:
    """Outside: in namespaces of its own, on a folder that is no mount point, so that nothing can happen."""
    return Case(
        number, _GROUP, sentence, "import struct\n" + attempt, blocked("EPERM"),
        control=f"import struct\n{IN_NAMESPACES}\n{attempt}", cage=cage, optional=True, on=rungs.BEHIND if cage else {},
    )  # fmt: skip


def _set_id(number: str, sentence: str, act: str) -> Case:
    made = "f = os.open(mine + 'x', os.O_CREAT | os.O_WRONLY)\n"
    return Case(number, _GROUP, sentence, made + act, blocked("EPERM"))


def _attribute(name: str, arguments: str) -> Case:
    return Case(
        f"FW-10-{name}", _GROUP, f"calls {name}: attributes of files", raw(name, arguments), blocked("EPERM")
    )


CASES = (
    _new("FW-01", "writes into /usr", "/usr"),
    _new("FW-01-etc", "writes into /etc", "/etc"),
    _new("FW-01-top", "writes into /", "/"),
    Case(
        "FW-01-any", _GROUP, "changes the times of any mount point but /tmp", _ANYWHERE, _READ_ONLY,
        control="os.utime({scratch}, ns=(1, 1))", on=rungs.PROC,
    ),
    _remount("FW-02", "makes the root folder writable (mount)", AS_IS, "call({sys_mount}, 0, {root}.encode(), 0, 0x1020, 0)"),
    _remount(
        "FW-02-attributes", "makes the root folder writable (mount_setattr)", AS_IS,
        "call({sys_mount_setattr}, -100, {root}.encode(), 0, struct.pack('QQQQ', 0, 1, 0, 0), 32)",
    ),
    _remount(
        "FW-02-behind", "makes the root folder writable, behind the filter", UNFILTERED,
        "call({sys_mount_setattr}, -100, {root}.encode(), 0, struct.pack('QQQQ', 0, 1, 0, 0), 32)",
    ),
    _in_root("FW-03", "creates a file in the root folder", ("toolcage-verify-file", "toolcage-verify-folder/file")),
    Case(
        "FW-03-fd", _GROUP, "creates a file in the root folder, by way of a descriptor",
        "f = os.open({root}, os.O_PATH)\nplant('/proc/self/fd/%d' % f, 'toolcage-verify-fd')", _READ_ONLY, on=rungs.PROC,
    ),
    Case(
        "FW-03-link", _GROUP, "creates a symbolic link in the root folder",
        "os.symlink('x', {root} + '/toolcage-verify-link')\nos.unlink({root} + '/toolcage-verify-link')", _READ_ONLY,
        on=rungs.NEW,
    ),
    _in_root("FW-04", "plants hooks and settings of git in the root folder", _GIT),
    _in_root("FW-05", "plants a git repository deeper in the root folder", _NESTED),
    _in_root("FW-06", "plants settings of editors and agents in the root folder", _ROOT_EDITORS),
    _in_root("FW-06-builds", "plants files that builds and tests run in the root folder", _BUILDS),
    Case(
        "FW-07", _GROUP, "renames a folder in the root folder",
        "os.rename({root} + '/toolcage-verify-a', {root} + '/toolcage-verify-b')", _READ_ONLY,
        control="os.mkdir({root} + '/a')\nos.rename({root} + '/a', {root} + '/b')\nos.rmdir({root} + '/b')",
        on={**rungs.NEW, "no-namespaces": blocked("EACCES", "ENOENT")},
    ),
    _in_root("FW-08", "plants files that shells and logins run in the root folder", _SHELLS),
    Case(
        "FW-09", _GROUP, "sets the times of the root folder",
        "os.utime({root}, ns=(os.stat({root}).st_atime_ns, os.stat({root}).st_mtime_ns))", _READ_ONLY, on=rungs.CHANGE,
    ),
    Case(
        "FW-09-mode", _GROUP, "sets the mode of the root folder", "os.chmod({root}, os.stat({root}).st_mode & 0o777)",
        _READ_ONLY, on=rungs.CHANGE,
    ),
    Case(
        "FW-09-away", _GROUP, "renames the root folder", "os.rename({root}, {root} + '-away')\nos.rename({root} + '-away', {root})",
        blocked("EROFS", "EBUSY"), control="os.mkdir(mine)\nos.rename(mine, mine + '-away')",
        on={"no-namespaces": "on this rung it would be the operator's own folder"},
    ),
    _set_id("FW-10", "sets a set-user-id bit on its own file", "os.chmod(mine + 'x', 0o4755)"),
    _set_id("FW-10-group", "sets a set-group-id bit on its own file", "os.chmod(mine + 'x', 0o2755)"),
    _set_id("FW-10-fd", "sets a set-user-id bit by a descriptor", "os.fchmod(f, 0o4755)"),
    _set_id(
        "FW-10-at", "sets a set-user-id bit by fchmodat",
        "call({sys_fchmodat}, os.open(temp, os.O_RDONLY), (mine + 'x')[len(temp) + 1:].encode(), 0o6755)",
    ),
    _attribute("setxattr", "1, 1, 1, 0, 0"),
    _attribute("lsetxattr", "1, 1, 1, 0, 0"),
    _attribute("fsetxattr", "-1, 1, 1, 0, 0"),
    _attribute("removexattr", "1, 1"),
    _attribute("setxattrat", "-1, 1, 0, 1, 1, 0"),
    _attribute("fchownat", "-1, 1, 0, 0, 0"),
    _attribute("file_setattr", "-1, 1, 1, 0, 0"),
    Case(
        "FW-11", _GROUP, "leaves a FIFO in the root folder",
        "os.mkfifo({root} + '/toolcage-verify-fifo')\nos.unlink({root} + '/toolcage-verify-fifo')",
        blocked("EPERM"),
    ),
    Case("FW-11-node", _GROUP, "calls mknodat: device nodes", raw("mknodat", "-1, 1, 0, 0"), blocked("EPERM")),
    Case(
        "FW-11-socket", _GROUP, "makes a socket file in its own folder",
        "import _socket\n_socket.socket(1, 1, 0).bind(mine + 's')", blocked("EACCES"), cage=UNFILTERED, on=rungs.LANDLOCK,
    ),
    Case(
        "FW-13", _GROUP, "makes a sparse file of a tebibyte", "f = os.open(mine + 'x', os.O_CREAT | os.O_RDWR)\nos.ftruncate(f, 1 << 40)",
        blocked("EFBIG"), control="f = os.open(mine + 'x', os.O_CREAT | os.O_RDWR)\nos.ftruncate(f, 1 << 21)",
    ),
    Case(
        "FW-13-reserve", _GROUP, "reserves room beyond the file limit",
        "f = os.open(mine + 'x', os.O_CREAT | os.O_RDWR)\nos.posix_fallocate(f, 0, (1 << 20) + 4096)", blocked("EFBIG"), cage=SMALL,
    ),
    Case(
        "FW-13-far", _GROUP, "writes far behind the end of a file",
        "f = os.open(mine + 'x', os.O_CREAT | os.O_RDWR)\nos.pwrite(f, b'x', 1 << 21)", blocked("EFBIG"), cage=SMALL,
    ),
    Case(
        "FW-15", _GROUP, "writes through a hard link in the root folder to a file outside",
        "os.close(os.open({root} + '/hard', os.O_WRONLY))", _READ_ONLY, needs=("own_root",), on={**rungs.NEW, "root-namespaces": blocked("EACCES")},
    ),
    Case(
        "FW-01-shelf", _GROUP, "writes into a folder that is writable and that Landlock does not know",
        f"plant({SHELF_AT!r}, 'toolcage-verify')", blocked("EACCES"), control="plant({scratch}, 'shelf')", cage=SHELF,
        on=rungs.LANDLOCK,
    ),
    Case(
        "FW-01-shelf-folder", _GROUP, "makes a folder where Landlock does not know any", f"os.mkdir({SHELF_AT!r} + '/new')",
        blocked("EACCES"), control="os.mkdir(mine)", cage=SHELF, on=rungs.LANDLOCK,
    ),
    Case(
        "FW-01-programs", _GROUP, "writes into a folder of programs that Landlock does not know",
        f"plant({PROGRAMS_AT!r}, 'toolcage-verify')", _READ_ONLY, control="plant({scratch}, 'programs')", cage=SHELF,
        on=rungs.BEHIND,
    ),
    Case(
        "FW-17", _GROUP, "writes beside the root folder", "open({mark}, 'w').close()",
        blocked("EROFS", "ENOENT"), control="open(mine + 'mark', 'w').close()", untouched=("mark",),
        on={"no-namespaces": blocked("EACCES")},
    ),
)  # fmt: skip
