"""One function a reader: any bytes are read or refused, and what was read keeps its promises.

A reader that merely does not raise has shown little, so each target states what must hold of what
it read: written and read again it is the same, applied and taken out again the tree is the old one.
"""

from __future__ import annotations

from collections.abc import Callable

from patchkit.engine.apply import apply_patch
from patchkit.engine.model import File, MemoryTree, Patch, Section
from patchkit.engine.parse import scan
from patchkit.engine.paths import unsafe
from patchkit.engine.rule import EXACT, LOOSE
from patchkit.engine.strip import Root
from patchkit.errors import PatchkitError, Refused
from patchkit.series.header import canonical, parse_header
from patchkit.series.header_out import dump_header
from patchkit.series.lockjson import dumps, loads
from patchkit.series.pins import load_pins
from patchkit.series.quilt import dump_series, parse_series
from patchkit.target.record_csv import changed_rows, parse_record, restored

LONGEST = 1 << 16
"""Lines of a tree that `patch` makes for a hunk; hunks stated far below are not laid out."""


def patch(data: bytes) -> None:
    """Parsed or refused; laid out as a tree of its own, it applies there and comes out again."""
    found = scan(data, "x.patch")
    for section, number, hunk in found.patch.hunks():
        if not found.findings:
            assert len(hunk.old) == hunk.old_count, (section.path, number)
            assert len(hunk.new) == hunk.new_count, (section.path, number)
    if found.findings:
        return
    there = apply_patch(MemoryTree(), found.patch, LOOSE)
    assert all(unsafe(path) is None for path in there.changes)
    tree = preimage(found.patch)
    if tree is None:
        return
    root = Root(strip=0)
    done = apply_patch(tree, found.patch, EXACT, root)
    if done.state != "applied":
        return
    assert all(unsafe(path) is None for path in done.changes)
    after = tree.with_changes(done.changes)
    back = apply_patch(after, found.patch, EXACT, root, reverse=True)
    if back.state == "applied":
        again = after.with_changes(back.changes).files
        if any(half_a_mode(section) for section in found.patch.sections):
            contents = [{p: f.data for p, f in files.items()} for files in (again, tree.files)]
            assert contents[0] == contents[1]
        else:
            assert again == tree.files


def half_a_mode(section: Section) -> bool:
    """Whether it says which mode a file gets and not which it had: what takes that back, as git
    does, leaves the mode."""
    return section.new_mode is not None and section.old_mode is None


def preimage(read: Patch) -> MemoryTree | None:
    """A tree that has what the patch's hunks want, at the lines they state; None where its
    sections overlap or state lines far away."""
    files: dict[str, File] = {}
    for section in read.sections:
        path = section.old_path
        if path is None:
            continue
        if path in files or (not section.hunks and section.kind == "modify"):
            return None
        lines: list[bytes] = []
        for hunk in section.hunks:
            start = hunk.old_start - (1 if hunk.old_count else 0)
            if start > LONGEST or start < len(lines):
                return None
            lines += [b"filler %d\n" % n for n in range(len(lines), start)]
            lines += hunk.old
        files[path] = File(b"".join(lines), section.old_mode or 0o100644)
    return MemoryTree(files)


def series(data: bytes) -> None:
    """A series file that was read is written back with the same entries, all of safe names."""
    read = parse_series(data)
    assert all(unsafe(entry.patch) is None for entry in read.entries)
    assert parse_series(dump_series(read)).entries == read.entries


def header(data: bytes) -> None:
    """A header that can be written is a fixed point: read and written again it stays."""
    read = parse_header(data)
    read.view(), read.switches, read.long
    try:
        _ = read.allow
    except Refused:
        pass
    once = dump_header(read)
    again = parse_header(once)
    assert dump_header(again) == once
    assert canonical(again).subject == canonical(read).subject


def lock(data: bytes) -> None:
    """A lock that was read is written and read again as the same lock."""
    read = loads(data)
    assert loads(dumps(read)) == read


def pins(data: bytes) -> None:
    """pins.toml: every pin names an upstream that is there, every name is a safe path."""
    read = load_pins(data)
    for name, pin in read.pins.items():
        assert pin.upstream in read.upstreams
        assert unsafe(name) is None


def record(data: bytes) -> None:
    """RECORD keeps its bytes, and an edit taken back gives the old bytes."""
    read = parse_record(data)
    if not data.startswith(b"\xef\xbb\xbf"):
        assert bytes(read) == data
    some = [row.path for row in read.rows[:2]]
    edited = read.edited({**dict.fromkeys(some, b"x"), "new, file": b"y"})
    assert bytes(restored(edited, changed_rows(read, edited))) == bytes(read)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "patch": patch,
    "series": series,
    "header": header,
    "lock": lock,
    "pins": pins,
    "record": record,
}


def run(name: str, data: bytes) -> None:
    """Feed one target; a refusal is a right answer, anything else that is raised is a fault."""
    try:
        TARGETS[name](data)
    except PatchkitError:
        pass
