"""apply, check, revert --installed and bundle, on a project of two plain upstreams."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from patchkit.cli.main import main
from patchkit.cli.quick import quick
from patchkit.series.lockfile import Lock, LockedPin
from patchkit.series.lockjson import dumps
from patchkit.series.quilt import entries_digest, parse_series
from tests.unit.target.installing import BASE, COMMIT, Series, Site, numbered, two_patches

OTHER = {"other/__init__.py": b"", "other/x.py": numbered(20)}
PINS = f"""
[upstreams.engine]
kind = "plain"
package = "engine"
[upstreams.other]
kind = "plain"
pypi = "other"
package = "other"
root = "src"
[pins."v1.0"]
upstream = "engine"
commit = "{COMMIT}"
[pins."other-2.0"]
upstream = "other"
commit = "{COMMIT}"
[pins."other-2.0".files]
"other-2.0.tar.gz" = "sha256:{"0" * 64}"
[stacks.fast]
guards = ["fast"]
"""


class Bench:
    """A project with two locked series, a site with both packages, and the command."""

    def __init__(self, at: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.at, self.capsys = at, capsys
        self.site = Site(at / "site-packages")
        self.site.install()
        self.site.install(OTHER, "other", "2.0")
        (at / "project").mkdir()
        (at / "project/pins.toml").write_text(PINS)
        engine = two_patches().add("fast.patch", {"engine/b.py": numbered(40, l5="fast")}, "fast")
        other = Series(OTHER, root="src").add(
            "other.patch", {"src/other/x.py": numbered(20, l9="nine")}
        )
        self.series("v1.0", "engine", engine)
        self.series("other-2.0", "other", other)

    def series(self, pin: str, upstream: str, series: Series) -> None:
        folder = self.at / "project/series" / pin
        folder.mkdir(parents=True)
        for name, data, _ in series.rows:
            (folder / name).write_bytes(data)
        lines = "".join(f"{n} #+{g}\n" if g else f"{n}\n" for n, _, g in series.rows)
        (folder / "series").write_text(lines)
        made = series.lock({"default": (), "fast": ("fast",)}, pin)
        files = {"other-2.0.tar.gz": "0" * 64} if upstream == "other" else {}
        lock = Lock(
            LockedPin(pin, upstream, COMMIT, files=files),
            entries_digest(parse_series(lines.encode()).entries),
            made.patches,
            {},
            made.series,
            made.stacks,
        )
        (folder / "series.lock").write_bytes(dumps(lock))

    def run(self, *args: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error."""
        old = sys.argv
        sys.argv = ["patchkit", "-C", str(self.at / "project"), *args]
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            sys.argv = old
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def json(self, *args: str) -> dict[str, Any]:
        _, out, _ = self.run(*args, "--json")
        found: dict[str, Any] = json.loads(out)
        return found

    @property
    def here(self) -> Sequence[str]:
        return ("--installed", "--site", str(self.site.at))


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    return Bench(tmp_path, capsys)


def test_two_pins_are_one_transaction(bench: Bench) -> None:
    before = bench.site.look()
    pins = ("--pin", "v1.0", "--pin", "other-2.0")
    looked = bench.run("apply", *pins, *bench.here, "--check")[1]
    assert looked.count("would apply") == 3
    assert " applied" not in looked
    looked_at = bench.json("apply", *pins, *bench.here, "--check")
    assert [p["state"] for p in looked_at["patches"]] == ["would apply"] * 3
    body = bench.json("apply", *pins, *bench.here)
    assert body["exit"] == 0, body["findings"]
    assert [p["name"] for p in body["packages"]] == ["engine", "other"]
    assert (bench.site.at / "other/x.py").read_bytes() == numbered(20, l9="nine")
    assert [p["state"] for p in body["patches"]] == ["applied"] * 3
    assert bench.run("check", *bench.here)[0] == 0
    code, out, _ = bench.run("revert", *bench.here)
    assert code == 0
    assert "engine 1.0: taken back: stack default of v1.0" in out
    assert bench.site.look() == before


