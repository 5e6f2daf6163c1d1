"""`rebase --again`: what was edited in the old series after it was carried is carried once more;
everything else on the release keeps its bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import TO, release


def patches(project: SmallProject, pin: str = "v2.0") -> dict[str, str]:
    at = project.at / "series" / pin
    return {path.name: path.read_text() for path in sorted(at.glob("*.patch"))}


def lines(project: SmallProject) -> list[str]:
    return (project.at / "series" / "v2.0" / "series").read_text().splitlines()


def edit(project: SmallProject, name: str, *changes: tuple[str, str], pin: str = "v1.0") -> None:
    """Edit a patch file by hand and lock it."""
    path = project.at / "series" / pin / name
    text = path.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)
    done = project.run("lock", "--pin", pin)
    assert done.code == 0, done.text


def tree(project: SmallProject) -> Path:
    return project.at / "build" / "rebase-v1.0-v2.0" / "engine" / "lanes.py"


def test_an_edit_of_lines_and_header_comes_over_and_the_rest_keeps_its_bytes(
    carried: SmallProject,
) -> None:
    before, listed = patches(carried), lines(carried)
    edit(carried, "later.patch", ("+    return 90", "+    return 91"), ("Why.", "Why: lane 9."))
    done = carried.run(*TO, "--again", "later", "--date", "2031-04-05")
    assert done.code == 0, done.text
    assert "2 patches of v2.0 stand as they are" in done.out
    after = patches(carried)
    assert {n for n in after if after[n] != before[n]} == {"later.patch"}
    assert lines(carried) == listed
    text = after["later.patch"]
    assert "Last-Update: 2031-04-05\nRebased-From: v1.0/later.patch\n\nWhy: lane 9.\n" in text
    assert "+    return 91\n" in text
    assert carried.run("check").code == 0
    assert carried.run("diff", "--series", "v1.0", "v2.0").out == "v1.0 to v2.0: 3 same\n"


def test_what_is_the_same_is_not_touched(carried: SmallProject) -> None:
    at = carried.at / "series" / "v2.0"
    before = {path.name: path.read_bytes() for path in at.iterdir() if path.is_file()}
    done = carried.run(*TO, "--again", "later", "--again", "wider", "--date", "2031-04-05")
    assert done.code == 0, done.text
    assert {path.name: path.read_bytes() for path in at.iterdir() if path.is_file()} == before


def test_the_patches_above_move_with_it(carried: SmallProject) -> None:
    before = patches(carried)
    widen(carried)
    done = carried.run(*TO, "--again", "wider")
    assert done.code == 0, done.text
    after = patches(carried)
    assert "+    # and wider\n" in after["wider.patch"]
    one, two = before["later.patch"].splitlines(), after["later.patch"].splitlines()
    changed = [a.split()[0] for a, b in zip(one, two, strict=True) if a != b]
    assert set(changed) == {"index", "@@"}
    assert "wider.patch #+wide" in lines(carried)
    assert carried.run("check").code == 0


def widen(project: SmallProject) -> None:
    """One line more in `wider`, written by the command itself."""
    assert project.run("edit", "wider", "--pin", "v1.0").code == 0
    at = project.at / "build" / "edit-v1.0" / "engine" / "lanes.py"
    at.write_text(at.read_text().replace("    # wide\n", "    # wide\n    # and wider\n"))
    done = project.run("refresh", "--pin", "v1.0")
    assert done.code == 0, done.text


def test_a_conflict_waits_as_any_and_says_how_it_stood(carried: SmallProject) -> None:
    there = carried.at / "sources" / "v2.0" / "engine" / "lanes.py"
    there.write_text(there.read_text().replace("    return 9\n", "    return nine()\n"))
    for path in (carried.at / "series" / "v2.0").iterdir():
        path.unlink()
    assert carried.run(*TO).code == 1
    tree(carried).write_text(settled(tree(carried).read_text(), "    return 90\n"))
    assert carried.run("rebase", "--continue").code == 0
    before = patches(carried)
    edit(carried, "later.patch", ("+    return 90", "+    return 91"))
    done = carried.run(*TO, "--again", "later")
    assert done.code == 1, done.text
    assert "how it stands there so far: patchkit show later.patch --pin v2.0" in done.out
    assert patches(carried) == before
    tree(carried).write_text(settled(tree(carried).read_text(), "    return 91\n"))
    done = carried.run("rebase", "--continue")
    assert done.code == 0, done.text
    assert "+    return 91\n" in patches(carried)["later.patch"]
    # Of the header alone, the conflict is the one that was settled.
    edit(carried, "later.patch", ("Why.", "Why: lane 9."))
    done = carried.run(*TO, "--again", "later")
    assert "a settled conflict of this kind was found" in done.out
    assert "  +    return 91" in done.out
    done = carried.run("rebase", "--continue")
    assert done.code == 0, done.text
    assert "Why: lane 9.\n" in patches(carried)["later.patch"]
    assert carried.run("check").code == 0


def settled(text: str, line: str) -> str:
    """The text with `line` in place of the conflict."""
    start, end = text.index("<<<<<<< v2.0\n"), text.index(">>>>>>> later.patch\n")
    ours = text[start:end].partition("\n")[2].partition("||||||| ")[0]
    kept = ours.replace("    return nine()\n", line)
    return text[:start] + kept + text[end + len(">>>>>>> later.patch\n") :]


def test_a_patch_that_has_another_name_there_keeps_it(carried: SmallProject) -> None:
    assert carried.run("rename", "later", "last", "--pin", "v2.0").code == 0
    edit(carried, "later.patch", ("+    return 90", "+    return 91"))
    done = carried.run(*TO, "--again", "later")
    assert done.code == 0, done.text
    found = patches(carried)
    assert "later.patch" not in found
    assert "+    return 91\n" in found["last.patch"]
    assert "Rebased-From: v1.0/later.patch\n" in found["last.patch"]
    assert carried.run("check").code == 0


def test_what_the_release_takes_meanwhile_goes_with_a_reason(carried: SmallProject) -> None:
    there = carried.at / "sources" / "v2.0" / "setup.py"
    there.write_text(there.read_text() + "# end\n")
    assert carried.run("lock", "--pin", "v2.0").code == 0
    # The edited patch does what v2.0 has: nothing of it is left there.
    carried.edited("ends", "setup.py", "setup()\n", "setup()\n# last\n", "wide")
    assert carried.run("lock", "--pin", "v1.0").code == 0
    assert carried.run(*TO, "--new").code == 1
    assert carried.run("rebase", "--skip", "ends").code == 0
    edit(carried, "ends.patch", ("+# last", "+# end"))
    done = carried.run(*TO, "--again", "ends")
    assert done.code == 0, done.text
    assert lines(carried)[-1] == "# ends.patch: not on v2.0: upstreamed in v2.0"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--again", "nothing"], 2, "nothing is not among the patches of v1.0"),
        (["--again", "deeper"], 2, "deeper.patch is not on v2.0: not on v2.0: no use"),
    ],
)
def test_what_cannot_be_carried_again_is_named(
    carried: SmallProject, words: list[str], code: int, said: str
) -> None:
    for path in (carried.at / "series" / "v2.0").iterdir():
        path.unlink()
    assert carried.run(*TO, "--drop", "deeper", "--why", "no use").code == 0
    done = carried.run(*TO, *words)
    assert (done.code, said in done.err) == (code, True), done.text


def test_a_release_without_a_series_has_nothing_to_carry_again(carried: SmallProject) -> None:
    release(carried, "v3.0", {})
    done = carried.run("rebase", "--pin", "v2.0", "--onto", "v3.0", "--again", "later")
    assert (done.code, "--again: v3.0 has no series yet" in done.err) == (2, True), done.text


def test_the_plan_is_of_those_only_and_new_ones_come_where_asked(carried: SmallProject) -> None:
    carried.edited("steps", "engine/plan.py", "STEPS = 4\n", "STEPS = 5\n")
    assert carried.run("lock", "--pin", "v1.0").code == 0

    def planned(*words: str) -> list[str]:
        body = json.loads(carried.run(*TO, *words, "--plan", "--json").out)
        return [p["patch"] for p in body["plan"][-1]["patches"] if p["text"] != "stands"]

    assert planned("--again", "later") == ["later.patch"]
    assert planned("--again", "later", "--new") == ["later.patch", "steps.patch"]
    assert planned("--again", "steps") == ["steps.patch"]


def test_refresh_names_the_command_where_a_patch_was_carried(carried: SmallProject) -> None:
    done = carried.run("edit", "later", "--pin", "v1.0")
    assert done.code == 0, done.text
    at = carried.at / "build" / "edit-v1.0" / "engine" / "lanes.py"
    at.write_text(at.read_text().replace("    return 90\n", "    return 91\n"))
    done = carried.run("refresh", "--pin", "v1.0")
    said = "v2.0 has it as it was: patchkit rebase --pin v1.0 --onto v2.0 --again later.patch"
    assert done.out.splitlines()[-1] == said
    assert carried.run(*said.split("patchkit ")[1].split()).code == 0
    assert "+    return 91\n" in patches(carried)["later.patch"]
    assert "has it as it was" not in carried.run("refresh", "--pin", "v1.0").out


def test_what_a_rebase_is_begun_with_cannot_be_said_later(carried: SmallProject) -> None:
    there = carried.at / "sources" / "v2.0" / "engine" / "lanes.py"
    there.write_text(there.read_text().replace("    return 5\n", "    return five()\n"))
    assert carried.run("lock", "--pin", "v2.0").code == 0
    carried.edited("fives", "engine/lanes.py", "    return 5\n", "    return 55\n")
    assert carried.run("lock", "--pin", "v1.0").code == 0
    assert carried.run(*TO, "--new").code == 1
    for words in (["--again", "later"], ["--direct"]):
        done = carried.run("rebase", "--continue", *words)
        assert (done.code, f"{words[0]}: the rebase under way" in done.err) == (2, True), done.text
    assert "holds a conflict marker" in carried.run("rebase", "--continue", "--new").err
