"""Series that are not plain edits of plain files: carried, or refused with what to do; and what a
person may do in a conflict's work tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import TO, git, release, with_sources

Edit = Callable[[Path], None]
HEADER = "From: A <a@example.invalid>\nDate: Mon, 30 Nov 2026 12:00:00 +0000\nSubject: x\n---\n"
LANES = "engine/lanes.py"


class Series:
    """A series of v1.0, made of edits of a work tree."""

    def __init__(self, project: SmallProject) -> None:
        self.project = with_sources(project)
        self.tree = project.at.parent / "tree"
        subprocess.run(["cp", "-r", str(self.project.base), str(self.tree)], check=True)
        git(self.tree, "init", "-q")
        self.project.series.mkdir(parents=True)
        self.listed: list[str] = []

    def base(self, edit: Edit) -> Series:
        """Change the base itself."""
        for at in (self.tree, self.project.base):
            edit(at)
        return self

    def add(self, name: str, edit: Edit, *options: str, line: str = "") -> Series:
        """A patch that does `edit`. options: for git diff; line: what follows in the series."""
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-q", "--allow-empty", "-m", "before")
        edit(self.tree)
        git(self.tree, "add", "-A")
        diff = subprocess.run(
            ["git", "diff", "--cached", "--full-index", *options],
            cwd=self.tree,
            capture_output=True,
            check=True,
        ).stdout
        (self.project.series / name).write_bytes(HEADER.encode() + diff)
        self.listed.append(f"{name} {line}".strip())
        return self

    def locked(self) -> SmallProject:
        (self.project.series / "series").write_text("".join(f"{row}\n" for row in self.listed))
        done = self.project.run("lock", "--pin", "v1.0")
        assert done.code == 0, done.text
        return self.project


def text(path: str, old: str, new: str) -> Edit:
    def edit(at: Path) -> None:
        file = at / path
        data = file.read_bytes()
        assert data.count(old.encode()) == 1
        file.write_bytes(data.replace(old.encode(), new.encode()))

    return edit


def fresh(path: str, content: str) -> Edit:
    def edit(at: Path) -> None:
        (at / path).write_text(content)

    return edit


def rebased(project: SmallProject, code: int, *words: str) -> str:
    done = project.run(*TO)
    assert (done.code, "Traceback" in done.text) == (code, False), done.text
    assert all(word in done.text for word in words), done.text
    return done.text


def tree(project: SmallProject) -> Path:
    return project.at / "build" / "rebase-v1.0-v2.0"


def goes_on(project: SmallProject, code: int = 0, *words: str) -> None:
    done = project.run("rebase", "--continue")
    assert (done.code, "Traceback" in done.text) == (code, False), done.text
    assert all(word in done.text for word in words), done.text


def result(project: SmallProject) -> Path:
    """The patched tree of v2.0, as apply writes it."""
    assert project.run("check", "--pin", "v2.0").code == 0
    at = project.at / "out"
    done = project.run("apply", "--pin", "v2.0", "--all", "--to", str(at))
    assert done.code == 0, done.text
    return at


def test_reversed_and_unstripped_patches_keep_their_lines(project: SmallProject) -> None:
    series = Series(project)
    series.add("one.patch", text(LANES, "return 3\n", "return 30\n"), "--no-prefix", line="-p0")
    series.add("back.patch", text(LANES, "return 8\n", "return 80\n"), "-R", line="-R")
    done = series.locked()
    release(done, "v2.0", {LANES: ("def lane_0", "# a\n# b\ndef lane_0")})
    rebased(done, 0, "one.patch   clean", "back.patch  clean")
    at = done.at / "series" / "v2.0"
    assert (at / "series").read_text().splitlines()[1:] == ["one.patch -p0", "back.patch -R"]
    for name in ("one.patch", "back.patch"):
        old, new = (done.series / name).read_text(), (at / name).read_text()
        gone = [line for line in old.splitlines() if line not in new.splitlines()]
        assert {line.split()[0] for line in gone} == {"index", "@@"}
    lanes = (result(done) / LANES).read_text()
    assert "return 30\n" in lanes
    assert "return 80\n" in lanes


def test_a_mode_a_new_file_and_a_removed_one_are_carried(project: SmallProject) -> None:
    series = Series(project)
    series.add("mode.patch", lambda at: (at / LANES).chmod(0o755))
    series.add("new.patch", fresh("engine/new one.py", "A = 1\n"))
    series.add("gone.patch", lambda at: (at / "engine/plan.py").unlink())
    done = series.locked()
    release(done, "v2.0", {LANES: ("return 8\n", "return 80\n")})
    rebased(done, 0)
    at = result(done)
    assert os.access(at / LANES, os.X_OK)
    assert "return 80\n" in (at / LANES).read_text()
    assert (at / "engine/new one.py").read_text() == "A = 1\n"
    assert not (at / "engine/plan.py").exists()


def test_a_rename_follows_what_upstream_did_to_the_file(project: SmallProject) -> None:
    def rename(at: Path) -> None:
        text(LANES, "return 3\n", "return 30\n")(at)
        (at / LANES).rename(at / "engine/tracks.py")

    done = Series(project).add("move.patch", rename, "-M").locked()
    release(done, "v2.0", {LANES: ("return 8\n", "return 80\n")})
    rebased(done, 0)
    at = result(done)
    assert not (at / LANES).exists()
    lanes = (at / "engine/tracks.py").read_text()
    assert "return 30\n" in lanes
    assert "return 80\n" in lanes
    assert "rename from" in (done.at / "series/v2.0/move.patch").read_text()


def test_a_rename_whose_lines_clash_shows_them_under_the_new_name(project: SmallProject) -> None:
    def rename(at: Path) -> None:
        text(LANES, "return 3\n", "return 30\n")(at)
        (at / LANES).rename(at / "engine/tracks.py")

    done = Series(project).add("move.patch", rename, "-M").locked()
    release(done, "v2.0", {LANES: ("return 3\n", "return 33\n")})
    rebased(done, 1, "move.patch waits")
    lanes = tree(done) / "engine/tracks.py"
    shown = lanes.read_text()
    assert "<<<<<<< v2.0" in shown
    assert not (tree(done) / LANES).exists()
    goes_on(done, 1, "conflict marker")
    start, end = shown.index("<<<<<<< "), shown.index(">>>>>>> move.patch\n")
    lanes.write_text(shown[:start] + "    return 333\n" + shown[end + 19 :])
    goes_on(done)
    assert "return 333\n" in (result(done) / "engine/tracks.py").read_text()


def test_a_file_that_upstream_made_too_is_settled(project: SmallProject) -> None:
    small = Series(project).add("new.patch", fresh("engine/new.py", "A = 1\n")).locked()
    at = release(small, "v2.0", {})
    (at / "engine" / "new.py").write_text("A = 2\n")
    rebased(small, 1, "another file stands there now")
    assert (tree(small) / "engine/new.py").read_text() == "A = 1\n"
    (tree(small) / "engine/new.py").write_text("A = 3\n")
    goes_on(small)
    assert (result(small) / "engine/new.py").read_text() == "A = 3\n"


def test_a_removed_file_that_upstream_changed_is_settled_by_removing_it(
    project: SmallProject,
) -> None:
    small = Series(project).add("gone.patch", lambda at: (at / LANES).unlink()).locked()
    release(small, "v2.0", {LANES: ("return 3\n", "return 33\n")})
    rebased(small, 1, "is deleted by the patch, and has other lines now", f": {LANES}")
    goes_on(small, 1, "would change nothing")
    (tree(small) / LANES).unlink()
    goes_on(small)
    assert not (result(small) / LANES).exists()


@pytest.mark.parametrize("kind", ["folder", "link", "gone"])
def test_a_file_that_is_something_else_now_is_a_conflict(project: SmallProject, kind: str) -> None:
    small = Series(project).add("plan.patch", text("engine/plan.py", "= 2", "= 3")).locked()
    at = release(small, "v2.0", {}) / "engine" / "plan.py"
    at.unlink()
    if kind == "folder":
        at.mkdir()
        (at / "inner.py").write_text("A = 1\n")
    elif kind == "link":
        at.symlink_to("lanes.py")
    rebased(small, 1, "plan.patch")
    done = small.run("rebase", "--drop", "plan", "--why", "gone")
    assert (done.code, "Traceback" in done.text) == (0, False), done.text


def test_text_with_a_nul_is_carried_and_shown_as_it_is_where_it_clashes(
    project: SmallProject,
) -> None:
    rows = "".join(f"row {n}\n" for n in range(30))

    def nul(at: Path) -> None:
        (at / "engine" / "data.bin").write_bytes(b"\0\n" + rows.encode())

    series = Series(project).base(nul)
    series.add("data.patch", text("engine/data.bin", "row 9\n", "row nine\n"), "--text")
    small = series.locked()
    at = release(small, "v2.0", {}) / "engine" / "data.bin"
    rebased(small, 0)
    assert b"row nine\n" in (result(small) / "engine/data.bin").read_bytes()
    subprocess.run(["rm", "-r", str(small.at / "series/v2.0"), str(small.at / "out")], check=True)
    at.write_bytes(b"\0\n" + rows.replace("row 8\n", "row eight\n").encode())
    rebased(small, 1, "is a binary file, which cannot be merged")
    shown = tree(small) / "engine" / "data.bin"
    assert shown.read_bytes() == at.read_bytes()
    shown.write_bytes(at.read_bytes().replace(b"row 9\n", b"row nine\n"))
    goes_on(small)
    assert (result(small) / "engine/data.bin").read_bytes() == shown_bytes(rows)


def shown_bytes(rows: str) -> bytes:
    changed = rows.replace("row 8\n", "row eight\n").replace("row 9\n", "row nine\n")
    return b"\0\n" + changed.encode()


@pytest.fixture
def stopped(project: SmallProject) -> SmallProject:
    """Stopped at a conflict in engine/plan.py."""
    series = Series(project)
    series.add("plan.patch", text("engine/plan.py", "= 2", "= 3"))
    small = series.add("lanes.patch", text(LANES, "return 3\n", "return 30\n")).locked()
    release(small, "v2.0", {"engine/plan.py": ("= 2", "= limit()")})
    rebased(small, 1, "plan.patch waits")
    (tree(small) / "engine/plan.py").write_text("STEPS = 4\nWIDTH = 8\nDEPTH = limit() + 1\n")
    return small


def test_a_new_file_is_taken_when_it_was_added_and_not_guessed_at(stopped: SmallProject) -> None:
    (tree(stopped) / "engine/limits.py").write_text("A = 1\n")
    goes_on(stopped, 1, "foreign-edit", "engine/limits.py", " add engine/limits.py")
    git(tree(stopped), "add", "engine/limits.py")
    goes_on(stopped)
    assert (result(stopped) / "engine/limits.py").read_text() == "A = 1\n"


def test_what_was_committed_there_is_taken(stopped: SmallProject) -> None:
    lanes = tree(stopped) / LANES
    lanes.write_text(lanes.read_text().replace("return 8\n", "return 80\n"))
    git(tree(stopped), "commit", "-qam", "settled")
    goes_on(stopped)
    changed = (stopped.at / "series/v2.0/plan.patch").read_text()
    assert "+    return 80\n" in changed
    assert "+DEPTH = limit() + 1\n" in changed


def test_a_resolution_that_breaks_a_later_patch_stops_at_that(stopped: SmallProject) -> None:
    lanes = tree(stopped) / LANES
    lanes.write_text(lanes.read_text().replace("return 3\n", "return 300\n"))
    goes_on(stopped, 1, "lanes.patch waits")
    lanes.write_text(lanes.read_text().partition("<<<<<<<")[0])
    goes_on(stopped)


def test_a_resolution_that_cannot_be_written_leaves_the_conflict_open(
    stopped: SmallProject,
) -> None:
    (tree(stopped) / "engine/plan.py").write_bytes(b"STEPS = 4\n\0WIDTH = 8\nDEPTH = 9\n")
    goes_on(stopped, 1, "binary-unsupported")
    (tree(stopped) / "engine/plan.py").write_text("STEPS = 4\nWIDTH = 8\nDEPTH = 9\n")
    goes_on(stopped)
    result(stopped)


def test_two_at_once_end_as_one(stopped: SmallProject) -> None:
    words = [sys.executable, "-m", "patchkit", "rebase", "--continue", "--json"]
    both = [
        subprocess.Popen(words, cwd=stopped.at, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [child.communicate() for child in both]
    codes = sorted(child.returncode for child in both)
    assert codes == [0, 1], said
    assert all(b"Traceback" not in err for _, err in said)
    names = [f["name"] for out, _ in said for f in json.loads(out)["findings"]]
    assert "no-op" in names  # nothing was under way any more
    result(stopped)


def test_a_state_that_was_removed_is_begun_again(stopped: SmallProject) -> None:
    (stopped.at / ".patchkit" / "rebase.json").unlink()
    goes_on(stopped, 1, "no rebase is under way")
    rebased(stopped, 1, "target-exists", "move it away")
    tree(stopped).rename(stopped.at / "aside")
    rebased(stopped, 1, "plan.patch waits")


def test_the_old_series_may_change_while_one_waits(stopped: SmallProject) -> None:
    kept = stopped.series / "series"
    kept.write_text("lanes.patch\n")
    goes_on(stopped, 1, "series-edited")
    (stopped.series / "plan.patch").unlink()
    assert stopped.run("lock", "--pin", "v1.0").code == 0
    # What was written into the conflict is not thrown away with the patch.
    goes_on(stopped, 1, "not in the series any more")
    assert "WIDTH" in (tree(stopped) / "engine/plan.py").read_text()
    tree(stopped).rename(stopped.at / "aside")
    done = stopped.run("rebase", "--continue")
    assert (done.code, "Traceback" in done.text) == (0, False), done.text
    assert (stopped.at / "series/v2.0/series").read_text().splitlines()[1:] == ["lanes.patch"]
