"""A root is never left, and its files have git's permission bits whatever the umask."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, File
from patchkit.errors import EnvironmentFault, Refused
from patchkit.files.atomic import read_file
from patchkit.files.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "in").mkdir()
    return Root(tmp_path / "in")


def test_what_is_put_is_got_back(root: Root) -> None:
    for path, file in {
        "a.py": File(b"x\r\n\x00\xff"),
        "deep/er/run.sh": File(b"", EXECUTABLE),
        "caf\udce9.py": File(b"latin-1 name"),
        "link": File(b"a.py", SYMLINK),
    }.items():
        root.put(path, file)
        assert root.get(path) == file
    assert list(root.walk()) == ["a.py", "caf\udce9.py", "link", "deep/er/run.sh"]


def test_permissions_do_not_depend_on_the_umask(root: Root) -> None:
    before = os.umask(0o077)
    try:
        root.put("new/run", File(b"", EXECUTABLE))
        root.put("new/data", File(b"", REGULAR))
    finally:
        os.umask(before)
    at = Path(root.at, "new")
    assert [(p.name, p.stat().st_mode & 0o777) for p in sorted(at.iterdir())] == [
        ("data", 0o644),
        ("run", 0o755),
    ]
    assert at.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "path", ["../out", "a/../../out", "/etc/x", ".git/config", "a/.GIT/hooks/x", "", "a//b", "a\0b"]
)
def test_an_unsafe_name_is_refused_by_every_call(root: Root, path: str) -> None:
    for call in (
        lambda: root.put(path, File(b"")),
        lambda: root.get(path),
        lambda: root.remove(path),
    ):
        with pytest.raises(Refused) as refusal:
            call()
        assert refusal.value.findings[0].name == "path-escape"


def test_a_link_on_the_way_is_not_followed(root: Root, tmp_path: Path) -> None:
    outside = tmp_path / "out"
    outside.mkdir()
    (outside / "x").write_bytes(b"theirs")
    os.symlink(outside, Path(root.at, "sub"))
    for call in (
        lambda: root.put("sub/x", File(b"ours")),
        lambda: root.get("sub/x"),
        lambda: root.remove("sub/x"),
    ):
        with pytest.raises(Refused) as refusal:
            call()
        assert refusal.value.findings[0].name == "symlink-in-path"
    assert (outside / "x").read_bytes() == b"theirs"


def test_a_link_at_the_end_is_replaced_not_written_through(root: Root, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    os.symlink(theirs, Path(root.at, "x"))
    root.put("x", File(b"ours"))
    assert theirs.read_bytes() == b"theirs"
    assert root.get("x") == File(b"ours")


def test_a_hard_link_is_not_written_through(root: Root, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    os.link(theirs, Path(root.at, "x"))
    root.put("x", File(b"ours"))
    assert theirs.read_bytes() == b"theirs"


def test_removing_the_last_file_removes_its_folders(root: Root) -> None:
    root.put("a/b/c", File(b""))
    root.put("a/d", File(b""))
    root.remove("a/b/c")
    assert not Path(root.at, "a/b").exists()
    assert Path(root.at, "a/d").exists()


def test_a_fifo_is_no_file_and_hangs_nobody(root: Root) -> None:
    os.mkfifo(Path(root.at, "pipe"))
    assert root.get("pipe") is None


def test_a_limit_is_kept(root: Root) -> None:
    root.put("x", File(b"12345"))
    assert root.get("x", limit=5) == File(b"12345")
    with pytest.raises(Refused) as refusal:
        root.get("x", limit=4)
    assert refusal.value.findings[0].name == "too-large"


def test_a_full_folder_where_a_file_should_stand_is_a_disk_fault(root: Root) -> None:
    root.put("x/y", File(b""))
    with pytest.raises(EnvironmentFault):
        root.put("x", File(b""))
    assert root.get("x/y") == File(b"")


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_what_is_no_file_is_refused_and_not_kept_open(tmp_path: Path, kind: str) -> None:
    at = tmp_path / "it"
    at.mkdir() if kind == "folder" else os.mkfifo(at)
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        with pytest.raises(EnvironmentFault):
            read_file(at)
    assert os.listdir("/proc/self/fd") == before
