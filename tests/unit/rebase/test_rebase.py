"""A series carried over releases: merged three-way, conflicts kept, the look-alike not taken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import SmallProject


@pytest.fixture
def releases(locked: SmallProject) -> SmallProject:
    """The locked project with its source under sources/v1.0, and room for further releases."""
    sources = locked.at / "sources"
    sources.mkdir()
    shutil.move(str(locked.base), str(sources / "v1.0"))
    pins = locked.at / "pins.toml"
    text = pins.read_text().replace(
        'package = "engine"\n', 'package = "engine"\nsource = "sources/{pin}"\n'
    )
    pins.write_text(text)
    return SmallProject(locked.at, sources / "v1.0")


def release(project: SmallProject, name: str, edits: dict[str, tuple[str, str] | None]) -> None:
    """A release made of v1.0 by edits (old, new) of files; None deletes."""
    at = project.at / "sources" / name
    shutil.copytree(project.at / "sources" / "v1.0", at)
    for path, edit in edits.items():
        if edit is None:
            (at / path).unlink()
            continue
        text = (at / path).read_text()
        assert edit[0] in text
        (at / path).write_text(text.replace(edit[0], edit[1], 1))
    digit = name[1]
    with open(project.at / "pins.toml", "a") as pins:
        pins.write(f'\n[pins."{name}"]\nupstream = "engine"\ncommit = "{digit * 40}"\n')


def states(project: SmallProject, onto: str, *args: str) -> dict[str, str]:
    done = project.run("rebase", "--pin", "v1.0", "--onto", onto, "--plan", "--json", *args)
    body = json.loads(done.out)
    return {p["patch"].removesuffix(".patch"): p["text"] for p in body["plan"][-1]["patches"]}


def test_lines_that_only_moved_change_only_numbers(releases: SmallProject) -> None:
    release(releases, "v2.0", {"engine/lanes.py": ("def lane_0", "# a\n# b\n# c\ndef lane_0")})
    assert states(releases, "v2.0") == {"deeper": "clean", "wider": "clean", "later": "clean"}
    done = releases.run("rebase", "--pin", "v1.0", "--onto", "v2.0", "--date", "2031-02-03")
    assert done.code == 0, done.text
    new = releases.at / "series" / "v2.0"
    old_lines = (releases.series / "later.patch").read_text().splitlines()
    lines = (new / "later.patch").read_text().splitlines()
    kept = [line for line in lines if not line.startswith("Rebased-From: ")]
    assert "Rebased-From: v1.0/later.patch" in lines
    different = [a for a, b in zip(old_lines, kept, strict=True) if a != b]
    assert {line.split()[0] for line in different} == {"Last-Update:", "index", "@@"}
    assert releases.run("check", "--pin", "v2.0").code == 0
    tree = releases.run("apply", "--pin", "v2.0", "--all", "--to", str(releases.at / "out"))
    assert tree.code == 0, tree.text
    text = (releases.at / "out" / "engine" / "lanes.py").read_text()
    assert "# c\ndef lane_0" in text
    assert "return 90" in text
    assert releases.run("check").code == 0  # the old series is untouched


def test_what_a_release_between_took_is_dropped(releases: SmallProject) -> None:
    release(releases, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = 3")})
    release(releases, "v3.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = limit()")})
    assert states(releases, "v3.0")["deeper"] == "dropped"
    assert states(releases, "v3.0", "--direct")["deeper"] == "conflict"
    assert releases.run("rebase", "--pin", "v1.0", "--onto", "v3.0").code == 0
    text = (releases.at / "series" / "v3.0" / "series").read_text()
    assert "# deeper.patch: not on v3.0: upstreamed in v2.0" in text
    assert not (releases.at / "series" / "v3.0" / "deeper.patch").exists()


@pytest.mark.parametrize("name", ["core/lanes.py", "core/tracks.py"])
def test_a_renamed_file_is_followed_and_said(releases: SmallProject, name: str) -> None:
    release(releases, "v2.0", {})
    at = releases.at / "sources" / "v2.0" / "engine"
    (at / "core").mkdir()
    (at / "lanes.py").rename(at / name)
    done = releases.run("rebase", "--pin", "v1.0", "--onto", "v2.0")
    assert done.code == 0, done.text
    assert f"engine/lanes.py is engine/{name} in v2.0" in done.out
    assert f"+++ b/engine/{name}" in (releases.at / "series/v2.0/later.patch").read_text()


def test_a_look_alike_is_a_conflict_where_other_tools_take_it(
    releases: SmallProject, tmp_path: Path
) -> None:
    before, after = "    a = 1\n    b = 1\n    c = 1\n", "    d = 1\n    e = 1\n    f = 1\n"
    twin = f"def twin():\n{before}    y = 2\n{after}    return y\n"
    base = releases.at / "sources" / "v1.0" / "engine" / "twins.py"
    body = f"class One:\n{twin}\n\nPAD = 0\n\n\nclass Two:\n{twin}".replace("def", " def")
    base.write_text(body)
    shutil.rmtree(releases.at / "work", ignore_errors=True)
    edited = SmallProject(releases.at, releases.base)
    first = body.replace("    y = 2\n", "    y = 20\n", 1)
    tree = tmp_path / "edit"
    shutil.copytree(releases.base, tree)
    for line in ("init -q", "add -A", "-c user.name=t -c user.email=t@t commit -qm base"):
        subprocess.run(["git", *line.split()], cwd=tree, check=True)
    (tree / "engine" / "twins.py").write_text(first)
    diff = subprocess.run(
        ["git", "diff"], cwd=tree, capture_output=True, text=True, check=True
    ).stdout
    (releases.series / "twin.patch").write_text(
        "From: A <a@example.invalid>\nDate: Mon, 30 Nov 2026 12:00:00 +0000\n"
        "Subject: twin\n\nWhy.\n---\n" + diff
    )
    (releases.series / "series").write_text("twin.patch\n")
    assert edited.run("lock").code == 0
    gone = body[body.index("class Two") :]
    release(releases, "v2.0", {"engine/twins.py": (body, gone)})
    assert states(releases, "v2.0") == {"twin": "conflict"}
    # The tools that people use put it into the class that is left, and say that all is well.
    theirs = tmp_path / "theirs"
    shutil.copytree(releases.at / "sources" / "v2.0", theirs)
    patch = releases.series / "twin.patch"
    done = subprocess.run(
        ["patch", "-p1", "-F0", "-s", "-i", str(patch)],
        cwd=theirs,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert "y = 20" in (theirs / "engine" / "twins.py").read_text()


def conflicted(project: SmallProject) -> Path:
    release(project, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = limit()")})
    done = project.run("rebase", "--pin", "v1.0", "--onto", "v2.0")
    assert done.code == 1, done.text
    assert "deeper.patch" in done.text
    assert not (project.at / "series" / "v2.0").exists()
    at = project.at / "build" / "rebase-v1.0-v2.0"
    text = (at / "engine" / "plan.py").read_text()
    assert (
        "<<<<<<< v2.0\nDEPTH = limit()\n||||||| before the patch\nDEPTH = 2\n=======\nDEPTH = 3\n"
        in text
    )
    return at


def test_a_conflict_waits_and_goes_on(releases: SmallProject) -> None:
    at = conflicted(releases)
    again = releases.run("rebase", "--pin", "v1.0", "--onto", "v2.0")
    assert again.code == 1
    assert "under way" in again.err
    early = releases.run("rebase", "--continue")
    assert early.code == 1
    assert "conflict marker" in early.err
    assert "deeper.patch waits" in releases.run("rebase", "status").out
    (at / "engine" / "plan.py").write_text("STEPS = 4\nWIDTH = 8\nDEPTH = limit() + 1\n")
    done = releases.run("rebase", "--continue")
    assert done.code == 0, done.text
    assert "+DEPTH = limit() + 1" in (releases.at / "series/v2.0/deeper.patch").read_text()
    assert releases.run("check", "--pin", "v2.0").code == 0
    assert releases.run("rebase", "status").out.startswith("no rebase")
    assert len(list((releases.at / "series" / ".resolutions").iterdir())) == 1


def test_a_settled_conflict_is_offered_again(releases: SmallProject) -> None:
    at = conflicted(releases)
    (at / "engine" / "plan.py").write_text("STEPS = 4\nWIDTH = 8\nDEPTH = 99\n")
    assert releases.run("rebase", "--continue").code == 0
    shutil.rmtree(releases.at / "series" / "v2.0")
    done = releases.run("rebase", "--pin", "v1.0", "--onto", "v2.0")
    assert done.code == 1
    assert "look at it" in done.out
    assert "DEPTH = 99" in (at / "engine" / "plan.py").read_text()
    assert releases.run("rebase", "--continue").code == 0


@pytest.mark.parametrize("option", ["--skip", "--drop"])
def test_a_patch_can_be_left_out(releases: SmallProject, option: str) -> None:
    conflicted(releases)
    done = releases.run("rebase", option, "deeper")
    assert done.code == 0, done.text
    assert "deeper.patch" in (releases.at / "series/v2.0/series").read_text()
    assert not (releases.at / "series/v2.0/deeper.patch").exists()


def test_abort_leaves_every_byte(releases: SmallProject) -> None:
    before = {p: p.read_bytes() for p in releases.at.rglob("series/**/*") if p.is_file()}
    conflicted(releases)
    assert releases.run("rebase", "--abort").code == 0
    after = {p: p.read_bytes() for p in releases.at.rglob("series/**/*") if p.is_file()}
    assert after == before


def test_drift_names_what_is_not_clean(releases: SmallProject) -> None:
    release(releases, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = 3")})
    before = sorted(os.listdir(releases.at))
    done = releases.run("drift", "--pin", "v1.0", "--json")
    body = json.loads(done.out)
    assert done.code == 1
    assert [(f["name"], f["patch"]) for f in body["findings"]] == [("upstreamed", "deeper.patch")]
    assert "key: v1.0/v2.0/deeper.patch/upstreamed" in body["findings"][0]["details"]
    assert sorted(os.listdir(releases.at)) == before


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["--onto", "v9"], 2, "v9"),
        ([], 2, "--onto"),
        (["--continue"], 1, "no rebase is under way"),
        (["--onto", "v1.0"], 2, "same release"),
    ],
)
def test_a_wrong_call_is_named(
    releases: SmallProject, args: list[str], code: int, word: str
) -> None:
    done = releases.run("rebase", *(["--pin", "v1.0"] if "--continue" not in args else []), *args)
    assert done.code == code
    assert word in done.text
    assert "Traceback" not in done.text


def test_a_reason_is_kept_release_after_release(releases: SmallProject) -> None:
    conflicted(releases)
    done = releases.run("rebase", "--drop", "deeper", "--why", "upstream  does it\n elsewhere")
    assert done.code == 0, done.text
    gone = "# deeper.patch: not on v2.0: upstream does it elsewhere"
    assert gone in (releases.at / "series/v2.0/series").read_text().splitlines()
    release(releases, "v3.0", {})
    assert releases.run("rebase", "--pin", "v2.0", "--onto", "v3.0").code == 0
    lines = (releases.at / "series/v3.0/series").read_text().splitlines()
    assert gone in lines
    assert "# Carried from v2.0 by patchkit rebase." in lines


def test_a_reason_without_a_patch_is_refused(releases: SmallProject) -> None:
    conflicted(releases)
    done = releases.run("rebase", "--continue", "--why", "because")
    assert done.code == 2
    assert "--why is of --skip or --drop" in done.text


def test_a_conflict_that_an_earlier_one_brings_names_it(releases: SmallProject) -> None:
    release(releases, "v2.0", {"engine/lanes.py": None, "engine/plan.py": None})
    done = releases.run("drift", "--pin", "v1.0", "--json")
    said = {f["patch"]: " ".join(f["details"]) for f in json.loads(done.out)["findings"]}
    first, *later = [patch for patch in said if "lanes.py" in said[patch]]
    assert "first settle" not in said[first]
    assert later
    for patch in later:
        assert "lanes.py is a file that is gone (first settle" in said[patch]


def test_drift_of_one_patch_is_that_of_all(releases: SmallProject) -> None:
    release(releases, "v2.0", {"engine/plan.py": ("DEPTH = 2", "DEPTH = 3")})
    every = json.loads(releases.run("drift", "--pin", "v1.0", "--json").out)["releases"]
    for name in ("later", "deeper.patch"):
        done = releases.run("drift", name, "--pin", "v1.0", "--json")
        (cell,) = json.loads(done.out)["releases"][0]["patches"]
        assert cell in every[0]["patches"]
        assert cell["patch"].startswith(name.removesuffix(".patch"))
        assert done.code == (0 if name == "later" else 1)
    wrong = releases.run("drift", "nothing", "--pin", "v1.0")
    assert wrong.code == 2
    assert "nothing is not among the patches" in wrong.text


def test_an_inherited_proof_that_changed_is_named_where_it_stands(releases: SmallProject) -> None:
    proof = releases.series / "proofs" / "test_later.py"
    proof.parent.mkdir(exist_ok=True)
    proof.write_text("# as it was\n")
    assert releases.run("lock", "--pin", "v1.0").code == 0
    release(releases, "v2.0", {})
    assert releases.run("rebase", "--pin", "v1.0", "--onto", "v2.0").code == 0
    assert releases.run("check", "--pin", "v2.0").code == 0
    proof.write_text("# another\n")
    done = releases.run("check", "--pin", "v2.0", "--json")
    files = {f["file"] for f in json.loads(done.out)["findings"] if f["name"] == "lock-stale"}
    assert files == {"series/v1.0/proofs/test_later.py"}
