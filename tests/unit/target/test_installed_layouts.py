"""Where packages stand, and which of them cannot be patched in place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.errors import EnvironmentFault, Refused, UsageFault
from patchkit.files.lock import folder_locked
from patchkit.target.dist_info import find_dist, normal, real_sites, release
from patchkit.target.installed import apply_pins, revert
from patchkit.target.installed_check import status
from patchkit.target.installed_sites import (
    default_python,
    own_sites,
    sites_of_folder,
    sites_of_python,
)
from tests.unit.target.installing import BASE, Site, two_patches
from tests.unit.target.killing import DENIED, refusing, stopped_at

INFO = "engine-1.0.dist-info"


def refused(site: Site, *more: str) -> tuple[str, str]:
    """Name and text of the refusal of an apply."""
    with pytest.raises(Refused) as refusal:
        apply_pins((*more, *site.sites), [two_patches().packet()])
    finding = refusal.value.findings[0]
    return finding.name, "\n".join((finding.message, finding.expected, finding.found, finding.next))


def round_trip(site: Site, sites: tuple[str, ...]) -> None:
    before = site.look()
    assert apply_pins(sites, [two_patches().packet()]).written
    assert status(find_dist(sites, "engine"), two_patches().packet()).ok
    assert revert(sites).written
    assert site.look() == before


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site-packages")
    made.install()
    return made


# -- layouts ---------------------------------------------------------------------------------
def test_a_virtual_environment_is_asked_for_its_folders(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    site = Site(next((tmp_path / "env/lib").glob("python3*/site-packages")))
    site.install()
    sites = sites_of_python(str(tmp_path / "env/bin/python"))
    assert os.path.realpath(site.at) in sites
    round_trip(site, sites)


def test_the_folder_of_the_command_is_not_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    assert os.path.realpath(tmp_path) not in sites_of_python(sys.executable)


def test_conda_style_hard_links_out_of_its_package_cache(tmp_path: Path) -> None:
    cache = Site(tmp_path / "pkgs/engine-1.0-py312_0/lib/python3.12/site-packages")
    cache.install(installer="conda", end="\n")
    site = Site(tmp_path / "envs/x/lib/python3.12/site-packages")
    for path in cache.at.rglob("*"):
        to = site.at / path.relative_to(cache.at)
        if path.is_dir():
            to.mkdir(exist_ok=True)
        else:
            os.link(path, to)
    kept = cache.look()
    round_trip(site, site.sites)
    assert cache.look() == kept


def test_a_user_folder_is_found_behind_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "home/.local"))
    monkeypatch.delenv("PYTHONNOUSERSITE", raising=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = Site(tmp_path / "home/.local/lib" / version / "site-packages")
    site.install()
    base = os.path.realpath(os.path.join(sys.base_prefix, "bin", "python3"))
    sites = sites_of_python(base)
    assert os.path.realpath(site.at) in sites
    round_trip(site, sites)


def test_debian_dist_packages_beside_a_package_of_the_system(tmp_path: Path) -> None:
    site = Site(tmp_path / "usr/local/lib/python3.12/dist-packages")
    site.install()
    system = tmp_path / "usr/lib/python3/dist-packages"
    (system / "Engine-0.9.egg-info").mkdir(parents=True)
    round_trip(site, site.sites)
    name, text = refused(site, str(system))
    assert name == "unsupported"
    assert "Engine-0.9.egg-info" in text


def test_a_symlinked_site_folder_and_its_twin_are_one(site: Site) -> None:
    (site.at.parent / "lib64").symlink_to(site.at)
    sites = real_sites([str(site.at.parent / "lib64"), str(site.at), "/nowhere"])
    assert sites == site.sites
    round_trip(site, sites)
    round_trip(site, sites_of_folder(str(site.at.parent / "lib64")))


def test_files_that_are_links_into_a_cache_are_refused(site: Site) -> None:
    cache = site.at.parent / "cache.py"
    (site.at / "engine/a.py").rename(cache)
    (site.at / "engine/a.py").symlink_to(cache)
    name, text = refused(site)
    assert name == "symlink-in-path"
    assert "--link-mode=copy" in text
    assert cache.read_bytes() == BASE["engine/a.py"]


def test_a_package_folder_that_is_a_link_is_refused(site: Site) -> None:
    (site.at / "engine").rename(site.at.parent / "elsewhere")
    (site.at / "engine").symlink_to(site.at.parent / "elsewhere")
    assert refused(site)[0] == "symlink-in-path"


# -- refusals --------------------------------------------------------------------------------
def test_an_editable_install_is_refused_for_its_tree(site: Site) -> None:
    url = {"url": "file:///src/engine", "dir_info": {"editable": True}}
    (site.at / INFO / "direct_url.json").write_text(json.dumps(url))
    name, text = refused(site)
    assert name == "unsupported"
    assert "--to /src/engine" in text


def test_an_editable_install_of_old_is_known_by_its_files(tmp_path: Path) -> None:
    site = Site(tmp_path / "s")
    site.install({"__editable__.engine-1.0.pth": b"/src\n"})
    assert refused(site)[0] == "unsupported"
    link = Site(tmp_path / "t")
    (link.at / "engine.egg-link").write_text("/src\n")
    name, text = refused(link)
    assert name == "unsupported"
    assert "tree" in text


def test_a_local_direct_url_is_no_editable_install(site: Site) -> None:
    (site.at / INFO / "direct_url.json").write_text('{"url": "file:///x.whl", "archive_info": {}}')
    assert apply_pins(site.sites, [two_patches().packet()]).ok


def test_a_missing_record_is_refused(site: Site) -> None:
    (site.at / INFO / "RECORD").unlink()
    name, text = refused(site)
    assert name == "unsupported"
    assert "RECORD" in text
    # pip cannot uninstall without a RECORD: --force-reinstall ends with an error there.
    assert "pip install --ignore-installed --no-deps engine==1.0" in text


def test_two_copies_on_the_path_are_ambiguous(site: Site) -> None:
    other = Site(site.at.parent / "other")
    other.install(version="0.9")
    name, text = refused(other, *site.sites)
    assert name == "ambiguous"
    assert site.sites[0] in text
    assert other.sites[0] in text
    assert f"--site {site.sites[0]}" in text, "the one that Python imports"


def test_two_metadata_folders_of_one_package_are_ambiguous(site: Site) -> None:
    site.install({}, version="0.9")
    assert refused(site)[0] == "ambiguous"


def test_a_folder_that_hides_the_package_is_said(site: Site) -> None:
    hiding = site.at.parent / "checkout"
    (hiding / "engine").mkdir(parents=True)
    (hiding / "engine/__init__.py").touch()
    name, text = refused(site, str(hiding))
    assert name == "ambiguous"
    assert str(hiding) in text


def test_nothing_installed_is_said_with_where_it_was_looked_for(tmp_path: Path) -> None:
    name, text = refused(Site(tmp_path / "empty"))
    assert name == "missing-target"
    assert str(tmp_path / "empty") in text


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageFault) as refusal:
        sites_of_folder(str(tmp_path / "nowhere"))
    assert refusal.value.findings[0].name == "missing-target"


# -- read-only -------------------------------------------------------------------------------
def test_a_site_of_another_owner_is_named_and_untouched() -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder) / "site-packages")
        site.install()
        apply_pins(site.sites, [two_patches().packet()], dry=True)  # all is imported by now
        folders = [Path(folder), *(p for p in Path(folder).rglob("*") if p.is_dir())]
        for path in folders:
            path.chmod(0o555)
        before = site.look()
        assert as_nobody(lambda: apply_pins(site.sites, [two_patches().packet()])) == 3
        assert site.look() == before
        for path in folders:
            path.chmod(0o755)


def test_on_a_read_only_site_already_applied_is_fine_and_check_works(site: Site) -> None:
    packet = two_patches().packet()
    apply_pins(site.sites, [packet])
    with stopped_at(0, refusing(DENIED)):
        assert not apply_pins(site.sites, [packet]).written
        assert status(find_dist(site.sites, "engine"), packet).ok
        with pytest.raises(EnvironmentFault) as fault:
            revert(site.sites)
    assert "--to" not in fault.value.findings[0].next
    assert site.sites[0] in fault.value.findings[0].next


def as_nobody(command: Callable[[], object]) -> int:
    """Run in a child without rights; 0, or 3 where the system refused."""
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            command()
        except EnvironmentFault:
            os._exit(3)
        except BaseException:
            os._exit(9)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# -- names and locales -----------------------------------------------------------------------
def test_names_and_versions_are_compared_as_indexes_do() -> None:
    assert normal("My_Pkg..x") == "my-pkg-x"
    assert release("v1.0") == release("1.0.0+cu130")
    assert release("1.0.1") != release("1.0")


def test_the_active_environment_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").touch()
    assert default_python({"VIRTUAL_ENV": str(tmp_path)}) == str(tmp_path / "bin/python")
    assert default_python({"CONDA_PREFIX": str(tmp_path)}) == str(tmp_path / "bin/python")
    assert default_python({"VIRTUAL_ENV": "/nowhere"}).endswith(("python3", "python"))
    assert own_sites()


def test_names_beyond_ascii_in_the_c_locale(tmp_path: Path) -> None:
    site = Site(tmp_path / "säite")
    site.install({**BASE, "engine/größe.py": b"x\n", 'engine/a "q", b.json': b"{}\n"})
    program = (
        f"import sys; sys.path[:0] = [{str(Path(__file__).resolve().parents[3])!r}]\n"
        "from tests.unit.target.installing import *\n"
        "from patchkit.target.installed import *\n"
        f"at = Site(Path(os.fsdecode({os.fsencode(site.at)!r})))\n"
        "base = {**BASE, 'engine/gr\\xf6\\xdfe.py': b'x\\n', 'engine/a \"q\", b.json': b'{}\\n'}\n"
        "s = Series(base).add('p.patch', {'engine/gr\\xf6\\xdfe.py': b'y\\n',"
        " 'engine/a \"q\", b.json': None})\n"
        "before = at.look()\n"
        "done = apply_pins(at.sites, [s.packet()])\n"
        "print(ascii(done.findings), done.written, apply_pins(at.sites, [s.packet()]).written)\n"
        "print(revert(at.sites).written, at.look() == before)\n"
    )
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=False
    )
    assert run.stdout.splitlines() == ["() True False", "True True"], run.stderr


def test_a_lock_held_elsewhere_does_not_stop_a_look(site: Site) -> None:
    with folder_locked(site.sites[0]):
        assert apply_pins(site.sites, [two_patches().packet()], dry=True).ok
        assert status(find_dist(site.sites, "engine")).kind == "pristine"
