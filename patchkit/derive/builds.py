"""Patches that need a compiler, and whether their guard says so."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.engine.model import Section
from patchkit.engine.strip import Root, target_paths
from patchkit.errors import Finding, Where
from patchkit.series.folder import Series
from patchkit.series.pins import Upstream
from patchkit.upstreams import Known, known


def native_without_guard(upstream: Upstream, series: Series) -> list[Finding]:
    """needs-build for every unguarded patch with a path outside the package's Python and data.

    The default stack must serve an installed package, where nothing is compiled and no folder
    but the package's is.
    """
    facts = known(upstream)
    found = []
    for entry, patch in zip(series.entries, series.patches, strict=True):
        if entry.guard is not None:
            continue
        wrong = [path for path in paths_of(patch.sections, entry.strip) if _needs(facts, path)]
        if wrong:
            found.append(
                Finding(
                    "needs-build",
                    f"{entry.patch} has no guard, and changes what an installed package lacks",
                    Where(patch=entry.patch, file=wrong[0]),
                    expected=f"only Python and data below {facts.package or 'the package'}/",
                    found=", ".join(wrong),
                    next=f"give it a guard in the series file: {entry.patch} #+native",
                )
            )
    return found


def _needs(facts: Known, path: str) -> bool:
    return facts.native(path) or facts.outside_package(path)


def paths_of(sections: Sequence[Section], strip: int) -> list[str]:
    """The tree paths that sections name, sorted; names too short for the strip level left out."""

    paths: set[str] = set()
    for section in sections:
        try:
            paths.update(p for p in target_paths(section, Root(strip)) if p is not None)
        except ValueError:
            continue
    return sorted(paths)
