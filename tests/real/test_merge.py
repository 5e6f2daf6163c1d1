"""Every file that our patches touch, merged onto the later releases: git merge-file judges."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from patchkit.derive.base import open_bases
from patchkit.derive.derive import derive
from patchkit.derive.project import find
from patchkit.derive.selection import Selection
from patchkit.engine.merge import merge3
from patchkit.engine.model import File, Overlay
from patchkit.rebase.moves import moves
from tests.unit.rebase.ground import QUIET

PIN = "v0.30.0"
RELEASES = ("v0.31.0", "v0.32.0", "v0.33.0")
ROOT = Path(__file__).resolve().parents[2]


def git_merge(where: Path, base: File, ours: File, theirs: File) -> tuple[int, bytes]:
    for name, file in (("base", base), ("ours", ours), ("theirs", theirs)):
        (where / name).write_bytes(file.data)
    done = subprocess.run(
        ["git", "merge-file", "-p", "--diff3", "ours", "base", "theirs"],
        cwd=where,
        env=QUIET,
        stdout=subprocess.PIPE,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.real
def test_every_touched_file_merges_as_git_merges_it(tmp_path: Path) -> None:
    """Each patch's own change, and the whole series', of every file, on each later release."""
    project = find(ROOT)
    counts: Counter[str] = Counter()
    with open_bases(project) as bases:
        old = bases.get(project.pins.pin(PIN)).tree(bases.store)
        derived = derive(project.series(PIN), old, Selection())
        assert derived.ok
        before, triples = Overlay(old), []
        for outcome in derived.outcomes:
            triples += [(path, before.get(path), file) for path, file in outcome.changes.items()]
            before.changes.update(outcome.changes)
        triples += [(path, old.get(path), before.get(path)) for path in derived.touched()]
        for name in RELEASES:
            tree = bases.get(project.pins.pin(name)).tree(bases.store)
            where = moves(old, tree, derived.touched())
            for path, base, theirs in triples:
                ours = tree.get(where.get(path, path))
                if base is None or ours is None or theirs is None:
                    counts["no three versions"] += 1
                    continue
                number, data = git_merge(tmp_path, base, ours, theirs)
                merged = merge3(base.data, ours.data, theirs.data)
                # Exactly git's bytes and conflicts: nothing is counted as ours alone.
                assert (merged.data, len(merged.conflicts)) == (data, number), (name, path)
                counts["conflict" if number else "clean"] += 1
    print(dict(counts))
    assert counts["clean"] > 100
    assert counts["conflict"] > 10
