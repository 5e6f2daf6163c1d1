"""A pin's series on an installed package, and back again."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from patchkit.engine.model import EXECUTABLE, File
from patchkit.errors import Refused
from patchkit.target.installed import apply_pins, revert
from tests.unit.target.installing import BASE, Series, Site, numbered, two_patches

INFO = "engine-1.0.dist-info"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site-packages")
    made.install()
    return made


def test_apply_writes_files_record_and_state_and_revert_gives_all_back(site: Site) -> None:
    before = site.look()
    packet = two_patches().packet()
    done = apply_pins(site.sites, [packet])
    assert done.ok, done.findings
    assert done.written
    assert (site.at / "engine/a.py").read_bytes() == numbered(
        60, l10="ten", l30="thirty", l50="fifty"
    )
    assert (site.at / "engine/new/module.py").is_file()
    assert not (site.at / "engine/old.py").exists()
    state = json.loads((site.at / INFO / "patchkit.json").read_text())
    assert (state["made_by"], state["kind"], state["stack"]) == ("in-place", "series", "default")
    assert [o.state for o in done.plans[0].outcomes] == ["applied", "applied"]
    back = revert(site.sites)
    assert back.ok
    assert back.written
    assert site.look() == before


def test_record_lists_exactly_what_is_there(site: Site) -> None:
    apply_pins(site.sites, [two_patches().packet()])
    with open(site.at / INFO / "RECORD", newline="") as file:
        rows = list(csv.reader(file))
    table = {path: (digest, size) for path, digest, size in rows}
    assert len(table) == len(rows)
    on_disk = {p for p in site.look() if not p.endswith("/")}
    assert set(table) == on_disk
    from patchkit.target.record_csv import digest_of

    for path, (digest, size) in table.items():
        data = (site.at / path).read_bytes()
        assert path.endswith("RECORD") or (digest, size) == (digest_of(data), str(len(data)))


def test_again_is_already_applied_and_writes_nothing(site: Site) -> None:
    packet = two_patches().packet()
    apply_pins(site.sites, [packet])
    stamps = {p: p.stat().st_mtime_ns for p in site.at.rglob("*")}
    again = apply_pins(site.sites, [packet])
    assert again.ok
    assert not again.written
    assert [o.state for o in again.plans[0].outcomes] == ["already-applied"] * 2
    assert {p: p.stat().st_mtime_ns for p in site.at.rglob("*")} == stamps


def test_check_only_writes_nothing(site: Site) -> None:
    before = site.look()
    done = apply_pins(site.sites, [two_patches().packet()], dry=True)
    assert done.ok
    assert "engine/a.py" in done.changed
    assert site.look() == before


def stacked() -> Series:
    return (
        two_patches()
        .add("fast.patch", {"engine/b.py": numbered(40, l5="fast\nfaster")}, "fast")
        .add("last.patch", {"engine/b.py": numbered(40, l5="fast\nfaster", l35="last")})
        .add("slow.patch", {"engine/data/table.json": b'{"slow": 1}\n'}, "slow")
    )


def test_another_stack_goes_through_the_base_in_one_transaction(site: Site) -> None:
    before = site.look()
    stacks = {"fast": ["fast"], "slow": ["slow"]}
    series = stacked()
    fresh = Site(site.at.parent / "other")
    fresh.install()
    apply_pins(fresh.sites, [series.packet("slow", stacks)])
    assert apply_pins(site.sites, [series.packet("fast", stacks)]).ok
    done = apply_pins(site.sites, [series.packet("slow", stacks)])
    assert done.ok, done.findings
    assert site.look() == fresh.look()
    assert (site.at / "engine/b.py").read_bytes() == numbered(40, l35="last")
    assert revert(site.sites).ok
    assert site.look() == before


def test_a_stack_is_placed_by_the_arithmetic_of_the_whole_series(site: Site) -> None:
    apply_pins(site.sites, [stacked().packet()])
    assert (site.at / "engine/b.py").read_bytes() == numbered(40, l35="last")
    assert revert(site.sites).ok


def test_a_newer_series_replaces_the_older_one(site: Site) -> None:
    before = site.look()
    apply_pins(site.sites, [two_patches().packet()])
    newer = Series().add("edit.patch", {"engine/b.py": numbered(40, l1="first")})
    done = apply_pins(site.sites, [newer.packet()])
    assert done.ok, done.findings
    assert (site.at / "engine/a.py").read_bytes() == BASE["engine/a.py"]
    assert (site.at / "engine/old.py").is_file()
    assert not (site.at / "engine/new").exists()
    assert revert(site.sites).ok
    assert site.look() == before


def test_the_whole_series_is_a_selection_too(site: Site) -> None:
    done = apply_pins(site.sites, [stacked().packet(None)])
    assert done.ok, done.findings
    assert json.loads((site.at / INFO / "patchkit.json").read_text())["stack"] is None


def test_an_empty_stack_needs_no_write(site: Site) -> None:
    before = site.look()
    series = Series().add("x.patch", {"engine/b.py": numbered(40, l1="x")}, "x")
    done = apply_pins(site.sites, [series.packet()])
    assert done.ok
    assert not done.written
    assert site.look() == before


def test_an_empty_stack_over_a_patched_package_is_the_base_again(site: Site) -> None:
    series = Series().add("x.patch", {"engine/b.py": numbered(40, l1="x")}, "x")
    apply_pins(site.sites, [series.packet(None)])
    assert apply_pins(site.sites, [series.packet()]).written
    assert (site.at / "engine/b.py").read_bytes() == BASE["engine/b.py"]


def test_another_release_is_a_pin_mismatch(site: Site) -> None:
    done = apply_pins(site.sites, [two_patches().packet(version="1.1")])
    assert [f.name for f in done.findings] == ["pin-mismatch"]
    assert (done.findings[0].expected, done.findings[0].found) == ("version 1.1", "version 1.0")


def test_a_local_version_label_is_the_same_release(tmp_path: Path) -> None:
    site = Site(tmp_path / "s")
    site.install(version="1.0+cu130")
    assert apply_pins(site.sites, [two_patches().packet()]).ok


def test_another_commit_is_a_pin_mismatch(tmp_path: Path) -> None:
    site = Site(tmp_path / "s")
    site.install({**BASE, "engine/_version.py": b"commit_id = 'gdeadbeef'\n"})
    done = apply_pins(site.sites, [two_patches().packet()])
    assert [f.name for f in done.findings] == ["pin-mismatch"]
    assert "deadbeef" in done.findings[0].found


def test_a_hand_edit_of_a_touched_file_is_refused_by_record(site: Site) -> None:
    (site.at / "engine/a.py").write_bytes(numbered(60, l60="mine"))
    before = site.look()
    done = apply_pins(site.sites, [two_patches().packet()])
    assert [(f.name, f.where.file) for f in done.findings] == [("foreign-edit", "engine/a.py")]
    assert "RECORD" in done.findings[0].expected
    assert site.look() == before


def test_a_package_built_from_other_sources_is_refused_by_the_lock(tmp_path: Path) -> None:
    site = Site(tmp_path / "s")
    site.install({**BASE, "engine/a.py": numbered(60, l60="theirs")})
    done = apply_pins(site.sites, [two_patches().packet()])
    assert [(f.name, f.where.file) for f in done.findings] == [("foreign-edit", "engine/a.py")]
    assert "RECORD agrees" in done.findings[0].message


def test_a_hand_edit_elsewhere_is_a_note(site: Site) -> None:
    (site.at / "engine/b.py").write_bytes(numbered(40, l1="LINE 1"))
    done = apply_pins(site.sites, [two_patches().packet()])
    assert done.written
    assert [(f.name, f.note) for f in done.findings] == [("foreign-edit", True)]
    assert "engine/b.py" in done.findings[0].found


def test_a_hand_edit_after_patching_stops_revert_and_apply(site: Site) -> None:
    apply_pins(site.sites, [two_patches().packet()])
    with open(site.at / "engine/a.py", "ab") as file:
        file.write(b"mine\n")
    before = site.look()
    for done in (revert(site.sites), apply_pins(site.sites, [two_patches().packet()])):
        assert [(f.name, f.where.file) for f in done.findings] == [("foreign-edit", "engine/a.py")]
    assert site.look() == before


def test_parts_outside_the_package_are_left_out_and_listed(site: Site) -> None:
    series = two_patches().add(
        "more.patch",
        {"tests/test_a.py": b"x\n", "docs/a.md": b"y\n", "engine/b.py": numbered(40, l2="two")},
    )
    done = apply_pins(site.sites, [series.packet()])
    assert done.ok, done.findings
    assert done.plans[0].left_out == ("docs/a.md", "tests/test_a.py")
    assert not (site.at / "tests").exists()
    before = site.look()
    assert not apply_pins(site.sites, [series.packet()]).written
    assert site.look() == before
    assert revert(site.sites).ok


def test_exclude_leaves_out_more(site: Site) -> None:
    series = two_patches()
    done = apply_pins(site.sites, [series.packet(exclude=("engine/sub/*",))])
    assert done.ok, done.findings
    assert (site.at / "engine/sub/c.py").read_bytes() == BASE["engine/sub/c.py"]
    assert done.plans[0].left_out == ("engine/sub/c.py",)
    assert apply_pins(site.sites, [series.packet()]).written, "without --exclude it is another"
    assert revert(site.sites).ok


def test_a_patch_of_which_nothing_is_left_is_a_no_op(site: Site) -> None:
    series = two_patches().add("tests.patch", {"tests/test_a.py": b"x\n"})
    done = apply_pins(site.sites, [series.packet()])
    assert [(f.name, f.where.patch) for f in done.findings] == [("no-op", "tests.patch")]
    assert not done.written


@pytest.mark.parametrize("path", ["csrc/topk.cu", "setup.py", "engine/kernel.cu", "CMakeLists.txt"])
def test_native_sources_need_a_build(site: Site, path: str) -> None:
    series = two_patches().add("k.patch", {path: b"x\n", "engine/b.py": numbered(40, l2="two")})
    done = apply_pins(site.sites, [series.packet()])
    assert [f.name for f in done.findings] == ["needs-build"]
    assert path in done.findings[0].message
    assert not done.written


def test_a_source_that_the_package_ships_is_data(tmp_path: Path) -> None:
    base = {**BASE, "engine/data/jit.cu": b"old\n"}
    site = Site(tmp_path / "s")
    site.install(base)
    series = Series(base).add("jit.patch", {"engine/data/jit.cu": b"new\n"})
    assert apply_pins(site.sites, [series.packet()]).ok


def test_a_package_below_src(site: Site) -> None:
    before = site.look()
    series = Series(root="src").add(
        "a.patch", {"src/engine/a.py": numbered(60, l5="five"), "src/engine/n.py": b"n\n"}
    )
    done = apply_pins(site.sites, [series.packet()])
    assert done.ok, done.findings
    assert (site.at / "engine/n.py").is_file()
    assert not apply_pins(site.sites, [series.packet()]).written
    assert revert(site.sites).ok
    assert site.look() == before


@pytest.mark.parametrize("bits", [0o664, 0o600, 0o640])
def test_modes_stay_as_the_installer_chose_them(site: Site, bits: int) -> None:
    for path in ("engine/a.py", "engine/old.py", f"{INFO}/RECORD"):
        (site.at / path).chmod(bits)
    for folder in ("engine", "engine/sub", INFO):
        (site.at / folder).chmod(0o775)
    before = site.look()
    apply_pins(site.sites, [two_patches().packet()])
    assert (site.at / "engine/a.py").stat().st_mode & 0o777 == bits
    revert(site.sites)
    assert site.look() == before


def test_a_changed_mode_is_taken_back(site: Site) -> None:
    (site.at / "engine/b.py").chmod(0o664)
    before = site.look()
    series = Series().add("m.patch", {"engine/b.py": File(BASE["engine/b.py"], EXECUTABLE)})
    done = apply_pins(site.sites, [series.packet()])
    assert done.ok, done.findings
    assert (site.at / "engine/b.py").stat().st_mode & 0o777 == 0o775
    assert revert(site.sites).ok
    assert site.look() == before


def test_executable_files_of_an_installer_that_drops_modes(site: Site) -> None:
    (site.at / "engine/_C.abi3.so").chmod(0o644)
    (site.at / "engine/a.py").chmod(0o755)
    before = site.look()
    assert apply_pins(site.sites, [two_patches().packet()]).ok
    assert (site.at / "engine/a.py").stat().st_mode & 0o777 == 0o755
    assert revert(site.sites).ok
    assert site.look() == before


def test_a_deleted_folder_comes_back_with_its_bits(site: Site) -> None:
    (site.at / "engine/sub").chmod(0o2775)
    before = site.look()
    series = Series().add("d.patch", {"engine/sub/c.py": None})
    assert apply_pins(site.sites, [series.packet()]).ok
    assert not (site.at / "engine/sub").exists()
    assert revert(site.sites).ok
    after = site.look()
    assert after.pop("engine/sub/")[0] & 0o777 == 0o775
    del before["engine/sub/"]
    assert after == before


def test_hard_links_are_never_written_through(site: Site) -> None:
    cache = site.at.parent / "cache"
    cache.mkdir()
    for number, path in enumerate(("engine/a.py", "engine/old.py", f"{INFO}/RECORD")):
        os.link(site.at / path, cache / str(number))
    old = [p.read_bytes() for p in sorted(cache.iterdir())]
    apply_pins(site.sites, [two_patches().packet()])
    revert(site.sites)
    assert [p.read_bytes() for p in sorted(cache.iterdir())] == old


def test_stale_bytecode_of_touched_modules_goes_and_other_stays(site: Site) -> None:
    cache = site.at / "engine/__pycache__"
    cache.mkdir()
    names = ["a.cpython-310.pyc", "a.cpython-312.opt-2.pyc", "b.cpython-312.pyc", "ab.x.pyc"]
    for name in names:
        (cache / name).write_bytes(b"old")
    (site.at / "engine/old.pyc").write_bytes(b"old")
    done = apply_pins(site.sites, [two_patches().packet()])
    assert sorted(p.name for p in cache.iterdir()) == ["ab.x.pyc", "b.cpython-312.pyc"]
    assert not (site.at / "engine/old.pyc").exists()
    assert len(done.bytecode) == 3
    (cache / "a.cpython-310.pyc").write_bytes(b"new")
    revert(site.sites)
    assert not (cache / "a.cpython-310.pyc").exists()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_record_keeps_its_line_ends_order_and_foreign_rows(tmp_path: Path, end: str) -> None:
    site = Site(tmp_path / "s")
    more = ['"engine/od,d.txt",,', "../../bin/engine,sha256=x,1", "engine/__pycache__/a.pyc,,"]
    info = site.install(end=end, more=more)
    before = (info / "RECORD").read_bytes()
    apply_pins(site.sites, [two_patches().packet()])
    after = (info / "RECORD").read_bytes()
    assert after.count(b"\r") == (after.count(b"\n") if end == "\r\n" else 0)
    kept = [row for row in before.split(b"\n") if b"engine/" not in row]
    assert [row for row in after.split(b"\n") if row in kept] == kept
    revert(site.sites)
    assert (info / "RECORD").read_bytes() == before


def test_record_without_a_final_line_end_comes_back_so(site: Site) -> None:
    at = site.at / INFO / "RECORD"
    at.write_bytes(at.read_bytes().rstrip(b"\r\n"))
    before = at.read_bytes()
    apply_pins(site.sites, [two_patches().packet()])
    revert(site.sites)
    assert at.read_bytes() == before


def test_rows_that_another_program_added_stay(site: Site) -> None:
    apply_pins(site.sites, [two_patches().packet()])
    at = site.at / INFO / "RECORD"
    at.write_bytes(at.read_bytes() + b"engine/extra.txt,,\r\n")
    done = revert(site.sites)
    assert done.written
    assert [(f.name, f.note) for f in done.findings] == [("foreign-edit", True)]
    assert at.read_bytes().endswith(b"engine/extra.txt,,\r\n")
    assert b"patchkit.json" not in at.read_bytes()
    assert site.digests()["engine/a.py"].endswith(f",{len(BASE['engine/a.py'])}")


def test_nothing_to_revert_is_a_no_op(site: Site) -> None:
    with pytest.raises(Refused) as refusal:
        revert(site.sites)
    assert refusal.value.findings[0].name == "no-op"


def test_two_packages_are_one_transaction(tmp_path: Path) -> None:
    site = Site(tmp_path / "s")
    site.install()
    site.install({"other/x.py": numbered(9)}, "other", "2.0")
    before = site.look()
    other = Series({"other/x.py": numbered(9)}).add("o.patch", {"other/x.py": numbered(9, l2="!")})
    packets = [two_patches().packet(), other.packet(dist="other", version="2.0")]
    (site.at / "other/x.py").write_bytes(b"edited\n")
    done = apply_pins(site.sites, packets)
    assert not done.written
    assert (site.at / "engine/a.py").read_bytes() == BASE["engine/a.py"]
    (site.at / "other/x.py").write_bytes(numbered(9))
    done = apply_pins(site.sites, packets)
    assert done.ok, done.findings
    assert (site.at / "other/x.py").read_bytes() == numbered(9, l2="!")
    assert revert(site.sites).written
    assert site.look() == before


def test_a_damaged_state_is_refused_by_name(site: Site) -> None:
    apply_pins(site.sites, [two_patches().packet()])
    at = site.at / INFO / "patchkit.json"
    for text in ("{}", "[1]", "[" * 5000, at.read_text().replace('"engine/a.py"', '"../a.py"')):
        at.write_text(text)
        with pytest.raises(Refused) as refusal:
            revert(site.sites)
        assert refusal.value.findings[0].name == "journal"
