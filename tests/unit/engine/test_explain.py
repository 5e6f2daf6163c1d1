"""What a refusal says of a hunk: the place, the difference, the way out."""

from __future__ import annotations

from patchkit.engine.apply import Outcome, apply_patch
from patchkit.engine.rule import Rule
from patchkit.engine.strip import Root
from tests.unit.engine.making import diff, names, numbered, patch, put_in, tree, words

BASE = [f"    value_{n} = {n}\n" for n in range(1, 41)]
CHANGED = [*BASE[:19], "    value_20 = 0\n", *BASE[20:]]
ONE = diff("e/x.py", BASE, CHANGED)


def refused(lines: list[str], text: str = ONE, rule: Rule | None = None) -> Outcome:
    outcome = apply_patch(tree({"e/x.py": "".join(lines)}), patch(text), rule or Rule(), Root())
    assert outcome.state == "refused"
    assert outcome.changes == {}
    return outcome


def test_nearest_place_and_the_differing_line_are_shown() -> None:
    [finding] = refused([*BASE[:17], "    other = 18\n", *BASE[18:]]).findings
    assert finding.name == "conflict"
    assert (finding.where.patch, finding.where.file) == ("x.patch", "e/x.py")
    assert (finding.where.hunk, finding.where.line) == (1, 17)
    assert finding.expected == "    value_18 = 18"
    assert finding.found == "    other = 18"
    assert "6 of its 7 lines" in words([finding])
    assert finding.next == "patchkit refresh x.patch"


def test_nearest_place_is_found_far_away() -> None:
    lines = [*numbered(1, 300, "top"), *BASE]
    lines[317] = "    other = 18\n"
    [finding] = refused(lines).findings
    assert finding.where.line == 317
    assert "stated: line 17" in words([finding])


def test_line_put_in_between_is_shown_alone() -> None:
    [finding] = refused(put_in(BASE, 18, "    extra = 1\n")).findings
    text = words([finding])
    assert "expected: (no such line)" in text
    assert "found:        extra = 1" in text
    assert text.count("expected: ") == 1


def test_line_taken_out_is_shown_alone() -> None:
    [finding] = refused([*BASE[:18], *BASE[19:]]).findings
    text = words([finding])
    assert "expected:     value_19 = 19" in text
    assert "found:    (no such line)" in text


def test_white_space_is_named_as_the_only_difference() -> None:
    [finding] = refused([*BASE[:15], *("    " + x for x in BASE[15:25]), *BASE[25:]]).findings
    assert "differs in white space only" in finding.message
    assert "indented by 8 spaces" in words([finding])


def test_tab_and_no_break_space_are_made_visible() -> None:
    tab = ONE.replace(" " + BASE[18], " \tvalue_19 = 19\n")
    pasted = ONE.replace(" " + BASE[18], " \u00a0\u00a0\u00a0 value_19 = 19\n")
    assert "\\tvalue_19" in words(refused(BASE, tab).findings)
    assert "<U+00A0>" in words(refused(BASE, pasted).findings)


def test_trailing_white_space_is_pointed_at() -> None:
    lines = [*BASE[:17], BASE[17].rstrip("\n") + "  \n", *BASE[18:]]
    assert "white space at its end" in words(refused(lines).findings)


def test_missing_last_line_end_is_told_apart_from_line_ends() -> None:
    old, new = ["a\n", "b\n", "c\n"], ["a\n", "x\n", "c\n"]
    [finding] = refused(["a\n", "b\n", "c"], diff("e/x.py", old, new)).findings
    assert finding.name == "conflict"
    assert "differs in its line end" in finding.message


def test_line_ends_are_one_finding_a_file() -> None:
    new = [*CHANGED[:34], "    value_35 = 0\n", *CHANGED[35:]]
    text = diff("e/x.py", BASE, new)
    [finding] = refused([x.replace("\n", "\r\n") for x in BASE], text).findings
    assert finding.name == "line-endings"
    assert (finding.expected, finding.found) == ("LF", "CRLF")
    assert "hunks 2" in words([finding])
    assert "line-endings=target" in finding.next


