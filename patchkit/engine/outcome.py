"""What becomes of a patch, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from patchkit.engine.model import File, Hunk, Patch
from patchkit.engine.place import Place
from patchkit.engine.strip import Root
from patchkit.errors import Finding


@dataclass(frozen=True)
class Edit:
    """What one section did to one file, for the record of who changed which lines.

    old: the path it was read from (None for a new file); new: the path it became (None for a
    deleted one). starts: the index of each hunk in the old lines.
    """

    old: str | None
    new: str | None
    hunks: Sequence[Hunk] = ()
    starts: Sequence[int] = ()


@dataclass(frozen=True)
class There:
    """A part of a patch that is in the tree already. hunk: its number in the section, 0 for a
    file as a whole; line: 1-based, where its result begins; lines: how many lines that has;
    offset: line found less line stated.
    """

    file: str
    hunk: int
    line: int
    lines: int
    offset: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of one patch.

    state: "applied"; "already-applied" (every part is in the tree, nothing to do); "refused";
    in a chain also "left-out" (not selected). changes: path -> what it becomes, None where it
    goes; empty unless applied. places: where hunks were put, in the order of the patch.
    findings: why it is refused. notes: what to know besides, the patch's own notes first.
    candidates: places that a message names and that were not used. there: the parts that are in
    the tree already. edits: for `engine/history`.
    """

    patch: Patch
    state: str
    changes: Mapping[str, File | None] = field(default_factory=dict)
    places: Sequence[Place] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    root: Root = field(default_factory=Root)
    candidates: tuple[Place, ...] = ()
    there: tuple[There, ...] = ()
    edits: tuple[Edit, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the patch is no reason to stop."""
        return self.state != "refused"


class Told:
    """What a caller knows of a file's lines: asked when a hunk fails. Override in a chain."""

    def changed_by(self, path: str, start: int, stop: int) -> str:
        """A sentence on who last changed lines start..stop (0-based), "" where nobody did."""
        return ""
