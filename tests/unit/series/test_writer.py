"""The canonical writer: git is the referee of its bytes, git and GNU patch of its effect."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchkit.engine.apply import EXACT, Root, apply_patch
from patchkit.engine.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, File, MemoryTree
from patchkit.engine.model import path_bytes as raw
from patchkit.engine.parse import parse
from patchkit.engine.paths import unsafe
from patchkit.errors import Refused
from patchkit.series.header import Header
from patchkit.series.heading import heading_of
from patchkit.series.writer import write_diff, write_patch

HEADER = Header("A <a@b.c>", "Wed, 1 Jan 2031 00:00:01 +0000", "Do it", body="Why.")
ATTRIBUTES = "*.py diff=python\n*.cu diff=cpp\n*.h diff=cpp\n*.txt diff\n*.md diff=none\n* -text\n"


class Git:
    """A bare repository that no configuration reaches."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.repo = home / "repo.git"
        (home / "attributes").write_text(ATTRIBUTES)
        self("init", "-q", "--bare", str(self.repo), at=home)

    def __call__(self, *arguments: str, stdin: bytes = b"", at: Path | None = None) -> bytes:
        env = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C",
        }
        command = ["git", "-c", f"core.attributesFile={self.home / 'attributes'}", *arguments]
        done = subprocess.run(
            command, cwd=at or self.repo, env=env, input=stdin, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tree(self, files: Mapping[str, File]) -> str:
        out = [b"blob\nmark :%d\ndata %d\n%s\n" % (n, len(f.data), f.data)
               for n, f in enumerate(files.values(), 1)]  # fmt: skip
        out.append(b"commit refs/heads/x\ncommitter a <a> 0 +0000\ndata 0\ndeleteall\n")
        for number, (path, file) in enumerate(files.items(), 1):
            quoted = b'"' + b"".join(b"\\%03o" % c for c in raw(path)) + b'"'
            out.append(b"M %06o :%d %s\n" % (file.mode, number, quoted))
        self("fast-import", "--quiet", "--force", stdin=b"".join(out))
        return self("rev-parse", "refs/heads/x^{tree}").decode().strip()

    def diff(self, old: str, new: str) -> bytes:
        options = ("-p", "--full-index", "--no-renames", "--no-color", "--text")
        return self("diff-tree", *options, old, new)

    def applied(self, tree: str, patch: bytes) -> str:
        self("read-tree", tree)
        self("apply", "--cached", stdin=patch)
        return self("write-tree").decode().strip()


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    return Git(tmp_path_factory.mktemp("git"))


LINES = ["def f():", "class A:", "    def g(self):", "    async def h():", "        x = 1", "",
         "public:", "::n::f()", "int main() {", "}", "$x", "\treturn", "a\r", "é" * 50]  # fmt: skip
TEXT = st.lists(st.sampled_from(LINES), max_size=24).map(lambda x: "\n".join([*x, ""]).encode())
BARE = st.lists(st.sampled_from(LINES[:4]), min_size=1, max_size=4).map("\n".join).map(str.encode)
PARTS = st.sampled_from(["a", "b c", "d", 'q"', "t\tb", "é", "\udcff", "back\\", "e.py"])
PATHS = st.builds(
    lambda folders, name: "/".join([*folders, name]),
    st.lists(PARTS, max_size=2),
    st.sampled_from(["x.py", "y.cu", "z.txt", "sp ace.h", "ta\tb.py", 'q"uo.md', "ü.py", "n"]),
)
MODES = st.sampled_from([REGULAR, REGULAR, EXECUTABLE])
FILES = st.builds(File, TEXT | BARE | st.just(b""), MODES) | st.builds(
    File, st.sampled_from([b"target", b"../x"]), st.just(SYMLINK)
)


def apart(files: Mapping[str, File | None]) -> bool:
    """No path is a folder of another, and each may be used."""
    folders = {p.rsplit("/", n)[0] for p in files for n in range(1, p.count("/") + 1)}
    return not folders & set(files) and not any(unsafe(p) for p in files)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(PATHS, FILES, min_size=1, max_size=4),
    st.dictionaries(PATHS, FILES, max_size=2),
    st.data(),
)
def test_the_diff_is_git_s_and_gives_the_tree_with_git_and_with_us(
    git: Git, base: dict[str, File], more: dict[str, File], data: st.DataObject
) -> None:
    if not apart({**base, **more}):
        return
    changes: dict[str, File | None] = {p: f for p, f in more.items() if p not in base}
    for path, file in base.items():
        what = data.draw(st.sampled_from(["keep", "edit", "edit", "gone", "mode", "other"]))
        if what == "gone":
            changes[path] = None
        elif what == "other":
            changes[path] = data.draw(FILES)
        elif what == "mode" and file.mode != SYMLINK:
            changes[path] = File(file.data, file.mode ^ REGULAR ^ EXECUTABLE)
        elif what == "edit":
            at = data.draw(st.integers(0, len(file.data)))
            at = file.data.find(b"\n", at) + 1
            changes[path] = File(file.data[:at] + b"new\n" + file.data[at:], file.mode)
    old = MemoryTree(base)
    new = old.with_changes(changes)
    trees = git.tree(base), git.tree(new.files)
    diff = write_diff(old, changes)
    assert diff == git.diff(*trees)
    if not diff:
        return
    assert git.applied(trees[0], diff) == trees[1]
    outcome = apply_patch(old, parse(diff, "x.patch"), EXACT, Root())
    assert outcome.state == "applied", outcome.findings
    assert old.with_changes(outcome.changes).files == new.files


