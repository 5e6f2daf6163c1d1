"""Loose patches on installed packages: whose they are, what is recorded, how they go back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchkit.engine.chain import Step
from patchkit.engine.parse import parse
from patchkit.engine.rule import LOOSE, Allow
from patchkit.errors import Refused
from patchkit.target.dist_info import patched
from patchkit.target.installed import Done, apply_loose, apply_pins, revert
from patchkit.target.installed_check import status
from tests.unit.target.installing import BASE, Site, numbered, two_patches

INFO = "engine-1.0.dist-info"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site-packages")
    made.install()
    return made


def step(data: bytes, name: str = "fix.patch", **more: object) -> Step:
    return Step(parse(data, name), **{"strip": None, **more})  # type: ignore[arg-type]


def edit(path: str, *, old: str = "line 10", new: str = "ten", at: int = 10) -> bytes:
    """A one-line edit with a line of context on either side."""
    return (
        f"--- {path}\n+++ {path}\n@@ -{at - 1},3 +{at - 1},3 @@\n"
        f" line {at - 1}\n-{old}\n+{new}\n line {at + 1}\n"
    ).encode()


def run(site: Site, *steps: Step, **more: object) -> Done:
    return apply_loose(site.sites, list(steps), LOOSE, **more)  # type: ignore[arg-type]


def test_apply_again_and_back(site: Site) -> None:
    before = site.look()
    steps = two_patches().loose()
    done = run(site, *steps)
    assert done.ok, done.findings
    assert done.written
    after = site.look()
    again = run(site, *steps)
    assert again.ok
    assert [o.state for o in again.plans[0].outcomes] == ["already-applied"] * 2
    assert site.look() == after
    assert revert(site.sites).written
    assert site.look() == before


def test_a_second_patch_is_put_on_the_first_and_both_go_back(site: Site) -> None:
    before = site.look()
    run(site, *two_patches().loose("edit.patch"))
    done = run(site, *two_patches().loose())
    assert [o.state for o in done.plans[0].outcomes] == ["already-applied", "applied"]
    state = json.loads((site.at / INFO / "patchkit.json").read_text())
    assert [p["name"] for p in state["patches"]] == ["edit.patch", "files.patch"]
    assert revert(site.sites).written
    assert site.look() == before


def test_a_patch_that_is_there_already_is_recorded_and_takes_nothing_back(site: Site) -> None:
    before = site.look()
    run(site, step(edit("a/engine/a.py"), "one.patch"))
    same = step(b"Subject: the same, sent again\n\n" + edit("a/engine/a.py"), "again.patch")
    done = run(site, same, step(edit("a/engine/b.py"), "two.patch"))
    assert [o.state for o in done.plans[0].outcomes] == ["already-applied", "applied"]
    state = json.loads((site.at / INFO / "patchkit.json").read_text())
    assert [(p["name"], p["sections"]) for p in state["patches"]] == [
        ("one.patch", [0]), ("again.patch", []), ("two.patch", [0])
    ]  # fmt: skip
    after = site.look()
    (found,) = [status(dist) for dist in patched(site.sites)]
    assert found.ok, found.findings
    assert "one.patch, again.patch, two.patch" in found.words
    assert not run(site, same).written
    assert site.look() == after
    run(site, step(edit("a/engine/a.py", old="line 20", new="twenty", at=20), "three.patch"))
    assert revert(site.sites).written
    assert site.look() == before


def test_what_the_package_had_before_stays_when_its_patch_is_taken_back(tmp_path: Path) -> None:
    site = Site(tmp_path / "site-packages")
    site.install({**BASE, "engine/a.py": numbered(40, l10="ten")})
    before = site.look()
    done = run(
        site, step(edit("a/engine/a.py"), "had.patch"), step(edit("a/engine/b.py"), "two.patch")
    )
    assert done.written
    state = json.loads((site.at / INFO / "patchkit.json").read_text())
    assert [p["name"] for p in state["patches"]] == ["had.patch", "two.patch"]
    assert revert(site.sites).written
    assert site.look() == before


def test_two_patches_of_one_name_are_told_apart(site: Site) -> None:
    before = site.look()
    run(site, step(edit("a/engine/a.py")))
    run(site, step(edit("a/engine/b.py")))
    state = json.loads((site.at / INFO / "patchkit.json").read_text())
    assert [p["name"] for p in state["patches"]] == ["fix.patch", "fix-2.patch"]
    revert(site.sites)
    assert site.look() == before


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("a/engine/a.py", (1, "")),
        ("engine/a.py", (0, "")),
        ("a/a.py", (1, "engine")),
        ("a/src/engine/a.py", (2, "")),
        ("/usr/lib/python3/dist-packages/engine/a.py", (5, "")),
    ],
)
def test_the_root_is_found(site: Site, path: str, root: tuple[int, str]) -> None:
    before = site.look()
    done = run(site, step(edit(path)))
    assert done.ok, done.findings
    (outcome,) = done.plans[0].outcomes
    assert (outcome.root.strip, outcome.root.directory) == root
    assert revert(site.sites).written
    assert site.look() == before


def test_an_offset_is_taken_back_from_where_it_was_put(site: Site) -> None:
    before = site.look()
    # The lines repeat nowhere, so line 10's hunk, stated at 25, has one place only.
    text = edit("a/engine/a.py").replace(b"@@ -9,3 +9,3 @@", b"@@ -25,3 +25,3 @@")
    done = run(site, step(text))
    assert done.ok, done.findings
    assert [p.offset for p in done.plans[0].outcomes[0].places] == [-16]
    assert revert(site.sites).written
    assert site.look() == before


def test_fuzz_allowed_by_name_is_taken_back_too(site: Site) -> None:
    before = site.look()
    text = (
        b"--- a/engine/a.py\n+++ b/engine/a.py\n@@ -7,7 +7,7 @@\n line seven\n line 8\n line 9\n"
        b"-line 10\n+ten\n line 11\n line 12\n line 13\n"
    )
    done = run(site, step(text, allow=Allow(fuzz=1)))
    assert done.ok, done.findings
    state = json.loads((site.at / INFO / "patchkit.json").read_text())
    assert list(state["kept"]) == ["engine/a.py"], "the patch alone does not give the file back"
    run(site, step(edit("a/engine/b.py"), "two.patch"))
    assert revert(site.sites).written
    assert site.look() == before


def test_line_ends_taken_from_the_target_are_taken_back(tmp_path: Path) -> None:
    site = Site(tmp_path / "s")
    site.install({**BASE, "engine/a.py": numbered(60).replace(b"\n", b"\r\n")})
    before = site.look()
    done = run(site, step(edit("a/engine/a.py"), allow=Allow(line_endings="target")))
    assert done.ok, done.findings
    assert revert(site.sites).written
    assert site.look() == before


def test_one_patch_for_two_packages_is_one_transaction(site: Site) -> None:
    site.install({"other/x.py": numbered(20)}, "other", "2.0")
    before = site.look()
    patch = edit("a/engine/a.py") + edit("a/other/x.py")
    done = run(site, step(patch))
    assert done.ok, done.findings
    assert sorted(p.dist.name for p in done.plans) == ["engine", "other"]
    assert (site.at / "other-2.0.dist-info/patchkit.json").is_file()
    assert run(site, step(patch)).changed == ()
    assert revert(site.sites).written
    assert site.look() == before


def test_two_patches_for_two_packages_and_one_fails_nothing_is_written(site: Site) -> None:
    site.install({"other/x.py": numbered(20)}, "other", "2.0")
    before = site.look()
    done = run(
        site,
        step(edit("a/engine/a.py"), "one.patch"),
        step(edit("a/other/x.py", old="line ten"), "two.patch"),
    )
    assert not done.ok
    assert site.look() == before


def test_a_file_made_inside_one_of_two_packages_with_that_name(site: Site) -> None:
    site.install({"other/a.py": b"quite another\n" * 30}, "other", "2.0")
    done = run(site, step(edit("a/a.py")))
    assert done.ok, done.findings
    assert [p.dist.name for p in done.plans] == ["engine"]


def test_a_patch_that_fits_two_packages_is_ambiguous(site: Site) -> None:
    site.install({"other/a.py": numbered(60)}, "other", "2.0")
    with pytest.raises(Refused) as refusal:
        run(site, step(edit("a/a.py")))
    (finding,) = refusal.value.findings
    assert finding.name == "ambiguous"
    assert "--directory engine" in finding.next
    assert run(site, step(edit("a/a.py"), directory="other")).plans[0].dist.name == "other"


def test_a_patch_for_nobody_is_refused_with_its_names(site: Site) -> None:
    with pytest.raises(Refused) as refusal:
        run(site, step(edit("a/nowhere/x.py")))
    (finding,) = refusal.value.findings
    assert finding.name == "missing-target"
    assert "nowhere/x.py" in finding.expected


def test_a_series_is_not_mixed_with_loose_patches(site: Site) -> None:
    apply_pins(site.sites, [two_patches().packet()])
    before = site.look()
    with pytest.raises(Refused) as refusal:
        run(site, step(edit("a/engine/b.py")))
    assert refusal.value.findings[0].name == "unsupported"
    assert site.look() == before
    revert(site.sites)
    run(site, step(edit("a/engine/b.py")))
    with pytest.raises(Refused) as refusal:
        apply_pins(site.sites, [two_patches().packet()])
    assert "revert" in refusal.value.findings[0].next


def test_only_new_files_find_their_package_by_folder(site: Site) -> None:
    before = site.look()
    text = (
        b"diff --git a/engine/sub/n.py b/engine/sub/n.py\nnew file mode 100644\n"
        b"--- /dev/null\n+++ b/engine/sub/n.py\n@@ -0,0 +1 @@\n+x\n"
    )
    assert run(site, step(text)).ok
    assert site.digests()["engine/sub/n.py"].endswith(",2")
    assert revert(site.sites).ok
    assert site.look() == before


def test_a_name_that_leaves_the_site_is_refused(site: Site) -> None:
    before = site.look()
    for name in ("a/engine/../../evil.py", "../../engine/a.py"):
        try:
            done = run(site, step(edit(name)))
        except Refused:
            pass
        else:
            assert not done.ok
    assert site.look() == before


def test_a_new_module_beside_the_package_is_left_out(site: Site) -> None:
    text = edit("a/engine/a.py") + (
        b"diff --git a/sitecustomize.py b/sitecustomize.py\nnew file mode 100644\n"
        b"--- /dev/null\n+++ b/sitecustomize.py\n@@ -0,0 +1 @@\n+import os\n"
    )
    done = run(site, step(text))
    assert done.plans[0].left_out == ("sitecustomize.py",)
    assert not (site.at / "sitecustomize.py").exists()


def test_exclude_and_renames(site: Site) -> None:
    before = site.look()
    text = edit("a/engine/b.py") + (
        b"diff --git a/engine/old.py b/engine/fresh.py\nsimilarity index 100%\n"
        b"rename from engine/old.py\nrename to engine/fresh.py\n"
    )
    done = run(site, step(text), exclude=["engine/b.py"])
    assert done.ok, done.findings
    assert (site.at / "engine/fresh.py").is_file()
    assert (site.at / "engine/b.py").read_bytes() == BASE["engine/b.py"]
    assert revert(site.sites).written
    assert site.look() == before
