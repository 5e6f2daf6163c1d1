"""From the names in a patch to paths of a tree: strip levels, and finding the root.

git's own reading (-p1 at the tree's root) comes first wherever any file of the patch is found
so. Only where it finds fewer files than another root is that one taken: no prefixes (-p0), a
path copied out of somebody's site-packages, a patch made inside the package. Evidence is always
a file that exists; a name alone never moves a patch. Of several such roots the one at which the
hunks hold as they are is taken; where that leaves more than one, none is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from patchkit.engine.content import text_of
from patchkit.engine.model import Patch, Section, Tree
from patchkit.engine.paths import unsafe
from patchkit.engine.place import holds
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Where

DEEPEST = 16
"""Strip levels above this are not tried."""

_SLASHES = re.compile("/+")
_LANDMARKS = ("site-packages/", "dist-packages/")


@dataclass(frozen=True)
class Root:
    """How a patch's names become paths. strip: as -pN. directory: put before the stripped name,
    "" for the tree's root. also: paths of other files that the patch fits as well. findings:
    about the choice; one that is no note says that there is none (ambiguous).
    """

    strip: int = 1
    directory: str = ""
    also: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def strip_name(name: str, strip: int) -> str | None:
    """`name` without its first `strip` parts; None where it has no more than those.

    Several slashes in a row count as one, as in git and GNU patch; "." counts as a part.
    """
    if "//" in name:
        name = _SLASHES.sub("/", name)
    for _ in range(strip):
        _, slash, name = name.partition("/")
        if not slash:
            return None
    return name or None


def target_paths(section: Section, root: Root) -> tuple[str | None, str | None]:
    """The old and the new path of a section in the tree; None for a side that is no file.

    An edit has one path: of two names of which one is the other with something appended
    (x.py.orig, x.py~) the shorter one, as git reads it. Raises ValueError with a reason where a
    name is shorter than the strip level or the two names of an edit are different files.
    """
    strip = max(root.strip - 1, 0) if section.bare_names else root.strip
    old = _path(section.old_path, strip, root)
    new = _path(section.new_path, strip, root)
    if old == new or old is None or new is None or section.kind in ("rename", "copy"):
        return old, new
    if old.startswith(new):
        return new, new
    if new.startswith(old):
        return old, old
    raise ValueError(f"its two names are different files at -p{root.strip}")


def _path(name: str | None, strip: int, root: Root) -> str | None:
    if name is None:
        return None
    path = strip_name(name, strip)
    if path is None:
        raise ValueError(f"the name has too few parts for -p{root.strip}")
    return f"{root.directory}/{path}" if root.directory else path


def find_root(
    tree: Tree,
    patch: Patch,
    *,
    strip: int | None = None,
    directory: str | None = None,
    package: str | None = None,
) -> Root:
    """The root that the most files of the patch exist at; git's reading where none does better,
    else the one at which the most of them hold exactly.

    strip, directory: what the user or the series file says; both given, nothing is looked for.
    package: the folder of the package where it is known; otherwise any folder of the top level
    that makes the names fit.
    """
    if strip is not None:
        return Root(strip, directory or "")
    sections = patch.sections
    roots = list(_candidates(tree, sections, directory, package))
    scores = [_score(tree, sections, root) for root in roots]
    most = max(scores, default=(0, 0))
    if not most[0]:
        return _default(sections, directory, roots, scores)
    likely = [root for root, score in zip(roots, scores, strict=True) if score == most]
    told = _told(sections, directory)
    chosen, sure = likely[0], likely[0] in told
    if not sure and len(likely) > 1:
        # A root at which the patch is there already is as good: a second apply must find it.
        chosen = max(likely, key=lambda root: _exact(tree, sections, root, there=True))
    rest = likely if not sure else [r for r, s in zip(roots, scores, strict=True) if s[0]]
    others = _also(tree, sections, chosen, [r for r in rest if r != chosen], there=not sure)
    also = tuple(dict.fromkeys(path for _, paths in others for path in paths))
    if not also:
        return chosen
    holds_here = _exact(tree, sections, chosen) == most[0]
    note = _other_roots(patch, chosen, [root for root, _ in others], also, sure, holds_here)
    return Root(chosen.strip, chosen.directory, also, (note,))


def _told(sections: Sequence[Section], directory: str | None) -> list[Root]:
    """The roots that the names themselves state: git's reading, and below site-packages."""
    marked = {level for level in map(_landmark, _names(sections)) if level}
    return [Root(level, directory or "") for level in (*sorted(marked), 1)]


def _other_roots(
    patch: Patch,
    chosen: Root,
    others: Sequence[Root],
    also: Sequence[str],
    sure: bool,
    holds_here: bool,
) -> Finding:
    """That the patch holds at other roots, too: a note where its names say which is meant and it
    holds there, or where it holds at one root only; else it cannot be known."""
    where = Where(patch=patch.name, file=also[0])
    shown = ", ".join(show_path(path) for path in also)
    choices = " or ".join(dict.fromkeys(_spelled(root) for root in (chosen, *others)))
    if sure:
        words = "also fits" if holds_here else "is not exact there, and fits exactly"
        return Finding(
            "ambiguous",
            f"the patch {words} at another root: {shown}; "
            f"what it says as git reads it was taken (-p{chosen.strip})",
            where,
            next=f"patchkit apply … {_spelled(others[0])}, where that one is meant",
            note=True,
        )
    return Finding(
        "ambiguous",
        f"the patch fits equally well at {len(others) + 1} roots, and its names do not say which",
        where,
        expected="one root at which every hunk holds",
        found=f"{_spelled(chosen)}, and with the same right {shown}",
        next=f"patchkit apply … {choices}",
    )


