"""Sources of compiled builds: by commit id, with their submodules, from a mirror or a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchkit.build.sources import absent, bring, lay_out, used
from patchkit.errors import UsageFault
from patchkit.series.pins import Pin
from patchkit.source import vendored
from patchkit.store.repo import Store
from patchkit.upstreams.building import Fetched

TOP, BELOW = "https://deep.invalid/x/top.git", "https://deep.invalid/x/below.git"


def git(at: Path, *args: str) -> str:
    line = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *args]
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(line, cwd=at, check=True, capture_output=True, text=True, env=env)
    return done.stdout.strip()


@pytest.fixture
def mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str, str]:
    """Two repositories, one a submodule of the other, reached through the user's git config."""
    below, top = tmp_path / "below", tmp_path / "top"
    for at in (below, top):
        at.mkdir()
        git(at, "init", "-q", "-b", "main")
    (below / "b.h").write_text("#define B 1\n")
    git(below, "add", "-A")
    git(below, "commit", "-qm", "b")
    (top / "t.cu").write_text("int t;\n")
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / ".gitmodules").write_text(
        '[submodule "x"]\n\tpath = third/below\n\turl = ../below.git\n'
        '[submodule "y"]\n\tpath = third/other\n\turl = ../other.git\n'
    )
    git(top, "add", "-A")
    for path in ("third/below", "third/other"):
        info = f"160000,{git(below, 'rev-parse', 'HEAD')},{path}"
        git(top, "update-index", "--add", "--cacheinfo", info)
    git(top, "commit", "-qm", "t")
    git(top, "tag", "v1")
    home = tmp_path / "home"
    home.mkdir()
    rows = ((top, TOP), (below, BELOW), (below, BELOW.replace("below", "other")))
    lines = [f'[url "file://{at}"]\n\tinsteadOf = {url}\n' for at, url in rows]
    (home / ".gitconfig").write_text("".join(lines))
    monkeypatch.setenv("HOME", str(home))
    return top, git(top, "rev-parse", "HEAD"), git(below, "rev-parse", "HEAD")


def test_a_source_comes_by_its_commit_with_its_submodules_from_a_mirror(
    mirrors: tuple[Path, str, str], tmp_path: Path
) -> None:
    top, commit, below = mirrors
    old = os.umask(0o077)
    try:
        with Store.open() as store:
            row = Fetched("Top", TOP, commit)
            (found,), findings = bring(store, Pin("v1", "x"), [row], {})
            assert findings == []
            lay_out(store, [found], str(tmp_path / "deps"))
    finally:
        os.umask(old)
    at = tmp_path / "deps" / "top-src"
    assert (at / "t.cu").read_text() == "int t;\n"
    assert (at / "third" / "below" / "b.h").read_text() == "#define B 1\n"
    assert (at / "run.sh").stat().st_mode & 0o777 == 0o755
    assert [(p.path, p.commit) for p in found.parts] == [
        ("", commit),
        ("third/below", below),
        ("third/other", below),
    ]
    assert dict(found.inputs[0].digests) == {
        "gitCommit": commit,
        "gitTree": git(top, "rev-parse", f"{commit}^{{tree}}"),
    }
    # A second time no server is asked.
    (tmp_path / "home" / ".gitconfig").unlink()
    with Store.open() as store:
        again, findings = bring(store, Pin("v1", "x"), [row], {}, offline=True)
        assert (again, findings) == ([found], [])


def test_only_the_submodules_that_cmake_names_are_fetched(mirrors: tuple[Path, str, str]) -> None:
    with Store.open() as store:
        row = Fetched("top", TOP, mirrors[1], submodules=("third/other",))
        (found,), _ = bring(store, Pin("v1", "x"), [row], {})
        assert [p.path for p in found.parts] == ["", "third/other"]


def test_a_tag_is_said_and_pins_toml_fixes_it(mirrors: tuple[Path, str, str]) -> None:
    top, commit, _ = mirrors
    row = Fetched("top", TOP, "v1", submodules=())
    with Store.open() as store:
        found, (note,) = bring(store, Pin("v2", "x"), [row], {})
        assert found[0].parts[0].commit == commit
        assert note.note
        assert f'"{TOP} v1" = "{commit}" below [pins."v2".sources]' in note.next
        (top / "t.cu").write_text("int moved;\n")
        git(top, "commit", "-qam", "moved")
        git(top, "tag", "-f", "v1")
        moved = git(top, "rev-parse", "HEAD")
        (again,), _ = bring(store, Pin("v2", "x"), [row], {})
        assert again.parts[0].commit == moved
        fixed = Pin("v2", "x", sources={(TOP, "v1"): commit})
        (kept,), findings = bring(store, fixed, [row], {})
        assert kept.parts[0].commit == commit
        assert findings == []


def test_everything_that_cannot_be_had_is_named_in_one_run(mirrors: tuple[Path, str, str]) -> None:
    rows = [
        Fetched("gone", "https://gone.invalid/a.git", "a" * 40, where="cmake/gone.cmake"),
        Fetched("moved", TOP, "b" * 40),
        Fetched("tagless", TOP, "v9"),
        Fetched("top", TOP, mirrors[1], submodules=()),
    ]
    with Store.open() as store:
        found, findings = bring(store, Pin("v1", "x"), rows, {})
        assert [b.fetched.name for b in found] == ["top"]
        assert [f.message.split(" ")[0] for f in findings] == ["gone", "moved", "tagless"]
        for row, finding in zip(rows, findings, strict=False):
            assert finding.expected == f"{row.address} at {row.ref}"
            assert f"--use {row.name}=DIR" in finding.next
            assert not finding.note
        notes = absent(store, Pin("v1", "x"), rows, {})
        assert [f.message.partition(" ")[0] for f in notes] == ["gone", "moved", "tagless"]
        assert all(f.note and "is not here yet" in f.message for f in notes)


def test_a_folder_of_ones_own_is_taken_and_said(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("secret\n")
    (folder / "a.h").write_text("1\n")
    row = Fetched("Deep", TOP, "a" * 40)
    assert used([f"deep={folder}"], [row]) == {"Deep": str(folder)}
    with Store.open() as store:
        (found,), (note,) = bring(store, Pin("v1", "x"), [row], {"Deep": str(folder)})
        lay_out(store, [found], str(tmp_path / "deps"))
    assert os.listdir(tmp_path / "deps" / "deep-src") == ["a.h"]
    assert note.note
    assert "nothing says that it is what upstream asks for" in note.message
    assert dict(found.inputs[0].digests).keys() == {"gitTree"}


@pytest.mark.parametrize("text", ["deep", "other=/x", "deep=/does/not/exist"])
def test_a_use_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(UsageFault):
        used([text], [Fetched("deep", TOP, "a" * 40)])


@pytest.mark.parametrize(
    ("address", "url", "expected"),
    [
        (TOP, "../below.git", BELOW),
        ("git@host:x/top.git", "../below.git", "git@host:x/below.git"),
        (TOP, "./below.git", f"{TOP}/below.git"),
        (TOP, "https://other.invalid/z.git", "https://other.invalid/z.git"),
    ],
)
def test_a_submodules_address_may_be_relative(address: str, url: str, expected: str) -> None:
    assert vendored._joined(address, url) == expected
