"""A series built anew in memory, patch by patch, on the base.

`keep` carries a patch over from the old series: untouched where nothing below it changed, else by
a three-way merge of what it does. `write` takes what a person made of a patch. Everything that
cannot be is collected, so that one run names it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from patchkit.authoring.headers import header_bytes, same_header
from patchkit.authoring.standing import At, Standing
from patchkit.derive.carry import carry, finding_of, renames_of, same, untouched
from patchkit.derive.relock import blob_of
from patchkit.engine.apply import EXACT, apply_patch
from patchkit.engine.merge import is_binary
from patchkit.engine.model import File, Overlay, Patch, Section
from patchkit.engine.parse import parse
from patchkit.engine.strip import Root, target_paths
from patchkit.errors import Finding, Refused, Where
from patchkit.series.header import Header, parse_header
from patchkit.series.lockfile import Blob
from patchkit.series.quilt import Entry
from patchkit.series.renumber import renumber
from patchkit.series.writer import write_diff

UNCHANGED = "unchanged"
RENUMBERED = "renumbered"
REWRITTEN = "context rewritten"
REFRESHED = "refreshed"
HEADER = "header changed"
NEW = "new"


@dataclass(frozen=True)
class Row:
    """What became of one patch, for the table. said: what was found out about it."""

    patch: str
    state: str
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Built:
    """One patch of the new series. changes: what it does to the tree before it."""

    entry: Entry
    patch: Patch
    header: Header
    changes: Mapping[str, File | None]


@dataclass(frozen=True)
class Made:
    """What `Builder.write` was asked for."""

    name: str
    header: Header
    changes: Mapping[str, File | None]
    guard: str | None
    renames: Mapping[str, str]
    like: int | None
    given: Patch | None
    in_place: bool


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
            made = self._carried(entry, patch, header, before, carried.changes, renames)
        except Refused as refusal:
            self.find(_no_longer(f.in_patch(entry.patch)) for f in refusal.findings)
            self.rows.append(Row(entry.patch, "refused"))
            return
        self._put(*made, name)

    def _carried(
        self,
        entry: Entry,
        patch: Patch,
        header: Header,
        before: At,
        changes: Mapping[str, File | None],
        renames: Mapping[str, str],
    ) -> tuple[Built, Row]:
        """The patch at its new lines: only numbers and ids where that can be, else anew."""
        root = Root(entry.strip)
        data = None if entry.reverse else renumber(patch, self.tree, changes, root)
        if data is not None:
            moved = parse(data, entry.patch)
            outcome = apply_patch(self.tree, moved, EXACT, root)
            if outcome.state == "applied" and _equal(outcome.changes, changes):
                state = UNCHANGED if data == patch.data else RENUMBERED
                return Built(entry, moved, header, changes), Row(entry.patch, state)
        text = _text_paths(patch, root, before)
        diff = write_diff(self.tree, changes, renames=renames, text=text)
        if not diff:
            raise Refused(Finding("no-op", "it changes nothing any more", Where(patch=entry.patch)))
        plain = Entry(entry.patch, 1, False, entry.guard)
        again = parse(header_bytes(header, patch, None) + diff, entry.patch)
        return Built(plain, again, header, changes), Row(entry.patch, REWRITTEN)

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
            data = header_bytes(header, None, None) + old.data[len(old.header) :]
            return Built(entry, parse(data, name), header, changes), HEADER
        if made.given is not None and self._in_form(made):
            patch, state = parse(made.given.data, name), NEW
        else:
            patch, state = self._anew(made, old), NEW
        if old is not None:
            state = UNCHANGED if old.data == patch.data else REFRESHED
        return Built(entry, patch, parse_header(patch.header), changes), state

    def _anew(self, made: Made, old: Patch | None) -> Patch:
        """The patch in the canonical form."""
        text: set[str] = set()
        if old is not None and made.like is not None:
            before = self.standing.versions.after(made.like)
            strip = self.standing.series.entries[made.like].strip
            text = _text_paths(old, Root(strip), before)
        diff = write_diff(self.tree, made.changes, renames=made.renames, text=text)
        if not diff:
            raise Refused(_no_op(made.name, len(made.changes)))
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
        real = {p: f for p, f in changes.items() if not same(self.tree.get(p), f)}
        if self.standing.derived.outcomes[like].state != "applied" or old.keys() != real.keys():
            return False
        return all(
            same(old[path], real[path]) and same(before.get(path), self.tree.get(path))
            for path in old
        )

    def _in_form(self, made: Made) -> bool:
        """Whether the file that came may stay as it is: nothing but its hunks is another's choice.

        Numbers and ids are right, the header is canonical, and so is all of each section but how
        its change is cut into hunks.
        """
        given = made.given
        if given is None or renumber(given, self.tree, made.changes) != given.data:
            return False
        try:
            lead = header_bytes(made.header, None, None)
            plain = write_diff(self.tree, made.changes, renames=made.renames)
        except Refused:
            return False
        wanted = parse(lead + plain, made.name)
        return (
            given.header.rstrip(b"\n") == lead.rstrip(b"\n")
            and given.data == given.header + b"".join(s.raw for s in given.sections)
            and [_lead(s) for s in given.sections] == [_lead(s) for s in wanted.sections]
        )

    # -- common -------------------------------------------------------------------------------
    def find(self, findings: Iterable[Finding]) -> None:
        """Take findings in, each once."""
        for finding in findings:
            if finding not in self.findings:
                self.findings.append(finding)

    def _put(self, built: Built, row: Row, name: str | None) -> None:
        if name is not None and name != built.entry.patch:
            entry = Entry(name, built.entry.strip, built.entry.reverse, built.entry.guard)
            patch = parse(built.patch.data, name)
            built = Built(entry, patch, built.header, built.changes)
            row = Row(name, row.state, (f"was {row.patch}",))
        real = {p: f for p, f in built.changes.items() if not same(self.tree.get(p), f)}
        self.built.append(replace(built, changes=real))
        self.rows.append(row)
        self.tree.changes.update(real)

    def _with_cause(self, finding: Finding, path: str) -> Finding:
        """The finding, with an earlier one of the same file named as what it may follow from."""
        earlier = [f.where.patch for f in self.findings if f.where.file == path and f.where.patch]
        if not earlier or earlier[0] == finding.where.patch:
            return finding
        detail = f"it may follow from this, which comes first and fails: {earlier[0]}"
        return replace(finding, details=(*finding.details, detail))


def _equal(one: Mapping[str, File | None], two: Mapping[str, File | None]) -> bool:
    return one.keys() == two.keys() and all(same(one[path], two[path]) for path in one)


def _lead(section: Section) -> bytes:
    """A section's lines above its first hunk."""
    return section.raw.partition(b"\n@@ ")[0]


def _text_paths(patch: Patch, root: Root, before: At) -> set[str]:
    """Files with a NUL that the patch edits as text: they stay text."""
    out = set()
    for section in patch.sections:
        try:
            paths = target_paths(section, root)
        except ValueError:
            continue
        for path in paths:
            file = before.get(path) if path is not None else None
            if path is not None and section.hunks and file is not None and is_binary(file.data):
                out.add(path)
    return out


def _no_op(name: str, count: int) -> Finding:
    return Finding(
        "no-op",
        "the patch would change nothing",
        Where(patch=name),
        expected="at least one file that differs from the tree before the patch",
        found=f"{count} file(s), none of which differs" if count else "no file that differs",
        next="edit a file of the work tree; git add makes a new one part of the patch",
    )


def _no_longer(finding: Finding) -> Finding:
    if finding.name != "no-op":
        return finding
    return Finding(
        "no-op",
        f"{finding.where.patch} would change nothing any more: "
        "all that it does is in the tree before it now",
        finding.where,
        expected="each change in one patch",
        found="no file that differs",
        next=f"patchkit drop {finding.where.patch} first",
    )