BASE = {
    "pkg/a.py": File(b"".join(b"line %d\n" % n for n in range(30))),
    "pkg/gone.py": File(b"a\nb\n"),
    "pkg/old name.py": File(b"x = 1\ny = 2\nz = 3\n"),
    "run.sh": File(b"#!/bin/sh\n"),
    "empty": File(b""),
    "link": File(b"pkg/a.py", SYMLINK),
    "becomes-link": File(b"text\n"),
    "was-link": File(b"text", SYMLINK),
    'odd "names"/ta\tb é.py': File(b"a\n"),
}
CHANGES: dict[str, File | None] = {
    "pkg/a.py": File(BASE["pkg/a.py"].data.replace(b"line 9\n", b"line nine\n")),
    "pkg/gone.py": None,
    "pkg/new.py": File(b"new\nno newline"),
    "pkg/old name.py": None,
    "pkg/newer name.py": File(b"x = 1\ny = 3\nz = 3\n"),
    "run.sh": File(b"#!/bin/sh\n", EXECUTABLE),
    "empty": None,
    "void": File(b""),
    "link": File(b"pkg/new.py", SYMLINK),
    "becomes-link": File(b"text", SYMLINK),
    "was-link": File(b"text\n"),
    'odd "names"/ta\tb é.py': File(b"b\n"),
    'odd "names"/back\\slash.py': File(b"b\n"),
}
RENAMES = {"pkg/newer name.py": "pkg/old name.py"}


def on_disk(where: Path, files: Mapping[str, File]) -> None:
    for path, file in files.items():
        at = where / path
        at.parent.mkdir(parents=True, exist_ok=True)
        if file.mode == SYMLINK:
            at.symlink_to(file.data.decode())
        else:
            at.write_bytes(file.data)
            at.chmod(0o755 if file.mode == EXECUTABLE else 0o644)


def from_disk(where: Path) -> dict[str, File]:
    out = {}
    for at in where.rglob("*"):
        if at.is_symlink():
            out[str(at.relative_to(where))] = File(os.readlink(at).encode(), SYMLINK)
        elif at.is_file():
            mode = EXECUTABLE if at.stat().st_mode & 0o100 else REGULAR
            out[str(at.relative_to(where))] = File(at.read_bytes(), mode)
    return out