def _spelled(root: Root) -> str:
    """The option that asks for a root."""
    return f"--directory {show_path(root.directory)}" if root.directory else f"-p {root.strip}"


def _default(
    sections: Sequence[Section],
    directory: str | None,
    roots: Sequence[Root],
    scores: Sequence[tuple[int, int]],
) -> Root:
    """No file of the patch exists: git's reading, unless the names themselves forbid it."""
    names = list(_names(sections))
    for name in names:
        marked = _landmark(name)
        if marked:
            return Root(marked, directory or "")
    if any(name.startswith("/") for name in names):
        # Stripping an absolute name to whatever follows would be a guess.
        return Root(0, directory or "")
    if not any("/" in name for name in names):
        return Root(0, directory or "")
    folders = {
        root.strip: score[1]
        for root, score in zip(roots, scores, strict=True)
        if not root.directory
    }
    if folders.get(0, 0) > folders.get(1, 0):
        return Root(0, directory or "")
    return Root(1, directory or "")


def _candidates(
    tree: Tree, sections: Sequence[Section], directory: str | None, package: str | None
) -> Iterable[Root]:
    """Roots to try, the likelier ones first."""
    folder = directory or ""
    names = list(_names(sections))
    marked = sorted({level for level in map(_landmark, names) if level})
    for level in marked:
        yield Root(level, folder)
    yield Root(1, folder)
    yield Root(0, folder)
    if directory is None:
        folders = [package] if package else _folders(tree, sections)
        for name in folders:
            yield Root(1, name)
            yield Root(0, name)
    if any(".." in name.split("/") for name in names):
        return  # never strip a ".." away
    deepest = min((name.count("/") for name in names), default=0)
    for level in range(2, min(deepest, DEEPEST + 1)):  # at least two parts must be left
        if level not in marked:
            yield Root(level, folder)


def _names(sections: Sequence[Section]) -> Iterable[str]:
    for section in sections:
        for name in (section.new_path, section.old_path):
            if name is not None and not section.bare_names:
                yield name


def _landmark(name: str) -> int:
    """The strip level that leaves what stands below site-packages; 0 where it is not named."""
    name = _SLASHES.sub("/", name)
    for mark in _LANDMARKS:
        at = name.find("/" + mark)
        if at >= 0:
            return name.count("/", 0, at + 1 + len(mark))
        if name.startswith(mark):
            return 1
    return 0


def _folders(tree: Tree, sections: Sequence[Section]) -> list[str]:
    """Folders of the top level below which some file of the patch exists."""
    found: dict[str, None] = {}
    named: dict[str, list[str]] = {}
    for section in sections[:8]:
        for level in (1, 0):
            path = _old_path(section, Root(level))
            if path is None or unsafe(path):
                continue
            name = path.rpartition("/")[2]
            if name not in named:
                named[name] = list(tree.named(name))
            for full in named[name]:
                if full.endswith("/" + path) and "/" not in full[: -len(path) - 1]:
                    found[full[: -len(path) - 1]] = None
    return sorted(found)


def _old_path(section: Section, root: Root) -> str | None:
    """The path that has to exist for a section, None where none has."""
    if section.kind == "create":
        return None
    try:
        return target_paths(section, root)[0]
    except ValueError:
        return None


def _score(tree: Tree, sections: Sequence[Section], root: Root) -> tuple[int, int]:
    """(files of the patch that exist at this root, new files whose folder does)."""
    exist = folders = 0
    for section in sections:
        path = _old_path(section, root)
        if path is not None:
            exist += not unsafe(path) and tree.get(path) is not None
        elif section.kind == "create":
            try:
                new = target_paths(section, root)[1]
            except ValueError:
                continue
            folder = new.rpartition("/")[0] if new else ""
            folders += bool(folder) and not unsafe(folder) and tree.is_folder(folder)
    return exist, folders


def _also(
    tree: Tree, sections: Sequence[Section], chosen: Root, rest: Sequence[Root], *, there: bool
) -> list[tuple[Root, list[str]]]:
    """The other roots that every edit of the patch holds at, with the files there."""
    edits = [section for section in sections if section.kind != "create"]
    out: list[tuple[Root, list[str]]] = []
    for root in rest:
        paths = [_old_path(section, root) for section in edits]
        here = [_old_path(section, chosen) for section in edits]
        new = [path for path, own in zip(paths, here, strict=True) if path and path != own]
        known = any(new == others for _, others in out)
        if new and not known and _exact(tree, edits, root, there=there) == len(edits):
            out.append((root, new))
    return out


def _exact(tree: Tree, sections: Sequence[Section], root: Root, *, there: bool = False) -> int:
    """How many files of the patch every hunk holds exactly in. there: or is in already."""
    count = 0
    for section in sections:
        path = _old_path(section, root)
        file = tree.get(path) if path is not None and not unsafe(path) else None
        if file is None:
            continue
        lines = text_of(file).lines
        held = holds(lines, section.hunks)
        count += held or (there and holds(lines, [hunk.reversed() for hunk in section.hunks]))
    return count
