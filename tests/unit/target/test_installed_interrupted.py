"""An interrupted command: what the next one says, and that the bundle says and does the same."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.cli.apply_installed import Asked, run_revert
from patchkit.engine.rule import LOOSE
from patchkit.errors import EnvironmentFault
from patchkit.target import folder
from patchkit.target.bundle import make_bundle
from patchkit.target.bundle_main import main
from patchkit.target.dist_info import pending_journal
from patchkit.target.installed import apply_pins, revert
from tests.unit.target.installing import BASE, Series, Site, numbered, two_patches
from tests.unit.target.killing import NO_SPACE, killed_at, refusing, stopped_at

Run = Callable[[Site, Path], int]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site-packages")
    made.install()
    return made


def broken(site: Site, number: int) -> None:
    """Kill an apply at one of its writes."""
    assert killed_at(number, lambda: apply_pins(site.sites, [two_patches().packet()]))
    assert pending_journal(site.sites[0]) is not None


def with_command(site: Site, at: Path) -> int:
    return run_revert(Asked(str(at), site=str(site.at)))


def with_bundle(site: Site, at: Path) -> int:
    with zipfile.ZipFile(io.BytesIO(make_bundle([two_patches().packet()]))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return main([str(at / "x.pyz"), "revert", "--site", str(site.at)], members.__getitem__)


@pytest.mark.parametrize("run", [with_command, with_bundle])
@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "an interrupted command was undone first: it had changed no file yet"),
        (32, "an interrupted apply was undone first: it had changed no file yet"),
        (45, "file(s) put back"),
    ],
)
def test_revert_of_an_interrupted_apply_says_so_and_is_fine(
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    run: Run,
    number: int,
    said: str,
) -> None:
    before = site.look()
    broken(site, number)
    assert run(site, tmp_path) == 0
    out = capsys.readouterr().out
    assert said in out
    assert "no package there is patched now" in out
    assert site.look() == before
    with pytest.raises(Exception, match="nothing to take back"):
        revert(site.sites)


def test_what_was_undone_is_said_though_the_command_is_then_refused(site: Site) -> None:
    broken(site, 45)
    (site.at / "engine/data/table.json").write_bytes(b"mine\n")
    other = two_patches().add("t.patch", {"engine/data/table.json": b"new\n"})
    done = apply_pins(site.sites, [other.packet()])
    assert (done.ok, done.written) == (False, False)
    assert done.recovered is not None
    broken(site, 45)
    done = apply_pins(site.sites, [two_patches().packet(version="2.0")])
    assert [f.name for f in done.findings] == ["pin-mismatch"]
    assert done.recovered is not None


def test_what_was_undone_is_said_though_the_disk_fails_after_it(site: Site) -> None:
    before = site.look()
    broken(site, 32)
    with stopped_at(60, refusing(NO_SPACE)), pytest.raises(EnvironmentFault) as fault:
        apply_pins(site.sites, [two_patches().packet()])
    assert fault.value.findings[0].message.startswith("an interrupted apply was undone first")
    assert fault.value.findings[0].note
    assert site.look() == before


def test_of_two_packages_only_the_patched_one_is_taken_back(site: Site) -> None:
    site.install({"other/x.py": numbered(9)}, "other", "2.0")
    before = site.look()
    apply_pins(site.sites, [two_patches().packet()])
    done = revert(site.sites, ["engine", "other"])
    assert [plan.dist.name for plan in done.plans] == ["engine"]
    assert site.look() == before


def test_a_folder_reverts_an_interrupted_apply_too(tmp_path: Path) -> None:
    at = tmp_path / "tree"
    (at / "engine").mkdir(parents=True)
    (at / "engine/a.py").write_bytes(BASE["engine/a.py"])
    step = Series().add("p.patch", {"engine/a.py": numbered(60, l3="x")}).loose()
    seen: list[str] = []
    for number in range(3, 40):
        if not killed_at(number, lambda: folder.apply(at, step, LOOSE)):
            break
        if list(at.glob(".patchkit/*journal*/journal.json")):
            done = folder.revert(at)
            assert done.ok
            assert done.recovered is not None
            seen.append(done.recovered.words)
            assert (at / "engine/a.py").read_bytes() == BASE["engine/a.py"]
    assert len(set(seen)) == 2, "before the first rename, and after it"
