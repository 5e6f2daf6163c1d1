"""`import FILE --exclude GLOB`: file sections of a patch that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from patchkit.engine.model import Patch, Section
from patchkit.engine.quote import show_path
from patchkit.engine.strip import Root, target_paths
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.header import Header

SHOWN = 6


@dataclass
class Leaving:
    """The patterns of one import, and what they were compared with so far."""

    globs: tuple[str, ...] = ()
    used: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    empty: list[str] = field(default_factory=list)

    def cut(self, patch: Patch, root: Root) -> tuple[Patch, tuple[str, ...]]:
        """The patch less the sections for files that a pattern fits (`*` takes slashes, too), and
        those files. With none of them it is the patch itself.

        A pattern is compared with the path in the tree and with the name as git reads it: where
        no file is there the root is a guess.
        """
        if not self.globs:
            return patch, ()
        kept, gone = [], set()
        for section in patch.sections:
            paths = _names(section, root) | _names(section, Root())
            self.seen |= paths
            fit = {(glob, p) for glob in self.globs for p in paths if fnmatchcase(p, glob)}
            self.used |= {glob for glob, _ in fit}
            if fit:
                gone |= _names(section, root) or paths
            else:
                kept.append(section)
        if not gone:
            return patch, ()
        return replace(patch, sections=tuple(kept)), tuple(sorted(gone))

    def emptied(self, name: str, gone: Sequence[str]) -> Finding:
        """Of the patch nothing is left: a note, as the others may go on without it."""
        self.empty.append(name)
        return Finding(
            "no-op",
            f"all of {name} is left out by --exclude: {', '.join(gone[:SHOWN])}",
            Where(patch=name),
            note=True,
        )

    def require_sense(self, count: int) -> None:
        """Raise UsageFault for a pattern that fits no file of any patch, Refused(no-op) where
        nothing is left of all `count` patches."""
        if count and len(self.empty) == count:
            raise Refused(
                Finding(
                    "no-op",
                    "--exclude leaves out all that came",
                    expected="at least one file that is taken",
                    found=", ".join(sorted(self.seen)[:SHOWN]),
                    next="fewer --exclude",
                )
            )
        idle = [glob for glob in self.globs if glob not in self.used]
        if idle and self.seen:
            shown = ", ".join(show_path(path) for path in sorted(self.seen)[:SHOWN])
            raise UsageFault(
                *(
                    Finding(
                        "usage",
                        f"--exclude {glob} matches no file of the patches",
                        expected=f"a pattern of {shown}",
                        found=glob,
                        next="leave the option out, or mend the pattern",
                    )
                    for glob in idle
                )
            )


def _names(section: Section, root: Root) -> set[str]:
    """The paths of a section; none where its names are wrong, which applying it says."""
    try:
        return {p for p in target_paths(section, root) if p is not None}
    except ValueError:
        return set()


def with_left_out(header: Header, gone: Sequence[str]) -> Header:
    """The header, saying what the patch lost."""
    if not gone:
        return header
    return replace(header, body=f"{header.body}\n\nLeft out: {', '.join(gone)}.".lstrip("\n"))
