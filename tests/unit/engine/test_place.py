"""Where hunks stand: the exact rule and the loose one."""

from __future__ import annotations

import pytest

from patchkit.engine.content import Text
from patchkit.engine.model import Hunk
from patchkit.engine.place import (
    FAILS,
    HOLDS,
    THERE,
    Spot,
    holds,
    place_hunks,
    splice,
    stated,
)
from patchkit.engine.rule import Allow, Rule
from tests.unit.engine.making import diff, numbered, patch, put_in

EXACTLY = Rule(exact=True)
LOOSELY = Rule()


def hunks_of(old: list[str], new: list[str], context: int = 3) -> tuple[Hunk, ...]:
    return patch(diff("f", old, new, context)).sections[0].hunks


def place(
    lines: list[str], hunks: tuple[Hunk, ...], rule: Rule = LOOSELY, detect: bool = True
) -> list[Spot]:
    text = Text([line.encode() for line in lines])
    return place_hunks(text, "f", hunks, [stated(h) for h in hunks], rule, detect=detect)


BASE = numbered(1, 40)
CHANGED = [*BASE[:19], "new 20\n", *BASE[20:]]
ONE = hunks_of(BASE, CHANGED)  # lines 17 to 23


def test_exact_rule_takes_the_stated_line_only() -> None:
    [spot] = place(BASE, ONE, EXACTLY)
    assert (spot.status, spot.index, spot.offset) == (HOLDS, 16, 0)
    [moved] = place(["top\n", *BASE], ONE, EXACTLY)
    assert (moved.status, moved.why, moved.places) == (FAILS, "offset", (17,))


def test_loose_rule_takes_the_only_place() -> None:
    [spot] = place(["top\n", "top\n", *BASE], ONE)
    assert (spot.status, spot.index, spot.offset) == (HOLDS, 18, 2)


def test_stated_line_wins_over_copies() -> None:
    block = BASE[16:23]
    [spot] = place([*BASE, *block, *block, "end\n"], ONE)
    assert (spot.status, spot.index) == (HOLDS, 16)


def test_two_places_are_one_too_many() -> None:
    [spot] = place(["top\n", *BASE, *BASE[16:23], "end\n"], ONE)
    assert (spot.status, spot.why, spot.places) == (FAILS, "ambiguous", (17, 41))


def test_accepted_place_is_taken() -> None:
    lines = ["top\n", *BASE, *BASE[16:23], "end\n"]
    [spot] = place(lines, ONE, Rule(accept=frozenset([("f", 42)])))
    assert (spot.status, spot.index) == (HOLDS, 41)
    [other] = place(lines, ONE, Rule(accept=frozenset([("g", 42), ("f", 7)])))
    assert other.status == FAILS


def test_exact_copy_elsewhere_is_doubted_where_the_stated_place_is_nearly_it() -> None:
    lines = [*BASE[:17], "upstream\n", *BASE[18:], *BASE[16:23], "end\n"]
    [spot] = place(lines, ONE)
    assert (spot.status, spot.why, spot.places) == (FAILS, "near-miss", (16, 40))
    [taken] = place(lines, ONE, Rule(accept=frozenset([("f", 41)])))
    assert (taken.status, taken.index) == (HOLDS, 40)


def test_line_put_into_the_stated_place_makes_it_a_near_miss_too() -> None:
    lines = [*put_in(BASE, 18, "upstream\n"), *BASE[16:23], "end\n"]
    [spot] = place(lines, ONE)
    assert (spot.status, spot.why) == (FAILS, "near-miss")


TWO = hunks_of(BASE, ["new 1\n" if n in (9, 29) else x for n, x in enumerate(BASE)])


def test_offsets_need_not_agree() -> None:
    lines = put_in(put_in(BASE, 20, "mid\n"), 2, "top\n", "top\n")
    assert [s.offset for s in place(lines, TWO)] == [2, 3]


def test_hunk_at_its_stated_line_is_doubted_where_its_neighbour_moved_and_it_fits_there() -> None:
    old = [*numbered(1, 10), *["same\n"] * 9, *numbered(20, 40)]
    new = [*old[:24], "new\n", *old[25:]]
    new[14] = "changed\n"
    hunks = hunks_of(old, new, 2)
    assert [h.old_start for h in hunks] == [13, 23]
    # One line more above: hunk 2 moves by one; hunk 1, all of equal lines, fits at both.
    spots = place(["top\n", *old], hunks)
    assert (spots[0].status, spots[0].why) == (FAILS, "ambiguous")
    assert spots[1].offset == 1


