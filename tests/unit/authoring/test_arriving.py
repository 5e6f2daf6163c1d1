"""What people have at hand: a format-patch folder with its cover letter, git show, git log -p."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchkit.authoring.importing import bring
from patchkit.authoring.incoming import arrive
from patchkit.authoring.when import when
from patchkit.errors import Refused
from patchkit.series.header import parse_header
from patchkit.series.quilt import dump_series
from tests.unit.authoring.importing import BARE, HOW, put
from tests.unit.authoring.making import Bench
from tests.unit.authoring.test_commits import GATES, order


@pytest.fixture
def repository(bench: Bench) -> Path:
    """A clone of the upstream with two commits on it, the second on top of the first's lines."""
    at = bench.source
    git(at, "init", "-q")
    git(at, "add", ".")
    git(at, "commit", "-qm", "base")
    other = at.parent / "clone"
    git(at.parent, "clone", "-q", str(at), str(other))
    lanes = other / "engine/lanes.py"
    for number, (old, new) in enumerate([("line 5\n", "line five\n"), ("line five\n", "line V\n")]):
        lanes.write_text(lanes.read_text().replace(old, new))
        message = f"[ci] Say {new.strip()}\n\nWhy, indented:\n\n    diff --git is text here\n"
        git(
            other,
            "commit",
            "-qam",
            message,
            GIT_AUTHOR_DATE=f"2031-01-0{number + 1}T10:00:00 +0100",
        )
    subprocess.run(["rm", "-rf", str(at / ".git")], check=True)
    return other


def git(at: Path, *args: str, **env: str) -> str:
    who = {"GIT_AUTHOR_NAME": "Jörg", "GIT_AUTHOR_EMAIL": "j@example.org"}
    who |= {"GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org"}
    done = subprocess.run(
        ["git", *args], cwd=at, env={**os.environ, **who, **env}, capture_output=True, check=True
    )
    return done.stdout.decode()


def test_git_show_keeps_author_date_and_message(
    bench: Bench, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.txt").write_text(git(repository, "show", "HEAD~1"))
    put(bench, tmp_path / "x.txt")
    header = parse_header(bench.patches()["x.patch"])
    assert header.author == "Jörg <j@example.org>"
    assert header.date == "Wed, 1 Jan 2031 10:00:00 +0100"
    assert header.subject == "ci: Say line five"
    assert header.body == "Why, indented:\n\n    diff --git is text here"
    assert bench.check() == []


def test_git_log_is_read_oldest_first_a_commit_a_patch(
    bench: Bench, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "log.txt").write_text(git(repository, "log", "-p", "-2"))
    put(bench, tmp_path / "log.txt")
    assert order(bench) == ["ci-say-line-five.patch", "ci-say-line-v.patch"]
    assert b"+line V" in bench.patches()["ci-say-line-v.patch"]
    assert bench.check() == []


def test_a_cover_letter_in_a_folder_is_left_out_and_said(
    bench: Bench, repository: Path, tmp_path: Path
) -> None:
    at = tmp_path / "fp"
    git(repository, "format-patch", "-q", "--cover-letter", "-o", str(at), "HEAD~2")
    (note,) = put(bench, at).findings
    assert note.note
    assert "a mail without a diff is left out" in note.message
    assert order(bench) == ["ci-Say-line-five.patch", "ci-Say-line-V.patch"]


def test_the_same_mails_once_more_change_nothing_whatever_their_subjects(
    bench: Bench, repository: Path, tmp_path: Path
) -> None:
    mails = tmp_path / "all.mbox"
    mails.write_text(git(repository, "format-patch", "--stdout", "HEAD~2"))
    put(bench, mails)
    before = bench.snapshot()
    put(bench, mails)
    git(repository, "format-patch", "-q", "-o", str(tmp_path / "fp"), "HEAD~2")
    put(bench, tmp_path / "fp")
    assert bench.snapshot() == before


def test_a_quilt_folder_s_comments_come_behind_those_of_an_empty_series(
    bench: Bench, tmp_path: Path
) -> None:
    (bench.series / "series").write_text("# ours\n")
    at = tmp_path / "theirs"
    at.mkdir()
    (at / "x.patch").write_text(BARE)
    (at / "series").write_text("# theirs\nx.patch #+fast\n# end\n")
    put(bench, at)
    assert order(bench) == ["# ours", "# theirs", "x.patch #+fast", "# end"]
    before = bench.snapshot()
    put(bench, at)
    assert bench.snapshot() == before


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({}, ["# ours", "a.patch", "b.patch", "# theirs", "x.patch #+fast # why", "# end"]),
        (
            {"after": "a"},
            ["# ours", "a.patch", "# theirs", "x.patch #+fast # why", "# end", "b.patch"],
        ),
        (
            {"first": True},
            ["# ours", "# theirs", "x.patch #+fast # why", "# end", "a.patch", "b.patch"],
        ),
    ],
)
def test_and_come_where_its_patches_go(
    bench: Bench, tmp_path: Path, place: dict[str, object], expected: list[str]
) -> None:
    bench.add_patch("a", (GATES, "gate 5\n", "gate five\n"))
    bench.add_patch("b", (GATES, "gate 15\n", "gate fifteen\n"))
    path = bench.series / "series"
    path.write_text("# ours\n" + path.read_text())
    at = tmp_path / "theirs"
    at.mkdir()
    (at / "x.patch").write_text(BARE)
    (at / "series").write_text("# theirs\nx.patch #+fast # why\n# end\n")
    put(bench, at, **place)
    assert order(bench) == expected
    assert bench.check() == []


