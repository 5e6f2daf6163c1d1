"""Beginning work on a patch: `new` and `edit` lay out a work tree at its point of the series."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from patchkit.authoring.headers import identity, typed
from patchkit.authoring.messages import NO_GUARD
from patchkit.authoring.names import patch_name, require_free, subject_from
from patchkit.authoring.standing import Standing, unsealed
from patchkit.authoring.when import When
from patchkit.authoring.workplace import default_place, near, read_point, write_place
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.header import Header
from patchkit.series.quilt import Entry, SeriesFile
from patchkit.series.quilt_edit import insert
from patchkit.target.worktree import Written

AUTHOR_HINT = '--author "Name <mail>", or git config --global user.name and user.email'


@dataclass(frozen=True)
class Begun:
    """A work tree that is ready. at: its folder. count: patches in it; last: the last of them."""

    patch: str
    at: str
    count: int
    last: str
    written: Written
    findings: tuple[Finding, ...]


def begin_new(
    standing: Standing,
    name: str,
    moment: When,
    *,
    after: str | None = None,
    first: bool = False,
    guard: str | None = None,
    subject: str | None = None,
    author: str | None = None,
    to: str | None = None,
) -> Begun:
    """A work tree for a patch that is not in the series yet. `refresh` puts it there.

    after, first: where it will stand; at the end without them. Raises UsageFault where no author
    is known or the subject cannot be one, Refused.
    """
    patch = patch_name(name)
    require_free(patch, standing.names)
    folder = standing.project.series_folder(standing.pin.name)
    if folder.joinpath(patch).exists():
        raise Refused(
            Finding(
                "target-exists",
                f"{patch} exists in the series folder, and no line of the series names it",
                Where(patch=patch),
                expected="no file of that name",
                next=f"patchkit import {os.path.join('series', standing.pin.name, patch)}, "
                "or remove it",
            )
        )
    header = typed(
        Header(
            author or author_of(standing),
            moment.mail,
            subject if subject is not None else subject_from(patch),
        )
    )
    guard = chosen_guard(patch, guard)
    findings = _ready(standing)
    count = 0 if first else len(standing.names)
    if after is not None:
        count = standing.index(after) + 1
    at = to or default_place(standing.project, standing.pin.name)
    written = _laid_out(standing, at, count, patch, header, guard or "")
    last = standing.names[count - 1] if count else ""
    return Begun(patch, os.path.abspath(at), count, last, written, findings)


def begin_edit(standing: Standing, name: str | None, *, to: str | None = None) -> Begun:
    """A work tree at a patch of the series (the last one without a name)."""
    if not standing.names:
        raise Refused(
            Finding(
                "missing-patch",
                f"the series of {standing.pin.name} has no patch to edit",
                next="patchkit new NAME",
            )
        )
    index = standing.index(name) if name is not None else len(standing.names) - 1
    findings = _ready(standing)
    at = to or default_place(standing.project, standing.pin.name)
    patch = standing.names[index]
    written = _laid_out(standing, at, index + 1, patch)
    return Begun(patch, os.path.abspath(at), index + 1, patch, written, findings)


def _laid_out(
    standing: Standing,
    at: str,
    count: int,
    patch: str,
    new: Header | None = None,
    guard: str = "",
) -> Written:
    """As `write_place`; where work would be lost, said whose it is and how to keep it."""
    try:
        return write_place(standing, at, count, patch, new, guard)
    except Refused as refusal:
        point = read_point(at) if os.path.isdir(at) else None
        if point is None:
            raise
        hint = (
            f"it is work on {point.patch}: patchkit refresh first, or put it aside with "
            f"git -C {near(at)} stash --include-untracked"
        )
        raise Refused(
            *(replace(f, next=hint) if f.name == "foreign-edit" else f for f in refusal.findings)
        ) from None


def author_of(standing: Standing) -> str:
    """The author of a new patch: as the user's git has it. Raises UsageFault without one."""
    found = identity(os.fspath(standing.project.folder))
    if not found:
        raise UsageFault.because("nobody is known as the author of a new patch", next=AUTHOR_HINT)
    return found


def _ready(standing: Standing) -> tuple[Finding, ...]:
    """Notes; raises Refused where the series does not hold or was edited by hand."""
    found = unsealed(standing.whole())
    wrong = [f for f in found if not f.note]
    if wrong:
        raise Refused(*wrong)
    return (*standing.base.gaps, *found)


def chosen_guard(patch: str, guard: str | None) -> str | None:
    """The guard that --guard asks for: None for no guard, which is asked for as `none`.

    Raises UsageFault where a series file could not hold it.
    """
    if guard is None or guard.lower() == NO_GUARD:
        return None
    try:
        entry = insert(SeriesFile(), Entry(patch, guard=guard)).entries[0]
    except Refused as refusal:
        raise UsageFault.because(
            f"--guard {guard}: {refusal.findings[0].message}", next="--guard native"
        ) from None
    if entry.guard != guard:
        raise UsageFault.because(
            f"--guard {guard}: not a guard's name", next="letters, digits, '.', '_' and '-'"
        )
    return guard
