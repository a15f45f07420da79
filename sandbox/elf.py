"""Reads what a program file says it needs: its interpreter line, or the loader and libraries of an ELF file.

Runs in the front, at start-up, on the operator's own programs. Reads, never runs (ldd would). elf(5), ld.so(8), execve(2).
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

_MAX_DYNAMIC = 1 << 20  # bytes of a dynamic section or string table that are read
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_RPATH, _DT_RUNPATH = 1, 5, 10, 15, 29
_SHEBANG_LIMIT = 256  # BINPRM_BUF_SIZE


@dataclass(frozen=True, slots=True)
class Program:
    """`words`: the interpreter line of a script. `loader`, `libraries`, `search`: of a dynamic ELF file."""

    words: tuple[str, ...] = ()
    loader: str = ""
    libraries: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


def read(path: str) -> Program:
    """What `path` needs. A file that is neither a script nor a 64-bit ELF file needs nothing; OSError passes."""
    with open(path, "rb") as file:
        head = file.read(_SHEBANG_LIMIT)
        if head.startswith(b"#!"):
            line = os.fsdecode(head[2:].split(b"\n", 1)[0]).strip()
            return Program(words=tuple(line.split()))
        if head[:6] != b"\x7fELF\x02\x01":
            return Program()
        try:
            return _elf(file.fileno(), head, os.path.dirname(path))
        except (struct.error, ValueError, IndexError, OverflowError, OSError):
            return Program()


def _elf(descriptor: int, head: bytes, origin: str) -> Program:
    offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    table = os.pread(descriptor, min(size * count, _MAX_DYNAMIC), offset)
    segments = [struct.unpack_from("<IIQQQQ", table, index * size) for index in range(count)]
    loader = ""
    dynamic = b""
    for kind, _flags, start, _virtual, _physical, length in segments:
        if kind == _PT_INTERP:
            loader = os.fsdecode(os.pread(descriptor, min(length, 4096), start).rstrip(b"\0"))
        elif kind == _PT_DYNAMIC:
            dynamic = os.pread(descriptor, min(length, _MAX_DYNAMIC), start)
    entries = list(struct.iter_unpack("<QQ", dynamic[: len(dynamic) // 16 * 16]))
    values = dict(entries)
    strings = b""
    if _DT_STRTAB in values:
        place = _file_offset(segments, values[_DT_STRTAB])
        strings = os.pread(descriptor, min(values.get(_DT_STRSZ, 0), _MAX_DYNAMIC), place)
    search: list[str] = []
    for tag, value in entries:
        if tag in (_DT_RPATH, _DT_RUNPATH):
            search += [
                found
                for item in _text(strings, value).split(":")
                if (found := _expand(item, origin)).startswith("/")
            ]
    libraries = tuple(_text(strings, value) for tag, value in entries if tag == _DT_NEEDED)
    return Program((), loader, libraries, tuple(search))


def _file_offset(segments: list[tuple[int, ...]], virtual: int) -> int:
    for kind, _flags, start, address, _physical, length in segments:
        if kind == _PT_LOAD and address <= virtual < address + length:
            return start + virtual - address
    raise ValueError("address in no segment")


def _text(strings: bytes, start: int) -> str:
    return os.fsdecode(strings[start : strings.index(b"\0", start)])


def _expand(item: str, origin: str) -> str:
    return os.path.normpath(item.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))