def test_comments_of_a_folder_of_which_some_patches_are_new_come_or_are_said(
    bench: Bench, tmp_path: Path
) -> None:
    bench.add_patch("a", (GATES, "gate 5\n", "gate five\n"))
    bench.add_patch("b", (GATES, "gate 15\n", "gate fifteen\n"))
    path = bench.series / "series"
    path.write_text("# ours\n" + path.read_text())
    at = tmp_path / "theirs"
    at.mkdir()
    for name in ("a.patch", "b.patch"):
        (at / name).write_bytes((bench.series / name).read_bytes())
    (at / "x.patch").write_text(BARE)
    (at / "series").write_text(
        "# ours\na.patch # of a\n\n# of x\nx.patch #+fast # why\n# of b\nb.patch\n"
    )
    ready = put(bench, at)
    assert order(bench) == [
        "# ours", "a.patch", "", "# of x", "x.patch #+fast # why", "b.patch"
    ]  # fmt: skip
    (note,) = [f for f in ready.findings if "comments" in f.message]
    assert (note.note, note.found) == (True, "# of a; # of b")
    assert bench.check() == []
    before = bench.snapshot()
    assert put(bench, at).files == {}
    assert bench.snapshot() == before


@pytest.mark.parametrize(
    "header",
    [
        "Subject: Name it\n\nWhy.\n---\n",
        "Subject: Name it\nOrigin: theirs\n\nWhy.\n---\n",
        "Description: Name it\n Why.\nForwarded: no\n\n",
        "From: A <a@example.org>\nSubject: [ci] Name it\nLast-Update: 2030-01-01\n\nWhy.\n---\n",
        "From: A <a@example.org>\nDate: yesterday\nSubject: Name it\n\nWhy.\n---\n",
    ],
)
def test_patches_without_a_date_are_known_again(bench: Bench, tmp_path: Path, header: str) -> None:
    at = tmp_path / "theirs"
    at.mkdir()
    (at / "x.patch").write_text(header + BARE)
    (at / "series").write_text("x.patch\n")
    put(bench, at)
    before = bench.snapshot()
    with bench.session() as (_, standing):
        later = when("2031-03-01")
        ready = bring(standing, arrive([str(at)], standing.names), HOW, later)
    assert ready.files == {}
    assert [(row.patch, row.state) for row in ready.rows] == [("x.patch", "unchanged")]
    (at / "x.patch").write_text(header.replace("Why.", "Because.") + BARE)
    with pytest.raises(Refused) as other:
        put(bench, at)
    assert [f.name for f in other.value.findings] == ["duplicate-entry"]
    assert bench.snapshot() == before


def test_names_that_are_merely_sorted_state_no_order(bench: Bench, tmp_path: Path) -> None:
    bench.add_patch("z", (GATES, "gate 5\n", "gate five\n"))
    bench.add_patch("a", (GATES, "gate five\n", "gate V\n"))
    before = bench.snapshot()
    at = tmp_path / "theirs"
    at.mkdir()
    for name in ("z.patch", "a.patch"):
        (at / name).write_bytes((bench.series / name).read_bytes())
    assert put(bench, at).files == {}
    assert put(bench, at / "a.patch", at / "z.patch").files == {}
    (at / "series").write_text("a.patch\nz.patch\n")
    with pytest.raises(Refused) as other:
        put(bench, at)
    assert [f.name for f in other.value.findings] == ["series-edited"]
    assert bench.snapshot() == before


def test_a_series_file_from_windows_is_read_and_said(tmp_path: Path) -> None:
    (tmp_path / "series").write_bytes(b"# why\r\na.patch #+fast\r\nb.patch -p0\r\n")
    for name in ("a.patch", "b.patch"):
        (tmp_path / name).write_text("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n")
    arrived = arrive([str(tmp_path)], [])
    assert [(p.name, p.strip, p.guard) for p in arrived.patches] == [
        ("a.patch", 1, "fast"),
        ("b.patch", 0, None),
    ]
    (note,) = arrived.findings
    assert (note.name, note.note) == ("line-endings", True)
    assert arrived.series is not None
    assert "\r" not in dump_series(arrived.series).decode()
