"""Fields set in a header's own bytes: they read as set, and no other byte changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.errors import Refused
from patchkit.series.header import Field, parse_header
from patchkit.series.header_edit import set_fields

DAY = Field("Last-Update", "2031-02-03")
FROM = Field("Rebased-From", "v1.0/a.patch")


def test_what_stands_below_the_dashes_and_how_it_is_spelled_stays() -> None:
    head = (
        b"From 0123456789abcdef Mon Sep 17 00:00:00 2001\n"
        b'From: "Doe, Jane" <j@example.invalid>\nDate:   Mon, 30 Nov 2026 12:00:00 +0000\n'
        b"Subject: [PATCH 2/7] Carry  it\nlast-update: 2030-01-01\nOrigin: vendor,\n a fork\n\n"
        b"Why.  \n\n\nMore.\n---\nNotes for the reviewer.\n\n a.py | 2 +-\n\n"
    )
    assert set_fields(head, [DAY, FROM]) == head.replace(
        b"last-update: 2030-01-01\n", b"Last-Update: 2031-02-03\n"
    ).replace(b" a fork\n", b" a fork\nRebased-From: v1.0/a.patch\n")


def test_a_field_that_stands_twice_stands_once() -> None:
    head = b"Subject: x\nRebased-From: a/b\nOrigin: y\nRebased-From: c/d\n e\n\nWhy\n"
    assert set_fields(head, [FROM]) == (
        b"Subject: x\nRebased-From: v1.0/a.patch\nOrigin: y\n\nWhy\n"
    )


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        (b"", b"Last-Update: 2031-02-03\n\n"),
        (b"\nIndex: x\n", b"Last-Update: 2031-02-03\n\n\nIndex: x\n"),
        (
            b"Only  words.\n  And: more\n---\nnotes\n",
            b"Description: Only words.\nLast-Update: 2031-02-03\n\n  And: more\n---\nnotes\n",
        ),
        (b"\xef\xbb\xbfSubject: x\n", b"\xef\xbb\xbfSubject: x\nLast-Update: 2031-02-03\n"),
        (
            b"Description: x\r\n long\r\n\r\nWhy\r\n",
            b"Description: x\r\n long\r\nLast-Update: 2031-02-03\r\n\r\nWhy\r\n",
        ),
        (b"Subject: \xff\n\n\xfe\n", b"Subject: \xff\nLast-Update: 2031-02-03\n\n\xfe\n"),
    ],
)
def test_every_shape_has_a_place_for_it(head: bytes, wanted: bytes) -> None:
    assert set_fields(head, [DAY]) == wanted


LINES = st.sampled_from(
    [
        *("From: A <a@example.invalid>", "Subject: one", "Subject: [PATCH] two", "Date: now"),
        *("Description: three", "Author: B <b@example.invalid>", "Last-Update: 2030-01-01"),
        *("Last-update: x", "Rebased-From: v0/x.patch", "Origin: vendor", " more", " .", "\tmore"),
        *("", "", "   ", "---", "--- ", "Index: a.py", "=" * 30, "words: and words", "Words."),
        *("diff -ru a b", "From abcdef0123 x", "\ufeff", "\x0b", "=?utf-8?q?=41?=", "a\x0cb"),
    ]
)


@given(st.lists(LINES, max_size=9), st.booleans(), st.booleans())
def test_whatever_the_header_is_it_reads_as_set_and_loses_no_line(
    lines: list[str], ended: bool, crlf: bool
) -> None:
    text = ("\r\n" if crlf else "\n").join(lines) + ("\n" if ended else "")
    data = text.encode()
    before = parse_header(data)
    wanted = before.with_field(*_of(DAY)).with_field(*_of(FROM))
    try:
        made = set_fields(data, [DAY, FROM])
    except Refused:
        assert not before.subject  # there is nothing that could be written at all
        return
    assert replace(parse_header(made), shape=wanted.shape) == wanted
    assert set_fields(made, [DAY, FROM]) == made


@given(st.lists(LINES, max_size=6))
def test_a_mail_keeps_every_other_line_in_order(lines: list[str]) -> None:
    body = [line for line in lines if not line.startswith(("Last", "Rebased"))]
    data = "\n".join(["Subject: x", "Origin: y", "", *body]).encode()
    assert set_fields(data, [DAY, FROM]) == (
        b"Subject: x\nOrigin: y\nLast-Update: 2031-02-03\nRebased-From: v1.0/a.patch\n"
        + data.removeprefix(b"Subject: x\nOrigin: y\n")
    )


def _of(field: Field) -> tuple[str, str]:
    return field.name, field.value
