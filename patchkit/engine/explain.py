"""Why a hunk does not hold, in words: the nearest place, how it differs, and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from patchkit.engine.content import Text, fold
from patchkit.engine.fuzz import trims
from patchkit.engine.model import Hunk
from patchkit.engine.near import nearest
from patchkit.engine.place import Place, Spot, at_end, at_start
from patchkit.engine.quote import show_line, show_path
from patchkit.engine.rule import MAX_FUZZ
from patchkit.errors import Finding, Where

SHOWN = 4
"""Differing lines and places that a message shows before it says how many more there are."""

ALIGNED = 200
"""Blocks up to this many lines are aligned before they are compared."""


@dataclass(frozen=True)
class Subject:
    """What a message speaks of. reverse: the patch is applied with -R. deletes: the hunk is to
    leave nothing of the file.
    """

    patch: str
    file: str
    number: int
    hunk: Hunk
    reverse: bool = False
    deletes: bool = False

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
    differing = _differing(subject.hunk.old, text.lines, stated_place)
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


@dataclass(frozen=True)
class _Difference:
    """How a block differs from a place: lines for a message, and the first differing pair."""

    lines: tuple[str, ...]
    expected: str
    found: str
    kind: str  # as `_kind` says


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
    differing = _differing(hunk.old, text.lines, at)
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
    for tag, line in hunk.lines:
        if tag == b"-":
            return line
    return hunk.old[0]


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
        next="allow it by name in the patch: Patchkit-Allow: line-endings=target",
    )


def line_end(lines: Sequence[bytes]) -> str:
    """ "CRLF", "LF", or "CRLF and LF mixed"."""
    ended = [line for line in lines if line.endswith(b"\n")]
    crlf = sum(1 for line in ended if line.endswith(b"\r\n"))
    if not crlf:
        return "LF"
    return "CRLF" if crlf == len(ended) else "CRLF and LF mixed"


def _fuzzy(subject: Subject, text: Text, spot: Spot) -> Place | None:
    """The place that the least fuzz would take, the one nearest to the stated line."""
    for trim in trims(subject.hunk, MAX_FUZZ):
        found = text.places(trim.of(subject.hunk.old))
        if found:
            at = min(found, key=lambda p: abs(p - trim.lead - spot.expected)) - trim.lead
            return Place(subject.file, subject.number, at + 1, at - spot.expected, trim.fuzz)
    return None


def _differing(block: Sequence[bytes], lines: Sequence[bytes], at: int) -> _Difference:
    """Compare a block with the lines at `at`: which differ, shown side by side."""
    pairs = _pairs(block, lines, at)
    shown: list[str] = []
    for number, want, have in pairs[:SHOWN]:
        shown.append(f"line {number}:" if number else "in the patch:")
        shown.append(f"  expected: {_show(want, have)}")
        shown.append(f"  found:    {_show(have, want)}")
    if len(pairs) > SHOWN:
        shown.append(f"and {len(pairs) - SHOWN} more lines differ")
    if not pairs:
        return _Difference((), "its lines", "the same lines", "")
    _, want, have = pairs[0]
    return _Difference(tuple(shown), _show(want, have), _show(have, want), _kind(pairs))


Pair = tuple[int, "bytes | None", "bytes | None"]


def _pairs(block: Sequence[bytes], lines: Sequence[bytes], at: int) -> list[Pair]:
    """(1-based line, expected, found) of each difference; None for a line that is not there."""
    size = len(block)
    window = list(lines[at : at + size])
    if size > ALIGNED or sum(map(len, window)) > 1 << 16:
        window += [b""] * (size - len(window))
        return [
            (at + i + 1, want, have or None)
            for i, (want, have) in enumerate(zip(block, window, strict=True))
            if want != have
        ]
    low = max(at - 3, 0)
    room = list(lines[low : at + size + 3])
    keys = [[fold(line) for line in some] for some in (block, room)]
    blocks = SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes()
    # Lines above and below the hunk are none of its business.
    while blocks and blocks[-1][0] == "insert":
        blocks.pop()
    while blocks and blocks[0][0] == "insert":
        blocks.pop(0)
    pairs: list[Pair] = []
    for tag, i1, i2, j1, j2 in blocks:
        if tag == "equal":
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                if block[i] != room[j]:
                    pairs.append((low + j + 1, block[i], room[j]))
            continue
        if i2 == size:
            j2 = min(j2, j1 + (i2 - i1))
        elif i1 == 0:
            j1 = max(j1, j2 - (i2 - i1))
        for k in range(max(i2 - i1, j2 - j1)):
            want = block[i1 + k] if i1 + k < i2 else None
            have = room[j1 + k] if j1 + k < j2 else None
            pairs.append((low + j1 + k + 1, want, have))
    return pairs


def _kind(pairs: Sequence[Pair]) -> str:
    """What all the differences have in common, lines left aside that only the file has."""
    if any(have is None for _, _, have in pairs):
        return ""
    both = [(w, h) for _, w, h in pairs if w is not None and h is not None]
    if not both:
        return ""
    if all(w.rstrip(b"\r\n") == h.rstrip(b"\r\n") for w, h in both):
        ended = all(w.endswith(b"\n") == h.endswith(b"\n") for w, h in both)
        if len(both) == len(pairs):
            return "line ends" if ended else "last line end"
    if not all(fold(w) == fold(h) for w, h in both):
        return ""
    return "white space" if len(both) == len(pairs) else "white space and more lines"


def _show(line: bytes | None, other: bytes | None) -> str:
    """One side of a difference, with what is invisible made visible where it matters."""
    if line is None:
        return "(no such line)"
    shown = show_line(line)
    if not line.endswith(b"\n"):
        shown += " (without a line end)"
    elif other is not None and fold(line) == fold(other) and line != other:
        if not other.endswith(b"\n"):
            return shown + " (with a line end)"
        indent = len(line) - len(line.lstrip(b" "))
        if indent != len(other) - len(other.lstrip(b" ")):
            shown += f" (indented by {indent} spaces)"
        elif line.rstrip() != line.rstrip(b"\n"):
            shown += " (white space at its end)"
    return shown
