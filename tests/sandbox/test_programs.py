"""What a program needs is found from its file, and nothing that an operator would not expect comes with it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from sandbox import elf, programs
from sandbox.errors import ProfileRefused


def script(path: Path, first: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(first + "\n")
    path.chmod(0o755)
    return str(path)


def venv(prefix: Path, base: Path) -> None:
    (base / "bin").mkdir(parents=True)
    (base / "lib" / "python3.11").mkdir(parents=True)
    (base / "lib" / "python3.11" / "os.py").write_text("")
    shutil.copy("/bin/true", base / "bin" / "python3.11")
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (prefix / "lib64").symlink_to("lib")
    (prefix / "pyvenv.cfg").write_text(f"home = {base / 'bin'}\nversion = 3.11\n")
    (prefix / "bin" / "python").symlink_to(base / "bin" / "python3.11")


def test_a_system_program_needs_nothing_but_its_loader() -> None:
    found = programs.needs("/bin/true")
    assert found.trees == {}
    assert "/bin/true" in found.execute
    assert any("ld-linux" in path or "ld-musl" in path for path in found.execute)


def test_a_single_file_elsewhere_comes_alone(tmp_path: Path) -> None:
    program = tmp_path / "home" / "me" / "bin" / "tool"
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/true", program)
    (program.parent / "private").write_text("x")
    found = programs.needs(str(program))
    assert list(found.trees) == [str(program)]


def test_a_console_script_brings_its_environment_and_its_python(tmp_path: Path) -> None:
    prefix, base = tmp_path / "env", tmp_path / "base"
    venv(prefix, base)
    program = script(prefix / "bin" / "tool", f"#!{prefix}/bin/python")
    found = programs.needs(program)
    expected = {prefix / "pyvenv.cfg", prefix / "bin", prefix / "lib", base / "bin", base / "lib"}
    assert set(found.trees) == {str(path) for path in expected}
    assert found.execute[:2] == [program, f"{prefix}/bin/python"]
    assert all(reason for reason in found.trees.values())


def test_an_editable_install_brings_its_source(tmp_path: Path) -> None:
    prefix, source = tmp_path / "env", tmp_path / "source"
    venv(prefix, tmp_path / "base")
    source.mkdir()
    (prefix / "lib/python3.11/site-packages/_editable.pth").write_text(f"{source}\nimport os\n/nowhere\n/\n")
    found = programs.needs(script(prefix / "bin" / "tool", f"#!{prefix}/bin/python"))
    assert str(source) in found.trees
    assert "/" not in found.trees


def test_a_link_is_made_again(tmp_path: Path) -> None:
    real = tmp_path / "store" / "tool-1"
    real.parent.mkdir()
    shutil.copy("/bin/true", real)
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "tool"
    link.symlink_to(real)
    found = programs.needs(str(link))
    assert found.links[str(link)][0] == str(real)
    assert list(found.trees) == [str(real)]


def test_a_node_tool_brings_its_packages(tmp_path: Path) -> None:
    modules = tmp_path / "app" / "node_modules"
    program = script(modules / "tool" / "cli.js", "#!/bin/true")
    (tmp_path / "app" / "secret").write_text("x")
    found = programs.needs(program)
    assert list(found.trees) == [str(modules)]


def test_env_is_followed_through_the_path_of_the_cage(tmp_path: Path) -> None:
    found = programs.needs(script(tmp_path / "tool", "#!/usr/bin/env sh"))
    assert "/usr/bin/env" in found.execute
    assert any(path.endswith("/sh") for path in found.execute)


@pytest.mark.parametrize("program", ["nothing-of-this-name", "/etc/passwd", "/", "/nowhere/x"])
def test_what_cannot_be_started_is_refused(program: str) -> None:
    with pytest.raises(ProfileRefused) as refused:
        programs.resolve(program, "/usr/bin:/bin")
    assert refused.value.remedy


def test_a_program_is_resolved_once() -> None:
    assert programs.resolve("sh", "/usr/bin:/bin") in ("/usr/bin/sh", "/bin/sh")
    assert programs.resolve("/bin/sh", "") == "/bin/sh"


@pytest.mark.parametrize(
    "content", [b"", b"#!", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 400, os.urandom(500)]
)
def test_broken_files_need_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken"
    path.write_bytes(content)
    found = elf.read(str(path))
    assert found.libraries == ()


def test_the_running_interpreter_is_read() -> None:
    found = elf.read(os.path.realpath(sys.executable))
    assert any(name.startswith("libc.") for name in found.libraries)
    assert os.path.exists(found.loader)


# ---- what a hostile repository would like to have mounted ------------------------------------------------------------


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository with a virtual environment of its own, beside a home folder with a key."""
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id").write_text("key")
    (tmp_path / "home" / "papers").mkdir()
    venv(tmp_path / "root" / ".venv", tmp_path / "base")
    script(tmp_path / "root/.venv/bin/tool", f"#!{tmp_path}/root/.venv/bin/python")
    return tmp_path