def test_the_line_that_differs_is_shown_and_line_ends_are_counted_beside_it() -> None:
    lines = [*BASE[:17], "    other = 18\n", *BASE[18:]]
    for file, text in (
        ([x.replace("\n", "\r\n") for x in lines], ONE),
        (lines, ONE.replace("\n", "\r\n").replace("x.py\r", "x.py")),
    ):
        [finding] = refused(file, text).findings
        assert (finding.name, finding.expected, finding.found) == (
            "conflict", "    value_18 = 18", "    other = 18"
        )  # fmt: skip
        said = words([finding])
        assert "6 of its 7 lines are the same there" in said
        assert said.count("expected: ") == 1
        assert "and 6 more lines differ in the line end only" in said


def test_fuzzy_place_is_a_candidate_and_nothing_more() -> None:
    outcome = refused([*BASE[:16], "    other = 17\n", *BASE[17:]])
    [candidate] = outcome.candidates
    assert (candidate.line, candidate.fuzz) == (17, 1)
    assert "fuzz=1" in words(outcome.findings)


def test_nothing_alike_is_said_so() -> None:
    [finding] = refused(numbered(1, 9, "other")).findings
    assert "nothing like it" in finding.message
    assert finding.expected == "    value_20 = 20"


def test_ambiguous_places_are_all_named_and_can_be_accepted() -> None:
    lines = ["top\n", *BASE, *BASE[16:23], *BASE[16:23], "end\n"]
    [finding] = refused(lines).findings
    assert finding.name == "ambiguous"
    assert "18, 42, 49" in finding.message
    assert finding.next == "patchkit apply … --accept e/x.py:18"


def test_look_alike_is_named_with_the_changed_line() -> None:
    lines = [*BASE[:17], "    other = 18\n", *BASE[18:], *BASE[16:23], "end\n"]
    [finding] = refused(lines).findings
    assert finding.name == "ambiguous"
    assert "17" in finding.message
    assert "41" in finding.message
    assert "other = 18" in words([finding])
    assert finding.next.endswith("--accept e/x.py:41")


def test_exact_rule_names_the_offset() -> None:
    [finding] = refused(["top\n", *BASE], rule=Rule(exact=True)).findings
    assert (finding.name, finding.expected, finding.found) == ("offset", "line 17", "line 18")


def test_file_to_fill_that_is_not_empty_is_said_so() -> None:
    [finding] = refused(["a\n"], diff("e/x.py", [], ["b\n"])).findings
    assert "empty file" in finding.message


def test_many_failures_are_counted_after_the_first_twenty() -> None:
    old = numbered(1, 400)
    new = [f"new {n}\n" if n % 10 == 0 else x for n, x in enumerate(old, 1)]
    outcome = refused(numbered(1, 400, "other"), diff("e/x.py", old, new))
    assert len(outcome.findings) == 21
    assert "20 more hunks" in outcome.findings[-1].message
    assert set(names(outcome.findings)) == {"conflict"}


def test_huge_lines_are_cut() -> None:
    long = "x" * 500_000
    old = ["a\n", f"{long}1\n", "b\n", "c\n"]
    text = diff("e/x.py", old, [*old[:2], "new\n", *old[3:]])
    [finding] = refused(["a\n", f"{long}2\n", "b\n", "c\n"], text).findings
    assert len(words([finding])) < 3000
    assert "500001 bytes" in words([finding])


def test_control_bytes_never_leave() -> None:
    lines = [*BASE[:17], "    \x1b[2Jother\x07\n", *BASE[18:]]
    text = words(refused(lines).findings)
    assert "\\x1b[2J" in text
    assert "\x1b" not in text


def test_reverse_that_has_nothing_to_take_out_says_so() -> None:
    outcome = apply_patch(tree({"e/x.py": "".join(BASE)}), patch(ONE), root=Root(), reverse=True)
    assert names(outcome.findings) == ["conflict"]
    assert "-R" in words(outcome.findings)
    assert "nothing to take out" in words(outcome.findings)