def test_without_a_pin_it_is_what_is_installed(bench: Bench) -> None:
    body = bench.json("apply", *bench.here)
    assert [p["name"] for p in body["packages"]] == ["engine", "other"]
    bench.run("revert", *bench.here)
    for path in (bench.site.at / "other-2.0.dist-info").iterdir():
        path.unlink()
    (bench.site.at / "other-2.0.dist-info").rmdir()
    body = bench.json("apply", *bench.here)
    assert [p["name"] for p in body["packages"]] == ["engine"]


def test_one_package_that_fails_keeps_the_other_from_being_written(bench: Bench) -> None:
    (bench.site.at / "other/x.py").write_bytes(b"mine\n")
    before = bench.site.look()
    body = bench.json("apply", *bench.here)
    assert body["exit"] == 1
    assert [f["file"] for f in body["findings"]] == ["other/x.py"]
    assert bench.site.look() == before


def test_check_takes_the_recorded_stack_and_says_drift(bench: Bench) -> None:
    assert bench.run("apply", "--pin", "v1.0", "--stack", "fast", *bench.here)[0] == 0
    body = bench.json("check", "--pin", "v1.0", *bench.here)
    assert (body["exit"], body["packages"][0]["stack"]) == (0, "fast")
    body = bench.json("check", "--pin", "v1.0", "--stack", "default", *bench.here)
    assert (body["exit"], body["findings"][0]["name"]) == (1, "not-built-from-this")
    code, out, err = bench.run("check", *bench.here)
    assert (code, "other" in err, "partly-applied" in err) == (1, True, True)
    assert "patched (stack fast of v1.0" in out


def test_upto_and_then_the_rest(bench: Bench) -> None:
    code, _, err = bench.run("apply", "--pin", "v1.0", "--upto", "edit.patch", *bench.here)
    assert code == 0, err
    body = bench.json("check", "--pin", "v1.0", *bench.here)
    assert (body["packages"][0]["state"], body["packages"][0]["upto"]) == ("upto", "edit.patch")
    assert bench.run("apply", "--pin", "v1.0", *bench.here)[0] == 0
    assert bench.run("check", "--pin", "v1.0", *bench.here)[0] == 0


def test_an_edited_patch_is_refused_before_anything_is_looked_at(bench: Bench) -> None:
    before = bench.site.look()
    patch = bench.at / "project/series/v1.0/edit.patch"
    patch.write_bytes(patch.read_bytes().replace(b"+ten", b"+TEN"))
    code, _, err = bench.run("apply", "--pin", "v1.0", *bench.here)
    assert (code, "patch-edited" in err) == (1, True)
    assert bench.run("bundle", "--pin", "v1.0", "-o", str(bench.at / "x.pyz"))[0] == 1
    assert not (bench.at / "x.pyz").exists()
    assert bench.site.look() == before


@pytest.mark.parametrize("how", ["edited", "added", "guard", "gone"])
def test_check_says_what_apply_refuses_in_the_series_folder(bench: Bench, how: str) -> None:
    assert bench.run("apply", *bench.here)[0] == 0
    assert bench.run("check", *bench.here)[0] == 0
    folder = bench.at / "project/series/v1.0"
    series, patch = folder / "series", folder / "edit.patch"
    if how == "edited":
        patch.write_bytes(patch.read_bytes().replace(b"+ten", b"+TEN"))
    elif how == "added":
        (folder / "more.patch").write_bytes(patch.read_bytes())
        series.write_text(series.read_text() + "more.patch\n")
    elif how == "guard":
        series.write_text(series.read_text().replace("#+fast", "#+slow"))
    else:
        patch.unlink()
    applied = bench.json("apply", "--pin", "v1.0", *bench.here)
    checked = bench.json("check", "--pin", "v1.0", *bench.here)
    name = {"edited": "patch-edited", "gone": "missing-patch"}.get(how, "series-edited")
    assert (applied["exit"], checked["exit"]) == (1, 1)
    assert name in [finding["name"] for finding in applied["findings"]]
    assert name in [finding["name"] for finding in checked["findings"]]
    assert checked["packages"][0]["state"] == "patched", "the package is still as it was locked"


