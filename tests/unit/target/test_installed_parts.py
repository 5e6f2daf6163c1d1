"""A package patched in part says so; one whose record is lost has a way out, never a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import patchkit
from patchkit.engine.rule import LOOSE
from patchkit.errors import Finding, Refused
from patchkit.target.dist_info import find_dist
from patchkit.target.installed import apply_loose, apply_pins, revert
from patchkit.target.installed_check import Status, status
from patchkit.target.installed_packet import Packet
from tests.unit.target.installing import BASE, Series, Site, numbered, two_patches

STATE = "engine-1.0.dist-info/patchkit.json"
ROOT = Path(patchkit.__file__).parent


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site-packages")
    made.install()
    return made


def look(site: Site, packet: Packet | None = None) -> Status:
    return status(find_dist(site.sites, "engine"), packet)


def drift(found: Sequence[Finding]) -> list[str]:
    return [f.name for f in found if not f.note]


# -- in part ---------------------------------------------------------------------------------
def test_what_exclude_left_out_is_named_with_its_patches(site: Site) -> None:
    packet = two_patches().packet(exclude=("engine/sub/*", "tests/*"))
    apply_pins(site.sites, [packet])
    for found in (look(site), look(site, packet)):
        assert (found.kind, found.ok) == ("partial", True)
        assert found.left_out == {"engine/sub/c.py": ["edit.patch"]}
        assert found.words.startswith("partly patched (stack default of v1.0")
        assert "without engine/sub/c.py (edit.patch)" in found.words
        assert [f.name for f in found.findings] == ["partly-applied"]


def test_an_exclude_of_what_no_package_holds_leaves_nothing_out(site: Site) -> None:
    series = two_patches().add("t.patch", {"tests/t.py": b"t\n", "engine/b.py": b"b\n"})
    packet = series.packet(exclude=("tests/*",))
    apply_pins(site.sites, [packet])
    assert (look(site).kind, look(site, packet).kind) == ("patched", "patched")
    assert look(site, series.packet()).ok, "the same files, whatever was excluded"
    assert look(site, series.packet()).findings == ()


def test_the_whole_against_a_part_names_the_difference(site: Site) -> None:
    series = two_patches()
    apply_pins(site.sites, [series.packet(exclude=("engine/sub/*",))])
    found = look(site, series.packet())
    assert (found.kind, drift(found.findings)) == ("partial", ["partly-applied"])
    finding = found.findings[0]
    assert "engine/sub/c.py (edit.patch)" in finding.found
    assert "engine/sub/*" in finding.message
    apply_pins(site.sites, [series.packet()])
    more = look(site, series.packet(exclude=("engine/sub/*",)))
    assert drift(more.findings) == ["not-built-from-this"]
    assert more.findings[0].found == "with engine/sub/c.py"


def test_loose_patches_remember_every_exclude(site: Site) -> None:
    steps = two_patches().loose("edit.patch")
    apply_loose(site.sites, steps, LOOSE, exclude=("engine/sub/*",))
    more = Series().add("b.patch", {"engine/b.py": numbered(40, l4="four")}).loose()
    apply_loose(site.sites, more, LOOSE)
    found = look(site)
    assert (found.kind, found.ok) == ("partial", True)
    assert found.left_out == {"engine/sub/c.py": ["edit.patch"]}


def test_exclude_is_blamed_for_what_exclude_does(site: Site) -> None:
    packet = two_patches().packet(exclude=("engine/sub/*", "engine/a.py"))
    done = apply_pins(site.sites, [packet])
    assert drift(done.findings) == ["no-op"]
    assert done.findings[0].message == "--exclude leaves nothing of edit.patch"
    moved = Series().add("m.patch", {"engine/old.py": None, "engine/moved.py": numbered(5)})
    renamed = [row for row in moved.rows if b"rename from" in row[1]]
    if renamed:
        done = apply_pins(site.sites, [moved.packet(exclude=("engine/old.py",))])
        assert "--exclude takes one of its two names" in done.findings[0].message


# -- links -----------------------------------------------------------------------------------
def test_a_link_is_called_a_link_by_check_and_revert(site: Site) -> None:
    packet = two_patches().packet()
    apply_pins(site.sites, [packet])
    (site.at / "engine/a.py").rename(site.at.parent / "mine.py")
    (site.at / "engine/a.py").symlink_to(site.at.parent / "mine.py")
    for findings in (
        look(site).findings,
        look(site, packet).findings,
        revert(site.sites).findings,
        apply_pins(site.sites, [packet]).findings,
    ):
        assert drift(findings) == ["symlink-in-path"]
        assert "mine.py" in findings[0].found


def test_links_of_an_unpatched_package_are_called_links(site: Site) -> None:
    for path in ("engine/a.py", "engine/sub/c.py"):
        (site.at / path).rename(site.at.parent / Path(path).name)
        (site.at / path).symlink_to(site.at.parent / Path(path).name)
    found = look(site, two_patches().packet()).findings
    assert drift(found) == ["symlink-in-path"]
    assert found[0].found == "links: engine/a.py, engine/sub/c.py"


# -- a lost record ---------------------------------------------------------------------------
def test_a_lost_record_is_read_off_the_files_for_revert(site: Site) -> None:
    series = two_patches().add("x.patch", {"engine/b.py": numbered(40, l5="x\ny")}, "x")
    packets = [series.packet(s, {"x": ["x"]}) for s in ("default", "x", None)]
    before = site.look()
    for packet in packets:
        apply_pins(site.sites, [packet])
        (site.at / STATE).unlink()
        patched = site.look()
        assert drift(revert(site.sites).findings) == ["journal"]
        assert site.look() == patched
        done = revert(site.sites, packets=lambda: packets)
        assert done.ok, done.findings
        assert packet.title in done.findings[0].found or packet.stack is None
        assert site.look() == before


def test_applying_again_writes_a_lost_record_again(site: Site) -> None:
    packet = two_patches().packet()
    before = site.look()
    apply_pins(site.sites, [packet])
    patched = site.look()
    (site.at / STATE).unlink()
    found = look(site, packet)
    assert (found.kind, [f.name for f in found.findings]) == ("patched", ["journal"])
    assert apply_pins(site.sites, [packet]).written
    assert site.look().keys() == patched.keys()
    assert look(site, packet).findings == ()
    assert revert(site.sites).ok
    assert site.look() == before


def test_a_lost_record_that_nothing_explains_leads_to_the_wheel(site: Site) -> None:
    apply_loose(site.sites, two_patches().loose("edit.patch"), LOOSE)
    (site.at / STATE).unlink()
    other = Series().add("n.patch", {"engine/a.py": numbered(60, l1="x")}).packet()
    found = look(site)
    assert (found.kind, drift(found.findings)) == ("lost", ["journal"])
    wheel = "-m pip install --force-reinstall --no-deps engine==1.0"
    for findings in (
        found.findings,
        look(site, other).findings,
        revert(site.sites, packets=lambda: [other]).findings,
        apply_pins(site.sites, [other]).findings,
    ):
        assert all(wheel in f.next for f in findings if not f.note)
        assert drift(findings)


def test_nothing_to_take_back_does_not_send_back_to_apply(site: Site) -> None:
    with pytest.raises(Refused) as refusal:
        revert(site.sites)
    assert refusal.value.findings[0].next.startswith("patchkit check")


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        ("pip", "-m pip install --force-reinstall --no-deps engine==1.0"),
        ("uv", "--link-mode=copy --reinstall --no-deps engine==1.0"),
        ("conda", "conda install --force-reinstall --no-deps engine=1.0"),
    ],
)
def test_the_wheel_is_installed_again_by_what_installed_it(
    tmp_path: Path, installer: str, command: str
) -> None:
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python3").write_text("")
    site = Site(tmp_path / "env/lib/python3.11/site-packages")
    site.install(version="1.0+cu129", installer=installer)
    again = find_dist(site.sites, "engine").reinstall
    assert again.endswith(command)
    assert installer == "conda" or str(tmp_path / "env/bin/python3") in again


# -- hints -----------------------------------------------------------------------------------
HINTS = [
    *sorted((ROOT / "target").glob("installed*.py")),
    *sorted((ROOT / "target").glob("bundle*.py")),
    *(ROOT / "target/dist_info.py", ROOT / "check/installed.py"),
    *(ROOT / f"cli/{name}.py" for name in ("apply_installed", "check_installed", "bundle")),
]
PLACEHOLDER = re.compile(r"…|\b(?:PIN|DIR|EXE|FILE|STACK|NAME|GLOB)\b")


def test_no_hint_holds_a_placeholder() -> None:
    wrong, seen = [], 0
    for path in HINTS:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.keyword) or node.arg != "next":
                continue
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    seen += 1
                    if PLACEHOLDER.search(part.value):
                        wrong.append((path.name, part.value))
    assert seen > 40
    assert wrong == []


def test_a_hint_names_the_very_command(site: Site) -> None:
    from patchkit.cli.apply_installed import Asked

    asked = Asked("../my project", site="a dir", pins=("v1.0",), stack="x", exclude=("t/*",))
    assert asked.words().apply == (
        "patchkit -C '../my project' apply --pin v1.0 --stack x --installed --site 'a dir' "
        "--exclude 't/*'"
    )
    assert Asked(".").words().apply == "patchkit apply --installed"
    assert Asked(".", what=("fix.patch", "-p", "0")).words().apply == (
        "patchkit apply fix.patch -p 0 --installed"
    )
    assert BASE["engine/a.py"] == (site.at / "engine/a.py").read_bytes()
