"""Every case's patches through the parser: what it must refuse, and that it takes the rest."""

from __future__ import annotations

import pytest

from patchkit.engine.parse import scan
from patchkit.errors import Refused
from tests.cases.loader import Case, load_cases, said

PARSE = frozenset(
    [
        "corrupt-hunk-count",
        "bare-hunk-header",
        "no-diff",
        "no-file-header",
        "not-unified",
        "encoded-mail",
        "no-context",
        "hunks-out-of-order",
        "overlapping-hunks",
        "duplicate-section",
        "binary-unsupported",
        "path-escape",
        "no-op",
    ]
)
LATER = frozenset(
    [
        "series-path-escape",  # the series file's entry, not a patch's path
        "escape-absolute",  # refused where no landmark is found (engine/strip)
        "installed-only-tests",  # nothing left for the target
    ]
)
"""Cases with a reason of this stage's name that another stage gives."""


def refused_here(case: Case) -> bool:
    return case.verdict == "refused" and case.reason in PARSE and case.name not in LATER


REFUSED = [c for c in load_cases() if refused_here(c)]


@pytest.mark.parametrize("case", load_cases(), ids=lambda c: c.name)
def test_parser_gives_the_reason_of_the_case_and_no_other(case: Case) -> None:
    found = [scan(data, name) for name, data in case.patch_files()]
    names = {f.name for s in found for f in s.findings}
    assert names == ({case.reason} if refused_here(case) else set())


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c.name)
def test_refusal_says_the_words_of_the_case(case: Case) -> None:
    [(name, data)] = case.patch_files()
    text = said(scan(data, name).findings)
    assert [word for word in case.words if word not in text] == []


@pytest.mark.parametrize(
    "name",
    ["patch-without-final-newline", "count-too-small-context-left", "heredoc-wrapper"],
)
def test_what_is_taken_though_odd_is_noted_in_the_words_of_the_case(name: str) -> None:
    [case] = [c for c in load_cases() if c.name == name]
    [(patch, data)] = case.patch_files()
    text = said(scan(data, patch).patch.notes)
    assert [word for word in case.words if word not in text] == []


@pytest.mark.parametrize("case", [c for c in load_cases() if not c.generated], ids=lambda c: c.name)
def test_no_patch_of_a_case_hides_a_byte(case: Case) -> None:
    """Header, sections and what stands between them: sections are found where they stand."""
    for name, data in case.patch_files():
        patch = scan(data, name).patch
        assert patch.data == data
        at = len(patch.header) if patch.sections else 0
        for section in patch.sections:
            at = data.index(section.raw, at) + len(section.raw)
        assert patch.header == data[: len(patch.header)]


def test_findings_become_one_exception() -> None:
    from patchkit.engine.parse import parse

    [case] = [c for c in load_cases() if c.name == "hunks-out-of-order"]
    [(name, data)] = case.patch_files()
    with pytest.raises(Refused) as caught:
        parse(data, name)
    assert [f.name for f in caught.value.findings] == ["hunks-out-of-order"]
