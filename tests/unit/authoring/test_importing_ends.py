"""import: line ends, a byte order mark and encoded mails are read as what they mean, and said."""

from __future__ import annotations

import base64
import quopri
from pathlib import Path

import pytest

from tests.unit.authoring.importing import (
    BARE,
    LANES,
    MAIL,
    put,
    refused,
    said,
    write,
)
from tests.unit.authoring.making import Bench


def test_a_patch_with_crlf_for_a_file_without_is_read_with_the_files_ends(
    bench: Bench, came: Path
) -> None:
    ready = put(bench, write(came / "x.patch", BARE.replace("\n", "\r\n")))
    assert "line ends" in said(ready, "x.patch")
    assert b"\r" not in bench.patches()["x.patch"]
    assert bench.check() == []


def test_a_patch_with_crlf_that_the_tree_has_is_there_already(bench: Bench, came: Path) -> None:
    bench.add_patch("five", (LANES, "line 5\n", "line five\n"))
    ours = write(came / "x.patch", BARE.replace("\n", "\r\n"))
    (finding,) = [f for f in refused(bench, ours) if not f.note]
    assert (finding.name, finding.where.patch) == ("duplicate", "x.patch")
    assert "in five.patch already" in finding.message


def test_a_patch_with_crlf_that_the_upstream_has_is_upstreamed(bench: Bench, came: Path) -> None:
    there = BARE.replace("-line 5\n+line five\n", "-line V\n+line 5\n").replace("\n", "\r\n")
    (finding,) = [f for f in refused(bench, write(came / "y.patch", there)) if not f.note]
    assert finding.name == "upstreamed"
    assert "in the upstream already" in finding.message
    assert finding.next == "leave it out"


def test_of_a_patch_with_crlf_the_hunk_that_does_not_hold_is_shown_without_them(
    bench: Bench, came: Path
) -> None:
    other = "@@ -24,5 +24,5 @@\n line 23\n line 24\n-line 25\n+line V\n line 2six\n line 27\n"
    path = write(came / "x.patch", (BARE + other).replace("\n", "\r\n"))
    (finding,) = [f for f in refused(bench, path) if not f.note]
    assert (finding.name, finding.where.hunk) == ("conflict", 2)
    assert (finding.expected, finding.found) == ("line 2six", "line 26")


def test_a_byte_order_mark_goes(bench: Bench, came: Path) -> None:
    ready = put(bench, write(came / "x.patch", b"\xef\xbb\xbf" + BARE.encode()))
    assert "byte order mark" in said(ready, "x.patch")
    assert bench.patches()["x.patch"].startswith(b"From: ")


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64"])
def test_an_encoded_mail_is_decoded_and_said(bench: Bench, came: Path, encoding: str) -> None:
    head, _, body = MAIL.partition("\n\n")
    body = body.replace("+line five", "+line fünf = 5")
    code = quopri.encodestring if encoding == "quoted-printable" else base64.encodebytes
    mail = f"{head}\nContent-Transfer-Encoding: {encoding}\n\n".encode() + code(body.encode())
    ready = put(bench, write(came / "x.eml", mail))
    assert f"{encoding} decoded" in said(ready, "x.patch")
    assert "+line fünf = 5\n".encode() in bench.patches()["x.patch"]
    assert b"Content-Transfer" not in bench.patches()["x.patch"]


def test_damaged_base64_is_refused(bench: Bench, came: Path) -> None:
    head = MAIL.partition("\n\n")[0]
    mail = f"{head}\nContent-Transfer-Encoding: base64\n\nabcde\n"
    assert [f.name for f in refused(bench, write(came / "x.eml", mail))] == ["encoded-mail"]
