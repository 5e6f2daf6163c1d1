"""All new or all old: wherever a transaction is stopped, the next recover undoes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.engine.model import EXECUTABLE, File
from patchkit.errors import Refused
from patchkit.files import transaction
from patchkit.files.root import Root

OLD = {"a": File(b"old a"), "b/c": File(b"old c", EXECUTABLE), "gone": File(b"old gone")}
NEW: dict[str, File | None] = {
    "a": File(b"new a"),
    "b/c": File(b"new c"),
    "gone": None,
    "n/e/w": File(b"new"),
}
AFTER = {"a": File(b"new a"), "b/c": File(b"new c"), "n/e/w": File(b"new")}


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "tree").mkdir()
    made = Root(tmp_path / "tree")
    for path, file in OLD.items():
        made.put(path, file)
    return made


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def snapshot(root: Root) -> dict[str, File | None]:
    return {p: root.get(p) for p in root.walk()}


def test_every_change_is_made_and_the_journal_goes(root: Root, journal: Path) -> None:
    transaction.change(root, NEW, journal, what="apply")
    assert snapshot(root) == AFTER
    assert not journal.exists()
    assert transaction.recover(root, journal) is None


def test_paths_that_are_right_already_keep_their_inode(root: Root, journal: Path) -> None:
    before = os.stat(Path(root.at, "a"))
    transaction.change(root, {"a": File(b"old a"), "x": File(b"")}, journal, what="apply")
    after = os.stat(Path(root.at, "a"))
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_failing_last_step_rolls_all_back(root: Root, journal: Path) -> None:
    def fail() -> None:
        raise RuntimeError("the index")

    with pytest.raises(RuntimeError):
        transaction.change(root, NEW, journal, what="apply", after=fail)
    assert snapshot(root) == OLD
    assert not journal.exists()


KILLED = """
import os, signal, sys
from patchkit.engine.model import File
from patchkit.files import transaction
from patchkit.files.root import Root
sys.path.insert(0, {tests!r})
from test_transaction import NEW
at = int(sys.argv[1])
count = 0
real = os.rename
def rename(*a, **k):
    global count
    if count == at: os.kill(os.getpid(), signal.SIGKILL)
    count += 1
    return real(*a, **k)
def unlink(*a, real=os.unlink, **k):
    global count
    if count == at: os.kill(os.getpid(), signal.SIGKILL)
    count += 1
    return real(*a, **k)
os.rename, os.unlink = rename, unlink
transaction.change(Root({tree!r}), NEW, {journal!r}, what="apply")
"""


def test_killed_at_any_step_it_is_old_or_new(root: Root, journal: Path) -> None:
    program = KILLED.format(
        tests=str(Path(__file__).parent), tree=str(root.at), journal=str(journal)
    )
    kills = 0
    for step in range(40):
        run = subprocess.run([sys.executable, "-c", program, str(step)], check=False)
        kills += run.returncode == -9
        transaction.recover(root, journal)
        state = snapshot(root)
        if run.returncode == 0:
            assert state == AFTER
            break
        assert state in (OLD, AFTER), f"step {step}"
        assert not journal.exists()
        transaction.change(root, {p: OLD.get(p) for p in {*OLD, *NEW}}, journal, what="reset")
    else:
        pytest.fail("never came to its end")
    assert kills >= 8


def test_a_file_edited_after_the_crash_is_named_and_kept(root: Root, journal: Path) -> None:
    journal.mkdir()
    transaction._write_journal(str(journal), "apply", OLD, {p: NEW[p] for p in OLD})
    root.put("a", File(b"somebody's"))
    with pytest.raises(Refused) as refusal:
        transaction.recover(root, journal)
    assert [f.where.file for f in refusal.value.findings] == ["a"]
    assert root.get("a") == File(b"somebody's")
    assert transaction.pending(journal)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[1]",
        b'{"format":1,"what":"x","paths":{"a":["../../x",1,null,null]}}',
        b"[" * 9999,
    ],
)
def test_a_journal_that_is_not_ours_is_refused_by_name(
    root: Root, journal: Path, body: bytes
) -> None:
    journal.mkdir()
    (journal / transaction.JOURNAL).write_bytes(body)
    with pytest.raises(Refused) as refusal:
        transaction.recover(root, journal)
    assert refusal.value.findings[0].name == "journal"
    assert snapshot(root) == OLD


def test_a_journal_cannot_point_out_of_the_tree(root: Root, journal: Path) -> None:
    journal.mkdir()
    row = [None, None, "0" * 40, 33188]
    body = {"format": 1, "what": "apply", "paths": {"../out": row}}
    (journal / transaction.JOURNAL).write_text(json.dumps(body))
    with pytest.raises(Refused) as refusal:
        transaction.recover(root, journal)
    assert refusal.value.findings[0].name == "path-escape"
