"""A fork's commits become patches, one each; nothing of its repository is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import BASE, SmallProject
from tests.unit.bring.served import Served
from tests.unit.source.githttp import serving as http

PLAN = BASE["engine/plan.py"]


def fork(served: Served) -> list[str]:
    """A branch `mine` with three commits on v1.0, one of them empty."""
    served.git("checkout", "-q", "-b", "mine")
    ids = [
        served.commit(
            "Go deeper\n\nBecause.\n\nDrop-When: v9", engine__plan_py=PLAN.replace("2", "3")
        ),
        served.commit("Nothing"),
        served.commit(
            "Go wider\n\nGuard: wide\n",
            engine__plan_py=PLAN.replace("2", "3").replace("8", "16"),
            tests__test_x_py="x\n",
        ),
    ]
    served.git("checkout", "-q", "main")
    return ids


@pytest.mark.parametrize("far", [False, True])
def test_each_commit_is_a_patch(mine: SmallProject, served: Served, far: bool) -> None:
    ids = fork(served)
    place = served.url if far else str(served.at)
    done = mine.run("import", "--commits", "v1.0..mine", "--from", place, "--exclude", "tests/*")
    # The glob matches nothing of the first commit: said, and nothing is written.
    assert done.code == 1
    assert (mine.series / "series").read_text() == ""
    done = mine.run("import", "--commits", "v1.0..mine", "--from", place)
    assert done.code == 0, done.text
    assert "changes nothing: left out" in done.err
    lines = [x for x in (mine.series / "series").read_text().splitlines() if x[:1] != "#"]
    assert lines == ["go-deeper.patch", "go-wider.patch #+wide"]
    first = (mine.series / "go-deeper.patch").read_text()
    origin = f"{place}, commit {ids[0]}" if far else f"commit {ids[0]}"
    assert f"Origin: other, {origin}\n" in first
    assert "Drop-When: v9\n" in first
    assert "Because." in first
    assert str(served.at) not in first
    assert mine.run("check").code == 0
    whole = mine.at / "whole"
    assert mine.run("apply", "--pin", "v1.0", "--all", "--to", str(whole)).code == 0
    served.git("checkout", "-q", "mine")
    for path in ("engine/plan.py", "tests/test_x.py"):
        assert (whole / path).read_bytes() == (served.at / path).read_bytes()


def test_a_password_of_the_address_is_in_no_header_and_no_message(
    mine: SmallProject, served: Served
) -> None:
    ids = fork(served)
    with http(served.at.parent, "me", "s3cret") as address:
        place = address.replace("//", "//me:s3cret@") + "/engine"
        done = [
            mine.run("import", "--commits", span, "--from", place)
            for span in ("v1.0..nothing", "mine..v1.0", "v1.0..mine")
        ]
    assert [d.code for d in done] == [2, 1, 0], done[-1].text
    assert "s3cret" not in "".join(d.text for d in done)
    first = (mine.series / "go-deeper.patch").read_text()
    assert f"Origin: other, {address}/engine, commit {ids[0]}\n" in first
    assert "s3cret" not in first


def test_a_range_within_a_branch_is_merged_onto_the_pin(mine: SmallProject, served: Served) -> None:
    fork(served)
    done = mine.run("import", "--commits", "mine~2..mine", "--from", str(served.at))
    assert done.code == 1, "the last commit was made where DEPTH is 3, next to WIDTH"
    assert "conflict" in done.err
    served.git("checkout", "-q", "mine")
    served.commit(
        "Far away", engine__lanes_py=BASE["engine/lanes.py"].replace("return 9", "return 90")
    )
    done = mine.run("import", "--commits", "mine^..mine", "--from", str(served.at), "--name", "far")
    assert done.code == 0, done.text
    assert "+    return 90\n" in (mine.series / "far.patch").read_text()


def test_a_merge_in_the_range_is_refused(mine: SmallProject, served: Served) -> None:
    fork(served)
    served.commit("main goes on", other_txt="x\n")
    served.git("checkout", "-q", "mine")
    served.git("merge", "-q", "-m", "merge main", "main")
    done = mine.run("import", "--commits", "v1.0..mine", "--from", str(served.at))
    assert done.code == 1
    assert "not one line" in done.err
    assert "work tree" not in done.err


def test_nothing_of_the_repository_is_run(
    mine: SmallProject, served: Served, tmp_path: Path
) -> None:
    fork(served)
    mark = tmp_path / "ran"
    for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "uploadpack.packObjectsHook"):
        served.git("config", key, f"touch {mark}; true")
    served.git("config", "filter.x.smudge", f"touch {mark}")
    done = mine.run("import", "--commits", "v1.0..mine", "--from", str(served.at))
    assert done.code == 0, done.text
    assert not mark.exists()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--commits", "v1.0"], 2, "go together"),
        (["--commits", "v1.0", "--from", "AT"], 2, "not A..B"),
        (["--commits", "v1.0...mine", "--from", "AT"], 2, "not A..B"),
        (["--commits", "v1.0..none", "--from", "AT"], 2, "has no commit none"),
        (["--commits", "v1.0..main", "--from", "AT"], 1, "no commit in"),
        (["--commits", "v1.0..none", "--from", "URL"], 2, "no branch or tag none"),
        (["--commits", "v1.0..mine", "--from", "/nowhere"], 2, "neither a git repository"),
        (["--commits", "v1.0..mine", "--from", "ext::sh -c x://"], 2, "neither a git repository"),
        (["--commits", "v1.0..mine", "--from", "AT", "--name", "x"], 2, "one patch"),
        (["--commits", "v1.0..mine", "--from", "AT", "--pr", "7"], 2, "exclude each other"),
        (["x.patch", "--from", "AT"], 2, "--from goes with --commits and --pr"),
        (["--pr", "7", "--from", "/nowhere"], 2, "there is no such folder"),
        ([], 2, "a FILE or a DIR is needed"),
    ],
)
def test_a_wrong_command_line_is_told(
    mine: SmallProject, served: Served, args: list[str], code: int, words: str
) -> None:
    fork(served)
    real = [{"AT": str(served.at), "URL": served.url}.get(a, a) for a in args]
    done = mine.run("import", *real)
    assert (done.code, words in done.err) == (code, True), done.text


def test_a_commit_without_a_message_has_its_id_for_a_subject(
    mine: SmallProject, served: Served
) -> None:
    served.git("checkout", "-q", "-b", "bare", "v1.0")
    (served.at / "engine" / "new.py").write_text("1\n")
    served.git("add", "-A")
    served.git("commit", "-q", "--allow-empty-message", "-m", "")
    commit = served.git("rev-parse", "HEAD")[:12]
    done = mine.run("import", "--commits", "v1.0..bare", "--from", str(served.at))
    assert done.code == 0, done.text
    assert "the commit has no message" in done.out
    assert "no subject" not in done.out
    assert f"Subject: Commit {commit}\n" in (mine.series / f"commit-{commit}.patch").read_text()


def test_a_conflict_that_follows_another_names_that_one(mine: SmallProject, served: Served) -> None:
    served.commit("Other", engine__plan_py="X = 1\n")
    served.git("checkout", "-q", "-b", "after")
    served.commit("First", engine__plan_py="X = 2\n")
    served.commit("Second", engine__plan_py="X = 3\n")
    done = mine.run("import", "--commits", "main..after", "--from", str(served.at))
    assert done.code == 1
    first, second = [x for x in done.err.splitlines() if x.startswith("error: conflict")]
    assert "first.patch" in first
    assert "first settle" not in first
    assert "(first settle first.patch, which changes it, too)" in second


def test_a_merge_in_the_range_is_named(mine: SmallProject, served: Served) -> None:
    served.git("checkout", "-q", "-b", "side", "v1.0")
    served.commit("Side", engine__new_py="1\n")
    served.git("checkout", "-q", "main")
    served.commit("Main", engine__other_py="1\n")
    served.git("merge", "-q", "--no-ff", "-m", "Both", "side")
    merge = served.git("rev-parse", "HEAD")[:12]
    done = mine.run("import", "--commits", "v1.0..main", "--from", str(served.at))
    assert done.code == 1
    assert f"found:    {merge}: a merge" in done.err
