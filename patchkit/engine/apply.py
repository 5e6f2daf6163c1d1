"""One patch on one tree: all of it, or findings that say why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchkit.engine.actions import resolve
from patchkit.engine.model import File, Patch, Tree
from patchkit.engine.obstacles import Setting, Starts
from patchkit.engine.outcome import Edit, Outcome, There, Told
from patchkit.engine.perform import Result, perform_all, stated_starts
from patchkit.engine.place import Place
from patchkit.engine.quote import show_path
from patchkit.engine.rule import EXACT, LOOSE, Allow, Rule
from patchkit.engine.strip import Root, find_root
from patchkit.engine.work import Draft, Work
from patchkit.errors import Finding, Where

__all__ = [
    "EXACT",
    "LOOSE",
    "Allow",
    "Edit",
    "Outcome",
    "Place",
    "Root",
    "Rule",
    "There",
    "apply_patch",
    "put",
]

SHOWN = 20
"""Hunks at an offset that a note names before it counts the rest."""


def apply_patch(
    tree: Tree,
    patch: Patch,
    rule: Rule = LOOSE,
    root: Root | None = None,
    reverse: bool = False,
) -> Outcome:
    """Put `patch` on `tree` in memory. Nothing is written and `tree` is not changed.

    root: how names become paths; found by looking at the tree where it is None. reverse: take
    the patch out.
    """
    if root is None:
        root = find_root(tree, patch)
    return put(Work(tree), patch, rule, root, reverse=reverse)


def put(
    work: Work,
    patch: Patch,
    rule: Rule,
    root: Root,
    *,
    reverse: bool = False,
    starts: Starts = stated_starts,
    told: Told | None = None,
    trial: bool = False,
) -> Outcome:
    """As `apply_patch`, on a tree that is being worked on; the outcome's changes are not taken
    into `work` yet. told: what the caller knows of the file's past. trial: only whether it holds
    is wanted, not why it does not.
    """
    setting = Setting(patch.name, rule, starts, detect=not reverse)
    actions, unfit = resolve(patch, root, reverse)
    notes = (*patch.notes, *(f for f in root.findings if f.note))
    unfit = [*(f for f in root.findings if not f.note), *unfit]
    if unfit:
        return Outcome(patch, "refused", findings=tuple(unfit), notes=notes, root=root)
    results, draft = perform_all(work, actions, setting)
    if all(result.held for result in results):
        return _applied(patch, root, work, results, draft, notes, setting)
    if trial:
        return Outcome(patch, "refused", root=root)
    # What explains a failure is loaded where something fails.
    from patchkit.engine.already import there_already
    from patchkit.engine.refusal import refused

    if not reverse:
        found = there_already(work, patch, root, rule, results, notes)
        if found is not None:
            return found
    return refused(patch, root, results, notes, setting, told or Told(), reverse)


def _applied(
    patch: Patch,
    root: Root,
    work: Work,
    results: Sequence[Result],
    draft: Draft,
    notes: tuple[Finding, ...],
    setting: Setting,
) -> Outcome:
    changes = draft.changes()
    if not _changes_something(results, work, changes):
        if results and all(result.there == "mode" for result in results):
            from patchkit.engine.already import already

            return already(patch, root, notes, setting.rule, ())
        finding = Finding(
            "no-op",
            "the patch holds and changes nothing",
            Where(patch=patch.name),
            expected="a changed file",
            found="every file as it was",
            next=f"patchkit drop {show_path(patch.name)}",
        )
        return Outcome(patch, "refused", findings=(finding,), notes=notes, root=root)
    # Of the one file of most patches they are taken as they are, which makes none of them.
    alone = results[0].places if len(results) == 1 else None
    places = alone or tuple(place for result in results for place in result.places)
    edits = tuple(
        Edit(r.action.old, r.action.new, r.hunks, r.starts) for r in results if r.hunks or r.held
    )
    return Outcome(
        patch,
        "applied",
        changes,
        places,
        notes=(*notes, *_moved(patch, places)),
        root=root,
        edits=edits,
    )


def _changes_something(
    results: Sequence[Result], work: Work, changes: Mapping[str, File | None]
) -> bool:
    paths = {result.action.path for result in results}
    if len(paths) == len(results):
        for result in results:
            action = result.action
            if action.kind != "modify" or any(h.old != h.new for h in action.hunks):
                return True
            if action.new_mode is not None and result.there != "mode":
                return True
        return False
    return any(work.get(path) != file for path, file in changes.items())


def _moved(patch: Patch, places: Sequence[Place]) -> list[Finding]:
    """Notes of offset and fuzz, one of each a file."""
    notes = []
    for name in ("offset", "fuzz"):
        files: dict[str, list[Place]] = {}
        for place in places:
            if getattr(place, name):
                files.setdefault(place.file, []).append(place)
        for file, moved in files.items():
            shown = "; ".join(
                f"hunk {p.hunk} at line {p.line} ({name} {getattr(p, name)})" for p in moved[:SHOWN]
            )
            more = len(moved) - SHOWN
            notes.append(
                Finding(
                    name,
                    f"{show_path(file)}: {shown}" + (f"; and {more} more" if more > 0 else ""),
                    Where(patch.name, file, moved[0].hunk, moved[0].line),
                    next=f"patchkit refresh {show_path(patch.name)}",
                    note=True,
                )
            )
    return notes
