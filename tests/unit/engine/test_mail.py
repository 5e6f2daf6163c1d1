"""Mails whose bytes are not the patch's."""

from __future__ import annotations

import subprocess

import pytest

from patchkit.engine.mail import decode, encoded_parts
from patchkit.engine.parse import parse, scan
from patchkit.engine.text import split_lines
from tests.cases.loader import load_cases

CASES = {
    c.name: c
    for c in load_cases()
    if c.name in ("mail-quoted-printable", "mail-quoted-printable-applies", "mail-base64")
}


@pytest.mark.parametrize("name", CASES)
def test_decoding_gives_the_diff_that_git_reads(name: str, tmp_path) -> None:
    [(_, data)] = CASES[name].patch_files()
    subprocess.run(
        ["git", "mailinfo", "msg", "diff"],
        cwd=tmp_path,
        input=data,
        check=True,
        capture_output=True,
    )
    theirs = parse((tmp_path / "diff").read_bytes(), "p")
    ours = parse(decode(data), "p")
    assert [s.raw for s in ours.sections] == [s.raw for s in theirs.sections]
    assert not encoded_parts(split_lines(decode(data)))


def test_only_a_header_block_counts() -> None:
    prose = b"Subject: x\n\nContent-Transfer-Encoding: base64\n\n"
    diff = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert encoded_parts(split_lines(prose + diff)) == []
    assert not scan(prose + diff, "p").findings


def test_plain_transfer_encodings_are_taken() -> None:
    for encoding in (b"7bit", b"8bit", b"binary"):
        mail = b"Subject: x\nContent-Transfer-Encoding: " + encoding + b"\n\n"
        assert encoded_parts(split_lines(mail)) == []


def test_the_part_of_a_multipart_mail_is_found_and_decoded() -> None:
    mail = (
        b'From: A <a@b>\nSubject: x\nContent-Type: multipart/mixed;\n boundary="=_1"\n\n'
        b"--=_1\nContent-Type: text/plain\n\nhello\n"
        b"--=_1\nContent-Type: text/x-patch\nContent-Transfer-Encoding: quoted-printable\n\n"
        b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a=20b\n-b\n+c\n"
        b"--=_1--\n"
    )
    assert [(p.encoding, p.line) for p in encoded_parts(split_lines(mail))] == [
        ("quoted-printable", 11)
    ]
    assert parse(decode(mail), "p").sections[0].hunks[0].old[0] == b"a b\n"


def test_the_boundary_behind_an_attached_patch_is_no_change() -> None:
    """As `git format-patch --attach` writes it."""
    patch = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    mail = (
        b'Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="----2.39.5"\n\n'
        b"This is a multi-part message in MIME format.\n------2.39.5\nContent-Type: text/x-patch; "
        b'name="x.patch"\nContent-Disposition: attachment; filename="x.patch"\n\n'
    )
    found = parse(mail + patch + b"\n------2.39.5--\n\n\n", "p")
    assert found.header == mail
    assert [s.raw for s in found.sections] == [patch]


def test_each_mail_of_a_mailbox_is_looked_at() -> None:
    plain = b"From 1234567 Mon Sep 17 00:00:00 2001\nSubject: x\n\nbody\n"
    coded = plain.replace(b"\n\n", b"\nContent-Transfer-Encoding: base64\n\n")
    assert [p.line for p in encoded_parts(split_lines(plain + coded))] == [6]


def test_mail_line_ends_are_undone_where_every_line_has_them() -> None:
    head = b"Subject: x\nContent-Transfer-Encoding: quoted-printable\n\n"
    assert decode(head + b"a=0D\nb=0D\n").endswith(b"\n\na\nb\n")
    assert decode(head + b"a=0D\nb\n").endswith(b"\n\na\r\nb\n")


def test_damaged_base64_is_said() -> None:
    with pytest.raises(ValueError, match="base64"):
        decode(b"Subject: x\nContent-Transfer-Encoding: base64\n\nabcde\n")