def test_a_lock_without_a_series_is_enough_for_check(bench: Bench) -> None:
    assert bench.run("apply", "--pin", "v1.0", *bench.here)[0] == 0
    for name in ("series", "edit.patch", "files.patch", "fast.patch"):
        (bench.at / "project/series/v1.0" / name).unlink()
    assert bench.run("check", "--pin", "v1.0", *bench.here)[0] == 0


def test_loose_patches_with_a_root_of_their_own(bench: Bench) -> None:
    before = bench.site.look()
    patch = bench.at / "fix.patch"
    patch.write_bytes(
        b"--- a/x.py\n+++ b/x.py\n@@ -8,3 +8,3 @@\n line 8\n-line 9\n+NINE\n line 10\n"
    )
    vain = bench.json("apply", str(patch), *bench.here, "--check", "--accept", "other/x.py:3")
    assert [(f["name"], f["file"], f["line"]) for f in vain["findings"]] == [
        ("unused", "other/x.py", 3)
    ]
    body = bench.json("apply", str(patch), *bench.here, "--accept", "other/x.py:8")
    assert (body["exit"], body["findings"]) == (0, [])
    assert (body["patches"][0]["directory"], body["patches"][0]["package"]) == ("other", "other")
    assert bench.run("check", *bench.here)[0] == 0, "its own record, not the project's lock"
    assert bench.run("check", "--pin", "other-2.0", *bench.here)[0] == 1
    assert bench.run("revert", *bench.here)[0] == 0
    assert bench.site.look() == before


def test_a_bundle_of_two_packages(bench: Bench) -> None:
    at = bench.at / "both.pyz"
    body = bench.json("bundle", "--pin", "v1.0", "--pin", "other-2.0", "-o", str(at))
    assert body["bytes"] == at.stat().st_size < 1_000_000
    assert os.access(at, os.X_OK)
    assert [p["patches"] for p in body["packages"]] == [
        ["edit.patch", "files.patch"],
        ["other.patch"],
    ]


@pytest.mark.parametrize(
    "args",
    [
        ("apply", "--site", "X", "--pin", "v1.0"),
        ("apply", "--exclude", "X", "--pin", "v1.0"),
        ("apply", "--installed", "--to", "X"),
        ("apply", "--installed", "--source", "sdist"),
        ("apply", "--installed", "--python", "p", "--site", "X"),
        ("apply", "--installed", "--python", "/no/such/python"),
        ("apply", "--installed", "--stack", "fast", "--all"),
        ("apply", "--pin", "v1.0", "--pin", "other-2.0"),
        ("apply", "x.patch", "--installed", "--pin", "v1.0"),
        ("apply", "--pin", "v1.0", "--pin", "v1.0", "--to", "X", "--installed"),
        ("check", "--site", "X"),
        ("revert", "--python", "X"),
        ("revert", "--installed", "--to", "X"),
        ("bundle", "--stack", "fast", "--all"),
    ],
)
def test_options_that_do_not_go_together(bench: Bench, args: Sequence[str]) -> None:
    code, _, err = bench.run(*args)
    assert code == 2, err


def test_quick_takes_only_the_plain_check(tmp_path: Path) -> None:
    for args in (
        ["check"],
        ["check", "--installed", "--help"],
        ["check", "--installed", "--offline"],
        ["check", "--installed", "--site"],
        ["check", "--installed", "-C", "x"],
        ["apply", "--installed"],
        ["--installed", "check", "check"],
        [],
    ):
        assert quick(args) is None, args


def test_quick_and_typer_say_the_same(bench: Bench) -> None:
    assert bench.run("apply", "--pin", "v1.0", *bench.here)[0] == 0
    fast = bench.json("check", "--pin", "v1.0", *bench.here)
    assert fast == bench.json("check", "--pin", "v1.0", "--source", "sdist", *bench.here)


