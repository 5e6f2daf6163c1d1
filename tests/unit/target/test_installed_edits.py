"""A patched file that was edited by hand: the message has the way back, and it goes that way."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from patchkit.cli.main import main
from patchkit.engine.rule import Rule
from patchkit.target import installed_plan
from patchkit.target.installed import apply_loose, apply_pins, revert
from patchkit.target.installed_check import status
from patchkit.target.installed_words import Words
from tests.unit.target.installing import BASE, Site, numbered, two_patches
from tests.unit.target.test_bundle import Bundle

INFO = "engine-1.0.dist-info"
EDITS = {
    "in a hunk": ("engine/a.py", numbered(60, l10="mine", l30="thirty", l50="fifty")),
    "beside the hunks": (
        "engine/a.py",
        numbered(60, l2="mine", l10="ten", l30="thirty", l50="fifty"),
    ),
    "of a new file": ("engine/new/module.py", b"print('mine')\n"),
    "a file gone": ("engine/sub/c.py", None),
    "a removed file is back": ("engine/old.py", b"mine\n"),
}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site-packages")
    made.install()
    return made


def edit(site: Site, path: str, data: bytes | None) -> None:
    at = site.at / path
    if data is None:
        at.unlink()
    else:
        at.write_bytes(data)


def next_of(text: str) -> list[str]:
    """The command of the first message that names one, as arguments."""
    (line, *_) = [x for x in text.splitlines() if x.startswith("  next:")]
    return shlex.split(line.partition("then: ")[2].partition(", then ")[0])


@pytest.mark.parametrize("what", EDITS)
def test_it_is_refused_by_name_and_discarded_when_asked(site: Site, what: str) -> None:
    before = site.look()
    packet = two_patches().packet()
    assert apply_pins(site.sites, [packet]).written
    path, data = EDITS[what]
    edit(site, path, data)
    edited = site.look()
    words = Words()
    for findings in (
        apply_pins(site.sites, [packet], words).findings,
        revert(site.sites, (), words).findings,
        status(apply_pins(site.sites, [packet], words).plans[0].dist, packet, words).findings,
    ):
        (found, *_) = [f for f in findings if not f.note]
        assert (found.name, found.where.file) == ("foreign-edit", path)
        assert f"then: {words.revert} --discard-edits" in found.next
    looked = revert(site.sites, (), words, dry=True, discard=True)
    assert looked.ok
    assert site.look() == edited
    done = revert(site.sites, (), words, discard=True)
    assert [(f.name, f.where.file, f.note) for f in done.findings] == [("foreign-edit", path, True)]
    assert "the edit is discarded" in done.findings[0].message
    assert site.look() == before
    assert apply_pins(site.sites, [packet], words).written


def test_loose_patches_go_back_so_too(site: Site) -> None:
    before = site.look()
    steps = two_patches().loose()
    assert apply_loose(site.sites, steps, Rule()).written
    edit(site, *EDITS["in a hunk"])
    again = apply_loose(site.sites, steps, Rule())
    assert "--discard-edits" in again.findings[0].next
    assert not revert(site.sites).ok
    assert revert(site.sites, discard=True).ok
    assert site.look() == before


def test_a_file_that_is_a_link_now_is_left_alone(site: Site, tmp_path: Path) -> None:
    """It leads to somebody else's file."""
    (tmp_path / "outside").write_bytes(b"theirs")
    assert apply_pins(site.sites, [two_patches().packet()]).written
    (site.at / "engine/a.py").unlink()
    (site.at / "engine/a.py").symlink_to(tmp_path / "outside")
    edit(site, *EDITS["of a new file"])
    before = site.look()
    done = revert(site.sites, discard=True)
    assert [f.name for f in done.findings if not f.note] == ["symlink-in-path"]
    assert site.look() == before
    assert (tmp_path / "outside").read_bytes() == b"theirs"


def test_a_large_base_is_not_kept_and_the_patches_give_it_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed_plan, "KEPT", 0)
    before = site.look()
    assert apply_pins(site.sites, [two_patches().packet()]).written
    assert json.loads((site.at / INFO / "patchkit.json").read_text())["kept"] == {}
    patched = (site.at / "engine/a.py").read_bytes()
    edit(site, *EDITS["in a hunk"])
    done = revert(site.sites, discard=True)
    assert not done.ok
    assert "pip install --force-reinstall" in done.findings[0].next
    assert "--discard-edits" not in done.findings[0].next
    edit(site, "engine/a.py", patched)
    assert revert(site.sites).ok
    assert site.look() == before


def test_the_words_of_the_command_are_the_way_back(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "an.patch").write_bytes(two_patches().rows[0][1])
    before = site.look()

    def run(*args: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["patchkit", *args])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out + said.err

    typed = ("apply", str(tmp_path / "an.patch"), "--installed", "--site", str(site.at))
    assert run(*typed)[0] == 0
    edit(site, "engine/a.py", b"mine\n")
    for verb in (typed, ("revert", *typed[2:]), ("check", *typed[2:])):
        code, text = run(*verb)
        assert code == 1
        command = next_of(text)
        assert command[:2] == ["patchkit", "revert"]
        assert command[-1] == "--discard-edits"
    code, text = run(*command[1:])
    assert code == 0, text
    assert "engine/a.py is not as patchkit left it: the edit is discarded" in text
    assert site.look() == before
    assert run("revert", "--to", str(tmp_path), "--discard-edits")[0] == 2


def test_a_bundle_does_the_same(site: Site, tmp_path: Path) -> None:
    bundle = Bundle(tmp_path, two_patches())
    before = site.look()
    at = ("--site", str(site.at))
    assert bundle.run("apply", *at).returncode == 0
    edit(site, "engine/a.py", BASE["engine/a.py"] + b"mine\n")
    for verb in ("apply", "check", "revert"):
        done = bundle.run(verb, *at)
        assert done.returncode == 1
        command = next_of(done.stderr)
        assert command[1:] == [str(bundle.at), "revert", *at, "--discard-edits"]
    done = bundle.run(*command[2:])
    assert done.returncode == 0, done.stderr
    assert "the edit is discarded" in done.stderr
    assert site.look() == before
