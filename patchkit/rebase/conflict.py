"""A conflict laid out for a person: a work tree with diff3 markers, and its result read back."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.derive.derive import Derived, commit_of
from patchkit.engine.merge import merge3
from patchkit.engine.model import File, Overlay, Tree
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.rebase.moves import moves
from patchkit.rebase.plan import Cell, Resolved, Row
from patchkit.rebase.resolutions import Three
from patchkit.series.header import Header
from patchkit.store.commits import Commit
from patchkit.store.repo import Store
from patchkit.target.checkout import edited_paths, untracked_paths
from patchkit.target.worktree import Wanted, write

_MARKER = re.compile(rb"^(<{7} |>{7} |\|{7} )", re.MULTILINE)


@dataclass(frozen=True)
class Versions:
    """One patch on one release.

    before: the tree before it on the old pin; now: the release with what is carried so far;
    where: old path -> new path of moved files; changes: what it made of `before`.
    """

    before: Tree
    now: Overlay
    where: Mapping[str, str]
    changes: Mapping[str, File | None]

    def three(self) -> Three:
        """Each touched path's three versions."""
        return {
            path: (self.before.get(path), self.now.get(self.where.get(path, path)), file)
            for path, file in self.changes.items()
        }


def versions_of(store: Store, derived: Derived, old_tree: Tree, row: Row, patch: str) -> Versions:
    """The versions that clash for `patch` on the release of `row`."""
    before = Overlay(old_tree)
    now = Overlay(row.base.tree(store))
    where = moves(store.tree(_id(old_tree)), row.base.tree(store), derived.touched())
    for name, outcome, cell in zip(derived.names, derived.outcomes, row.cells, strict=True):
        if name == patch:
            return Versions(before, now, where, outcome.changes)
        before.changes.update(outcome.changes)
        if cell.carried:
            now.changes.update(cell.changes)
    raise KeyError(patch)


def _id(tree: Tree) -> str:
    return str(tree.oid)  # type: ignore[attr-defined]


def lay_out(
    store: Store,
    row: Row,
    versions: Versions,
    headers: Mapping[str, Header],
    patch: str,
    at: str,
    remembered: Resolved | None,
) -> list[str]:
    """Make the work tree at `at`: a commit a carried patch, then the conflict, not committed.

    Gives the paths in which something is to be settled. Raises Refused(foreign-edit,
    target-exists).
    """
    steps = []
    for cell in row.cells:
        if cell.patch == patch:
            break
        if cell.carried:
            steps.append(commit_of(headers[cell.patch], cell.patch, cell.changes))
    chain = store.commit_chain(row.base.tree_id, steps, Commit({}, message=f"base {row.pin}"))
    row.base.complete(store)
    tag = f"{row.pin}+pk{chain.tree[:12]}"
    write(
        store,
        Wanted(row.pin, "(rebase)", tag, chain.commits, chain.trees, dict(row.base.generated)),
        at,
    )
    root = Root(at)
    if remembered is not None:
        for path, file in remembered.changes.items():
            root.put(path, file) if file is not None else root.remove(path)
        return sorted(remembered.changes)
    open_paths = []
    for path, (base, now, theirs) in versions.three().items():
        place = versions.where.get(path, path)
        if base is not None and now is not None and theirs is not None:
            merged = merge3(base.data, now.data, theirs.data, (row.pin, "before the patch", patch))
            root.put(place, File(merged.data, now.mode))
            if merged.conflicts:
                open_paths.append(place)
        elif now is None or base is None:
            # No three versions to merge: the patch's own is put there to be looked at.
            open_paths.append(place)
            if theirs is not None:
                root.put(place, theirs)
        else:
            open_paths.append(place)
    return sorted(open_paths)


def read_back(store: Store, versions: Versions, patch: str, at: str) -> Resolved:
    """What a person made of the conflict. Raises Refused: markers left, or nothing changed."""
    root = Root(at)
    paths = {versions.where.get(p, p) for p in versions.changes}
    paths |= {*edited_paths(store, at), *untracked_paths(store, at)}
    changes: dict[str, File | None] = {}
    wrong = []
    for path in sorted(paths):
        file = root.get(path)
        if _same(file, versions.now.get(path)):
            continue
        changes[path] = file
        found = _MARKER.search(file.data) if file is not None else None
        if found is not None and file is not None:
            line = file.data.count(b"\n", 0, found.start()) + 1
            wrong.append(
                Finding(
                    "conflict",
                    f"{path} still holds a conflict marker",
                    Where(patch, path, line=line),
                    expected="the lines as they should be, without markers",
                    found=found[0].decode().strip(),
                    next=f"edit {os.path.join(at, path)}, then patchkit rebase --continue",
                )
            )
    if wrong:
        raise Refused(*wrong)
    if not changes:
        raise Refused(
            Finding(
                "no-op",
                f"{patch} would change nothing on this release",
                Where(patch),
                expected=f"an edit in {at}",
                found="the files as they are without the patch",
                next=f"patchkit rebase --drop {patch}, if the release does not need it",
            )
        )
    before = {path: _oid(versions.now.get(path)) for path in changes}
    return Resolved(changes, before)


def first_conflict(row: Row) -> Cell | None:
    """The first patch that waits for a person."""
    return next((cell for cell in row.cells if cell.text == "conflict"), None)


def _oid(file: File | None) -> str:
    return file.oid if file is not None else ""


def _same(one: File | None, two: File | None) -> bool:
    if one is None or two is None:
        return one is two
    return one.mode == two.mode and one.data == two.data
