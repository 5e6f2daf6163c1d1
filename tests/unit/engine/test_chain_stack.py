"""Stacks: patches left out count by their lines only, and nothing is searched for."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.engine.chain import Chain, Step, apply_chain
from patchkit.engine.history import History, Run
from patchkit.engine.model import MemoryTree
from patchkit.engine.outcome import Edit
from patchkit.engine.rule import EXACT
from patchkit.engine.shifts import Region, Shifts
from tests.unit.engine.making import diff, names, numbered, patch, put_in, texts, tree, words

BASE = numbered(1, 60)
FILE = "".join(BASE)


def stack(base: MemoryTree, series: list[str], chosen: list[bool]) -> Chain:
    steps = [
        Step(patch(text, f"{n}.patch"), selected=selected)
        for n, (text, selected) in enumerate(zip(series, chosen, strict=True), 1)
    ]
    return apply_chain(base, steps, EXACT)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 1 << 32))
def test_any_selection_of_independent_patches_holds_exactly(seed: int) -> None:
    """Each patch edits places of its own; the whole series is made one on the other, and a
    selection must be what its own edits alone make."""
    rng = random.Random(seed)
    base = numbered(1, 200)
    anchors = rng.sample(range(5, 195, 9), rng.randint(3, 20))
    patches = rng.randint(2, 6)
    owner = {f"line {at}\n": rng.randrange(patches) for at in anchors}
    edits = {
        line: [f"{line.strip()} of {n} {k}\n" for k in range(rng.randint(0, 4))]
        for line, n in owner.items()
    }

    def made_by(chosen: set[int]) -> list[str]:
        out: list[str] = []
        for line in base:
            out += edits[line] if owner.get(line) in chosen else [line]
        return out

    series = [
        diff("f", made_by(set(range(n))), made_by(set(range(n + 1))), rng.choice([1, 2, 3]))
        for n in range(patches)
        if n in owner.values()
    ]
    numbers = [n for n in range(patches) if n in owner.values()]
    chosen = [rng.random() < 0.6 for _ in numbers]
    start = tree({"f": "".join(base)})
    chain = stack(start, series, chosen)
    assert chain.ok, words(chain.findings)
    want = made_by({n for n, c in zip(numbers, chosen, strict=True) if c})
    assert texts(start.with_changes(chain.changes))["f"] == "".join(want)
    assert all(place.offset == 0 for o in chain.outcomes for place in o.places)


def test_left_out_lines_are_subtracted_and_nothing_is_searched() -> None:
    """A copy of the block stands where the series states it: only arithmetic is right."""
    block = ["a\n", "b\n", "c\n", "d\n", "e\n", "f\n", "g\n"]
    base = [*numbered(1, 5), *block, *block, *numbered(6, 40)]
    first = put_in(base, 3, *(f"new {n}\n" for n in range(7)))
    second = [*first[:22], "changed\n", *first[23:]]
    series = [diff("f", base, first), diff("f", first, second)]
    start = tree({"f": "".join(base)})
    chain = stack(start, series, [False, True])
    want = [*base[:15], "changed\n", *base[16:]]
    assert texts(start.with_changes(chain.changes))["f"] == "".join(want)
    assert [o.state for o in chain.outcomes] == ["left-out", "applied"]


def test_patch_that_stands_on_a_left_out_one_is_cut_off() -> None:
    first = put_in(BASE, 10, "one\n")
    second = put_in(first, 11, "two\n")
    chain = stack(
        tree({"f": FILE}), [diff("f", BASE, first), diff("f", first, second)], [False, True]
    )
    [finding] = chain.findings
    assert finding.name == "guard-cuts"
    assert "2.patch" in finding.message
    assert "1.patch" in finding.message


def test_file_that_a_left_out_patch_makes_cuts_off_too() -> None:
    made = "--- /dev/null\n+++ b/g\n@@ -0,0 +1,60 @@\n" + "".join("+" + x for x in BASE)
    chain = stack(tree({}), [made, diff("g", BASE, put_in(BASE, 9, "x\n"))], [False, True])
    assert names(chain.findings) == ["guard-cuts"]


def test_failure_of_its_own_is_not_blamed_on_the_selection() -> None:
    first = put_in(BASE, 10, "one\n")
    bad = diff("f", numbered(1, 9, "other"), numbered(2, 9, "other"))
    chain = stack(tree({"f": FILE}), [diff("f", BASE, first), bad], [False, True])
    assert names(chain.findings) == ["conflict"]


def test_two_sections_of_one_file_are_mapped_one_after_the_other() -> None:
    first = put_in(BASE, 3, "a\n", "b\n")
    second = put_in(first, 20, "c\n", "d\n", "e\n")
    third = put_in(second, 40, "f\n")
    series = [diff("f", BASE, first), diff("f", first, second) + diff("f", second, third)]
    start = tree({"f": FILE})
    chain = stack(start, series, [False, True])
    assert chain.ok, words(chain.findings)
    got = texts(start.with_changes(chain.changes))["f"]
    assert got == "".join([*BASE[:18], "c\n", "d\n", "e\n", *BASE[18:35], "f\n", *BASE[35:]])


def test_renamed_file_keeps_its_regions() -> None:
    first = put_in(BASE, 3, "a\n")
    third = put_in(first, 30, "b\n")
    moved = "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"
    series = [diff("f", BASE, first), moved, diff("g", first, third)]
    start = tree({"f": FILE})
    chain = stack(start, series, [False, True, True])
    assert chain.ok, words(chain.findings)
    assert texts(start.with_changes(chain.changes)) == {"g": "".join(put_in(BASE, 29, "b\n"))}


# ---------------------------------------------------------------- the arithmetic by itself


@given(st.integers(0, 1 << 32))
def test_regions_say_where_every_common_line_stands(seed: int) -> None:
    """Against two lists of lines that are edited side by side."""
    rng = random.Random(seed)
    whole = list(range(60))
    real = list(whole)
    fresh = 1000
    shifts = Shifts()
    for _ in range(rng.randint(1, 5)):
        taken = rng.random() < 0.4
        runs: list[Run] = []
        at, net = rng.randint(0, 9), 0
        while at < len(whole) - 6 and len(runs) < 4:
            removed, added = rng.choice([(0, 2), (2, 0), (1, 3), (1, 1)])
            lines = whole[at : at + removed]
            around = whole[max(at - 1, 0) : at + removed + 1]
            # A patch that is applied stands on lines that both have.
            where = real.index(around[0]) if all(x in real for x in around) else -1
            if not taken or (where >= 0 and real[where : where + len(around)] == around):
                runs.append(Run(at, removed, at + net, added))
                net += added - removed
                at += removed + rng.randint(1, 12)
            else:
                at += 1
            assert len(lines) == removed
        new = list(whole)
        for run in reversed(runs):
            lines = list(range(fresh, fresh + run.added))
            fresh += run.added
            if taken:
                if run.old:
                    start = real.index(whole[run.old - 1]) + 1
                else:  # what a left-out patch would remove may stand above
                    start = real.index(whole[0]) if run.removed else 0
                real[start : start + run.removed] = lines
            new[run.old : run.old + run.removed] = lines
        whole = new
        (shifts.take if taken else shifts.leave_out)(runs)
    starts = [n for n, x in enumerate(whole) if x in real]
    assert shifts.actual(starts) == [real.index(whole[n]) for n in starts]


def test_what_a_left_out_patch_would_remove_at_the_top_stays_above() -> None:
    shifts = Shifts()
    shifts.leave_out([Run(0, 2, 0, 0)])
    shifts.take([Run(0, 1, 0, 3)])
    assert shifts.actual([0, 1, 2, 3]) == [2, 3, 4, 5]


def test_regions_that_overlap_are_joined() -> None:
    shifts = Shifts()
    shifts.leave_out([Run(10, 2, 10, 5)])
    shifts.leave_out([Run(12, 1, 12, 4), Run(30, 0, 33, 2)])
    assert shifts.regions == [Region(10, 8, 2), Region(33, 2, 0)]
    assert shifts.actual([9, 18, 40]) == [9, 12, 32]


def test_history_looks_through_later_shifts() -> None:
    history = History()
    one = patch(diff("f", BASE, put_in(BASE, 30, "one\n"))).sections[0].hunks
    two = patch(diff("f", BASE, put_in(BASE, 5, "a\n", "b\n"))).sections[0].hunks
    history.record(0, [Edit("f", "f", one, [27])])
    history.record(1, [Edit("f", "f", two, [2])])
    assert history.changed("f", 32, 33) == 0
    assert history.changed("f", 30, 32) is None
    assert history.changed("f", 5, 7) == 1
    assert history.changed("f", 33, 40) is None
    assert history.changed("g", 0, 9) is None
    history.record(2, [Edit("f", "g")])
    assert history.changed("g", 32, 33) == 0
    assert history.gone("f") == 2
    assert history.touched("g") == [0, 1, 2]
