"""The header: three shapes are read, one is written, and git's own mail reader judges it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from patchkit.engine.rule import Allow
from patchkit.errors import Refused
from patchkit.series.header import Field, Header, Switch, canonical, parse_header, tidy
from patchkit.series.header_out import dump_header, header_faults
from patchkit.series.mailtext import decode_words, git_date, mail_date

CANONICAL = """\
From: Zoë Author <zoe@example.invalid>
Date: Wed, 1 Jan 2031 00:00:01 +0000
Subject: Keep a reserve of tokens
Origin: vendor
Forwarded: no
Last-Update: 2031-02-03
Drop-When: v0.31.0 (upstream PR 55557)

Long answers starve short ones: seen in scheduler.py (Budget).

Switch: ENGINE_RESERVE (default 128): tokens kept back
---
""".encode()

DIFF = b"""\
diff --git a/f b/f
index 78981922613b2afb6025042ff6bd878ac1994e85..422c2b7ab3b3c668038da977e4e93a5fc623169c 100644
--- a/f
+++ b/f
@@ -1 +1,2 @@
 a
+b
"""
GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@example.invalid",
    "LC_ALL": "C.UTF-8",
}


def git(where: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    command = ["git", "-c", "core.hooksPath=/dev/null", *arguments]
    return subprocess.run(
        command, cwd=where, env=GIT, input=stdin, check=True, stdout=subprocess.PIPE
    ).stdout


def mailinfo(where: Path, header: Header) -> Header:
    """What git reads in the written header."""
    out = git(where, "mailinfo", "msg", "patch", stdin=dump_header(header) + DIFF).decode()
    said = dict(line.split(": ", 1) for line in out.strip().split("\n") if ": " in line)
    assert (where / "patch").read_bytes().endswith(DIFF)
    body = (where / "msg").read_bytes().decode()
    author = f"{said.get('Author', '')} <{said.get('Email', '')}>"
    return Header(
        author, said.get("Date", ""), said.get("Subject", ""), body=tidy(body.split("\n"))
    )


def test_a_canonical_header_reads_and_writes_byte_for_byte() -> None:
    header = parse_header(CANONICAL)
    assert header.author == "Zoë Author <zoe@example.invalid>"
    assert header.date == "Wed, 1 Jan 2031 00:00:01 +0000"
    assert header.subject == "Keep a reserve of tokens"
    assert header.first("drop-when").startswith("v0.31.0")
    assert header.body.startswith("Long answers")
    assert dump_header(header) == CANONICAL


def test_git_am_keeps_author_date_subject_and_body(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "f").write_bytes(b"a\n")
    git(tmp_path, "add", "f")
    git(tmp_path, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "base")
    header = parse_header(CANONICAL)
    git(tmp_path, "am", "-q", "--keep-cr", stdin=CANONICAL + DIFF)
    said = git(tmp_path, "log", "-1", "--format=%an <%ae>%n%ad%n%s%n%b", "--date=rfc").decode()
    author, date, subject, body = said.split("\n", 3)
    assert (author, date, subject) == (header.author, header.date, header.subject)
    assert body.strip() == header.body
    assert (tmp_path / "f").read_bytes() == b"a\nb\n"


# Line separators are data to us and to git; NUL, CR and LF cannot stand in one line.
LINE = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=("Cs", "Cc")),
    max_size=30,
)
NAME = st.text(st.sampled_from("abcXYZ éß.,'\"()-@:;[]\\=?_"), min_size=1, max_size=20)
BODY = st.lists(
    LINE | st.sampled_from(["", "---", "--- a", "diff -x", "From: a", "From x", "-- ", "Note: a"]),
    max_size=6,
)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=NAME, subject=LINE, body=BODY)
@example(name="Smith, J. (ext)", subject="a", body=[])
@example(name="Zoë =", subject="not =?UTF-8?q?x?= encoded, " + "é" * 30, body=["x"])
@example(name='"', subject="Fix: b ] c", body=["", "a", "", "", "b "])
def test_git_mailinfo_reads_what_the_header_says(
    tmp_path: Path, name: str, subject: str, body: list[str]
) -> None:
    name, subject = " ".join(name.split()), " ".join(subject.split())
    header = Header(
        f"{name} <a@example.invalid>",
        "Wed, 1 Jan 2031 00:00:01 +0000",
        subject,
        (Field("Forwarded", "no"),),
        tidy(body),
    )
    assume(not header_faults(header))
    assert mailinfo(tmp_path, header) == replace_fields(header)
    again = parse_header(dump_header(header))
    assert again == header
    assert dump_header(again) == dump_header(header)


def replace_fields(header: Header) -> Header:
    return Header(header.author, header.date, header.subject, (), header.body)


@pytest.mark.parametrize(
    ("header", "word"),
    [
        (Header(subject=""), "no subject"),
        (Header(subject="[ci] run it"), "bracket"),
        (Header(subject="Re: x"), "bracket"),
        (Header(subject="a\nb"), "more than one line"),
        (Header(subject="a", author="x\n <a@b>"), "more than one line"),
        (Header(subject="a", body="x\n---\ny"), "line 2"),
        (Header(subject="a", body="x\ndiff --git a/x b/x"), "line 2"),
        (Header(subject="a", body="--- a/x\n+++ b/x"), "line 1"),
        (Header(subject="a", body="Index: x"), "line 1"),
        (Header(subject="a", body="From: me"), "first line"),
        (Header(subject="a", body="b\nFrom me@x Mon Sep 17 00:00:00 2001"), "line 2"),
        (Header(subject="a", fields=(Field("Subject", "b"),)), "second Subject"),
        (Header(subject="a", fields=(Field("a b", "b"),)), "cannot be a field"),
    ],
)
def test_what_a_mail_reader_would_read_otherwise_is_not_written(header: Header, word: str) -> None:
    with pytest.raises(Refused, match=word) as caught:
        dump_header(header)
    assert {f.name for f in caught.value.findings} == {"bad-header"}


def test_dep3_is_written_back_as_mail_with_nothing_lost() -> None:
    header = parse_header(
        b"Description: Keep a reserve\n Long answers.\n .\n Keep room.\nAuthor: A <a@b.c>\n"
        b"Author: B <b@b.c>\nBug: https://b.c/1\n .\n second line\nForwarded: no\n---\nnotes\n"
    )
    assert header.shape == "dep3"
    assert dump_header(header).decode() == (
        "From: A <a@b.c>\nSubject: Keep a reserve\nAuthor: B <b@b.c>\nBug: https://b.c/1\n .\n"
        " second line\nForwarded: no\n\nLong answers.\n\nKeep room.\n---\n"
    )
    assert canonical(parse_header(dump_header(header))) == canonical(header)


def test_a_mail_loses_its_prefix_its_way_and_its_diffstat_but_no_bracket_of_its_own() -> None:
    header = parse_header(
        b"From 0000000000000000000000000000000000002222 Mon Sep 17 00:00:00 2001\r\n"
        b"From: =?UTF-8?B?Wm/Dqw==?= =?utf-8?q?_A?= <z@b.c>\r\n"
        b"Date: Wed, 1 Jan 2031 00:00:01 +0000\r\n"
        b"Subject: Re: [PATCH v2 2/7] [ci] Keep\r\n a reserve\r\n"
        b"MIME-Version: 1.0\r\n\r\nwhy\r\n---\r\n f | 1 +\r\n"
    )
    assert (header.author, header.subject, header.body) == (
        "Zoë A <z@b.c>",
        "[ci] Keep a reserve",
        "why",
    )
    assert header.get("MIME-Version") == ["1.0"]
    assert canonical(header).fields == ()


def test_prose_with_colons_stays_prose() -> None:
    header = parse_header(b"Note: this is prose.\nSee: nothing.\n\nMore.\n")
    assert (header.shape, header.subject) == ("prose", "Note: this is prose.")
    assert header.body == "See: nothing.\n\nMore."
    assert header.fields == ()


def test_no_header_is_empty() -> None:
    assert parse_header(b"") == parse_header(b"\n\n") == Header(shape="none")
    assert parse_header(b"").view() == {}


def test_fields_repeat_and_ignore_case() -> None:
    header = parse_header(b"Subject: a\nReviewed-by: C\nReviewed-By: D\nX-Lane: pack\n")
    assert header.get("reviewed-by") == ["C", "D"]
    assert header.view()["reviewed-by"] == ["C", "D"]
    assert header.view()["x-lane"] == "pack"


def test_a_field_is_set_in_its_place_or_at_the_end() -> None:
    header = parse_header(CANONICAL)
    updated = header.with_field("Last-Update", "2031-03-04")
    assert dump_header(updated) == CANONICAL.replace(b"2031-02-03", b"2031-03-04")
    more = header.with_field("Rebased-From", "v0.30.0")
    assert more.fields[-1] == Field("Rebased-From", "v0.30.0")
    assert more.without_field("rebased-from") == header


def test_permissions_are_read_and_a_wrong_one_is_refused() -> None:
    text = b"Subject: a\nPatchkit-Allow: fuzz=1\nPatchkit-Allow: line-endings=target\n"
    assert parse_header(text).allow() == Allow(1, "target")
    assert parse_header(b"Subject: a\n").allow() == Allow()
    for wrong in (b"fuzz=33", b"fuzz=-1", b"fuzz", b"line-endings=crlf", b"offset"):
        with pytest.raises(Refused, match="bad-header"):
            parse_header(b"Subject: a\nPatchkit-Allow: " + wrong + b"\n").allow()


def test_a_permission_alone_makes_a_header() -> None:
    assert parse_header(b"Patchkit-Allow: fuzz=2\n\n").allow().fuzz == 2


def test_switches_are_read_from_the_body() -> None:
    body = (
        "Why.\n\nSwitch: VLLM_X (default 0): turn it on\n  for good\n"
        "Switch: --new-flag (default none): what it does\nSwitch: BARE: no default\nnot one\n"
    )
    assert Header(subject="a", body=body).switches() == (
        Switch("VLLM_X", "0", "turn it on for good"),
        Switch("--new-flag", "none", "what it does"),
        Switch("BARE", "", "no default"),
    )


@pytest.mark.parametrize(
    ("date", "git_form"),
    [
        ("Wed, 1 Jan 2031 00:00:01 +0000", "1924992001 +0000"),
        ("Mon, 30 Nov 2026 12:00:00 +0530", "1796020200 +0530"),
        ("1 Jan 2031 00:00:00 -0130", "1924997400 -0130"),
        ("Wed, 31 Feb 2031 00:00:01 +0000", None),
        ("Wed, 1 Jan 2031 00:00:01", None),
        ("Wed, 1 Jan 2031 00:00:01 +9900", None),
        ("now", None),
        ("", None),
    ],
)
def test_dates_become_what_git_takes(date: str, git_form: str | None) -> None:
    assert git_date(date) == git_form


@given(st.integers(0, 4_000_000_000), st.integers(-14 * 60, 14 * 60))
def test_a_written_date_reads_back(seconds: int, minutes: int) -> None:
    found = git_date(mail_date(seconds, minutes))
    assert found is not None
    assert found.split()[0] == str(seconds)


@given(st.binary(max_size=300))
def test_no_bytes_do_anything_but_read(data: bytes) -> None:
    header = parse_header(data)
    assert header.view() is not None
    if not header_faults(canonical(header)):
        assert parse_header(dump_header(header)) == canonical(header)


def test_a_decoded_word_cannot_make_a_new_line() -> None:
    assert decode_words("=?utf-8?q?a=0Ab=00c?=") == "a b c"
    assert decode_words("=?no-such?q?a?= =?utf-8?b?%%?=") == "=?no-such?q?a?= =?utf-8?b?%%?="


def test_a_header_without_bounds_is_refused() -> None:
    with pytest.raises(Refused, match="bad-header"):
        parse_header(b"x" * ((1 << 20) + 1))


def test_what_quilt_writes_right_above_the_diff_is_no_part_of_the_text() -> None:
    text = b"From: A <a@b.c>\nSubject: Do it\n\nIndex: of things.\nWhy.\n\n"
    lead = b"Index: p/engine/x.py\n" + b"=" * 67 + b"\n"
    assert parse_header(text + lead) == parse_header(text)
    assert parse_header(text + b"diff -Naur a/x b/x\n" + lead) == parse_header(text)
    assert parse_header(text).body == "Index: of things.\nWhy."
    assert parse_header(lead).shape == "none"
    assert parse_header(b"Subject: x\n\nSee\nIndex: of things\n---\n").body.endswith("things")


def test_a_subject_of_two_blanks_is_written_as_a_mail_reader_has_it() -> None:
    header = parse_header(b"Description: keep  a   reserve\nAuthor: A <a@b.invalid>\n---\n")
    once = dump_header(header)
    assert b"Subject: keep a reserve\n" in once
    assert dump_header(parse_header(once)) == once


def test_a_subject_that_looks_encoded_and_is_no_utf_8_is_refused() -> None:
    with pytest.raises(Refused, match="not UTF-8"):
        dump_header(Header(subject="=?UTF-8?q?\udc9c?= x"))


def test_a_charset_that_gives_half_a_character_is_left_encoded() -> None:
    word = "=?unicode_escape?q?=5Cud83d?="
    assert decode_words(word) == word


@pytest.mark.parametrize(
    "text",
    [
        "Subject: [" + "PATCH " * 160_000,
        "Subject: " + "[PATCH]" * 140_000,
        "Subject: " + "Re: " * 250_000,
        "Subject: x\nBug: a\n" + " b\n" * 330_000,
        "Subject: x\n\nSwitch: A (default " + " " * 1_000_000 + ":",
        "Subject: x\n\n--" + " " * 1_000_000 + "x",
        "Subject: x\nDate: " + "( " * 500_000,
        "Author: " + "<" * 1_000_000 + "\nDescription: x",
    ],
    ids=["bracket", "brackets", "replies", "folded", "switch", "scissors", "date", "author"],
)
def test_a_megabyte_of_header_takes_time_by_its_length(text: str) -> None:
    start = time.process_time()
    header = parse_header(text.encode()[: 1 << 20])
    header.switches()
    header_faults(canonical(header))
    assert git_date(header.date) is None
    assert time.process_time() - start < 5  # its square would take minutes; 0.1 s on an idle core


def test_a_subject_loses_replies_and_patch_brackets_only() -> None:
    def subject(text: str) -> str:
        return parse_header(f"Subject: {text}\n".encode()).subject

    assert subject("Re: re:[PATCH v2 1/3]  [RFC PATCH] RE: Keep it") == "Keep it"
    assert subject("[QSA] [PATCH] Keep it") == "[QSA] [PATCH] Keep it"
    assert subject("[DISPATCH] Keep it") == "[DISPATCH] Keep it"
