"""check names what was changed behind the lock's back, and fails."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from patchkit.series.lockjson import dumps, loads
from tests.conftest import SmallProject


def findings(project: SmallProject, *args: str) -> set[tuple[str, str]]:
    """(name, patch or file) of every finding that is not a note."""
    done = project.run("check", "--source", str(project.base), "--json", *args)
    body = json.loads(done.out)
    found = {
        (f["name"], f.get("patch") or f.get("file", "")) for f in body["findings"] if not f["note"]
    }
    assert done.code == (1 if found else 0), done.text
    for finding in body["findings"]:
        assert finding["note"] or (finding["expected"] and finding["found"] and finding["next"])
    return found


def test_a_locked_series_is_clean(locked: SmallProject) -> None:
    assert findings(locked) == set()


def test_an_edited_patch_is_named_and_so_is_what_it_changes(locked: SmallProject) -> None:
    patch = locked.series / "later.patch"
    patch.write_bytes(patch.read_bytes().replace(b"return 90", b"return 91"))
    found = findings(locked)
    assert ("patch-edited", "later.patch") in found
    assert ("lock-stale", "later.patch") in found


def test_digests_made_to_match_do_not_hide_an_edited_patch(locked: SmallProject) -> None:
    patch = locked.series / "later.patch"
    patch.write_bytes(patch.read_bytes().replace(b"return 90", b"return 91"))
    lock = locked.series / "series.lock"
    old = loads(lock.read_bytes())
    digest = hashlib.sha256(patch.read_bytes()).hexdigest()
    forged = lock.read_bytes().replace(dict(old.patches)["later.patch"].encode(), digest.encode())
    lock.write_bytes(forged)
    found = findings(locked)
    assert ("patch-edited", "later.patch") not in found
    assert ("lock-stale", "later.patch") in found


@pytest.mark.parametrize(
    ("old", "new"), [("1" * 40, "2" * 40), ('upstream = "engine"', 'upstream = "other"')]
)
def test_a_changed_pin_is_named(locked: SmallProject, old: str, new: str) -> None:
    pins = locked.at / "pins.toml"
    text = pins.read_text().replace(old, new)
    pins.write_text(text + '\n[upstreams.other]\nkind = "plain"\npackage = "engine"\n')
    assert ("pin-mismatch", "pins.toml") in findings(locked)


def test_an_added_digest_is_named(locked: SmallProject) -> None:
    pins = locked.at / "pins.toml"
    files = f'[pins."v1.0".files]\n"engine-1.0.tar.gz" = "sha256:{"a" * 64}"\n'
    pins.write_text(pins.read_text() + files)
    assert ("pin-mismatch", "pins.toml") in findings(locked)


def test_the_lock_of_another_stack_is_not_taken(locked: SmallProject) -> None:
    lock = locked.series / "series.lock"
    old = loads(lock.read_bytes())
    swapped = type(old)(
        old.pin,
        old.entries,
        old.patches,
        old.proofs,
        old.series,
        {"default": old.stacks["wide"], "wide": old.stacks["default"]},
    )
    lock.write_bytes(dumps(swapped))
    assert {name for name, _ in findings(locked)} == {"lock-stale"}


def test_another_order_is_series_edited(locked: SmallProject) -> None:
    at = locked.series / "series"
    lines = at.read_text().splitlines(keepends=True)
    at.write_text("".join(reversed(lines)))
    assert ("series-edited", "series/v1.0/series") in findings(locked)


def test_a_changed_guard_is_series_edited(locked: SmallProject) -> None:
    at = locked.series / "series"
    at.write_text(at.read_text().replace("#+wide", "#+other"))
    assert ("series-edited", "series/v1.0/series") in findings(locked)


def test_a_base_that_changed_is_named(locked: SmallProject) -> None:
    plan = locked.base / "engine" / "__init__.py"
    plan.write_text('"""Another engine."""\n')
    assert ("pin-mismatch", "series/v1.0/series.lock") in findings(locked)


def test_a_changed_object_in_the_cache_is_found(locked: SmallProject, tmp_path: Path) -> None:
    for pack in (tmp_path / "the-cache").rglob("*.pack"):
        data = bytearray(pack.read_bytes())
        data[len(data) // 2] ^= 0xFF
        pack.chmod(0o644)
        pack.write_bytes(data)
    done = locked.run("check", "--source", str(locked.base))
    # Either it is said (1 or 3), or the folder was read and stored anew (0): never a wrong answer.
    assert done.code in (0, 1, 3), done.text
    assert "Traceback" not in done.text
    if done.code == 0:
        assert "clean" in done.out


def test_all_that_is_wrong_is_in_one_run(locked: SmallProject) -> None:
    for name in ("deeper", "later"):
        patch = locked.series / f"{name}.patch"
        patch.write_bytes(re.sub(rb"-(DEPTH = 2|    return 9)\n", rb"-gone\n", patch.read_bytes()))
    found = findings(locked)
    assert ("conflict", "deeper.patch") in found
    assert ("conflict", "later.patch") in found


def test_a_missing_lock_refuses_apply_and_says_the_command(locked: SmallProject) -> None:
    (locked.series / "series.lock").unlink()
    done = locked.run("apply", "--pin", "v1.0", "--source", str(locked.base), "--tree-only")
    assert done.code == 1
    assert "lock-stale" in done.err
    assert "patchkit lock --pin v1.0" in done.err


def test_unguarded_native_patches_need_a_build(project: SmallProject) -> None:
    project.edited("setup", "setup.py", "setup()", "setup(name='x')")
    project.run("lock", "--source", str(project.base))
    assert ("needs-build", "setup.patch") in findings(project)


def test_patches_without_a_series_file_are_named(locked: SmallProject) -> None:
    (locked.series / "series").rename(locked.series / "elsewhere")
    assert findings(locked) == {("missing-patch", "series/v1.0/series")}


def test_offline_without_a_source_says_what_was_not_verified(locked: SmallProject) -> None:
    pins = locked.at / "pins.toml"
    files = f'[pins."v1.0".files]\n"engine-1.0.tar.gz" = "sha256:{"a" * 64}"\n'
    pins.write_text(pins.read_text() + files)
    done = locked.run("check", "--offline", "--source", "sdist")
    assert done.code == 3, done.text
    assert "v1.0: not verified: the base tree, stack default, stack wide" in done.out
    assert "pin-mismatch" in done.err  # what needs no source is still compared
