"""Files of an installed package keep the bits that its installer gave them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.engine.model import EXECUTABLE, REGULAR, File
from patchkit.files.keeping import KeepingRoot
from patchkit.files.root import Bits


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("bits", [0o644, 0o664, 0o600, 0o640])
def test_a_replaced_file_keeps_its_bits(tmp_path: Path, bits: int) -> None:
    (tmp_path / "a.py").write_bytes(b"old")
    (tmp_path / "a.py").chmod(bits)
    KeepingRoot(tmp_path).put("a.py", File(b"new"))
    assert (tmp_path / "a.py").read_bytes() == b"new"
    assert mode(tmp_path / "a.py") == bits


def test_executable_follows_the_read_bits(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"")
    (tmp_path / "run").chmod(0o640)
    root = KeepingRoot(tmp_path)
    root.put("run", File(b"", EXECUTABLE))
    assert mode(tmp_path / "run") == 0o750
    root.put("run", File(b"", REGULAR))
    assert mode(tmp_path / "run") == 0o640


def test_what_is_not_there_gets_the_known_bits_folders_too(tmp_path: Path) -> None:
    known = {"a/b/c.py": 0o664, "a/b": 0o2775 & 0o777, "a": 0o750}
    KeepingRoot(tmp_path, known).put("a/b/c.py", File(b"x"))
    assert [mode(tmp_path / p) for p in ("a", "a/b", "a/b/c.py")] == [0o750, 0o775, 0o664]


def test_new_files_are_as_git_says_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        KeepingRoot(tmp_path).put("x/new.py", File(b"x"))
    finally:
        os.umask(before)
    assert mode(tmp_path / "x/new.py") == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_does_not_take_files_over(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/a.py").write_bytes(b"old")
    os.chown(tmp_path / "p", 4321, 1234)
    os.chown(tmp_path / "p/a.py", 4321, 1235)
    root = KeepingRoot(tmp_path)
    root.put("p/a.py", File(b"new"))
    root.put("p/b.py", File(b"new"))
    assert root.bits("p/a.py") == Bits(0o644, 4321, 1235)
    assert root.bits("p/b.py") == Bits(0o644, 4321, 1234)


def test_a_hard_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"old")
    os.link(tmp_path / "cache", tmp_path / "a.py")
    KeepingRoot(tmp_path).put("a.py", File(b"new"))
    assert (tmp_path / "cache").read_bytes() == b"old"
    assert (tmp_path / "a.py").read_bytes() == b"new"
