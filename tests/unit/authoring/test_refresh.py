"""new, edit and refresh: what is written, what stays, and what is refused with nothing done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.authoring import sealing
from patchkit.authoring.form import NEW, REFRESHED, RENUMBERED, REWRITTEN, UNCHANGED
from patchkit.derive.project import find
from patchkit.errors import Finding, Refused, UsageFault
from patchkit.series.header import parse_header
from tests.unit.authoring.making import AUTHOR, Bench

LANES = "engine/lanes.py"
GATES = "engine/gates.py"


@pytest.fixture
def three(bench: Bench) -> Bench:
    """Three patches: two of one file far apart, one of another file."""
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (LANES, "line 30\n", "line thirty\n"))
    bench.add_patch("c", (GATES, "gate 9\n", "gate nine\n"))
    return bench


def refused(action: object, *args: object, **options: object) -> list[Finding]:
    with pytest.raises(Refused) as refusal:
        action(*args, **options)  # type: ignore[operator]
    return list(refusal.value.findings)


def test_a_new_patch_is_written_with_its_series_line_and_lock(bench: Bench) -> None:
    bench.new("fix-lanes", subject="Name line five")
    assert not (bench.series / "series").exists()
    bench.change(LANES, "line 5\n", "line five\n")
    assert bench.refresh() == {"fix-lanes.patch": NEW}
    assert (bench.series / "series").read_text() == "fix-lanes.patch\n"
    assert (
        (bench.series / "fix-lanes.patch")
        .read_text()
        .startswith(
            f"From: {AUTHOR}\n"
            "Date: Fri, 31 Jan 2031 00:00:00 +0000\n"
            "Subject: Name line five\n"
            "Origin: vendor\nForwarded: no\nLast-Update: 2031-01-31\n\n---\ndiff --git a/"
        )
    )
    assert bench.check() == []
    assert not (bench.root / ".patchkit").exists()


def test_refreshing_again_changes_no_byte(three: Bench) -> None:
    before = three.snapshot()
    assert set(three.refresh().values()) == {UNCHANGED}
    three.edit("a")
    assert set(three.refresh().values()) == {UNCHANGED}
    assert three.snapshot() == before


def test_the_work_tree_is_clean_after_a_refresh(three: Bench) -> None:
    assert three.git("status", "--porcelain") == ""
    assert three.git("log", "--format=%s").split() == ["C", "B", "A", "engine", "v1"]


def test_later_patches_of_the_file_get_only_numbers_and_ids(three: Bench) -> None:
    before = three.patches()
    three.edit("a")
    three.change(LANES, "line five\n", "line five\nand a half\n")
    assert three.refresh() == {"a.patch": REFRESHED, "b.patch": RENUMBERED, "c.patch": UNCHANGED}
    after = three.patches()
    pairs = zip(before["b.patch"].split(b"\n"), after["b.patch"].split(b"\n"), strict=True)
    assert [b.split()[0] for a, b in pairs if a != b] == [b"index", b"@@"]
    assert after["c.patch"] == before["c.patch"]
    assert three.check() == []


def test_changed_context_of_a_later_patch_is_rewritten_and_said(bench: Bench) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (LANES, "line 8\n", "line eight\n"))
    bench.edit("a")
    bench.change(LANES, "line five\n", "line FIVE\n")
    assert bench.refresh() == {"a.patch": REFRESHED, "b.patch": REWRITTEN}
    assert " line FIVE\n" in (bench.series / "b.patch").read_text()
    assert bench.check() == []


def test_a_later_patch_that_breaks_is_refused_and_nothing_is_done(bench: Bench) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (GATES, "gate 3\n", "gate three\n"), (LANES, "line 6\n", "x\n"))
    before = bench.snapshot()
    bench.edit("a")
    bench.change(LANES, "line 6\n", "line six\n")
    (finding,) = refused(bench.refresh)
    assert finding.name == "conflict"
    assert (finding.where.patch, finding.where.file, finding.where.hunk) == ("b.patch", LANES, 1)
    assert "  line six" in finding.details
    assert "  x" in finding.details
    assert "git rebase --onto HEAD start series" in finding.next
    assert bench.snapshot() == before
    assert "line six" in (bench.tree / LANES).read_text()


def test_the_advice_for_a_conflict_works(bench: Bench) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.add_patch("b", (LANES, "line 6\n", "x\n"))
    bench.add_patch("c", (GATES, "gate 3\n", "gate three\n"))
    bench.edit("a")
    bench.change(LANES, "line 6\n", "line six\n")
    refused(bench.refresh)
    bench.git("commit", "-qa", "--amend", "--no-edit")
    with pytest.raises(AssertionError, match="b"):
        bench.git("rebase", "--onto", "HEAD", "start", "series")
    (finding,) = refused(bench.from_commits)
    assert finding.name == "conflict"
    assert "rebase" in finding.message
    text = (bench.tree / LANES).read_text()
    head, _, rest = text.partition("<<<<<<<")
    (bench.tree / LANES).write_text(
        head + "x, not six\n" + rest.partition(">>>>>>>")[2].partition("\n")[2]
    )
    bench.git("add", LANES)
    bench.git("rebase", "--continue")
    assert bench.from_commits() == {
        "a.patch": REFRESHED,
        "b.patch": REFRESHED,
        "c.patch": UNCHANGED,
    }
    assert bench.check() == []


def test_last_update_changes_only_with_the_effect(three: Bench) -> None:
    at = three.series / "a.patch"
    at.write_text(at.read_text().replace("Last-Update: 2031-01-31", "Last-Update: 2030-01-01"))
    three.edit("b")
    three.change(LANES, "line thirty\n", "thirty\n")
    three.refresh()
    assert "Last-Update: 2030-01-01" in at.read_text()
    three.edit("a")
    three.change(LANES, "line five\n", "five\n")
    three.refresh()
    assert "Last-Update: 2031-01-31" in at.read_text()


def test_a_header_edited_by_hand_stays_and_is_locked_with_a_note(three: Bench) -> None:
    at = three.series / "c.patch"
    at.write_text(at.read_text().replace("\n---\n", "\nWhy: seen on a machine.\n---\n", 1))
    assert [f.name for f in three.check()] == ["patch-edited"]
    three.edit("a")
    three.change(LANES, "line five\n", "five\n")
    three.refresh()
    assert "seen on a machine" in at.read_text()
    assert three.check() == []


def test_another_patch_edited_by_hand_is_not_locked_unseen(three: Bench) -> None:
    three.edit("a")
    three.change(LANES, "line five\n", "five\n")
    at = three.series / "c.patch"
    at.write_text(at.read_text().replace("+gate nine", "+gate IX"))
    before = three.snapshot()
    names = {(f.name, f.where.patch) for f in refused(three.refresh)}
    assert names == {("patch-edited", "c.patch")}
    assert three.snapshot() == before


def test_a_series_that_changed_under_the_work_tree_is_refused_and_stash_helps(
    three: Bench,
) -> None:
    three.edit("c")
    three.change(GATES, "gate nine\n", "gate IX\n")
    at = three.series / "a.patch"
    at.write_text(at.read_text().replace("+line five", "+line V"))
    with three.session() as (run, _):
        from patchkit.check.locking import relock

        relock(run.project, "v1", run.bases)
    (finding,) = refused(three.refresh)
    assert finding.name == "not-built-from-this"
    three.git("stash", "--include-untracked")
    three.edit("c")
    three.git("stash", "pop")
    assert three.refresh()["c.patch"] == REFRESHED
    assert three.check() == []


def test_an_untracked_file_is_named_and_taken_only_when_added(bench: Bench) -> None:
    bench.new("more")
    (bench.tree / "engine/more.py").write_text("more\n")
    (bench.tree / "engine/junk.log").write_text("junk\n")
    findings = refused(bench.refresh)
    assert [f.name for f in findings if not f.note] == ["no-op"]
    bench.git("add", "engine/more.py")
    with bench.session() as (_, standing):
        from patchkit.authoring.refresh import refresh
        from patchkit.authoring.workplace import read_point
        from tests.unit.authoring.making import MOMENT

        point = read_point(str(bench.tree))
        assert point is not None
        notes = refresh(standing, point, str(bench.tree), MOMENT).ready.findings
    assert [f.where.file for f in notes if f.name == "unused"] == ["engine/junk.log"]
    bench.refresh()
    assert b"junk" not in bench.patches()["more.patch"]
    assert b"+more\n" in bench.patches()["more.patch"]
    bench.refresh(add=True)
    assert b"+junk\n" in bench.patches()["more.patch"]
    assert bench.check() == []


def test_deletions_modes_and_links_are_taken(bench: Bench) -> None:
    bench.new("odd")
    os.remove(bench.tree / GATES)
    os.chmod(bench.tree / LANES, 0o755)
    (bench.tree / "link").symlink_to("README.md")
    (bench.tree / "name with a blank").write_text("x\n")
    bench.git("add", "link", "name with a blank")
    bench.refresh()
    text = bench.patches()["odd.patch"]
    for line in (b"deleted file mode 100644", b"new mode 100755", b"new file mode 120000"):
        assert line in text
    assert bench.check() == []
    assert set(bench.refresh().values()) == {UNCHANGED}


def test_a_rename_stays_a_rename(bench: Bench) -> None:
    bench.series.joinpath("series").write_text("m.patch\n")
    (bench.series / "m.patch").write_text(
        f"From: {AUTHOR}\nDate: Fri, 31 Jan 2031 00:00:00 +0000\nSubject: Move it\n\n---\n"
        "diff --git a/engine/gates.py b/engine/doors.py\nrename from engine/gates.py\n"
        "rename to engine/doors.py\n"
    )
    bench.add_patch("first", (GATES, "gate 2\n", "gate two\n"), first=True)
    assert b"rename from engine/gates.py" in bench.patches()["m.patch"]
    bench.edit("m")
    bench.change("engine/doors.py", "gate 9\n", "door 9\n")
    bench.refresh()
    assert b"rename from engine/gates.py" in bench.patches()["m.patch"]
    assert b"+door 9\n" in bench.patches()["m.patch"]
    assert bench.check() == []


def test_a_binary_file_is_refused(bench: Bench) -> None:
    bench.new("bin")
    (bench.tree / "data.bin").write_bytes(b"\0\1\2")
    bench.git("add", "data.bin")
    assert [f.name for f in refused(bench.refresh)] == ["binary-unsupported"]


def test_a_native_source_needs_a_guard(bench: Bench) -> None:
    bench.new("native")
    (bench.tree / "kernel.c").write_text("int x;\n")
    bench.git("add", "kernel.c")
    (finding,) = refused(bench.refresh)
    assert finding.name == "needs-build"
    assert "--guard" in finding.next
    bench.refresh(guard="native")
    assert (bench.series / "series").read_text() == "native.patch #+native\n"
    assert bench.check() == []


def test_a_patch_that_changes_nothing_is_refused(three: Bench) -> None:
    three.new("d")
    assert [f.name for f in refused(three.refresh)] == ["no-op"]
    three.edit("a")
    three.change(LANES, "line five\n", "line 5\n")
    assert [f.name for f in refused(three.refresh)] == ["no-op"]


def test_what_a_later_patch_does_already_is_said(three: Bench) -> None:
    three.edit("a")
    three.change(LANES, "line 30\n", "line thirty\n")
    (finding,) = refused(three.refresh)
    assert (finding.name, finding.where.patch) == ("no-op", "b.patch")
    assert "patchkit drop b.patch" in finding.next


def test_a_patch_in_the_middle(three: Bench) -> None:
    three.new("m", after="a")
    three.change(LANES, "line 20\n", "line 20\nline 20.5\n")
    assert three.refresh() == {
        "a.patch": UNCHANGED,
        "m.patch": NEW,
        "b.patch": RENUMBERED,
        "c.patch": UNCHANGED,
    }
    assert (three.series / "series").read_text().split() == [
        f"{n}.patch" for n in ("a", "m", "b", "c")
    ]
    assert three.check() == []


def test_an_amended_message_becomes_the_header(three: Bench) -> None:
    three.edit("b")
    three.git(
        "commit",
        "--amend",
        "-q",
        "-m",
        "Say thirty\n\nBecause it reads well.\n\nPatch-Name: b.patch",
    )
    three.refresh()
    header = parse_header(three.patches()["b.patch"])
    assert (header.subject, header.body) == ("Say thirty", "Because it reads well.")
    assert header.author == AUTHOR
    assert header.date == "Fri, 31 Jan 2031 00:00:00 +0000"
    assert three.check() == []


def test_a_commit_in_a_new_tree_gives_the_header(bench: Bench) -> None:
    bench.new("lanes")
    bench.change(LANES, "line 5\n", "line five\n")
    bench.git("commit", "-qam", "[Bugfix] Name line five\n\nIt was a digit.")
    bench.change(LANES, "line 6\n", "line six\n")
    bench.refresh()
    header = parse_header(bench.patches()["lanes.patch"])
    assert header.subject == "Bugfix: Name line five"
    assert header.body == "It was a digit."
    assert header.author == "P Erson <p@example.org>"
    assert b"+line six" in bench.patches()["lanes.patch"]


def test_work_in_the_tree_is_never_overwritten(three: Bench) -> None:
    three.edit("a")
    three.change(LANES, "line 20\n", "mine\n")
    (finding,) = refused(three.edit, "b")
    assert finding.name == "foreign-edit"
    assert "it is work on a.patch: patchkit refresh first" in finding.next
    assert {f.name for f in refused(three.new, "z")} == {"foreign-edit"}
    assert "mine" in (three.tree / LANES).read_text()
    three.git("commit", "-qam", "wip")
    assert {f.name for f in refused(three.edit, "b")} == {"foreign-edit"}


def test_a_file_that_git_does_not_track_is_never_overwritten(bench: Bench) -> None:
    bench.add_patch("a", (LANES, "line 5\n", "line five\n"))
    bench.new("b")
    (bench.tree / "engine/new.py").write_text("new\n")
    bench.git("add", "engine/new.py")
    bench.refresh()
    bench.edit("a")
    (bench.tree / "engine/new.py").write_text("mine\n")
    (finding,) = refused(bench.edit, "b")
    assert (finding.name, finding.where.file) == ("foreign-edit", "engine/new.py")
    assert "not tracked" in finding.message
    assert (bench.tree / "engine/new.py").read_text() == "mine\n"
    (bench.tree / "engine/new.py").write_text("new\n")
    bench.edit("b")


def test_a_conflict_of_a_merge_is_not_taken_for_text(three: Bench) -> None:
    three.edit("a")
    three.change(LANES, "line 6\n", "one\n")
    three.git("stash")
    three.change(LANES, "line 6\n", "two\n")
    three.git("commit", "-qam", "two")
    with pytest.raises(AssertionError):
        three.git("stash", "pop")
    assert {f.name for f in refused(three.refresh)} == {"conflict"}


def test_names_and_authors_that_cannot_be_are_a_wrong_command_line(bench: Bench) -> None:
    for name in ("a b", "#x", "../x", "-x", "x\ny", ""):
        with pytest.raises(UsageFault):
            bench.new(name)
    with pytest.raises(UsageFault, match="author"):
        bench.new("x", author="nobody")
    with pytest.raises(UsageFault, match="bracket"):
        bench.new("x", subject="[ci] y")
    with pytest.raises(UsageFault):
        bench.new("x", guard="a b")
    assert not bench.tree.exists()


def test_a_file_that_no_line_names_is_not_overwritten(bench: Bench) -> None:
    (bench.series / "x.patch").write_text("somebody's\n")
    assert [f.name for f in refused(bench.new, "x")] == ["target-exists"]


def test_a_killed_refresh_is_taken_back_by_the_next_command(
    three: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = three.snapshot()
    three.edit("a")
    three.change(LANES, "line five\n", "line five\nand a half\n")

    class Killed(BaseException):
        pass

    # As if the process had died with some files written: nothing of ours runs any more.
    from patchkit.files import transaction
    from patchkit.files.root import Root

    count = 0
    put = Root.put

    def dying(self: Root, path: str, *args: object, **options: object) -> None:
        nonlocal count
        count += path.startswith("series/")
        if count == 2:
            raise Killed
        put(self, path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Root, "put", dying)
    monkeypatch.setattr(transaction, "recover", lambda *_: None)
    with pytest.raises(Killed):
        three.refresh()
    monkeypatch.undo()
    monkeypatch.setenv("PATCHKIT_CACHE", os.fspath(three.root.parent / "cache"))
    assert three.snapshot() != before
    project = find(three.root)
    assert project.recovered is not None
    assert project.recovered.what == "refresh"
    assert three.snapshot() == before
    assert three.check() == []
    assert three.refresh()["a.patch"] == REFRESHED


def test_a_work_tree_that_a_killed_edit_left_is_not_taken_for_the_old_one(
    three: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from patchkit.authoring import workplace

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    three.edit("c")
    with monkeypatch.context() as patched:
        patched.setattr(workplace, "keep_point", dies)
        with pytest.raises(KeyboardInterrupt):
            three.edit("a")
    assert workplace.read_point(str(three.tree)) is None
    three.edit("a")
    assert set(three.refresh().values()) == {UNCHANGED}


def test_a_second_writer_waits_and_then_says_who_is_at_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from patchkit.files.lock import folder_locked

    monkeypatch.setattr(sealing, "folder_locked", lambda path: folder_locked(path, wait=0.1))
    with folder_locked(bench.root), pytest.raises(Exception, match="another patchkit"):
        bench.new("x")


def test_the_lock_says_every_stack(three: Bench) -> None:
    pins = three.root / "pins.toml"
    pins.write_text(pins.read_text() + '[stacks.fast]\nguards = ["fast"]\n')
    three.new("q", guard="fast")
    three.change(GATES, "gate 20\n", "gate 20!\n")
    three.refresh()
    lock = find(three.root).lock("v1")
    assert lock.stacks["default"].patches == ("a.patch", "b.patch", "c.patch")
    assert lock.stacks["fast"].patches[-1] == "q.patch"
    assert three.check() == []


def test_a_stack_that_a_change_would_break_is_refused(three: Bench) -> None:
    three.new("q", guard="fast")
    three.change(LANES, "line 31\n", "line 31\nfast\n")
    three.refresh()
    before = three.snapshot()
    three.new("r")
    three.change(LANES, "fast\n", "faster\n")
    assert "guard-cuts" in {f.name for f in refused(three.refresh)}
    assert three.snapshot() == before


def test_it_works_with_the_tree_elsewhere(bench: Bench, tmp_path: Path) -> None:
    begun = bench.new("x", to=str(tmp_path / "elsewhere"))
    assert begun.at == str(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / LANES).is_file()


def test_another_base_is_not_locked_unseen(three: Bench) -> None:
    three.edit("c")
    three.change(GATES, "gate 20\n", "gate twenty\n")
    (three.source / "README.md").write_text("# another\n")
    before = three.snapshot()
    assert {f.name for f in refused(three.new, "z")} == {"pin-mismatch"}
    assert {f.name for f in refused(three.refresh)} == {"not-built-from-this"}
    assert three.snapshot() == before
