"""A patch of which upstream touched no line is placed by arithmetic, as a merge places it."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bench.series import many_patches
from patchkit.derive.carry import carry
from patchkit.engine.chain import Step, apply_chain
from patchkit.engine.model import File, MemoryTree, Overlay
from patchkit.engine.parse import parse
from patchkit.engine.rule import EXACT
from patchkit.rebase.shifts import Shifts
from patchkit.series.renumber import renumber


def sources(draw: random.Random) -> dict[str, bytes]:
    return {
        f"pkg/module_{number:02}.py": b"".join(
            b"value_%d = %d\n" % (line, draw.randrange(10**9)) for line in range(300)
        )
        for number in range(45)
    }


def upstream(draw: random.Random, data: bytes) -> bytes:
    """Some lines changed, some gone, some come, here and there."""
    lines = data.splitlines(keepends=True)
    for number in range(draw.choice((0, 1, 4, 12))):
        at = draw.randrange(len(lines))
        come = [b"# upstream %d %d\n" % (number, row) for row in range(draw.randrange(4))]
        lines[at : at + draw.randrange(3)] = come
    return b"".join(lines)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_what_a_merge_makes_or_the_merge_is_asked(seed: int) -> None:
    draw = random.Random(seed)
    files = sources(draw)
    made = many_patches(files, 25, seed)
    old = MemoryTree({path: File(data) for path, data in files.items()})
    new = MemoryTree({path: File(upstream(draw, data)) for path, data in files.items()})
    chain = apply_chain(old, [Step(parse(data, name), 1) for name, data in made.patches], EXACT)
    assert chain.ok
    shifts, before, now = Shifts(), Overlay(old), Overlay(new)
    count: Counter[str] = Counter()
    for outcome in chain.outcomes:
        shifted = shifts.carried(outcome, before, now)
        merged = carry(before, outcome.changes, now)
        if shifted is None:
            shifts.forget(outcome.changes)
            count["merged" if not merged.clashes else "conflict"] += 1
        else:
            assert not merged.clashes
            assert {p: f and f.data for p, f in shifted.changes.items()} == {
                p: f and f.data for p, f in merged.changes.items()
            }
            # The numbers that follow are those that are found where nothing is known.
            root = outcome.root
            known = renumber(outcome.patch, now, shifted.changes, root, shifted.starts)
            assert known == renumber(outcome.patch, now, shifted.changes, root)
            count["shifted"] += 1
        before.changes.update(outcome.changes)
        if not merged.clashes:
            now.changes.update(merged.changes)
    assert count["shifted"] >= 5


def test_a_hunk_beside_a_change_of_upstream_is_left_to_the_merge() -> None:
    lines = [b"line %d\n" % n for n in range(30)]
    patched = [*lines[:15], b"ours\n", *lines[16:]]
    diff = (
        b"--- a/f\n+++ b/f\n@@ -13,7 +13,7 @@\n line 12\n line 13\n line 14\n-line 15\n+ours\n"
        b" line 16\n line 17\n line 18\n"
    )
    old = MemoryTree({"f": File(b"".join(lines))})
    (outcome,) = apply_chain(old, [Step(parse(diff, "p"), 1)], EXACT).outcomes
    for at, moves in ((0, True), (10, True), (11, False), (12, False), (19, False), (20, True)):
        new = [*lines[:at], b"theirs\n", *lines[at + 1 :]]
        now = MemoryTree({"f": File(b"".join(new))})
        made = Shifts().carried(outcome, Overlay(old), Overlay(now))
        assert (made is not None) == moves, at
        if made is not None:
            file = made.changes["f"]
            assert file is not None
            assert file.data == b"".join([*new[:15], b"ours\n", *new[16:]])
    assert outcome.changes["f"] == File(b"".join(patched))