def test_hunk_that_moved_with_its_neighbour_is_not_compared_with_the_stated_place() -> None:
    block = ["def f():\n", "    a = 1\n", "    b = 2\n", "    c = 3\n", "    d = 4\n"]
    old = [*numbered(1, 8), *block, "    e = 5\n", *numbered(20, 40)]
    new = [*old[:4], "new\n", *old[5:]]
    new[11] = "    c = 30\n"
    hunks = hunks_of(old, new, 1)
    # The stated place of hunk 2 is nearly it, since a look-alike was put above both.
    alike = [*block[:3], "    c = 7\n", block[4]]
    lines = [*numbered(1, 8, "other"), *alike, *old]
    assert [s.offset for s in place(lines, hunks)] == [13, 13]
    [alone] = place(lines, hunks[1:])
    assert alone.why == "near-miss"


def test_hunk_found_only_above_the_one_before_it_fails() -> None:
    lines = [*BASE[24:36], *BASE[:24]]
    first, second = place(lines, TWO)
    assert first.status == HOLDS
    assert (second.status, second.why) == (FAILS, "order")


def test_hunk_that_states_line_1_stands_at_the_start() -> None:
    hunks = hunks_of(BASE, ["new\n", *BASE])
    [spot] = place(["top\n", *BASE], hunks)
    assert (spot.status, spot.why, spot.places) == (FAILS, "start", (1,))
    [taken] = place(["top\n", *BASE], hunks, Rule(accept=frozenset([("f", 2)])))
    assert (taken.status, taken.index) == (HOLDS, 1)


@pytest.mark.parametrize("rule", [EXACTLY, LOOSELY])
def test_hunk_without_trailing_context_stands_at_the_end(rule: Rule) -> None:
    hunks = hunks_of(BASE, [*BASE, "new\n"])
    assert place(BASE, hunks, rule)[0].status == HOLDS
    [spot] = place([*BASE, "grown\n"], hunks, rule)
    assert (spot.status, spot.why) == (FAILS, "end")


def test_end_moves_with_the_file() -> None:
    hunks = hunks_of(BASE, [*BASE, "new\n"])
    [spot] = place(["top\n", *BASE], hunks)
    assert (spot.status, spot.offset) == (HOLDS, 1)


def test_result_that_stands_already_is_told_apart() -> None:
    [spot] = place(CHANGED, ONE)
    assert (spot.status, spot.index) == (THERE, 16)
    [moved] = place(["top\n", *CHANGED], ONE)
    assert (moved.status, moved.offset) == (THERE, 1)
    [blind] = place(CHANGED, ONE, detect=False)
    assert blind.status == FAILS


def test_lines_of_hunks_that_are_there_move_the_later_ones() -> None:
    new = put_in(put_in(BASE, 30, "two\n"), 10, "one\n", "one\n")
    hunks = hunks_of(BASE, new)
    half = put_in(BASE, 10, "one\n", "one\n")
    first, second = place(half, hunks)
    assert (first.status, second.status) == (THERE, HOLDS)
    assert second.offset == 0


def test_emptied_file_is_there_already() -> None:
    hunks = hunks_of(["a\n"], [])
    assert place([], hunks)[0].status == THERE


@pytest.mark.parametrize(("fuzz", "changed"), [(1, 16), (2, 17)])
def test_fuzz_drops_as_many_lines_as_allowed(fuzz: int, changed: int) -> None:
    lines = [*BASE]
    lines[changed] = "upstream\n"
    assert place(lines, ONE)[0].status == FAILS
    assert place(lines, ONE, Rule(allow=Allow(fuzz - 1)))[0].status == FAILS
    [spot] = place(lines, ONE, Rule(allow=Allow(fuzz)))
    assert (spot.status, spot.index, spot.trim and spot.trim.fuzz) == (HOLDS, 16, fuzz)
    after = splice([line.encode() for line in lines], ONE, [spot])
    assert after[changed] == b"upstream\n"
    assert after[19] == b"new 20\n"


def test_fuzz_three_is_never_used() -> None:
    lines = [*BASE]
    lines[18] = "upstream\n"
    assert place(lines, ONE, Rule(allow=Allow(5)))[0].status == FAILS


def test_fuzz_never_drops_a_whole_insertion() -> None:
    hunks = hunks_of(BASE, put_in(BASE, 20, "new\n"), 1)
    lines = [*BASE]
    lines[19] = lines[20] = "upstream\n"
    assert place(lines, hunks, Rule(allow=Allow(2)))[0].status == FAILS


def test_touching_hunks_hold_and_overlapping_ones_do_not() -> None:
    lines = [line.encode() for line in BASE]
    first = hunks_of(BASE, [*BASE[:9], "x\n", *BASE[10:]])[0]
    touching = hunks_of(BASE, [*BASE[:16], "x\n", *BASE[17:]])[0]
    over = hunks_of(BASE, [*BASE[:15], "x\n", *BASE[16:]])[0]
    assert holds(lines, [first, touching])
    assert not holds(lines, [first, over])
    assert place(BASE, (first, over))[1].status == FAILS


def test_insertion_into_an_empty_file_wants_it_empty() -> None:
    [hunk] = hunks_of([], ["a\n"])
    assert place([], (hunk,))[0].status == HOLDS
    assert place(["b\n"], (hunk,))[0].status == FAILS
