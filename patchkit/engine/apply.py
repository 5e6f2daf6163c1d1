"""One patch on one tree: all of it, or findings that say why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchkit.engine.actions import Action, resolve
from patchkit.engine.content import Text
from patchkit.engine.explain import SHOWN, Subject, explain
from patchkit.engine.model import File, Hunk, Patch, Tree
from patchkit.engine.perform import Result, Setting, Starts, in_the_way, perform
from patchkit.engine.place import FAILS, HOLDS, THERE, Place, stated
from patchkit.engine.quote import show_path
from patchkit.engine.rule import EXACT, LOOSE, MAX_FUZZ, Allow, Rule
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
    "Rule",
    "There",
    "apply_patch",
    "put",
]

EXPLAINED = 20
"""Hunks of one file that are explained; further ones that fail are counted."""


@dataclass(frozen=True)
class Edit:
    """What one section did to one file, for the record of who changed which lines.

    old: the path it was read from (None for a new file); new: the path it became (None for a
    deleted one). starts: the index of each hunk in the old lines.
    """

    old: str | None
    new: str | None
    hunks: Sequence[Hunk] = ()
    starts: Sequence[int] = ()


@dataclass(frozen=True)
class There:
    """A part of a patch that is in the tree already. hunk: its number in the section, 0 for a
    file as a whole; line: 1-based, where its result begins; lines: how many lines that has;
    offset: line found less line stated.
    """

    file: str
    hunk: int
    line: int
    lines: int
    offset: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of one patch.

    state: "applied"; "already-applied" (every part is in the tree, nothing to do); "refused";
    in a chain also "left-out" (not selected). changes: path -> what it becomes, None where it
    goes; empty unless applied. places: where hunks were put, in the order of the patch.
    findings: why it is refused. notes: what to know besides, the patch's own notes first.
    candidates: places that a message names and that were not used. there: the parts that are in
    the tree already. edits: for `engine/history`.
    """

    patch: Patch
    state: str
    changes: Mapping[str, File | None] = field(default_factory=dict)
    places: tuple[Place, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    root: Root = field(default_factory=Root)
    candidates: tuple[Place, ...] = ()
    there: tuple[There, ...] = ()
    edits: tuple[Edit, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the patch is no reason to stop."""
        return self.state != "refused"


class Told:
    """What a caller knows of a file's lines: asked when a hunk fails. Override in a chain."""

    def changed_by(self, path: str, start: int, stop: int) -> str:
        """A sentence on who last changed lines start..stop (0-based), "" where nobody did."""
        return ""


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


def stated_starts(path: str, hunks: Sequence[Hunk]) -> Sequence[int]:
    """The index that each hunk's own header states."""
    return [stated(hunk) for hunk in hunks]


def put(
    work: Work,
    patch: Patch,
    rule: Rule,
    root: Root,
    *,
    reverse: bool = False,
    starts: Starts = stated_starts,
    told: Told | None = None,
) -> Outcome:
    """As `apply_patch`, on a tree that is being worked on; the outcome's changes are not taken
    into `work` yet.
    """
    setting = Setting(patch.name, rule, starts, detect=not reverse)
    actions, refused = resolve(patch, root, reverse)
    notes = (*patch.notes, *root.findings)
    if refused:
        return Outcome(patch, "refused", findings=tuple(refused), notes=notes, root=root)
    results, draft = _perform_all(work, actions, setting)
    if all(result.held for result in results):
        return _applied(patch, root, work, results, draft, notes, setting)
    if not reverse:
        found = _there_already(work, patch, root, rule, results, notes)
        if found is not None:
            return found
    return _refused(patch, root, results, notes, setting, told or Told(), reverse)


def _perform_all(
    work: Work, actions: Sequence[Action], setting: Setting
) -> tuple[list[Result], Draft]:
    draft = Draft(work)
    results: list[Result] = []
    mail, leaving = None, set[str]()
    for action in actions:
        if action.mail != mail:
            mail = action.mail
            draft.begin()
            leaving = {
                a.old
                for a in actions
                if a.mail == mail and a.old and a.kind in ("delete", "rename", "uncopy")
            }
        results.append(perform(action, draft, leaving, setting))
    for result in results:
        obstacle = in_the_way(result, draft, setting) if result.held else None
        if obstacle is not None:
            result.fail(obstacle)
    return results, draft


# ---------------------------------------------------------------- it holds


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
            return _already(patch, root, notes, setting.rule, ())
        finding = Finding(
            "no-op",
            "the patch holds and changes nothing",
            Where(patch=patch.name),
            expected="a changed file",
            found="every file as it was",
            next=f"patchkit drop {show_path(patch.name)}",
        )
        return Outcome(patch, "refused", findings=(finding,), notes=notes, root=root)
    places = tuple(place for result in results for place in result.places)
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
                f"hunk {p.hunk} at line {p.line} ({name} {getattr(p, name)})"
                for p in moved[: 5 * SHOWN]
            )
            more = len(moved) - 5 * SHOWN
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


# ---------------------------------------------------------------- it is there already


def _there_already(
    work: Work,
    patch: Patch,
    root: Root,
    rule: Rule,
    results: Sequence[Result],
    notes: tuple[Finding, ...],
) -> Outcome | None:
    """An outcome where the tree is what the patch makes; None where it is not.

    Shown by taking the patch out, or by every hunk's result being found. That a file to delete
    is absent proves nothing by itself: it may be a wrong path.
    """
    if all(r.action.kind == "delete" for r in results) or not any(
        r.there == "there" or any(s.status == THERE for s in r.spots) for r in results
    ):
        return None
    taken_out = Setting(patch.name, Rule(), stated_starts, detect=False, modes=True)
    actions, _ = resolve(patch, root, True)
    undone, _ = _perform_all(work, actions, taken_out)
    if all(result.held for result in undone):
        there = tuple(t for result in reversed(undone) for t in _undone(result))
        return _already(patch, root, notes, rule, there)
    if all(r.there for r in results):
        there = tuple(t for r in results for t in _there(r))
        return _already(patch, root, notes, rule, there)
    return None


def _already(
    patch: Patch, root: Root, notes: tuple[Finding, ...], rule: Rule, there: tuple[There, ...]
) -> Outcome:
    moved = [t for t in there if t.offset]
    where = Where(patch=patch.name)
    found = "; ".join(
        f"{show_path(t.file)} hunk {t.hunk} at line {t.line} (offset {t.offset})"
        for t in moved[:SHOWN]
    )
    if rule.pin_base:
        finding = Finding(
            "upstreamed",
            "every part of the patch is in this release already: upstream has taken it",
            where,
            expected="a tree without it",
            found=found or "all of it, at its own lines",
            next=f"patchkit drop {show_path(patch.name)}",
        )
        return Outcome(patch, "refused", findings=(finding,), notes=notes, root=root, there=there)
    note = Finding(
        "already-applied",
        "every part of the patch is in the tree already; nothing to do"
        + (f": {found}" if found else ""),
        where,
        note=True,
    )
    return Outcome(patch, "already-applied", notes=(*notes, note), root=root, there=there)


def _there(result: Result) -> list[There]:
    """The parts of a result that are in the tree already."""
    path = result.action.path
    if result.there == "there" and not result.spots:
        return [There(path, 0, 1, sum(len(hunk.new) for hunk in result.action.hunks))]
    return [
        There(path, i, spot.index + 1, len(hunk.new), spot.offset)
        for i, (hunk, spot) in enumerate(zip(result.hunks, result.spots, strict=False), 1)
        if spot.status == THERE
    ]


def _undone(result: Result) -> list[There]:
    """The parts that taking a patch out has found."""
    if not result.hunks:
        return [There(result.action.path, 0, 1, 0)]
    return [
        There(p.file, p.hunk, p.line, len(hunk.old), p.offset)
        for hunk, p in zip(result.hunks, result.places, strict=False)
    ]


# ---------------------------------------------------------------- it does not hold


def _refused(
    patch: Patch,
    root: Root,
    results: Sequence[Result],
    notes: tuple[Finding, ...],
    setting: Setting,
    told: Told,
    reverse: bool,
) -> Outcome:
    there = tuple(p for r in results for p in _there(r))
    findings: list[Finding] = []
    candidates: list[Place] = []
    if there:
        findings.append(_partly(patch, results, there, setting.rule))
    for result in results:
        if result.there != "there":
            findings += result.findings
        _explain_hunks(result, patch, setting, told, reverse, findings, candidates)
    return Outcome(
        patch,
        "refused",
        findings=tuple(findings),
        notes=notes,
        root=root,
        candidates=tuple(candidates),
        there=there,
    )


def _explain_hunks(
    result: Result,
    patch: Patch,
    setting: Setting,
    told: Told,
    reverse: bool,
    findings: list[Finding],
    candidates: list[Place],
) -> None:
    failing = [i for i, spot in enumerate(result.spots) if spot.status == FAILS]
    text, path = result.text or Text([]), result.action.old or result.action.path
    line_ends: list[int] = []
    for i in failing[:EXPLAINED]:
        spot, hunk = result.spots[i], result.hunks[i]
        deletes = result.action.kind == "delete"
        subject = Subject(patch.name, path, i + 1, hunk, reverse, deletes)
        details = []
        by = told.changed_by(path, spot.expected, spot.expected + len(hunk.old))
        if by:
            details.append(by)
        if setting.rule.allow.fuzz > MAX_FUZZ:
            details.append(
                f"the patch allows fuzz {setting.rule.allow.fuzz}; more than {MAX_FUZZ} is "
                "never used, since it drops every line that tells the place"
            )
        explained = explain(subject, text, spot, details)
        if explained.candidate is not None:
            candidates.append(explained.candidate)
        if explained.line_ends and line_ends:
            line_ends.append(i + 1)
            continue
        if explained.line_ends:
            line_ends.append(i + 1)
        findings.append(explained.finding)
    if len(line_ends) > 1:
        at = next(k for k, f in enumerate(findings) if f.name == "line-endings")
        more = "so do hunks " + ", ".join(map(str, line_ends[1:]))
        findings[at] = replace(findings[at], details=(*findings[at].details, more))
    if len(failing) > EXPLAINED:
        findings.append(
            Finding(
                "conflict",
                f"{len(failing) - EXPLAINED} more hunks of {show_path(path)} do not hold",
                Where(patch.name, path),
                next=f"patchkit refresh {show_path(patch.name)}",
            )
        )


def _partly(patch: Patch, results: Sequence[Result], there: Sequence[Place], rule: Rule) -> Finding:
    """Some parts are in the tree and some are not: which."""
    shown: list[str] = []
    for result in results:
        path = show_path(result.action.path)
        if not result.spots:
            known = {"there": "is there already", "gone": "is gone", "mode": "has the mode already"}
            does = "is not there yet" if result.held else "does not hold"
            shown.append(f"{path}: {known.get(result.there, does)}")
            continue
        words = {THERE: "there already", HOLDS: "not there yet", FAILS: "not there, and fails"}
        parts = []
        for status in (THERE, HOLDS, FAILS):
            hunks = [str(i) for i, s in enumerate(result.spots, 1) if s.status == status]
            if hunks:
                more = f" and {len(hunks) - 20} more" if len(hunks) > 20 else ""
                many = "hunks" if len(hunks) > 1 else "hunk"
                is_are = "are" if len(hunks) > 1 else "is"
                parts.append(f"{many} {', '.join(hunks[:20])}{more} {is_are} {words[status]}")
        shown.append(f"{path}: {'; '.join(parts)}")
    first = there[0]
    where = Where(patch.name, first.file, first.hunk or None, first.line)
    if rule.pin_base:
        return Finding(
            "upstreamed",
            "some parts of the patch are in this release already: " + "; ".join(shown[:SHOWN]),
            where,
            expected="a tree without any of it",
            found=f"{len(there)} parts there already",
            details=tuple(shown[SHOWN:]),
            next=f"patchkit refresh {show_path(patch.name)}",
        )
    return Finding(
        "partly-applied",
        "some parts of the patch are in the tree already: " + "; ".join(shown[:SHOWN]),
        where,
        expected="all of it, or none",
        found=f"{len(there)} parts there already",
        details=tuple(shown[SHOWN:]),
        next="bring the named files back to what they were (or take the parts that are there "
        "out), then apply again",
    )
