"""RECORD edited by rows: what is not edited keeps its bytes, and every edit can be taken back."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from installer.records import parse_record_file

from patchkit.errors import Refused
from patchkit.target.record_csv import (
    Row,
    changed_rows,
    digest_of,
    holds,
    parse_record,
    restored,
)

NAMES = st.text(st.sampled_from('ab,"/ .ö'), min_size=1, max_size=12)


def written(paths: list[str], end: str, data: bytes = b"x") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end)
    for path in paths:
        writer.writerow((path, digest_of(data), len(data)))
    return text.getvalue().encode()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(NAMES, max_size=8, unique=True),
    st.sampled_from(["\n", "\r\n"]),
    st.dictionaries(NAMES, st.none() | st.binary(max_size=4), max_size=4),
    st.booleans(),
)
def test_an_edit_is_what_csv_reads_and_goes_back(
    paths: list[str], end: str, changes: dict[str, bytes | None], cut: bool
) -> None:
    data = written(paths, end)
    before = parse_record(data.rstrip(b"\r\n") if cut else data)
    after = before.edited(changes)
    rows = {r[0]: r[1] for r in csv.reader(io.StringIO(bytes(after).decode(), newline=""))}
    wanted = {p: digest_of(b"x") for p in paths}
    wanted.update({p: digest_of(d) for p, d in changes.items() if d is not None})
    assert rows == {p: d for p, d in wanted.items() if changes.get(p, b"") is not None}
    assert bytes(restored(after, changed_rows(before, after))) == bytes(before)


def test_rows_are_read_as_installer_reads_them() -> None:
    data = b'a.py,sha256=x,1\r\n"b, c.py",,\r\n"d\n e.py",sha256=y,\r\nf\r\n'
    ours = [(r.path, r.digest, r.size) for r in parse_record(data[: data.rindex(b"f")]).rows]
    text = data[: data.rindex(b"f")].decode()
    theirs = list(parse_record_file(io.StringIO(text, newline="")))
    assert ours == [tuple(row) for row in theirs]


def test_a_row_without_a_digest_stays_without_one() -> None:
    record = parse_record(b"a.py,,\nb.py,sha256=x,1\n")
    assert bytes(record.edited({"a.py": b"new"})) == b"a.py,,\nb.py,sha256=x,1\n"


def test_digests_of_every_allowed_kind() -> None:
    for algorithm in ("sha256", "sha384", "sha512"):
        assert holds(Row("a", digest_of(b"x", algorithm), "1", b""), b"x") is True
        assert holds(Row("a", digest_of(b"x", algorithm) + "=", "1", b""), b"y") is False
    assert holds(Row("a", "md5=abc", "1", b""), b"x") is None
    assert holds(Row("a", "", "", b""), b"x") is None


def test_a_file_that_is_no_record_is_refused() -> None:
    with pytest.raises(Refused) as refusal:
        parse_record(b'a.py,"x" y,1\n', "engine/RECORD")
    assert refusal.value.findings[0].where.file == "engine/RECORD"


@pytest.mark.parametrize("row", [b"a.py,\rsha256=x,1\r\n", b"a.py,x,\r\x0b", b"a\rb.py,,\n"])
def test_a_lone_carriage_return_is_refused_as_csv_refuses_it(row: bytes) -> None:
    with pytest.raises(Refused, match="unsupported"):
        parse_record(b"ok.py,,\r\n" + row)
