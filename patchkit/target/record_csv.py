"""RECORD of an installed package: read, and edited line by line so that nothing else moves.

Installers differ in line ends, order and quoting (pip: CRLF, sorted; uv: LF), and audits compare
bytes. So lines that are not edited stay as they are, and taking an edit back gives the old bytes.
The format: https://packaging.python.org/en/latest/specifications/recording-installed-packages/
"""

from __future__ import annotations

import base64
import csv
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from patchkit.engine.model import path_bytes, path_text
from patchkit.errors import Finding, Refused, Where

NAME = "RECORD"
MAX_BYTES = 256 << 20
ALGORITHMS = ("sha256", "sha384", "sha512")
"""Digests that an installer may use; md5 and sha1 are forbidden by the format."""


class Row(NamedTuple):
    """One row. path: relative to the site folder, as written. digest: "sha256=…" or "". size: in
    bytes as written, or "". raw: its own lines with their ends."""

    path: str
    digest: str
    size: str
    raw: bytes


@dataclass(frozen=True)
class RecordFile:
    """A whole RECORD, in the order of its rows."""

    rows: tuple[Row, ...]

    def __bytes__(self) -> bytes:
        return b"".join(row.raw for row in self.rows)

    @property
    def sha256(self) -> str:
        """Digest of its bytes, 64 hex digits."""
        return hashlib.sha256(bytes(self)).hexdigest()

    @cached_property
    def by_path(self) -> dict[str, Row]:
        """The rows by path; of two rows for one path the first, which is what pip takes."""
        out: dict[str, Row] = {}
        for row in self.rows:
            out.setdefault(row.path, row)
        return out

    def edited(self, changes: Mapping[str, bytes | None]) -> RecordFile:
        """The file with new digests for changed paths, rows at the end for new ones, and no row
        for paths that are gone (None)."""
        end = self._end()
        left = dict(changes)
        rows = []
        for row in self.rows:
            if row.path not in changes:
                rows.append(row)
                continue
            data = changes[row.path]
            left.pop(row.path, None)
            if data is not None:
                # An installer that wrote no digest for this row wants none.
                rows.append(_row(row.path, data, end) if row.digest else row)
        if rows and not rows[-1].raw.endswith(b"\n"):
            rows[-1] = Row(rows[-1].path, rows[-1].digest, rows[-1].size, rows[-1].raw + end)
        rows += [_row(p, d, end) for p, d in sorted(left.items()) if d is not None]
        return RecordFile(tuple(rows))

    def _end(self) -> bytes:
        first = self.rows[0].raw if self.rows else b"\n"
        return b"\r\n" if first.endswith(b"\r\n") else b"\n"


def digest_of(data: bytes, algorithm: str = "sha256") -> str:
    """A digest as RECORD writes it: `sha256=` and urlsafe base64 without padding."""
    raw = hashlib.new(algorithm, data).digest()
    return f"{algorithm}=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def holds(row: Row, data: bytes) -> bool | None:
    """Whether `data` is what the row says; None where it says nothing that can be compared."""
    algorithm, _, digest = row.digest.partition("=")
    if algorithm not in ALGORITHMS or not digest:
        return None
    return digest_of(data, algorithm) == row.digest.rstrip("=")


def parse_record(data: bytes, where: str = NAME) -> RecordFile:
    """Read a RECORD. Raises Refused(unsupported) where it is not one."""
    text = path_text(data)
    lines = text.split("\n")
    ended = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    rows: list[Row] = []
    for line in ended:
        if '"' in line:
            # Few rows are quoted, and the reader is slow to start for each: a name that goes over
            # a line end is for it alone.
            if line.count('"') % 2:
                return RecordFile(tuple(_read(ended, where)))
            rows += _read([line], where)
        elif "\r" in line.removesuffix("\r\n"):
            rows += _read([line], where)  # a lone carriage return: its reader knows what that is
        else:
            path, digest, size = (*line.rstrip("\r\n").split(","), "", "")[:3]
            rows.append(Row(path, digest, size, path_bytes(line)))
    return RecordFile(tuple(rows))


def _read(lines: Sequence[str], where: str) -> list[Row]:
    reader = csv.reader(iter(lines), strict=True)
    rows: list[Row] = []
    at = 0
    try:
        for fields in reader:
            raw = path_bytes("".join(lines[at : reader.line_num]))
            at = reader.line_num
            path, digest, size = (*fields, "", "", "")[:3]
            rows.append(Row(path, digest, size, raw))
    except csv.Error as error:
        raise Refused(
            Finding(
                "unsupported",
                f"{where} cannot be read: {error}",
                Where(file=where),
                expected="rows of path, digest and size",
                found=lines[at].rstrip("\r\n")[:200],
                next="install the package again",
            )
        ) from None
    return rows


def changed_rows(before: RecordFile, after: RecordFile) -> dict[str, list[tuple[int, str]]]:
    """What `restored` needs to make `before` of `after`: for each path whose rows differ, the
    rows of `before` with their places; no rows for a path that is new in `after`."""
    old, new = _grouped(before.rows), _grouped(after.rows)
    return {
        path: [(place, path_text(raw)) for place, raw in old.get(path, [])]
        for path in sorted({*old, *new})
        if [raw for _, raw in old.get(path, [])] != [raw for _, raw in new.get(path, [])]
    }


def restored(after: RecordFile, rows: Mapping[str, Iterable[tuple[int, str]]]) -> RecordFile:
    """The file as it was before, from what `changed_rows` gave."""
    kept = [row for row in after.rows if row.path not in rows]
    back = sorted((place, path, raw) for path, old in rows.items() for place, raw in old)
    for place, path, raw in back:
        _, digest, size = (*next(csv.reader([raw]), []), "", "", "")[:3]
        kept.insert(place, Row(path, digest, size, path_bytes(raw)))
    return RecordFile(tuple(kept))


def _grouped(rows: Iterable[Row]) -> dict[str, list[tuple[int, bytes]]]:
    out: dict[str, list[tuple[int, bytes]]] = {}
    for place, row in enumerate(rows):
        out.setdefault(row.path, []).append((place, row.raw))
    return out


def _row(path: str, data: bytes, end: bytes) -> Row:
    digest, size = digest_of(data), str(len(data))
    name = path
    if any(c in path for c in ',"\r\n'):
        name = '"' + path.replace('"', '""') + '"'
    return Row(path, digest, size, path_bytes(f"{name},{digest},{size}") + end)
