"""What an old series got since it was carried is carried into the one that is there: nothing else
of that changes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import TO, release

NAMES = ["deeper.patch", "wider.patch #+wide", "later.patch"]


def new_in(project: SmallProject) -> Path:
    return project.at / "series" / "v2.0"


def files(at: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in at.iterdir() if p.is_file()}


def lines(at: Path) -> list[str]:
    return (at / "series").read_text().splitlines()


def added(project: SmallProject, name: str, path: str, old: str, new: str, after: str = "") -> None:
    """A patch more in the series of v1.0: at its end, or behind another (it must fit there)."""
    project.edited(name, path, old, new)
    listed = (project.series / "series").read_text().splitlines()
    if after:
        listed.insert(listed.index(after) + 1, listed.pop())
        (project.series / "series").write_text("\n".join(listed) + "\n")
    done = project.run("lock", "--pin", "v1.0")
    assert done.code == 0, done.text


def test_what_is_new_is_named_and_the_command_that_carries_it(carried: SmallProject) -> None:
    done = carried.run(*TO)
    assert done.code == 1
    assert "one, which has every patch of v1.0 or says why not" in done.err
    added(carried, "steps", "engine/plan.py", "STEPS = 4\n", "STEPS = 5\n")
    before = files(new_in(carried))
    done = carried.run(*TO)
    assert done.code == 1
    assert "lacks steps.patch" in done.err
    assert "patchkit rebase --pin v1.0 --onto v2.0 --new" in done.err
    assert files(new_in(carried)) == before


def test_it_stands_where_it_stands_in_the_old_series_and_the_rest_keeps_its_bytes(
    carried: SmallProject,
) -> None:
    added(carried, "steps", "engine/plan.py", "STEPS = 4\n", "STEPS = 5\n", "deeper.patch")
    added(carried, "ends", "engine/lanes.py", "    return 11\n", "    return 110\n")
    before = files(new_in(carried))
    done = carried.run(*TO, "--new", "--date", "2031-04-05")
    assert done.code == 0, done.text
    assert "3 patches of v2.0 stand as they are" in done.out
    at = new_in(carried)
    first, *rest = NAMES
    assert lines(at)[-5:] == [first, "steps.patch", *rest, "ends.patch"]
    after = files(at)
    assert {n: d for n, d in after.items() if n in before and n.endswith(".patch")} == {
        n: d for n, d in before.items() if n.endswith(".patch")
    }
    text = after["ends.patch"].decode()
    assert "Last-Update: 2031-04-05\nRebased-From: v1.0/ends.patch\n" in text
    assert "@@ -46,6 +46,6 @@" in text  # on v1.0 it is 44
    assert carried.run("check", "--pin", "v2.0").code == 0
    again = carried.run(*TO, "--new")
    assert (again.code, files(at)) == (0, after)
    assert "v2.0 has every patch of v1.0" in again.out


def test_a_patch_above_one_that_is_there_moves_that_and_changes_no_word_of_it(
    carried: SmallProject,
) -> None:
    header = "    # first\n    # second\n    return 3\n"
    added(carried, "taller", "engine/lanes.py", "    return 3\n", header)
    # Not at the end: below `later`, whose lines it moves.
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "reset", "-q", "--hard", "HEAD~2"],
        cwd=carried.at / "work",
        check=True,
    )
    (carried.series / "series").write_text("deeper.patch\nwider.patch #+wide\n")
    (carried.series / "taller.patch").unlink()
    later = (carried.series / "later.patch").read_bytes()
    carried.edited("taller", "engine/lanes.py", "    return 3\n", header)
    carried.edited("later", "engine/lanes.py", "    return 9\n", "    return 90\n")
    now = (carried.series / "later.patch").read_bytes()
    assert now != later  # other lines
    assert carried.run("lock", "--pin", "v1.0").code == 0
    before = files(new_in(carried))
    done = carried.run(*TO, "--new")
    assert done.code == 0, done.text
    after = files(new_in(carried))
    assert lines(new_in(carried))[-2:] == ["taller.patch", "later.patch"]
    one, two = before["later.patch"].splitlines(), after["later.patch"].splitlines()
    differing = [a for a, b in zip(one, two, strict=True) if a != b]
    assert {line.split()[0] for line in differing} == {b"index", b"@@"}
    assert carried.run("check", "--pin", "v2.0").code == 0


def test_a_conflict_of_a_new_patch_waits_and_goes_on(carried: SmallProject) -> None:
    plan = carried.at / "sources" / "v2.0" / "engine" / "plan.py"
    plan.write_text(plan.read_text().replace("STEPS = 4", "STEPS = steps()"))
    assert carried.run("lock", "--pin", "v2.0").code == 1  # deeper's context is another now
    plan.write_text(plan.read_text().replace("STEPS = steps()", "STEPS = 4"))
    lanes = carried.at / "sources" / "v2.0" / "engine" / "lanes.py"
    lanes.write_text(lanes.read_text().replace("return 5\n", "return five()\n"))
    assert carried.run("lock", "--pin", "v2.0").code == 0
    added(carried, "fives", "engine/lanes.py", "    return 5\n", "    return 55\n")
    before = files(new_in(carried))
    done = carried.run(*TO, "--new")
    assert done.code == 1
    assert "fives.patch waits" in done.out
    assert files(new_in(carried)) == before
    assert carried.run(*TO).code == 1
    at = carried.at / "build" / "rebase-v1.0-v2.0" / "engine" / "lanes.py"
    text = at.read_text()
    start, end = text.index("<<<<<<< v2.0"), text.index(">>>>>>> fives.patch\n")
    at.write_text(text[:start] + "    return five() * 11\n" + text[end + 20 :])
    done = carried.run("rebase", "--continue")
    assert done.code == 0, done.text
    assert lines(new_in(carried))[-1] == "fives.patch"
    assert b"+    return five() * 11\n" in files(new_in(carried))["fives.patch"]
    assert carried.run("check", "--pin", "v2.0").code == 0


def test_one_that_the_release_has_is_a_line_with_the_reason(carried: SmallProject) -> None:
    plan = carried.at / "sources" / "v2.0" / "setup.py"
    plan.write_text(plan.read_text() + "# and more\n")
    assert carried.run("lock", "--pin", "v2.0").code == 0
    added(carried, "more", "setup.py", "setup()\n", "setup()\n# and more\n", "deeper.patch")
    assert carried.run(*TO, "--new").code == 0
    said = "# more.patch: not on v2.0: upstreamed in v2.0"
    assert lines(new_in(carried))[-4:] == [NAMES[0], said, *NAMES[1:]]
    assert "says why not" in carried.run(*TO, "--new").out


@pytest.mark.parametrize("pin", ["v1.0", "v2.0"])
def test_a_series_that_was_edited_by_hand_is_not_carried_unseen(
    carried: SmallProject, pin: str
) -> None:
    added(carried, "steps", "engine/plan.py", "STEPS = 4\n", "STEPS = 5\n")
    patch = carried.at / "series" / pin / "later.patch"
    patch.write_bytes(patch.read_bytes().replace(b"return 90", b"return 91"))
    done = carried.run(*TO, "--new")
    assert done.code == 1
    assert "patch-edited" in done.err
    assert "later.patch" in done.err
    assert not (new_in(carried) / "steps.patch").exists()


def test_a_file_that_nobody_names_is_not_written_over(carried: SmallProject) -> None:
    added(carried, "steps", "engine/plan.py", "STEPS = 4\n", "STEPS = 5\n")
    mine = new_in(carried) / "steps.patch"
    mine.write_text("mine\n")
    done = carried.run(*TO, "--new")
    assert done.code == 1
    assert "target-exists" in done.err
    assert mine.read_text() == "mine\n"


def test_new_is_of_a_release_that_has_a_series(carried: SmallProject) -> None:
    release(carried, "v3.0", {})
    done = carried.run("rebase", "--pin", "v2.0", "--onto", "v3.0", "--new")
    assert done.code == 2
    assert "v3.0 has no series yet" in done.err
