"""The patches that are to stand on a release, in their order, and what each was made of.

A release without a series gets all of the old one's. One that has a series gets those that it
lacks, each behind the one that it stands behind in the old series; its own patches stay, and are
carried only where a new one comes below them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from patchkit.authoring.form import text_paths
from patchkit.authoring.standing import At, Versions
from patchkit.derive.carry import Files, renames_of
from patchkit.derive.derive import Derived
from patchkit.derive.project import Project
from patchkit.engine.model import File, Tree
from patchkit.engine.outcome import Outcome
from patchkit.rebase.pairs import Pair, pairs
from patchkit.series.folder import Series
from patchkit.series.header import Header
from patchkit.series.quilt import Entry


@dataclass(frozen=True)
class Step:
    """One patch. before: the tree that it made `outcome` of. stands: it is the release's own.

    instead: the release's own patch that this one takes the place of, whose name and guard it has.
    """

    entry: Entry
    header: Header
    outcome: Outcome
    before: Files
    stands: bool = False
    instead: Step | None = None

    @property
    def name(self) -> str:
        """The patch's name."""
        return self.entry.patch

    @property
    def changes(self) -> Mapping[str, File | None]:
        """What it made of `before`."""
        return self.outcome.changes

    def text(self) -> set[str]:
        """Files with a NUL that it edits as text."""
        return text_paths(self.outcome.patch, self.outcome.root, self.before)

    def renames(self) -> dict[str, str]:
        """New path -> old path of every file that it renames."""
        return renames_of(self.outcome.patch, self.outcome.root, reverse=self.entry.reverse)


def steps_of(derived: Derived, base: Tree, stands: bool = False) -> list[Step]:
    """Every patch of a series. derived: the whole of it, applied on `base`."""
    versions = Versions(base, derived.changes())
    rows = zip(derived.series.entries, derived.series.headers, derived.outcomes, strict=True)
    return [
        Step(entry, header, outcome, At(versions, place), stands)
        for place, (entry, header, outcome) in enumerate(rows)
    ]


def steps_into(
    project: Project,
    old: Derived,
    old_base: Tree,
    own: Derived,
    base: Tree,
    again: Collection[str] = (),
    new: bool = True,
) -> list[Step]:
    """Every patch of the release's own series (`own`, on `base`), and those of `old` that it lacks
    and does not say why, or says that they were left out for now.

    again: patches of `old` that are carried once more, in place of what they are on the release.
    new: whether those that it lacks are wanted.
    """
    theirs, ours = steps_of(old, old_base), steps_of(own, base, True)
    steps: list[Step] = []
    for pair in pairs(project, old.series, own.series):
        step = theirs[pair.old] if pair.old is not None else None
        if pair.new is None:
            if step is not None and _is_new(pair) and (new or step.name in again):
                steps.append(step)
        elif step is not None and step.name in again:
            there = ours[pair.new]
            entry = replace(step.entry, patch=there.name, guard=there.entry.guard)
            steps.append(replace(step, entry=entry, instead=there))
        else:
            steps.append(ours[pair.new])
    return steps


def left_behind(project: Project, old: Series, own: Series) -> dict[str, str]:
    """The patches of `old` that `own` does not have and gives a reason for -> that reason."""
    rows = pairs(project, old, own)
    return {
        old.entries[p.old].patch: p.reason
        for p in rows
        if p.old is not None and p.new is None and not _is_new(p)
    }


def lacking(project: Project, old: Series, own: Series) -> list[str]:
    """The patches of `old` that `own` lacks and does not say why, or for now only."""
    rows = pairs(project, old, own)
    return [old.entries[p.old].patch for p in rows if p.old is not None and _is_new(p)]


def _is_new(pair: Pair) -> bool:
    return pair.new is None and (pair.skipped or not pair.reason)
