"""What is said of a patch that was put in its place, or could not be."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from patchkit.authoring.builder import Builder
from patchkit.authoring.incoming import Incoming
from patchkit.derive.builds import paths_of
from patchkit.engine.apply import apply_patch
from patchkit.engine.model import Overlay, Patch
from patchkit.engine.outcome import Outcome
from patchkit.engine.quote import show_path
from patchkit.engine.rule import Allow, Rule
from patchkit.engine.strip import Root
from patchkit.errors import Finding, Where
from patchkit.series.header import Header

SHOWN = 4
"""Offsets that a row names."""
LINE_ENDS = "the patch was read with the line ends of the files"

_FUZZ = re.compile(r"Patchkit-Allow: fuzz=([0-9])")


def said_of(
    patch: Patch, outcome: Outcome, header: Header, recount: bool, *, made: bool = False
) -> list[str]:
    """What was found out, in words. made: no file came, so there is nothing to say of its form."""
    root, said = outcome.root, []
    if root.strip != 1 or root.directory:
        at = f", in {show_path(root.directory)}/" if root.directory else ""
        said.append(f"read as -p{root.strip}{at}")
    shape = {"mail": "a mail", "dep3": "DEP-3 header", "prose": "text above", "none": "bare diff"}
    if not made:
        said.append(shape[header.shape])
    moved = [p for p in outcome.places if p.offset]
    if moved:
        shown = ", ".join(f"{show_path(p.file)} hunk {p.hunk} {p.offset:+d}" for p in moved[:SHOWN])
        more = f" and {len(moved) - SHOWN} more" if len(moved) > SHOWN else ""
        said.append(f"offset: {shown}{more}")
    fuzzy = [p for p in outcome.places if p.fuzz]
    if fuzzy:
        said.append(f"fuzz {max(p.fuzz for p in fuzzy)} in {len(fuzzy)} hunk(s)")
    if any(note.message == LINE_ENDS for note in outcome.notes):
        said.append("the files' own line ends")
    if recount and any(note.name == "corrupt-hunk-count" for note in patch.notes):
        said.append("counts corrected")
    return said


def there(builder: Builder, incoming: Incoming, patch: Patch, outcome: Outcome) -> Finding:
    """A patch that the tree has already: in the upstream, or in a patch of the series."""
    base = Overlay(builder.standing.tree)
    ends = any(note.message == LINE_ENDS for note in outcome.notes)
    rule = Rule(allow=Allow(line_endings="target" if ends else ""))
    found = apply_patch(base, patch, rule, outcome.root, incoming.reverse)
    upstream = found.state == "already-applied"
    by = [
        show_path(built.entry.patch)
        for built in builder.built
        if set(built.changes) & set(_paths(patch, outcome.root))
    ]
    words = "the upstream" if upstream else f"{', '.join(by) or 'an earlier patch'}"
    return Finding(
        "upstreamed" if upstream else "duplicate",
        f"all of {incoming.name} is in {words} already",
        Where(patch=incoming.name),
        expected="a change that the tree does not have",
        found="every hunk's result",
        next="leave it out",
    )


def root_notes(outcome: Outcome, incoming: Incoming, given: Sequence[str] = ()) -> list[Finding]:
    """What is said of other roots. One at which the patch is exact, where it is not as git reads
    its names, is no note: which of them is meant has to be said."""
    out = []
    moved = any(place.offset or place.fuzz for place in outcome.places)
    for finding in outcome.root.findings:
        said = option(finding, incoming, given)
        if finding.note and moved and "is not exact" in finding.message:
            here = f"{_command(incoming, given)} -p {outcome.root.strip}"
            said = replace(
                said,
                note=False,
                message=said.message.partition("; what it")[0],
                next=f"{said.next}; {here}, where it is as git reads it",
            )
        out.append(said)
    return out


def _paths(patch: Patch, root: Root) -> list[str]:
    return paths_of(patch.sections, root.strip) if not root.directory else []


def _command(incoming: Incoming, given: Sequence[str], *option: str) -> str:
    """The import that was typed, of one file. option: one more, with its value, in the place of
    a given one of that name."""
    kept = list(given)
    if option and option[0] in kept:
        at = kept.index(option[0])
        del kept[at : at + len(option)]
    words = ["patchkit import", *option, show_path(incoming.where)]
    return " ".join([*words, *([shlex.join(kept)] if kept else [])])


def option(finding: Finding, incoming: Incoming, given: Sequence[str] = ()) -> Finding:
    """The finding, its next step said for import. given: options to keep."""
    step = finding.next
    fuzz = _FUZZ.search("\n".join(finding.details))
    if finding.name == "corrupt-hunk-count":
        step = f"{_command(incoming, given, '--recount')} (look at the result)"
    elif "--accept" in step or "--directory" in step or " -p " in step:
        step = step.replace("patchkit apply …", _command(incoming, given))
    elif fuzz is not None:
        command = _command(incoming, given, "--fuzz", fuzz[1])
        step = f"{command}, when the place named above is right"
    elif step.startswith("patchkit refresh"):
        step = "make the patch anew for this base, or mend it by hand"
    return replace(finding, next=step)
