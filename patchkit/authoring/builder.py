"""A series built anew in memory, patch by patch, on the base.

`keep` carries a patch over from the old series: untouched where nothing below it changed, else by
a three-way merge of what it does. `write` takes what a person made of a patch. Everything that
cannot be is collected, so that one run names it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from patchkit.authoring.form import (
    HEADER,
    NEW,
    REFRESHED,
    REWRITTEN,
    UNCHANGED,
    Built,
    Made,
    Row,
    equal,
    headed,
    is_in_form,
    moved,
    no_longer,
    no_op,
    text_paths,
)
from patchkit.authoring.headers import header_bytes, kept_header, same_header
from patchkit.authoring.standing import Standing
from patchkit.derive.carry import carry, finding_of, is_whole, renames_of, same, untouched
from patchkit.derive.relock import blob_of
from patchkit.engine.model import File, Overlay, Patch
from patchkit.engine.parse import parse
from patchkit.engine.strip import Root
from patchkit.errors import Finding, Refused
from patchkit.series.header import Header, parse_header
from patchkit.series.lockfile import Blob
from patchkit.series.quilt import Entry
from patchkit.series.writer import write_diff


@dataclass
class Builder:
    """The new series so far. tree: the base with every patch so far. advice: what a person does
    about a conflict."""

    standing: Standing
    advice: str = ""
    day: str = ""
    built: list[Built] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tree = Overlay(self.standing.tree)

    @property
    def ok(self) -> bool:
        """Whether nothing stands against writing it."""
        return all(f.note for f in self.findings)

    # -- patches that stay ------------------------------------------------------------------
    def keep(self, index: int, *, name: str | None = None) -> None:
        """The old series' patch at `index`, done on the new tree. name: under another name."""
        standing = self.standing
        entry, patch = standing.series.entries[index], standing.series.patches[index]
        header, changes = standing.series.headers[index], standing.changes(index)
        outcome = standing.derived.outcomes[index]
        if outcome.state != "applied":
            self.find(outcome.findings)
            self.rows.append(Row(entry.patch, "refused"))
            return
        before = standing.versions.after(index)
        if untouched(before, changes, self.tree):
            self._put(Built(entry, patch, header, changes), Row(entry.patch, UNCHANGED), name)
            return
        root = Root(entry.strip)
        renames = renames_of(patch, root, reverse=entry.reverse)
        carried = carry(before, changes, self.tree, renames)
        if carried.clashes:
            for clash in carried.clashes:
                found = finding_of(clash, patch, root, self.advice, reverse=entry.reverse)
                self.find([self._with_cause(found, clash.path)])
            self.rows.append(Row(entry.patch, "refused"))
            return
        try:
            built, state = moved(self.tree, entry, patch, header, before, carried.changes, renames)
        except Refused as refusal:
            self.find(no_longer(f.in_patch(entry.patch)) for f in refusal.findings)
            self.rows.append(Row(entry.patch, "refused"))
            return
        row = Row(entry.patch, state)
        if state == REWRITTEN and not is_whole(
            before, changes, self.tree, carried.changes, renames
        ):
            lead = kept_header(patch, header, self.day or None)
            anew = parse(lead + built.patch.data[len(built.patch.header) :], entry.patch)
            built = replace(built, patch=anew, header=parse_header(anew.header))
            row = Row(entry.patch, REFRESHED, ("a part of it is done before it now",))
        self._put(built, row, name)

    # -- patches that somebody made ----------------------------------------------------------
    def write(
        self,
        name: str,
        header: Header,
        changes: Mapping[str, File | None],
        *,
        guard: str | None = None,
        renames: Mapping[str, str] | None = None,
        like: int | None = None,
        given: Patch | None = None,
        in_place: bool = False,
        said: Sequence[str] = (),
    ) -> None:
        """A patch that makes `changes` of the new tree so far.

        like: place of the patch in the old series that it takes the place of; that one's bytes
        stay where its effect (each path before and after) stays. given: the file that the patch
        came as; its bytes stay where they are exact and in form. in_place: `given` is the old
        patch itself, which is to be brought into form.
        """
        made = Made(name, header, changes, guard, renames or {}, like, given, in_place)
        try:
            built, state = self._written(made)
        except Refused as refusal:
            self.find(f if f.where.patch else f.in_patch(name) for f in refusal.findings)
            self.rows.append(Row(name, "refused", tuple(said)))
            return
        self._put(built, Row(name, state, tuple(said)), None)

    def _written(self, made: Made) -> tuple[Built, str]:
        name, header, changes = made.name, made.header, made.changes
        old = self.standing.series.patches[made.like] if made.like is not None else None
        entry = Entry(name, 1, False, made.guard)
        like = None if made.in_place else made.like
        if like is not None and old is not None and self._same_effect(like, changes):
            was = self.standing.series.entries[like]
            entry = Entry(name, was.strip, was.reverse, made.guard)
            if same_header(header, self.standing.series.headers[like]):
                patch = old if old.name == name else parse(old.data, name)
                return Built(entry, patch, header, changes), UNCHANGED
            return Built(entry, headed(old, header, name), header, changes), HEADER
        if like is not None and old is not None and self._is_carried(like, changes):
            return self._carried(like, made)
        if made.given is not None and is_in_form(self.tree, made):
            patch, state = parse(made.given.data, name), NEW
        else:
            patch, state = self._anew(made, old), NEW
        if old is not None:
            state = UNCHANGED if old.data == patch.data else REFRESHED
        return Built(entry, patch, parse_header(patch.header), changes), state

    def _is_carried(self, like: int, changes: Mapping[str, File | None]) -> bool:
        """Whether the changes are what the old patch at `like` does, done on the new tree."""
        if self.standing.derived.outcomes[like].state != "applied":
            return False
        entry, patch = self.standing.series.entries[like], self.standing.series.patches[like]
        renames = renames_of(patch, Root(entry.strip), reverse=entry.reverse)
        before = self.standing.versions.after(like)
        theirs = self.standing.changes(like)
        carried = carry(before, theirs, self.tree, renames)
        if carried.clashes or not equal(self._real(carried.changes), self._real(changes)):
            return False
        return is_whole(before, theirs, self.tree, carried.changes, renames)

    def _carried(self, like: int, made: Made) -> tuple[Built, str]:
        """The old patch at `like` at its new lines, under a header that may be another."""
        old, known = self.standing.series.patches[like], self.standing.series.headers[like]
        entry = replace(self.standing.series.entries[like], patch=made.name, guard=made.guard)
        before = self.standing.versions.after(like)
        built, state = moved(self.tree, entry, old, known, before, made.changes, made.renames)
        if same_header(made.header, known):
            return built, state
        patch = headed(built.patch, made.header, made.name)
        return Built(built.entry, patch, made.header, made.changes), HEADER

    def _anew(self, made: Made, old: Patch | None) -> Patch:
        """The patch in the canonical form."""
        text: set[str] = set()
        if old is not None and made.like is not None:
            before = self.standing.versions.after(made.like)
            strip = self.standing.series.entries[made.like].strip
            text = text_paths(old, Root(strip), before)
        diff = write_diff(self.tree, made.changes, renames=made.renames, text=text)
        if not diff:
            raise Refused(no_op(made.name, len(made.changes)))
        settled = old is None or (made.in_place and self._effect_is_locked(made))
        lead = header_bytes(made.header, old, None if settled else self.day)
        return parse(lead + diff, made.name)

    def _effect_is_locked(self, made: Made) -> bool:
        """Whether the lock knows the patch by this effect, or does not know it at all."""
        lock = self.standing.lock
        if lock is None:
            return True
        known: dict[str, tuple[Blob | None, Blob | None]] = {}
        for path, steps in lock.series.paths.items():
            for before, step in pairwise(steps):
                if step.patch == made.name:
                    known[path] = (before.blob, step.blob)
        found = {
            path: (blob_of(self.tree.get(path)), blob_of(file))
            for path, file in made.changes.items()
            if not same(self.tree.get(path), file)
        }
        return not known or found == known

    def says_the_same(self, like: int, header: Header, changes: Mapping[str, File | None]) -> bool:
        """Whether the old patch at `like` has this header and this effect."""
        known = self.standing.series.headers[like]
        return same_header(header, known) and self._same_effect(like, changes)

    def _same_effect(self, like: int, changes: Mapping[str, File | None]) -> bool:
        """Whether the old patch at `like` makes the same of the same."""
        old = self.standing.changes(like)
        before = self.standing.versions.after(like)
        real = self._real(changes)
        if self.standing.derived.outcomes[like].state != "applied" or old.keys() != real.keys():
            return False
        return all(
            same(old[path], real[path]) and same(before.get(path), self.tree.get(path))
            for path in old
        )

    # -- common -------------------------------------------------------------------------------
    def find(self, findings: Iterable[Finding]) -> None:
        """Take findings in, each once."""
        known = set(self.findings)
        for finding in findings:
            if finding not in known:
                known.add(finding)
                self.findings.append(finding)

    def _put(self, built: Built, row: Row, name: str | None) -> None:
        if name is not None and name != built.entry.patch:
            entry = Entry(name, built.entry.strip, built.entry.reverse, built.entry.guard)
            patch = parse(built.patch.data, name)
            built = Built(entry, patch, built.header, built.changes)
            row = Row(name, row.state, (f"was {row.patch}",))
        real = self._real(built.changes)
        self.built.append(replace(built, changes=real))
        self.rows.append(row)
        self.tree.changes.update(real)

    def _real(self, changes: Mapping[str, File | None]) -> dict[str, File | None]:
        """The changes that change something in the new tree."""
        return {path: f for path, f in changes.items() if not same(self.tree.get(path), f)}

    def _with_cause(self, finding: Finding, path: str) -> Finding:
        """The finding, with an earlier one of the same file named as what it may follow from."""
        earlier = [f.where.patch for f in self.findings if f.where.file == path and f.where.patch]
        if not earlier or earlier[0] == finding.where.patch:
            return finding
        detail = f"it may follow from this, which comes first and fails: {earlier[0]}"
        return replace(finding, details=(*finding.details, detail))
