"""Why a hunk does not hold, in words: the nearest place, how it differs, and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchkit.engine.content import Text
from patchkit.engine.difference import SHOWN, difference, line_end
from patchkit.engine.fuzz import trims
from patchkit.engine.model import Hunk
from patchkit.engine.near import nearest
from patchkit.engine.place import Place, Spot, at_end, at_start
from patchkit.engine.quote import show_line, show_path
from patchkit.engine.rule import MAX_FUZZ
from patchkit.errors import Finding, Where


@dataclass(frozen=True)
class Subject:
    """What a message speaks of. reverse: the patch is applied with -R. deletes: the hunk is to
    leave nothing of the file. exact: it stands in a series, which permits nothing.
    """

    patch: str
    file: str
    number: int
    hunk: Hunk
    reverse: bool = False
    deletes: bool = False
    exact: bool = False

    @property
    def where(self) -> Where:
        return Where(self.patch, self.file, self.number, None, self.hunk.patch_line or None)

    def at(self, line: int) -> Where:
        """The same place, with a line of the file (1-based)."""
        return Where(self.patch, self.file, self.number, line, self.hunk.patch_line or None)

    @property
    def name(self) -> str:
        with_r = " with -R" if self.reverse else ""
        whole = ", which is to delete the file," if self.deletes else ""
        return f"hunk {self.number} of {show_path(self.file)}{with_r}{whole}"

    @property
    def refresh(self) -> str:
        return f"patchkit refresh {show_path(self.patch)}"


@dataclass(frozen=True)
class Explained:
    """A finding, and the place that it names as a candidate (never used unasked).

    line_ends: it differs by CRLF against LF only; `apply` makes one finding a file of those.
    """

    finding: Finding
    candidate: Place | None = None
    line_ends: bool = False


def explain(subject: Subject, text: Text, spot: Spot, details: Sequence[str] = ()) -> Explained:
    """The finding for a hunk that fails. details: what the caller knows besides (who changed
    these lines last).
    """
    if spot.why == "ambiguous":
        return Explained(_ambiguous(subject, spot, details))
    if spot.why == "near-miss":
        return Explained(_look_alike(subject, text, spot, details))
    if spot.why == "offset":
        return _offset(subject, spot, details)
    if spot.why in ("start", "end"):
        return _anchor(subject, text, spot, details)
    if spot.why == "order":
        return _order(subject, spot, details)
    return _conflict(subject, text, spot, details)


def _accept(subject: Subject, line: int) -> str:
    return f"patchkit apply … --accept {show_path(subject.file)}:{line}"


def _lines(places: Sequence[int]) -> str:
    shown = ", ".join(str(at + 1) for at in places[: 2 * SHOWN])
    more = len(places) - 2 * SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _ambiguous(subject: Subject, spot: Spot, details: Sequence[str]) -> Finding:
    near = sorted(spot.places, key=lambda at: abs(at - spot.expected))
    places = sorted(near[: 2 * SHOWN])
    lines = _lines(places) if len(near) == len(places) else _lines(near)
    return Finding(
        "ambiguous",
        f"{subject.name} may stand at several places: lines {lines}",
        subject.at(spot.expected + 1),
        expected=f"its lines at line {spot.expected + 1}, or at one place only",
        found=f"all of its lines at {len(spot.places)} places: {lines}",
        details=tuple(details),
        next=_accept(subject, near[0] + 1),
    )


def _look_alike(subject: Subject, text: Text, spot: Spot, details: Sequence[str]) -> Finding:
    stated_place, found = spot.places
    differing = difference(subject.hunk.old, text.lines, stated_place)
    return Finding(
        "ambiguous",
        f"{subject.name} is nearly right at its stated line {stated_place + 1} and exact at "
        f"line {found + 1}: that one may be a look-alike",
        subject.at(stated_place + 1),
        expected=f"its lines at line {stated_place + 1}",
        found=f"a changed copy at line {stated_place + 1}, the exact lines at line {found + 1}",
        details=(*differing.lines, *details),
        next=_accept(subject, found + 1),
    )


def _offset(subject: Subject, spot: Spot, details: Sequence[str]) -> Explained:
    found, expected = spot.places[0] + 1, spot.expected + 1
    finding = Finding(
        "offset",
        f"{subject.name} stands at line {found}, not at line {expected} "
        f"(offset {found - expected}): no place is searched for in a locked series",
        subject.at(found),
        expected=f"line {expected}",
        found=f"line {found}",
        details=tuple(details),
        next=subject.refresh,
    )
    return Explained(finding, Place(subject.file, subject.number, found, found - expected))


def _anchor(subject: Subject, text: Text, spot: Spot, details: Sequence[str]) -> Explained:
    hunk, size = subject.hunk, len(text.lines)
    places = _lines(spot.places)
    candidate = None
    at = min(spot.places, key=lambda p: abs(p - spot.expected))
    if at and at_start(hunk):
        why = "it states line 1, which means the start of the file"
        expected = "its lines at the start of the file"
        if len(spot.places) == 1 and not at_end(hunk):
            candidate = Place(subject.file, subject.number, at + 1, at - spot.expected)
    else:
        last = at + len(hunk.old)
        why = "it has no trailing context, which means the end of the file"
        expected = f"its last line at the end of the file (line {size})"
        more = f"{size - last} more lines follow" if size - last > 1 else "one more line follows"
        told = [line for line in text.lines[last : last + 2 * SHOWN] if line.strip()]
        shown = [f"  {show_line(line)}" for line in told[:SHOWN]]
        details = (f"{more} there, from line {last + 1}:", *shown, *details)
    finding = Finding(
        "conflict",
        f"{subject.name} does not hold: {why}, and its lines stand at line {places}",
        subject.at(at + 1),
        expected=expected,
        found=f"its lines at line {places} of {size}",
        details=tuple(details),
        next=_accept(subject, at + 1) if candidate else subject.refresh,
    )
    return Explained(finding, candidate)


def _order(subject: Subject, spot: Spot, details: Sequence[str]) -> Explained:
    line = spot.places[0] + 1
    return Explained(
        Finding(
            "conflict",
            f"{subject.name} does not hold: its lines stand only at line {line}, "
            "above or inside the place of the hunk before it",
            subject.at(line),
            expected=f"line {spot.expected + 1}, below the hunk before it",
            found=f"line {line}",
            details=tuple(details),
            next=subject.refresh,
        )
    )


def _conflict(subject: Subject, text: Text, spot: Spot, details: Sequence[str]) -> Explained:
    hunk, size = subject.hunk, len(text.lines)
    if not hunk.old:
        return Explained(_not_empty(subject, size, details))
    expected = [spot.expected, spot.index]
    near = nearest(text, hunk.old, expected)
    if near is None:
        first = _first_change(hunk)
        finding = Finding(
            "conflict",
            f"{subject.name} does not hold, and nothing like it stands in the file",
            subject.at(min(spot.expected + 1, max(size, 1))),
            expected=show_line(first),
            found=f"no such lines in {size} lines",
            details=tuple(details),
            next=subject.refresh,
        )
        return Explained(finding)
    at, same = near
    differing = difference(hunk.old, text.lines, at)
    line = at + 1
    if differing.kind == "line ends":
        return Explained(_line_ends(subject, text, line, details), line_ends=True)
    notes = [f"nearest place: line {line}; {same} of its {len(hunk.old)} lines are the same there"]
    if line != spot.expected + 1:
        notes[0] += f" (stated: line {spot.expected + 1})"
    how = ""
    if differing.kind == "white space":
        how = ", and the nearest place differs in white space only"
    elif differing.kind == "white space and more lines":
        how = ", and the nearest place differs in white space and in lines that stand between"
    elif differing.kind == "last line end":
        how = ": the last line differs in its line end"
    candidate = _fuzzy(subject, text, spot)
    if candidate is not None:
        notes.append(
            f"it would hold at line {candidate.line} with fuzz {candidate.fuzz}, which was not "
            "used: look at it, and let the patch allow it by name "
            f"(Patchkit-Allow: fuzz={candidate.fuzz})"
        )
    if at_start(hunk) and at != 0:
        notes.append("it states line 1, which means the start of the file")
    finding = Finding(
        "conflict",
        f"{subject.name} does not hold{how}",
        subject.at(line),
        expected=differing.expected,
        found=differing.found,
        details=(*notes, *differing.lines, *details),
        next=subject.refresh,
    )
    return Explained(finding, candidate)


def _first_change(hunk: Hunk) -> bytes:
    at = hunk.tags.find(b"-")
    return hunk.contents[at] if at >= 0 else hunk.old[0]


def _not_empty(subject: Subject, size: int, details: Sequence[str]) -> Finding:
    return Finding(
        "conflict",
        f"{subject.name} fills an empty file, and this one has {size} lines "
        "(or it was made without context: diff -U0)",
        subject.at(1),
        expected="an empty file",
        found=f"{size} lines",
        details=tuple(details),
        next=subject.refresh,
    )


def _line_ends(subject: Subject, text: Text, line: int, details: Sequence[str]) -> Finding:
    file_has = line_end(text.lines)
    patch_has = line_end(subject.hunk.old)
    return Finding(
        "line-endings",
        f"{subject.name} would hold but for its line ends: {show_path(subject.file)} has "
        f"{file_has}, the patch {show_path(subject.patch)} has {patch_has}",
        subject.at(line),
        expected=patch_has,
        found=file_has,
        details=tuple(details),
        next=subject.refresh
        if subject.exact
        else "allow it by name in the patch: Patchkit-Allow: line-endings=target",
    )


def _fuzzy(subject: Subject, text: Text, spot: Spot) -> Place | None:
    """The place that the least fuzz would take, the one nearest to the stated line."""
    for trim in trims(subject.hunk, MAX_FUZZ):
        found = text.places(trim.of(subject.hunk.old))
        if found:
            at = min(found, key=lambda p: abs(p - trim.lead - spot.expected)) - trim.lead
            return Place(subject.file, subject.number, at + 1, at - spot.expected, trim.fuzz)
    return None