def trees(place: Path) -> set[str]:
    """What is mounted besides the repository and the real Python."""
    found = programs.needs(str(place / "root/.venv/bin/tool"), str(place / "root"))
    return {path for path in found.trees if not path.startswith((f"{place}/root", f"{place}/base"))}


def test_a_repository_gets_its_python(hostile: Path) -> None:
    found = programs.needs(str(hostile / "root/.venv/bin/tool"), str(hostile / "root"))
    assert str(hostile / "base/lib") in found.trees
    assert trees(hostile) == set()


def test_a_pth_line_of_a_repository_mounts_nothing(hostile: Path) -> None:
    lines = f"{hostile}/home/.ssh\n{hostile}/home/papers\n/etc\n/\n"
    (hostile / "root/.venv/lib/python3.11/site-packages/evil.pth").write_text(lines)
    assert trees(hostile) == set()


@pytest.mark.parametrize("part", ["libexec", "lib64"])
def test_a_link_of_a_repository_mounts_nothing(hostile: Path, part: str) -> None:
    link = hostile / "root/.venv" / part
    link.unlink(missing_ok=True)
    link.symlink_to(hostile / "home/papers")
    assert trees(hostile) == set()


def test_a_home_line_must_name_a_python(hostile: Path) -> None:
    (hostile / "home/bin").mkdir()
    (hostile / "home/lib").mkdir()
    (hostile / "root/.venv/pyvenv.cfg").write_text(f"home = {hostile}/home/bin\n")
    assert not any("/home/" in path for path in trees(hostile))


def test_an_interpreter_must_be_a_program(hostile: Path) -> None:
    script(hostile / "root/.venv/bin/tool", f"#!{hostile}/home/.ssh/id")
    with pytest.raises(ProfileRefused):
        trees(hostile)


@pytest.mark.parametrize("entry", ["/", "/etc", "/home", "/root", "/tmp", "/proc/self", "/./", "/usr/.."])
def test_no_environment_mounts_a_folder_that_holds_much_more(tmp_path: Path, entry: str) -> None:
    venv(tmp_path / "env", tmp_path / "base")
    (tmp_path / "env/lib/python3.11/site-packages/x.pth").write_text(entry + "\n")
    found = programs.needs(script(tmp_path / "env/bin/tool", f"#!{tmp_path}/env/bin/python"))
    assert all(path.startswith(str(tmp_path)) for path in found.trees)


def test_a_library_comes_without_its_folder(tmp_path: Path) -> None:
    source = tmp_path / "home"
    source.mkdir()
    (source / "private").write_text("x")
    shutil.copy("/bin/true", source / "libthing.so")
    program = elf.Program(libraries=("libthing.so", "libc.so.6"), search=(str(source),))
    found = programs.Needs()
    programs._add_libraries(found, program, str(source / "tool"), 3)
    assert list(found.trees) == [str(source / "libthing.so")]


def test_relative_search_paths_are_not_followed() -> None:
    assert not elf._expand(".", "/x").startswith("/")
    assert elf._expand("$ORIGIN/../lib", "/x/bin") == "/x/lib"
