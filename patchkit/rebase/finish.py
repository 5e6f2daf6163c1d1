"""The carried series written: patches, series file and lock, all or none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from patchkit.authoring.sealing import Ready, arranged, sealed
from patchkit.derive.project import Project
from patchkit.derive.proofs import ORIGIN
from patchkit.engine.model import Overlay, Patch
from patchkit.engine.parse import parse
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.rebase.footing import Footing
from patchkit.rebase.plan import Cell, Row
from patchkit.rebase.reasons import earlier, line, told_of
from patchkit.rebase.state import State
from patchkit.rebase.steps import Step
from patchkit.series.folder import Series
from patchkit.series.header import Field, Header
from patchkit.series.header_edit import set_and_read
from patchkit.series.quilt import Entry, SeriesFile, parse_series
from patchkit.series.renumber import keep_headings
from patchkit.series.writer import write_diff


def finish(
    project: Project, ground: Footing, state: State, row: Row, reasons: Mapping[str, str]
) -> Ready:
    """The release's series, ready to be written.

    row: what was planned for it, without a conflict. reasons: patch -> why it is not on the
    release, for the series file. A patch that only moved keeps every byte but @@ numbers, index
    ids, Last-Update and Rebased-From; the release's own keep their header. Raises Refused where the
    result does not apply exactly, whole and in every stack, or a file is in the way.
    """
    store, own = ground.store, ground.own
    head = [f"# Carried from {state.pin} by patchkit rebase.", *earlier(ground.derived.series)]
    now = Overlay(row.base.tree(store))
    entries: list[Entry] = []
    patches: list[Patch] = []
    headers: list[Header] = []
    shown: list[Entry | str] = []
    for step, cell in zip(ground.steps, row.cells, strict=True):
        if not cell.carried:
            shown.append(line(step.name, row.pin, reasons.get(step.name, cell.words)))
            continue
        old, header = step.outcome.patch, step.header
        lead = old.header
        if cell.data is not None:
            entry, diff = step.entry, cell.data[len(old.header) :]
        else:
            entry, diff = Entry(step.name, guard=step.entry.guard), _anew(step, cell, now)
        if not step.stands:
            day = state.day if step.instead is None or not _is_there(step, diff) else ""
            lead, header = set_and_read(lead, _fields(state, step, day), header)
        now.changes.update(cell.changes)
        patch = parse(lead + diff, step.name)
        entries.append(entry)
        patches.append(patch)
        headers.append(header)
        shown.append(entry)
    file = _listed(head, own, shown)
    had = own.names() if own is not None else []
    _require_free(project, row.pin, [patch for patch in patches if patch.name not in had])
    gone = [name for name in had if name not in file.names()]
    series = Series(row.pin, file, file.entries, tuple(patches), tuple(headers))
    pin_there = project.pins.pin(row.pin)
    return sealed(project, pin_there, store, row.base, series, gone=gone)


def _fields(state: State, step: Step, day: str) -> tuple[Field, ...]:
    """day: what Last-Update becomes; "" for that of the patch whose place it takes."""
    there = step.instead
    if there is not None and not day:
        return tuple(Field(name, there.header.first(name)) for name in ("Last-Update", ORIGIN))
    return Field("Last-Update", day), Field(ORIGIN, f"{state.pin}/{step.outcome.patch.name}")


def _is_there(step: Step, diff: bytes) -> bool:
    """Whether the patch that stands on the release is what would take its place."""
    there = step.instead
    if there is None:
        return False
    own = there.outcome.patch
    same = tuple(Field(name, there.header.first(name)) for name in ("Last-Update", ORIGIN))
    lead, _ = set_and_read(step.outcome.patch.header, same, step.header)
    return lead + diff == own.data


def _anew(step: Step, cell: Cell, now: Overlay) -> bytes:
    """The patch's diff, written anew, with the headings that it had."""
    moved = {} if cell.moved else step.renames()
    renames = {new: old for new, old in moved.items() if {new, old} <= set(cell.changes)}
    text = {cell.moved.get(path, path) for path in step.text()}
    diff = write_diff(now, cell.changes, renames=renames, text=text)
    return keep_headings(diff, step.outcome.patch, cell.moved)


def _require_free(project: Project, pin: str, patches: Sequence[Patch]) -> None:
    """No patch takes the place of a file that no line of the series names. One that a killed run
    has written is the same file."""
    root = Root(project.folder)
    found = []
    for patch in patches:
        path = os.path.join("series", pin, patch.name)
        if not os.path.lexists(os.path.join(project.folder, path)):
            continue
        file = root.get(path)
        if file is None or file.data != patch.data:
            found.append(
                Finding(
                    "target-exists",
                    f"{patch.name} is in the folder of {pin} already, and its series does not "
                    "name it",
                    Where(patch=patch.name, file=path),
                    expected="no file of that name",
                    found="one of another content",
                    next=f"move it away: {path}",
                )
            )
    if found:
        raise Refused(*found)


def _listed(
    head: Sequence[str], own: SeriesFile | None, shown: Sequence[Entry | str]
) -> SeriesFile:
    """The series file: the patches in order, with comments between them.

    head: lines above them. own: the file that the release has; its comments stay, but for what it
    says of patches that were left out before and are shown now.
    """
    if own is None:
        lines = [*head, *(row if isinstance(row, str) else row.text() for row in shown)]
    else:
        file = arranged(own, [row for row in shown if isinstance(row, Entry)])
        said = {told_of(row) if isinstance(row, str) else row.patch for row in shown}
        lines, at = [text for text in file.lines if told_of(text) not in said], 0
        for row in shown:
            if isinstance(row, str):
                lines.insert(at, row)
                at += 1
            else:
                at = lines.index(file.lines[file.find(row.patch).line - 1]) + 1
    return parse_series("".join(text + "\n" for text in lines).encode())
