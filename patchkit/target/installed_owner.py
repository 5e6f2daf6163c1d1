"""Which installed packages loose patches are for, and where their names lead."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from patchkit.engine.apply import apply_patch
from patchkit.engine.chain import Step
from patchkit.engine.model import Patch
from patchkit.engine.paths import unsafe
from patchkit.engine.quote import show_path
from patchkit.engine.rule import Rule
from patchkit.engine.strip import Root as PatchRoot
from patchkit.engine.strip import find_root, target_paths
from patchkit.errors import Finding, PatchkitError, Refused, Where
from patchkit.files.atomic import read_file
from patchkit.files.root import Root
from patchkit.target.dist_info import Dist, distributions, find_dist, normal
from patchkit.target.installed_cut import IN, NATIVE, NOT_PACKAGED, OUT, cut
from patchkit.target.installed_packet import compiled
from patchkit.target.installed_tree import InstalledTree, JoinedTrees
from patchkit.target.record_csv import MAX_BYTES, NAME


@dataclass(frozen=True)
class Found:
    """The packages that may be meant, and for each step how its names become site paths."""

    trees: tuple[InstalledTree, ...]
    roots: tuple[PatchRoot, ...]

    @property
    def joined(self) -> JoinedTrees:
        """All of them as one tree."""
        return JoinedTrees(self.trees)

    def owner(self, path: str) -> Dist | None:
        """The package that a site path belongs to: RECORD says it, or for a new file the package
        that has files in the nearest folder above it. None where that is not one package."""
        for tree in self.trees:
            if path in tree.dist.record.by_path:
                return tree.dist
        folder = path
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            near = [t.dist for t in self.trees if _has_below(t.dist, folder)]
            if near:
                return near[0] if len(near) == 1 else None
        return None


def find_owners(sites: Sequence[str], steps: Sequence[Step], rule: Rule) -> Found:
    """Find the packages of `sites` that the steps' patches are for.

    Raises Refused: missing-target where no package has their files, ambiguous where several fit
    or two copies are installed, unsupported (editable, no RECORD, several site folders).
    """
    patches = [step.patch for step in steps]
    every = [dist for site in sites for dist in distributions(site)]
    candidates = [dist for dist in every if _mentions(dist, patches)]
    trees = tuple(InstalledTree(Root(dist.site), dist) for dist in candidates)
    joined = JoinedTrees(trees)
    roots = []
    used: dict[str, InstalledTree] = {}
    for step in steps:
        root = find_root(joined, step.patch, strip=step.strip, directory=step.directory)
        fits = [t for t in trees if _score(t, step.patch, root)]
        if root.directory and step.directory is None:
            fits, root = _one_package(trees, step, rule)
        roots.append(root)
        used.update((tree.dist.folder, tree) for tree in fits)
    if not used:
        _refuse_known(sites, every, patches)
        raise Refused(*_outside(steps) or [_nobody(sites, patches)])
    for tree in used.values():
        find_dist(sites, tree.dist.name)  # two copies, editable: refused by name
    places = sorted({tree.dist.site for tree in used.values()})
    if len(places) > 1:
        raise Refused(_two_places(list(used.values())))
    return Found(tuple(used[name] for name in sorted(used)), tuple(roots))


def _mentions(dist: Dist, patches: Sequence[Patch]) -> bool:
    """Whether RECORD holds the name of a file, or of the folder of a new one, of the patches."""
    try:
        data = read_file(dist.at(NAME), MAX_BYTES)
    except PatchkitError:
        return False
    return any(word in data for word in _words(patches))


def _words(patches: Iterable[Patch]) -> set[bytes]:
    out = set()
    for patch in patches:
        for section in patch.sections:
            name = section.new_path if section.kind == "create" else section.old_path
            if name is None:
                continue
            folder, _, last = name.rpartition("/")
            if section.kind == "create":
                last = folder.rpartition("/")[2] + "/"
            out.add(last.encode("utf-8", "surrogateescape"))
    return {word for word in out if word not in (b"", b"/", b"a/", b"b/")}


def _one_package(
    trees: Sequence[InstalledTree], step: Step, rule: Rule
) -> tuple[list[InstalledTree], PatchRoot]:
    """The package that a patch made inside one is for: names like a/worker.py fit anywhere."""
    found = []
    for tree in trees:
        root = find_root(tree, step.patch, strip=step.strip)
        score = _score(tree, step.patch, root)
        if score:
            found.append((score, tree, root))
    best = max((score for score, _, _ in found), default=0)
    found = [row for row in found if row[0] == best]
    if len(found) > 1:
        held = [r for r in found if apply_patch(r[1], step.patch, rule, r[2]).ok]
        found = held or found
    if len(found) > 1:
        raise Refused(_several(step.patch, [(tree.dist, root) for _, tree, root in found]))
    return [found[0][1]], found[0][2]


def _score(tree: InstalledTree, patch: Patch, root: PatchRoot) -> int:
    """How many files of the patch the package has; new ones count where their folder is."""
    count = 0
    for section in patch.sections:
        try:
            old, new = target_paths(section, root)
        except ValueError:
            continue
        path = new if section.kind == "create" else old
        if path is None or unsafe(path) is not None:
            continue
        if section.kind != "create":
            count += tree.get(path) is not None
        elif "/" in path:
            count += _has_below(tree.dist, path.rpartition("/")[0])
    return count


def _has_below(dist: Dist, folder: str) -> bool:
    prefix = f"{folder}/"
    return folder.partition("/")[0] in dist.tops and any(
        row.path.startswith(prefix) for row in dist.record.rows
    )


def _refuse_known(sites: Sequence[str], every: Sequence[Dist], patches: Sequence[Patch]) -> None:
    """Raise what is wrong with a package that the patches name by its folder."""
    names = [s.path.split("/") for patch in patches for s in patch.sections]
    parts = {normal(part) for split in names for part in split}
    for dist in every:
        if normal(dist.name) in parts:
            find_dist(sites, dist.name)


def _outside(steps: Sequence[Step]) -> list[Finding]:
    """needs-build or no-op, where every name is of a kind that no package has."""

    def place(path: str) -> str:
        top, slash, _ = path.partition("/")
        if compiled(path):
            return NATIVE
        return OUT if not slash or top.startswith(".") or top in NOT_PACKAGED else IN

    cuts = [
        cut(s.patch, PatchRoot(1 if s.strip is None else s.strip, s.directory or ""), place)
        for s in steps
    ]
    if any(made.kept for made in cuts):
        return []
    return [finding for made in cuts for finding in made.findings]


def _nobody(sites: Sequence[str], patches: Sequence[Patch]) -> Finding:
    names = [show_path(s.path) for patch in patches for s in patch.sections]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return Finding(
        "missing-target",
        "no installed package has a file that the patches name",
        Where(patch=patches[0].name) if patches else Where(),
        expected=f"a package with {shown}",
        found="none in " + (", ".join(sites) or "no folder at all"),
        next="name the interpreter that has it with --python, or its folder with --site; for a "
        "tree: --to in place of --installed",
    )


def _several(patch: Patch, found: Sequence[tuple[Dist, PatchRoot]]) -> Finding:
    shown = ", ".join(f"{dist.name} (in {root.directory or '.'})" for dist, root in found)
    return Finding(
        "ambiguous",
        f"{show_path(patch.name)} fits {len(found)} packages",
        Where(patch=patch.name),
        expected="one package",
        found=shown,
        next="say which: "
        + " or ".join(sorted({f"--directory {root.directory or '.'}" for _, root in found})),
    )


def _two_places(trees: Sequence[InstalledTree]) -> Finding:
    return Finding(
        "unsupported",
        "the packages stand in different site folders: one transaction cannot hold them all",
        expected="one site folder",
        found="; ".join(f"{tree.dist.name} in {tree.dist.site}" for tree in trees),
        next="a command for each folder: "
        + " and ".join(sorted({f"--site {shlex.quote(tree.dist.site)}" for tree in trees})),
    )
