"""The carried series written: patches, series file and lock, all or none."""

from __future__ import annotations

from collections.abc import Mapping

from patchkit.authoring.sealing import Ready, sealed
from patchkit.derive.carry import renames_of
from patchkit.derive.derive import Derived
from patchkit.derive.project import Project
from patchkit.derive.proofs import ORIGIN
from patchkit.engine.model import Overlay
from patchkit.engine.parse import parse
from patchkit.rebase.plan import Row
from patchkit.rebase.reasons import earlier, line
from patchkit.series.folder import Series
from patchkit.series.header import Header
from patchkit.series.quilt import Entry, parse_series
from patchkit.series.renumber import keep_headings, replace_header
from patchkit.series.writer import write_patch
from patchkit.store.repo import Store


def finish(
    project: Project,
    store: Store,
    derived: Derived,
    pin: str,
    row: Row,
    day: str,
    reasons: Mapping[str, str],
) -> Ready:
    """The new pin's series, ready to be written.

    reasons: patch -> why it is not on the release, for the series file. A patch that only moved
    keeps every byte but @@ numbers, index ids, Last-Update and Rebased-From. Raises Refused where
    the result does not apply exactly, whole and in every stack.
    """
    now = Overlay(row.base.tree(store))
    entries: list[Entry] = []
    patches = []
    headers: list[Header] = []
    lines = [f"# Carried from {pin} by patchkit rebase.", *earlier(derived.series)]
    rest = zip(
        derived.series.entries, derived.series.headers, derived.outcomes, row.cells, strict=True
    )
    for entry, header, outcome, cell in rest:
        if not cell.carried:
            lines.append(line(entry.patch, row.pin, reasons.get(entry.patch, cell.words)))
            continue
        new = header.with_field("Last-Update", day).with_field(ORIGIN, f"{pin}/{entry.patch}")
        kept = entry
        if cell.data is not None:
            data = replace_header(parse(cell.data, entry.patch), new)
        else:
            moved = {} if cell.moved else renames_of(outcome.patch, outcome.root)
            renames = {n: o for n, o in moved.items() if {n, o} <= set(cell.changes)}
            data = write_patch(new, now, cell.changes, renames=renames)
            data = keep_headings(data, outcome.patch, cell.moved)
            kept = Entry(entry.patch, guard=entry.guard)
        now.changes.update(cell.changes)
        entries.append(kept)
        patches.append(parse(data, entry.patch))
        headers.append(new)
        lines.append(kept.text())
    file = parse_series(("\n".join(lines) + "\n").encode())
    series = Series(row.pin, file, file.entries, tuple(patches), tuple(headers))
    return sealed(project, project.pins.pin(row.pin), store, row.base, series)