@pytest.mark.parametrize("renames", [{}, RENAMES])
def test_gnu_patch_as_quilt_calls_it_gives_the_tree(
    tmp_path: Path, renames: dict[str, str]
) -> None:
    patch = write_patch(HEADER, MemoryTree(BASE), CHANGES, renames=renames)
    on_disk(tmp_path, BASE)
    command = ["patch", "-p1", "-F0", "--batch", "--forward", "--no-backup-if-mismatch"]
    done = subprocess.run(command, cwd=tmp_path, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert from_disk(tmp_path) == MemoryTree(BASE).with_changes(CHANGES).files


def test_a_rename_is_a_delete_and_a_create_unless_it_is_named(git: Git) -> None:
    base, changes = MemoryTree(BASE), CHANGES
    plain = write_diff(base, changes)
    assert b"rename" not in plain
    named = write_diff(base, changes, renames=RENAMES)
    assert b"rename from pkg/old name.py\nrename to pkg/newer name.py\n" in named
    assert len(named) < len(plain)
    trees = git.tree(BASE), git.tree(base.with_changes(changes).files)
    assert git.applied(trees[0], plain) == git.applied(trees[0], named) == trees[1]
    outcome = apply_patch(base, parse(named, "x"), EXACT, Root())
    assert base.with_changes(outcome.changes).files == base.with_changes(changes).files


def test_a_rename_that_is_none_is_ignored() -> None:
    base = MemoryTree(BASE)
    for wrong in ({"pkg/new.py": "pkg/a.py"}, {"pkg/a.py": "pkg/gone.py"}, {"no": "nothing"}):
        assert write_diff(base, CHANGES, renames=wrong) == write_diff(base, CHANGES)


def test_the_form_is_fixed() -> None:
    old = b"class A:\n    def f(self):\n" + b"".join(b"        %d\n" % n for n in range(9))
    new = old.replace(b"        8\n", b"        eight\n")
    patch = write_patch(HEADER, MemoryTree({"p.py": File(old)}), {"p.py": File(new)})
    assert patch.decode() == (
        "From: A <a@b.c>\nDate: Wed, 1 Jan 2031 00:00:01 +0000\nSubject: Do it\n\nWhy.\n---\n"
        "diff --git a/p.py b/p.py\n"
        f"index {File(old).oid}..{File(new).oid} 100644\n"
        "--- a/p.py\n+++ b/p.py\n@@ -8,4 +8,4 @@ def f(self):\n"
        "         5\n         6\n         7\n-        8\n+        eight\n"
    )


def test_files_stand_in_order_of_their_path_s_bytes() -> None:
    changes: dict[str, File | None] = {p: File(b"x\n") for p in ("b", "a/b", "a-b", "é", "a.c")}
    diff = write_diff(MemoryTree(), changes)
    names = [s.new_path for s in parse(diff, "x").sections]
    assert names == ["b/a-b", "b/a.c", "b/a/b", "b/b", "b/é"]


def test_a_patch_without_effect_is_refused() -> None:
    base = MemoryTree(BASE)
    assert write_diff(base, {"pkg/a.py": BASE["pkg/a.py"], "not/there": None}) == b""
    with pytest.raises(Refused) as caught:
        write_patch(HEADER, base, {"not/there": None})
    assert caught.value.findings[0].name == "no-op"


def test_binary_files_and_submodules_are_refused_all_at_once() -> None:
    changes: dict[str, File | None] = {
        "a": File(b"\0\1"), "b": File(b"\0\2"), "c": File(b"1" * 40, GITLINK),
    }  # fmt: skip
    with pytest.raises(Refused) as caught:
        write_diff(MemoryTree(), changes)
    names = [(f.name, f.where.file) for f in caught.value.findings]
    assert names == [
        ("binary-unsupported", "a"), ("binary-unsupported", "b"), ("unsupported", "c"),
    ]  # fmt: skip


def test_a_nul_in_text_can_be_allowed(git: Git) -> None:
    base, new = {"a": File(b"x\nb\0c\ny\n")}, File(b"x\nb\0c\nz\n")
    diff = write_diff(MemoryTree(base), {"a": new}, text={"a"})
    assert git.applied(git.tree(base), diff) == git.tree({"a": new})


@pytest.mark.parametrize(
    ("path", "lines", "heading"),
    [
        ("a.py", [b"class A:\n", b"    x = 1\n", b"y = 2\n"], b"class A:"),
        ("a.py", [b"  async  def f(a):  \r\n", b"\n"], b"async  def f(a):"),
        ("a.py", [b"define = 1\n", b"classy\n"], b""),
        ("a.cu", [b"int f() {\n", b"public:\n", b"  // x\n"], b"int f() {"),
        ("a.cu", [b"::n::f() {\n", b"x: // label\n"], b"::n::f() {"),
        ("a.txt", [b"public:\n", b" b\n"], b"public:"),
        ("a.py", [b"def f(" + b"x" * 100 + b"):\n"], b"def f(" + b"x" * 74),
        ("a.py", ["def f({}):\n".format("x" * 73 + "é").encode()], b"def f(" + b"x" * 73),
        ("a.py", [b"def f(" + b"\xa9" * 100 + b"\n"], b"def f(" + b"\xa9" * 74),
    ],
)
def test_headings_follow_the_written_rule(path: str, lines: list[bytes], heading: bytes) -> None:
    assert heading_of(path)(lines, len(lines)) == heading


def test_a_heading_is_kept_for_the_hunks_below_and_never_taken_from_inside() -> None:
    rule = heading_of("a.py")
    lines = [b"def f():\n", b"    1\n", b"    2\n", b"def g():\n", b"    3\n"]
    assert [rule(lines, at) for at in (0, 1, 3, 4)] == [b"", b"def f():", b"def f():", b"def g():"]
