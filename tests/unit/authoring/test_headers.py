"""Headers from elsewhere are fitted so that git am reads them as they are; others are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.authoring.headers import fit, identity, plain_subject, typed
from patchkit.authoring.when import when
from patchkit.errors import UsageFault
from patchkit.series.header import Field, Header, canonical, parse_header
from patchkit.series.header_out import dump_header
from patchkit.series.mailtext import git_date

DATE = "Wed, 01 Jan 2031 00:00:01 +0000"
TEXT = st.text(
    st.sampled_from("ab[]:=?<>@,. \n\t-/\0\r\"'éßRreF") | st.characters(codec="utf-8"),
    max_size=40,
)


@pytest.mark.parametrize(
    ("subject", "plain"),
    [
        ("[Bugfix][Core] Fix the lane", "Bugfix, Core: Fix the lane"),
        ("[ci] quote names", "ci: quote names"),
        ("[/x] close it", "/x: close it"),
        ("Re: [ci] again", "ci: again"),
        ("keep [ci] and [/x] inside", "keep [ci] and [/x] inside"),
        ("[] empty", "empty"),
    ],
)
def test_brackets_in_front_of_a_subject_are_written_so_that_git_am_keeps_them(
    subject: str, plain: str
) -> None:
    assert plain_subject(subject) == plain


@given(
    author=TEXT,
    date=TEXT | st.just(DATE),
    subject=TEXT,
    fields=st.lists(st.tuples(st.sampled_from(["Origin", "Subject", "a b", "X-Y"]), TEXT)),
    body=TEXT | st.sampled_from(["---\nx", "From a\nb", "diff -u a b", "Date: x", "a\n-- >8 --"]),
)
def test_any_header_can_be_fitted_and_then_reads_back_as_it_was_fitted(
    author: str, date: str, subject: str, fields: list[tuple[str, str]], body: str
) -> None:
    header = Header(author, date, subject, tuple(Field(n, v) for n, v in fields), body)
    fitted = fit(header, subject="Do it", author="A <a@b.c>", date=DATE).header
    written = dump_header(fitted)
    again = parse_header(written)
    assert canonical(again) == canonical(fitted)
    assert git_date(again.date) is not None
    assert again.subject
    assert again.author


def test_a_good_header_is_left_as_it_is_and_nothing_is_said() -> None:
    header = Header("A B <a@b.c>", DATE, "Do it", (Field("Origin", "vendor"),), "Why.\n\nMore.")
    fitted = fit(header, subject="x", author="x <x@x>", date="Thu, 02 Jan 2031 00:00:01 +0000")
    assert fitted.header == header
    assert fitted.said == ()


def test_what_a_person_types_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageFault, match="bracket"):
        typed(Header("A <a@b.c>", DATE, "[ci] x"))


@pytest.mark.parametrize("text", ["2031-01-31", "Fri, 31 Jan 2031 12:00:00 +0000"])
def test_a_date_is_a_day_or_what_a_mail_has(text: str) -> None:
    moment = when(text)
    assert moment.day == "2031-01-31"
    assert git_date(moment.mail) is not None


@pytest.mark.parametrize("text", ["2031-02-30", "yesterday", "31.1.2031", "1931-01-01", ""])
def test_other_dates_are_a_wrong_command_line(text: str) -> None:
    with pytest.raises(UsageFault):
        when(text)


def test_without_a_configured_identity_nobody_is_made_up(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    assert identity(str(home)) == ""
    (home / ".gitconfig").write_text("[user]\nname = A B\nemail = a@b.c\n")
    assert identity(str(home)) == "A B <a@b.c>"
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Other")
    assert identity(str(home)) == "Other <a@b.c>"


@pytest.mark.parametrize(
    ("subject", "next"),
    [
        ("[ci] quote names", "the same command with --subject 'ci: quote names'"),
        ("Re: [A][B] it's so", "the same command with --subject 'A, B: it'\"'\"'s so'"),
        ("two\nlines", "the same command with --subject 'two lines'"),
        ("[]", "begin the subject with a word"),
    ],
)
def test_a_typed_subject_that_git_am_would_cut_is_offered_rewritten(
    subject: str, next: str
) -> None:
    with pytest.raises(UsageFault) as fault:
        typed(Header("A <a@b.c>", DATE, subject))
    assert [finding.next for finding in fault.value.findings] == [next]
    with pytest.raises(UsageFault) as fault:
        typed(Header("no address", DATE, "[ci] x"))
    offered = [f.next for f in fault.value.findings if "--subject" in f.next]
    assert offered == ["the same command with --subject 'ci: x'"]
    assert len(fault.value.findings) == 2, "the author's fault keeps its own way out"
