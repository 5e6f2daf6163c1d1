"""A series on one tree: all of it, or every reason why not."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.engine.chain import Chain, Step, apply_chain
from patchkit.engine.model import MemoryTree
from patchkit.engine.rule import EXACT, LOOSE, Allow, Rule
from tests.unit.engine.making import diff, names, numbered, patch, put_in, texts, tree, words

BASE = numbered(1, 40)
FILE = "".join(BASE)
ONE = put_in(BASE, 10, "one\n")
TWO = put_in(ONE, 11, "two\n")
THREE = put_in(TWO, 30, "three\n")
SERIES = [diff("f", BASE, ONE), diff("f", ONE, TWO), diff("f", TWO, THREE)]


def steps(texts: Sequence[str], **changes: object) -> list[Step]:
    return [
        Step(patch(text, f"{n}.patch"), **changes)  # type: ignore[arg-type]
        for n, text in enumerate(texts, 1)
    ]


def run(base: MemoryTree, texts: Sequence[str], rule: Rule = EXACT) -> Chain:
    return apply_chain(base, steps(texts), rule)


def states(chain: Chain) -> list[str]:
    return [outcome.state for outcome in chain.outcomes]


def after(base: MemoryTree, chain: Chain) -> dict[str, str]:
    return texts(base.with_changes(chain.changes))


def test_each_patch_stands_on_the_ones_before() -> None:
    base = tree({"f": FILE})
    chain = run(base, SERIES)
    assert (chain.ok, states(chain), chain.findings) == (True, ["applied"] * 3, ())
    assert after(base, chain) == {"f": "".join(THREE)}
    made = [outcome.changes["f"] for outcome in chain.outcomes]
    assert [file and file.data.decode() for file in made] == ["".join(x) for x in (ONE, TWO, THREE)]


def test_no_patch_is_no_failure() -> None:
    chain = run(tree({"f": FILE}), [])
    assert (chain.ok, chain.changes, chain.outcomes) == (True, {}, ())


def test_one_failure_keeps_all_from_being_written_and_later_ones_are_tried() -> None:
    bad = diff("f", numbered(1, 9, "other"), numbered(2, 9, "other"))
    good = diff("g", BASE, ONE)
    worse = diff("h", BASE, ONE)
    chain = run(tree({"f": FILE, "g": FILE}), [SERIES[0], bad, good, worse])
    assert states(chain) == ["applied", "refused", "applied", "refused"]
    assert (chain.ok, chain.changes) == (False, {})
    assert [f.where.patch for f in chain.findings] == ["2.patch", "4.patch"]


def test_failed_patch_leaves_nothing_for_the_next_one() -> None:
    half = SERIES[0] + diff("h", BASE, ONE)
    chain = run(tree({"f": FILE}), [half, SERIES[1]], LOOSE)
    assert states(chain) == ["refused", "refused"]
    assert "it may follow from this" in words(chain.findings[1:])
    assert "1.patch" in words(chain.findings[1:])


def test_patch_listed_before_the_one_it_needs_is_in_the_wrong_order() -> None:
    chain = run(tree({"f": FILE}), [SERIES[1], SERIES[0], SERIES[2]], LOOSE)
    [finding] = chain.findings
    assert finding.name == "wrong-order"
    assert "1.patch" in finding.message
    assert "2.patch" in finding.message
    assert "one" in words([finding])
    assert finding.next == "patchkit move 1.patch --after 2.patch"


def test_file_made_later_is_wrong_order_too() -> None:
    made = "--- /dev/null\n+++ b/g\n@@ -0,0 +1,40 @@\n" + "".join("+" + x for x in BASE)
    chain = run(tree({}), [diff("g", BASE, ONE), made])
    assert names(chain.findings) == ["wrong-order"]


def test_who_last_changed_the_lines_is_told() -> None:
    other = put_in(BASE, 11, "mine\n")
    chain = run(tree({"f": FILE}), [SERIES[2], SERIES[0], diff("f", BASE, other)], LOOSE)
    assert "last changed by 2.patch" in words(chain.findings[-1:])


def test_who_took_the_file_away_is_told() -> None:
    gone = "--- a/f\n+++ /dev/null\n@@ -1,40 +0,0 @@\n" + "".join("-" + x for x in BASE)
    chain = run(tree({"f": FILE}), [gone, SERIES[0]])
    assert names(chain.findings) == ["missing-target"]
    assert "1.patch deleted or renamed it" in words(chain.findings)


def test_reversed_entry_takes_out() -> None:
    base = tree({"f": "".join(ONE)})
    chain = apply_chain(base, steps(SERIES[:1], reverse=True), EXACT)
    assert after(base, chain) == {"f": FILE}


def test_strip_level_of_a_step_is_its_own() -> None:
    base = tree({"f": FILE, "d/g": FILE})
    two = steps([SERIES[0], diff("g", BASE, ONE)])
    chain = apply_chain(base, [two[0], Step(two[1].patch, None)], LOOSE)
    assert chain.ok
    assert [o.root.directory for o in chain.outcomes] == ["", "d"]


def test_permission_is_for_its_own_patch_only() -> None:
    base = tree(
        {"f": FILE.replace("line 8\n", "other\n"), "g": FILE.replace("line 8\n", "other\n")}
    )
    two = steps([SERIES[0], diff("g", BASE, ONE)])
    chain = apply_chain(base, [Step(two[0].patch, allow=Allow(fuzz=1)), two[1]], LOOSE)
    assert states(chain) == ["applied", "refused"]


# ---------------------------------------------------------------- twice


def test_same_hunk_in_two_patches_is_a_duplicate() -> None:
    chain = run(tree({"f": FILE}), [SERIES[0], SERIES[0]], LOOSE)
    [finding] = chain.findings
    assert finding.name == "duplicate"
    assert "hunk 1 of f is in 1.patch already" in finding.message


def test_insertion_that_would_hold_twice_is_a_duplicate() -> None:
    base = tree({"f": "x\na\nend\n"})
    text = "--- a/f\n+++ b/f\n@@ -2,2 +2,3 @@\n a\n+a\n end\n"
    chain = run(base, [text, text.replace("-2", "-3").replace("+2", "+3")])
    assert names(chain.findings) == ["duplicate"]


def test_same_insertion_at_two_places_is_none() -> None:
    lines = [*numbered(1, 5), *numbered(1, 5), "end\n"]
    first = put_in(lines, 3, "new\n")
    second = put_in(first, 9, "new\n")
    chain = run(tree({"f": "".join(lines)}), [diff("f", lines, first), diff("f", first, second)])
    assert chain.ok


def test_change_taken_back_and_made_again_is_no_duplicate() -> None:
    back = diff("f", ONE, BASE)
    chain = run(tree({"f": FILE}), [SERIES[0], back, SERIES[0]])
    assert chain.ok
    assert len(chain.changes) == 1


# ---------------------------------------------------------------- there already


def test_series_that_is_in_the_tree_is_there_though_patches_overwrite_each_other() -> None:
    second = ["".join(ONE).replace("one\n", "more\n")]
    texts_of = [SERIES[0], diff("f", ONE, second[0].splitlines(keepends=True))]
    chain = run(tree({"f": second[0]}), texts_of, LOOSE)
    assert (chain.ok, states(chain), chain.changes) == (True, ["already-applied"] * 2, {})


def test_series_goes_on_where_the_tree_is_patched_up_to() -> None:
    base = tree({"f": "".join(TWO)})
    chain = run(base, SERIES, LOOSE)
    assert states(chain) == ["already-applied", "already-applied", "applied"]
    assert after(base, chain) == {"f": "".join(THREE)}


def test_absent_file_is_no_proof_that_the_patch_which_deletes_it_was_applied() -> None:
    gone = "--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n"
    assert states(run(tree({}), [gone], LOOSE)) == ["refused"]
    chain = run(tree({"f": "".join(ONE)}), [SERIES[0], gone], LOOSE)
    assert states(chain) == ["already-applied", "refused"]


def test_tree_that_is_patched_half_way_is_known_though_the_next_patch_fails() -> None:
    lines = [*TWO[:30], "other\n", "other\n", "other\n", *TWO[33:]]
    chain = run(tree({"f": "".join(lines)}), SERIES, LOOSE)
    assert states(chain) == ["already-applied", "already-applied", "refused"]
    assert (chain.ok, chain.changes) == (False, {})


def test_patch_that_a_release_has_is_upstreamed_and_the_others_are_tried() -> None:
    chain = run(tree({"f": "".join(ONE), "g": FILE}), [SERIES[0], diff("g", BASE, ONE)])
    assert states(chain) == ["refused", "applied"]
    assert names(chain.findings) == ["upstreamed"]