def test_nothing_patched_outside_a_project(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.at / "project/pins.toml").unlink()
    code, _, err = bench.run("check", *bench.here)
    assert (code, "partly-applied" in err) == (1, True)
    assert bench.run("check", "--pin", "v1.0", *bench.here)[0] == 1
    assert BASE["engine/a.py"] == (bench.site.at / "engine/a.py").read_bytes()


def test_check_says_what_it_compared_with_and_what_was_left_out(bench: Bench) -> None:
    part = ("--exclude", "engine/sub/*")
    assert bench.run("apply", "--pin", "v1.0", *part, *bench.here)[0] == 0
    code, out, err = bench.run("check", "--pin", "v1.0", *bench.here)
    assert (code, "partly patched" in out) == (0, True)
    assert "without engine/sub/c.py (edit.patch)" in out
    assert "compared with the lock: stack default of v1.0" in out
    assert "the stack that its record names" in out
    assert "note: partly-applied" in err
    body = bench.json("check", "--pin", "v1.0", *bench.here)["packages"][0]
    assert (body["state"], body["exclude"]) == ("partial", ["engine/sub/*"])
    assert body["left_out"] == [{"path": "engine/sub/c.py", "patches": ["edit.patch"]}]
    assert body["compared_with"]["chosen"] == "recorded"
    stack = ("--pin", "v1.0", "--stack", "default")
    code, _, err = bench.run("check", *stack, *bench.here)
    assert (code, "without engine/sub/c.py (edit.patch)" in err) == (1, True)
    assert bench.run("check", *stack, *bench.here, *part)[0] == 0


def test_outside_a_project_check_says_that_any_patches_pass(bench: Bench) -> None:
    assert bench.run("apply", "--pin", "v1.0", *bench.here)[0] == 0
    (bench.at / "project/pins.toml").unlink()
    code, out, _ = bench.run("check", *bench.here)
    assert (code, "its own record only, so any patches pass" in out) == (0, True)
    body = bench.json("check", *bench.here)
    assert body["packages"][0]["compared_with"] == {"what": "record"}


def test_a_lost_record_is_no_circle(bench: Bench) -> None:
    before = bench.site.look()
    state = bench.site.at / "engine-1.0.dist-info/patchkit.json"
    assert bench.run("apply", "--pin", "v1.0", "--stack", "fast", *bench.here)[0] == 0
    state.unlink()
    code, out, err = bench.run("revert", *bench.here)
    assert (code, "stack fast of v1.0" in err, "taken back" in out) == (0, True, True)
    assert bench.site.look() == before
    assert bench.run("apply", "--pin", "v1.0", *bench.here)[0] == 0
    state.unlink()
    (bench.at / "project/pins.toml").unlink()
    for verb in ("check", "revert"):
        code, _, err = bench.run(verb, *bench.here)
        assert (code, "--force-reinstall --no-deps engine==1.0" in err) == (1, True)


def test_a_pattern_that_leaves_out_nothing_is_named(bench: Bench) -> None:
    args = ("apply", "--pin", "v1.0", "--check", *bench.here, "--exclude", "engine/sub/*")
    assert "leaves out nothing" not in bench.run(*args)[2]
    code, _, err = bench.run(*args, "--exclude", "engine/sbu/*")
    assert code == 0
    assert "note: missing-target: --exclude 'engine/sbu/*' leaves out nothing" in err


@pytest.mark.parametrize("installed", [True, False])
def test_a_loose_patch_is_in_no_series_to_be_refreshed(bench: Bench, installed: bool) -> None:
    patch = bench.at / "fix.patch"
    patch.write_bytes(b"--- a/x.py\n+++ b/x.py\n@@ -8,2 +8,2 @@\n line 8\n-no such\n+NINE\n")
    to = bench.here if installed else ("--to", str(bench.site.at / "other"))
    code, _, err = bench.run("apply", str(patch), *to)
    assert (code, "error: conflict" in err) == (1, True)
    assert "next:     patchkit refresh" not in err
    assert "next:     make the diff anew" in err
