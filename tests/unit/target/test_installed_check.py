"""What a package is: pristine, patched (with what), up to a patch, partly, or edited by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from patchkit.engine.rule import LOOSE
from patchkit.errors import Refused
from patchkit.target.dist_info import find_dist
from patchkit.target.installed import apply_loose, apply_pins, revert
from patchkit.target.installed_check import Status, status
from patchkit.target.installed_packet import Packet
from patchkit.target.installed_state import BUILD, SERIES, State, dump_state, excerpt
from tests.unit.target.installing import BASE, Series, Site, numbered, two_patches

INFO = "engine-1.0.dist-info"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site-packages")
    made.install()
    return made


def look(site: Site, packet: Packet | None = None) -> Status:
    return status(find_dist(site.sites, "engine"), packet)


def names(found: Status) -> list[str]:
    return [f.name for f in found.findings if not f.note]


def test_pristine(site: Site) -> None:
    found = look(site, two_patches().packet())
    assert (found.kind, names(found)) == ("pristine", ["partly-applied"])
    assert look(site).kind == "pristine"
    assert look(site).ok


def test_patched_says_stack_and_series(site: Site) -> None:
    packet = two_patches().packet()
    apply_pins(site.sites, [packet])
    for found in (look(site, packet), look(site)):
        assert (found.kind, found.ok) == ("patched", True)
        assert packet.digest[:12] in found.words
        assert "stack default of v1.0" in found.words


def test_patched_up_to(site: Site) -> None:
    series = two_patches()
    first = Series().add("edit.patch", EDIT)
    apply_pins(site.sites, [first.packet()])
    found = look(site, series.packet())
    assert (found.kind, found.count, found.patch) == ("upto", 1, "edit.patch")
    assert names(found) == ["partly-applied"]
    assert "edit.patch" in found.findings[0].found


EDIT: dict[str, bytes] = {
    "engine/a.py": numbered(60, l10="ten", l50="fifty"),
    "engine/sub/c.py": numbered(30, l3="three\nand more"),
}


def test_partly_applied(site: Site) -> None:
    packet = two_patches().packet()
    apply_pins(site.sites, [packet])
    (site.at / "engine/sub/c.py").write_bytes(BASE["engine/sub/c.py"])
    found = look(site, packet)
    assert (found.kind, names(found)) == ("mixed", ["partly-applied"])


def test_an_edit_by_hand_names_path_and_who_disagrees(site: Site) -> None:
    packet = two_patches().packet()
    apply_pins(site.sites, [packet])
    (site.at / "engine/a.py").write_bytes(b"mine\n")
    found = look(site, packet)
    assert (found.kind, names(found)) == ("foreign", ["foreign-edit"])
    assert found.findings[0].where.file == "engine/a.py"
    assert "RECORD and the lock disagree" in found.findings[0].message
    assert names(look(site)) == ["foreign-edit"]


def test_a_package_of_other_sources_is_foreign_by_the_lock_alone(tmp_path: Path) -> None:
    site = Site(tmp_path / "s")
    site.install({**BASE, "engine/a.py": b"theirs\n"})
    found = look(site, two_patches().packet())
    assert names(found) == ["foreign-edit"]
    assert ": the lock disagrees" in found.findings[0].message


def test_another_release_is_not_an_edit_of_this_one(tmp_path: Path) -> None:
    site = Site(tmp_path / "s")
    site.install({**BASE, "engine/a.py": b"of the next release\n"}, version="2.0")
    found = look(site, two_patches().packet())
    assert (found.kind, names(found)) == ("pristine", ["pin-mismatch"])
    assert "version 2.0" in found.findings[0].found
    assert found.against, "it was compared with the lock"
    (site.at / "engine/sub/c.py").unlink()
    assert names(look(site, two_patches().packet())) == ["pin-mismatch"]


def test_a_file_that_is_gone_is_said_to_be_gone(site: Site) -> None:
    packet = two_patches().packet()
    (site.at / "engine/a.py").unlink()
    refused = apply_pins(site.sites, [packet])
    for findings in (look(site, packet).findings, refused.findings):
        wrong = [f for f in findings if not f.note]
        assert [f.message for f in wrong] == ["engine/a.py is gone, though RECORD lists it"]
        assert (wrong[0].name, wrong[0].found) == ("foreign-edit", "no file")
        assert "install --force-reinstall --no-deps engine==1.0" in wrong[0].next


def test_another_stack_is_not_this_one(site: Site) -> None:
    series = two_patches().add("x.patch", {"engine/b.py": numbered(40, l1="x")}, "x")
    apply_pins(site.sites, [series.packet("x", {"x": ["x"]})])
    found = look(site, series.packet("default", {"x": ["x"]}))
    assert (found.kind, names(found)) == ("other", ["not-built-from-this"])
    assert "stack x" in found.findings[0].found


def test_loose_patches_are_not_the_series(site: Site) -> None:
    apply_loose(site.sites, two_patches().loose("edit.patch")[:1], LOOSE)
    assert "loose patches: edit.patch" in look(site).words
    assert look(site).ok
    newer = Series().add("n.patch", {"engine/b.py": numbered(40, l1="x")})
    assert names(look(site, newer.packet())) == ["not-built-from-this"]


def test_the_same_files_from_reworded_patches_are_fine_with_a_note(site: Site) -> None:
    packet = two_patches().packet()
    apply_pins(site.sites, [packet])
    patches = tuple((name, "0" * 64) for name, _ in packet.lock.patches)
    reworded = replace(packet, lock=replace(packet.lock, patches=patches))
    found = look(site, reworded)
    assert (found.kind, found.ok) == ("patched", True)
    assert [f.name for f in found.findings] == ["series-edited"]


def test_record_rows_of_patched_files_are_compared(site: Site) -> None:
    packet = two_patches().packet()
    apply_pins(site.sites, [packet])
    record = site.at / INFO / "RECORD"
    record.write_bytes(record.read_bytes().replace(b"engine/a.py,sha256=", b"engine/a.py,sha256=A"))
    assert names(look(site, packet)) == ["foreign-edit"]


def test_an_edit_of_another_size_elsewhere_is_a_note(site: Site) -> None:
    packet = two_patches().packet()
    apply_pins(site.sites, [packet])
    (site.at / "engine/b.py").unlink()
    found = look(site, packet)
    assert found.ok
    assert [(f.name, f.where.file) for f in found.findings] == [("foreign-edit", "engine/b.py")]


def built(tmp_path: Path) -> tuple[Site, Packet]:
    """A wheel that was built with its patches, installed."""
    patched = Site(tmp_path / "patched")
    patched.install()
    packet = two_patches().packet()
    apply_pins(patched.sites, [packet])
    lock = excerpt(packet.lock, packet.chain, packet.paths())
    state = State(BUILD, SERIES, "default", lock, "engine")
    files = {
        p.relative_to(patched.at).as_posix(): p.read_bytes()
        for p in (patched.at / "engine").rglob("*")
        if p.is_file()
    }
    site = Site(tmp_path / "built")
    info = "engine-1.0+pk0123456789ab.dist-info"
    site.install(
        {**files, f"{info}/patchkit.json": dump_state(state)}, version="1.0+pk0123456789ab"
    )
    return site, packet


def test_a_built_wheel_matches_its_pin_and_has_no_base_to_go_back_to(tmp_path: Path) -> None:
    site, packet = built(tmp_path)
    found = look(site, packet)
    assert (found.kind, found.ok) == ("patched", True), found.findings
    assert "as built" in found.words
    before = site.look()
    assert not apply_pins(site.sites, [packet]).written
    with pytest.raises(Refused) as refusal:
        revert(site.sites)
    assert "reinstall the base wheel" in refusal.value.findings[0].next
    newer = Series().add("n.patch", {"engine/b.py": numbered(40, l1="x")})
    with pytest.raises(Refused) as refusal:
        apply_pins(site.sites, [newer.packet()])
    assert "reinstall the base wheel" in refusal.value.findings[0].next
    assert site.look() == before


def test_a_wheel_of_patched_sources_without_our_record_is_patched_too(tmp_path: Path) -> None:
    site, packet = built(tmp_path)
    info = site.at / "engine-1.0+pk0123456789ab.dist-info"
    (info / "patchkit.json").unlink()
    assert look(site, packet).kind == "patched"
    assert not apply_pins(site.sites, [packet]).written
