"""Programs and environment variables of a tool: found, or refused, once at start-up.

PATH and the environment come in as values. A program is looked up here and never again, so that what the policy's
author meant is what runs. Looks at files; starts nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence

from policies import place
from policies.errors import BadKeyError, join

# Debian's names; most other distributions use the same.
PACKAGES = {
    "rg": "ripgrep",
    "git": "git",
    "find": "findutils",
    "stat": "coreutils",
    "head": "coreutils",
    "tail": "coreutils",
}

# These run their operands, so a value from a client would choose the program.
_RUN = """
busybox chroot doas env ltrace nice nohup nsenter parallel script setsid ssh stdbuf strace su sudo time timeout
unshare watch xargs
"""
RUN_OPERANDS = frozenset(_RUN.split())

# Variables that make a program load or run something, or that take it to another configuration.
_UNSAFE_NAMES = """
BASHOPTS BASH_ENV BROWSER BUNDLE_GEMFILE CDPATH CLASSPATH EDITOR ENV GCC_EXEC_PREFIX GCONV_PATH GEM_HOME GEM_PATH
GLIBC_TUNABLES GUILE_LOAD_PATH HOME HOSTALIASES IFS INPUTRC JULIA_LOAD_PATH KUBECONFIG LESSCLOSE LESSOPEN LOCPATH
LUA_INIT MAGIC MANPAGER NLSPATH OPENSSL_CONF OPENSSL_MODULES PAGER PATH PERLLIB PHPRC PHP_INI_SCAN_DIR PROMPT_COMMAND
PS4 RIPGREP_CONFIG_PATH R_PROFILE R_PROFILE_USER SHELL SHELLOPTS TCLLIBPATH TERMINFO TERMINFO_DIRS TMPDIR UNZIP
UNZIPOPT VIMINIT VISUAL ZDOTDIR ZIPINFO
"""
_UNSAFE = frozenset(_UNSAFE_NAMES.split())
_UNSAFE_STARTS = (
    "AWS_", "BASH_FUNC_", "CARGO_", "DOCKER_", "DOTNET_", "DYLD_", "ERL_", "GIT_", "GO", "JAVA_", "LD_", "LUA_CPATH",
    "LUA_PATH", "MALLOC_", "NODE_", "NPM_CONFIG_", "PERL5", "PIP_", "PYTHON", "RUBY", "RUST", "SSH_", "UV_", "XDG_",
)  # fmt: skip
_UNSAFE_ENDS = ("_OPTIONS", "_OPTS", "_PROXY", "_PRELOAD")


def resolve(name: str, path: str, key: str) -> str:
    """The absolute path of a program. `path` is a PATH value; raises BadKeyError with the package to install."""
    if "/" in name and not name.startswith("/"):
        raise BadKeyError(key, f'"{name}" is a relative path', "give a plain name or an absolute path")
    found = _which(name, path)
    if found is None:
        hint = (
            f'install the package "{PACKAGES[name]}"'
            if name in PACKAGES
            else "install it or give its absolute path"
        )
        raise BadKeyError(
            key, f'program "{name}" was not found', f"{hint}; looked in {path or 'an empty PATH'}"
        )
    if "/shims/" in found:
        raise BadKeyError(
            key,
            f'"{found}" is a shim that starts another program through a shell',
            f"give the real path, as printed by: pyenv which {name}  (or: asdf which {name}, mise which {name})",
        )
    real = os.path.realpath(found)
    if os.stat(real).st_mode & stat.S_IWOTH or place.replaceable_in(os.path.dirname(real)) is not None:
        raise BadKeyError(
            key,
            f'everyone may change or replace the program "{found}"',
            f"run: chmod o-w {real} and its folders",
        )
    return found


def _which(name: str, path: str) -> str | None:
    """As shutil.which, without the working folder: an empty or relative part of PATH is passed over."""
    folders = [""] if name.startswith("/") else [part for part in path.split(":") if part.startswith("/")]
    for folder in folders:
        candidate = os.path.join(folder, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def resolve_all(names: str | Sequence[str], path: str, key: str) -> str | tuple[str, ...]:
    """The `processes` key with its programs resolved; the words "none" and "any" stay, an empty list is "none"."""
    if isinstance(names, str):
        return names
    return tuple(resolve(name, path, f"{key}[{index}]") for index, name in enumerate(names)) or "none"


def environment(
    names: Sequence[str], fixed: Mapping[str, str], operator: Mapping[str, str], *, unsafe: bool, key: str
) -> tuple[tuple[str, str], ...]:
    """The variables a tool gets, sorted. A name in `names` that the operator has not set is left out."""
    for table, used in (("env", names), ("set_env", fixed)):
        for name in used:
            if not unsafe and is_unsafe(name):
                raise BadKeyError(
                    join(join(key, table), name),
                    "this variable can make a tool run code or leave its configuration",
                    "remove it, or write unsafe_env = true in this table if you mean it",
                )
    taken = {name: operator[name] for name in names if name in operator}
    return tuple(sorted({**taken, **fixed}.items()))


def is_unsafe(name: str) -> bool:
    """True for a variable that only `unsafe_env = true` may set."""
    upper = name.upper()  # http_proxy and npm_config_* are read in lower case
    return upper in _UNSAFE or upper.startswith(_UNSAFE_STARTS) or upper.endswith(_UNSAFE_ENDS)
