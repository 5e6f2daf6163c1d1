"""A conflict laid out for a person: a work tree with diff3 markers, and its result read back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchkit.authoring.taking import SHOWN, take_files
from patchkit.derive.base import Base
from patchkit.derive.carry import Files, carry
from patchkit.derive.derive import commit_of
from patchkit.engine.merge import is_binary, merge3
from patchkit.engine.model import SYMLINK, File, Overlay
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.rebase.moves import ByOldNames
from patchkit.rebase.plan import Cell, Resolved, Row, effect, moved_files
from patchkit.rebase.resolutions import Three
from patchkit.rebase.steps import Step
from patchkit.series.header import Header
from patchkit.store.commits import Commit
from patchkit.store.repo import Store
from patchkit.target.worktree import Wanted, write

BEFORE = "before the patch"
"""Label of the middle part of a conflict."""


@dataclass(frozen=True)
class Versions:
    """One patch on one release.

    before: the tree that it was made for; now: the release with what is carried so far;
    where: old path -> new path of moved files; changes: what it made of `before`; renames: new
    path -> old path of the files that it renames; text: files with a NUL that it edits as text.
    """

    before: Files
    now: Overlay
    where: Mapping[str, str]
    changes: Mapping[str, File | None]
    renames: Mapping[str, str]
    text: frozenset[str] = frozenset()

    def three(self) -> Three:
        """Each touched path's three versions."""
        return {
            path: (self.before.get(path), self.now.get(self.where.get(path, path)), file)
            for path, file in self.changes.items()
        }


@dataclass(frozen=True)
class Laid:
    """A work tree as it was laid out. open: paths in which something is to be settled. tree: the
    id of all of it."""

    open: tuple[str, ...]
    tree: str


def versions_of(store: Store, steps: Sequence[Step], old: Base, row: Row, patch: str) -> Versions:
    """The versions that clash for `patch` on the release of `row`, which was planned of `steps`."""
    now = Overlay(row.base.tree(store))
    for step, cell in zip(steps, row.cells, strict=True):
        if step.name == patch:
            where = {} if step.stands else moved_files(store, steps, old, row.base)
            text = frozenset(where.get(path, path) for path in step.text())
            return Versions(step.before, now, where, step.changes, step.renames(), text)
        if cell.carried:
            now.changes.update(cell.changes)
    raise KeyError(patch)


def lay_out(
    store: Store,
    row: Row,
    versions: Versions,
    headers: Mapping[str, Header],
    patch: str,
    at: str,
    remembered: Resolved | None,
) -> Laid:
    """Make the work tree at `at`: a commit a carried patch, then the conflict, not committed.

    Raises Refused(foreign-edit, target-exists).
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
        tree = store.write_tree(chain.tree, remembered.changes)
        return Laid(tuple(sorted(remembered.changes)), tree)
    where, there = versions.where, ByOldNames(versions.now, versions.where)
    carried = carry(versions.before, versions.changes, there, versions.renames)
    put = dict(carried.changes)
    for clash in carried.clashes:
        path, old = clash.path, versions.renames.get(clash.path, clash.path)
        three = versions.before.get(old), there.get(old), versions.changes[path]
        put |= {old: None, path: _to_settle(three, (row.pin, BEFORE, patch))}
        # Where the file that it renames is gone, the renamed one is shown.
        put |= {new: versions.changes[new] for new, o in versions.renames.items() if o == path}
    laid: dict[str, File | None] = {}
    for path, file in put.items():
        at_path = where.get(path, path)
        if file is None:
            root.remove(at_path)
        elif root.is_folder(at_path):
            continue  # the release's folder stays to be looked at
        else:
            root.put(at_path, file)
        laid[at_path] = file
    unsettled = sorted(where.get(clash.path, clash.path) for clash in carried.clashes)
    return Laid(tuple(unsettled), store.write_tree(chain.tree, laid))


def _to_settle(
    three: tuple[File | None, File | None, File | None], labels: tuple[str, str, str]
) -> File | None:
    """What a person finds of a file that clashes."""
    base, now, theirs = three
    if now is None or base is None:
        return theirs  # no three versions to merge: the patch's own is put there to be looked at
    if theirs is None or any(f.mode == SYMLINK or is_binary(f.data) for f in (base, now, theirs)):
        return now  # nothing that lines could show
    return File(merge3(base.data, now.data, theirs.data, labels).data, now.mode)


def read_back(store: Store, row: Row, versions: Versions, patch: str, at: str) -> Resolved:
    """What a person made of the conflict, edited, added or committed.

    Raises Refused: markers left, a file that may or may not be meant, or nothing changed.
    """
    tree = store.tree(store.write_tree(row.base.tree_id, versions.now.changes))
    taken = take_files(store, at, tree)
    own = {versions.where.get(path, path) for path in versions.changes}
    unsure = [path for path in taken.untracked if path not in own]
    if unsure:
        raise Refused(_unsure(unsure, patch, at))
    root, changes = Root(at), dict(taken.changes)
    for path in own & set(taken.untracked):
        changes[path] = root.get(path)
    wrong = []
    for path, file in sorted(changes.items()):
        line, marker = _marked(file, row.pin, patch)
        if line:
            wrong.append(
                Finding(
                    "conflict",
                    f"{show_path(path)} still holds a conflict marker",
                    Where(patch, path, line=line),
                    expected="the lines as they should be, without markers",
                    found=marker,
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
    return Resolved(changes, before, effect(versions.before, versions.changes))


def _marked(file: File | None, pin: str, patch: str) -> tuple[int, str]:
    """Number and text of the first line that the layout has put there and nobody took away."""
    if file is None or file.mode == SYMLINK:
        return 0, ""
    marks = (f"<<<<<<< {pin}", f"||||||| {BEFORE}", f">>>>>>> {patch}")
    for number, line in enumerate(file.data.split(b"\n"), 1):
        text = line.rstrip(b"\r").decode("utf-8", "replace")
        if text in marks:
            return number, text
    return 0, ""


def _unsure(paths: Sequence[str], patch: str, at: str) -> Finding:
    shown = ", ".join(show_path(path) for path in paths[:SHOWN])
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return Finding(
        "foreign-edit",
        f"the work tree holds new files that {patch} does not make",
        Where(patch, paths[0]),
        expected="git add of what belongs to the patch, and nothing else that is new",
        found=shown + more,
        next=f"git -C {at} add {show_path(paths[0])}, or remove it, then patchkit rebase "
        "--continue",
    )


def first_conflict(row: Row) -> Cell | None:
    """The first patch that waits for a person."""
    return next((cell for cell in row.cells if cell.text == "conflict"), None)


def _oid(file: File | None) -> str:
    return file.oid if file is not None else ""
