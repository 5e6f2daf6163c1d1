"""Which parts of a patch are for an installed package, and which it can never take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from patchkit.engine.model import SYMLINK, Patch
from patchkit.engine.quote import show_path
from patchkit.engine.strip import Root, target_paths
from patchkit.errors import Finding, Where
from patchkit.target.installed_packet import excluded

IN = "in"
OUT = "out"
NATIVE = "native"
Place = Callable[[str], str]
"""Of a tree path: IN the package, OUT of it, or NATIVE (it takes effect only when compiled)."""

NOT_PACKAGED = frozenset(
    ("tests", "test", "testing", "docs", "doc", "benchmarks", "bench", "examples", "scripts", "ci")
)
"""Folders of a project's tree that wheels do not hold."""


@dataclass(frozen=True)
class Cut:
    """A patch without what the target lacks.

    patch: its sections that stay; kept: their numbers, from 0. left_out: tree paths of the others.
    findings: needs-build, unsupported, and no-op where nothing is left.
    """

    patch: Patch
    kept: tuple[int, ...]
    left_out: tuple[str, ...]
    findings: tuple[Finding, ...]


def cut(patch: Patch, root: Root, place: Place, exclude: Sequence[str] = ()) -> Cut:
    """The part of `patch` that an installed package can take."""
    kept: list[int] = []
    left: dict[str, None] = {}
    native: dict[str, None] = {}
    findings: list[Finding] = []
    for number, section in enumerate(patch.sections):
        try:
            paths = [p for p in dict.fromkeys(target_paths(section, root)) if p is not None]
        except ValueError:
            kept.append(number)  # the engine says what is wrong with it
            continue
        kinds = {OUT if excluded(path, exclude) else place(path) for path in paths}
        if NATIVE in kinds:
            native.update((p, None) for p in paths if place(p) == NATIVE)
        elif kinds == {OUT}:
            left.update((path, None) for path in paths)
        elif kinds == {IN}:
            kept.append(number)
            if SYMLINK in (section.old_mode, section.new_mode):
                findings.append(_link(patch, paths[0]))
        else:
            findings.append(_across(patch, paths, exclude))
    if native:
        findings.insert(0, _needs_build(patch, list(native)))
    elif not kept and not findings:
        findings.append(_nothing_left(patch, list(left), exclude))
    sections = tuple(patch.sections[n] for n in kept)
    return Cut(
        patch if len(sections) == len(patch.sections) else replace(patch, sections=sections),
        tuple(kept),
        tuple(sorted(left)),
        tuple(findings),
    )


def left_out_notes(paths: Sequence[str], exclude: Sequence[str]) -> list[Finding]:
    """Notes that name everything that was left out, and whether --exclude or the package did it."""
    asked = [path for path in paths if excluded(path, exclude)]
    lacking = [path for path in paths if path not in asked]
    notes = []
    if lacking:
        notes.append(
            Finding(
                "missing-target",
                f"{len(lacking)} file(s) of the patches are not in an installed package, and are "
                "left out",
                expected="files of the package",
                found="left out: " + ", ".join(show_path(path) for path in lacking),
                note=True,
            )
        )
    if asked:
        notes.append(
            Finding(
                "partly-applied",
                f"{len(asked)} file(s) of the patches are left out by --exclude",
                expected="the patches less what --exclude names",
                found="left out: " + ", ".join(show_path(path) for path in asked),
                note=True,
            )
        )
    idle = [repr(p) for p in exclude if not any(excluded(path, [p]) for path in paths)]
    if idle:
        notes.append(
            Finding(
                "missing-target",
                f"--exclude {', '.join(idle)} leaves out nothing",
                expected="a pattern of paths in the patches, as 'vllm/entrypoints/*'",
                found="no file of the patches has such a path",
                note=True,
            )
        )
    return notes


def _needs_build(patch: Patch, paths: Sequence[str]) -> Finding:
    shown = ", ".join(show_path(path) for path in paths)
    return Finding(
        "needs-build",
        f"{show_path(patch.name)} changes what has an effect only when it is built: {shown}",
        Where(patch=patch.name, file=paths[0]),
        expected="only Python and data of the package",
        found=shown,
        next="build a wheel with patchkit build and install that, or choose a stack without "
        "native sources",
    )


def _nothing_left(patch: Patch, paths: Sequence[str], exclude: Sequence[str]) -> Finding:
    shown = ", ".join(show_path(path) for path in paths)
    if any(excluded(path, exclude) for path in paths):
        return Finding(
            "no-op",
            f"--exclude leaves nothing of {show_path(patch.name)}",
            Where(patch=patch.name, file=paths[0]),
            expected="a file of the patch that is not excluded",
            found="left out by --exclude, or not in an installed package: " + shown,
            next="exclude less, or leave the whole patch out: choose a stack without it, or name "
            "the others",
        )
    return Finding(
        "no-op",
        f"{show_path(patch.name)} changes nothing in an installed package: "
        f"all of it is for files that are not in one",
        Where(patch=patch.name, file=paths[0] if paths else None),
        expected="a file of the package",
        found=f"only {shown}",
        next=f"leave it out; in a series, give it a guard: {show_path(patch.name)} #+source",
    )


def _across(patch: Patch, paths: Sequence[str], exclude: Sequence[str]) -> Finding:
    if any(excluded(path, exclude) for path in paths):
        return Finding(
            "unsupported",
            f"{show_path(patch.name)} renames or copies a file, and --exclude takes one of its two "
            "names only",
            Where(patch=patch.name, file=paths[0]),
            expected="both names excluded, or neither",
            found=" and ".join(show_path(path) for path in paths),
            next="let --exclude name both, or neither",
        )
    return Finding(
        "unsupported",
        f"{show_path(patch.name)} moves a file across the package's border",
        Where(patch=patch.name, file=paths[0]),
        expected="both names inside the package, or both outside",
        found=" and ".join(show_path(path) for path in paths),
        next="write it as a new file and a deleted one",
    )


def _link(patch: Patch, path: str) -> Finding:
    return Finding(
        "unsupported",
        f"{show_path(patch.name)} makes {show_path(path)} a symbolic link, which no wheel holds",
        Where(patch=patch.name, file=path),
        expected="a regular file",
        found="a symbolic link",
        next="make it a file with the same content",
    )
