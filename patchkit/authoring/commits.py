"""`refresh --from-commits`: the commits of a work tree taken back as patches.

A commit is the patch that its Patch-Name trailer names; without one it is a new patch, named by
its subject. `fixup!`, `squash!` and `amend!` commits are folded into the commit they are for.
Patches that were not in the tree are carried over behind what they stood behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchkit.authoring.builder import Builder
from patchkit.authoring.form import Row
from patchkit.authoring.messages import FOLD, Told, header_of, names_in
from patchkit.authoring.names import free_name, from_subject, patch_name
from patchkit.authoring.proofs import module_of, proof_files
from patchkit.authoring.proofs import renamed as proofs_renamed
from patchkit.authoring.refresh import Refreshed, locate, moved, renamed
from patchkit.authoring.sealing import seal
from patchkit.authoring.standing import Standing, unsealed
from patchkit.authoring.taking import SHOWN, Commits, Taken, take_files
from patchkit.authoring.when import When
from patchkit.authoring.whose import Whose, whose
from patchkit.authoring.workplace import Point, near, require_finished
from patchkit.derive.carry import Clash, carry, renames_of, same
from patchkit.engine.model import File, Overlay
from patchkit.engine.quote import show_path
from patchkit.engine.strip import Root
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.header import Header
from patchkit.store.tree import StoreTree

ADVICE = "git rebase -i --autosquash base in the work tree, then patchkit refresh --from-commits"
DROPPED = "dropped"


@dataclass
class Piece:
    """One patch to be: its commit, and the commits folded into it. like: its name in the series,
    where that is another or is known by something else than the commit's words (said)."""

    name: str
    commit: Taken
    folded: list[Taken] = field(default_factory=list)
    others: tuple[str, ...] = ()
    like: str = ""
    said: str = ""


def refresh_commits(standing: Standing, point: Point, at: str, moment: When) -> Refreshed:
    """The series with the work tree's commits as its patches.

    Raises Refused: uncommitted changes, a rebase in progress, commits that are not one line, a
    name that two commits have, a later patch that breaks.
    """
    require_finished(at)
    standing.whole()
    builder = Builder(standing, ADVICE, moment.day)
    builder.find(unsealed(standing))
    point = renamed(standing, point)
    with Commits(standing.store, at) as commits:
        taken = commits.since(point.base)
        _require_fit(standing, at, commits, taken)
        fresh = point.patch if point.fresh and point.patch not in standing.names else ""
        start = _count_at(standing, point, at, taken[-1].after)
        laid_out = commits.since(point.base, point.start)
        known_by = whose(standing, commits, taken, laid_out, start, fresh)
        pieces = pieces_of(taken, standing.names, fresh, known_by)
        known = {name: i for i, name in enumerate(standing.names)}
        known.update({p.name: known[p.like] for p in pieces if p.like})
        away = {p.like for p in pieces if p.like and p.like != p.name}
        old = [name for name in standing.names if name not in away]
        start = sum(name not in away for name in standing.names[:start])
        order = merged_order(old, [p.name for p in pieces], start)
        by_name = {piece.name: piece for piece in pieces}
        for name in order:
            if name in by_name:
                guard = point.guard if name == fresh else ""
                _write(builder, commits, by_name[name], known.get(name), guard)
            else:
                builder.keep(known[name])
    gone = {name: DROPPED for name in standing.names if name not in order}
    for piece in pieces:
        if piece.like in gone:
            gone[piece.like] = f"renamed {piece.name}"
        for other in piece.others:
            if other in gone:
                gone[other] = f"folded into {piece.name}"
    last = order.index(pieces[-1].name) + 1 if pieces else 0
    proofs = _proofs(builder, pieces, gone)
    return Refreshed(
        seal(builder, gone=gone, proofs=proofs), pieces[-1].name if pieces else "", last
    )


def _proofs(
    builder: Builder, pieces: Sequence[Piece], gone: Mapping[str, str]
) -> dict[str, File | None]:
    """What becomes of the proofs: they go with a new name, and with a patch that is dropped.

    Of a patch that was folded into another the tests still speak: they are the other's where that
    has none; else they stay, and it is said that nothing runs them.
    """
    standing = builder.standing
    folder = standing.project.series_folder(standing.pin.name)
    out: dict[str, File | None] = {}

    def there(patch: str) -> bool:
        module = module_of(patch)
        return out[module] is not None if module in out else module in proof_files(folder, patch)

    for piece in pieces:
        if piece.like and piece.like != piece.name:
            found = proof_files(folder, piece.like)
            out.update(proofs_renamed(found, folder, piece.like, piece.name))
    for piece in pieces:
        for other in piece.others:
            found = proof_files(folder, other) if gone.get(other) else {}
            if not found:
                continue
            if there(piece.name):
                builder.find([_two_proofs(standing.pin.name, other, piece.name)])
            else:
                out.update(proofs_renamed(found, folder, other, piece.name))
    for name, state in gone.items():
        if state == DROPPED:
            out.update(dict.fromkeys(proof_files(folder, name)))
    return out


def _two_proofs(pin: str, other: str, name: str) -> Finding:
    ours, theirs = (f"series/{pin}/{module_of(patch)}" for patch in (name, other))
    return Finding(
        "unused",
        f"{show_path(other)} is folded into {show_path(name)}, and both have a proof",
        Where(patch=other, file=theirs),
        expected="one proof a patch",
        found=f"{ours}, too",
        next=f"move its tests into {ours}, then: git rm -r {theirs}",
        note=True,
    )


def pieces_of(
    taken: Sequence[Taken],
    names: Sequence[str],
    fresh: str = "",
    known: Mapping[str, Whose] | None = None,
) -> list[Piece]:
    """The patches that the commits make, in order. names: the patches of the series. fresh: name
    for the first commit that states none. known: commits by what they do, not by what they state.

    Raises Refused(duplicate-entry) where two commits that do not follow each other have one name,
    missing-patch where a fixup is for no commit.
    """
    pieces: list[Piece] = []
    for commit in taken:
        fold = FOLD.fullmatch(commit.subject)
        if fold is not None:
            _fold(pieces, commit, fold[2], fold[1])
            continue
        stated = names_in(commit.message)
        found = (known or {}).get(commit.commit)
        if found is not None:
            stated = [found.name, *stated[1:]]
        if stated and pieces and pieces[-1].name == stated[0]:
            pieces[-1].folded.append(commit)  # a commit that was split, under one name
            continue
        if stated and any(piece.name == stated[0] for piece in pieces):
            raise Refused(_twice(stated[0], commit))
        if stated:
            name = _stated_name(stated[0], commit)
        elif fresh:
            name, fresh = fresh, ""
        else:
            name = free_name(from_subject(commit.subject), {*names, *(p.name for p in pieces)})
        like, said = (found.like, found.said) if found is not None else ("", "")
        pieces.append(Piece(name, commit, [], tuple(stated[1:]), like, said))
    return pieces


def merged_order(old: Sequence[str], made: Sequence[str], count: int) -> list[str]:
    """The new order: the made patches in theirs, and the old ones that were not in the tree.

    count: how many of the old ones the tree began with; of these the missing ones were taken out.
    Each later one stands behind the later one before it, else behind all that the tree began with.
    """
    later = list(old[count:])
    order = list(made)
    behind = next((i for i, name in enumerate(made) if name in later), len(made))
    for index, name in enumerate(later):
        if name in order:
            continue
        before = next((n for n in reversed(later[:index]) if n in order), None)
        at = order.index(before) + 1 if before is not None else behind
        order.insert(at, name)
    return order


def _write(builder: Builder, commits: Commits, piece: Piece, like: int | None, guard: str) -> None:
    """One patch: the changes of its commits, each carried onto the tree so far."""
    standing = builder.standing
    tree = Overlay(builder.tree)
    clashes: list[tuple[Taken, Clash]] = []
    for commit in (piece.commit, *piece.folded):
        changes = commits.changes(commit.before, commit.after)
        before: StoreTree = commits.tree(commit.before)
        carried = carry(before, changes, tree)
        clashes += [(commit, clash) for clash in carried.clashes]
        tree.changes.update(carried.changes)
    if clashes:
        builder.find(_clash(piece, commit, clash) for commit, clash in clashes)
        builder.rows.append(Row(piece.name, "refused"))
        return
    changes = {p: f for p, f in tree.changes.items() if not same(builder.tree.get(p), f)}
    if not changes:
        builder.find([_empty(piece)])
        builder.rows.append(Row(piece.name, "refused"))
        return
    old = standing.series.headers[like] if like is not None else None
    try:
        told = _told(piece, old)
    except Refused as refusal:
        builder.find(f.in_patch(piece.name) for f in refusal.findings)
        return
    renames: Mapping[str, str] = {}
    wanted = guard or None
    if like is not None:
        entry = standing.series.entries[like]
        patch = standing.series.patches[like]
        renames = renames_of(patch, Root(entry.strip), reverse=entry.reverse)
        wanted = wanted or entry.guard
    if told.guard is not None:
        wanted = told.guard or None
    folds = f"{len(piece.folded)} folded in" if piece.folded else ""
    said = (*told.said, *filter(None, (piece.said, folds)))
    header = told.header
    if old is None and not header.first("Last-Update"):
        for name, value in (("Origin", "vendor"), ("Forwarded", "no")):
            if not header.first(name):
                header = header.with_field(name, value)
        header = header.with_field("Last-Update", builder.day)
    builder.write(piece.name, header, changes, guard=wanted, renames=renames, like=like, said=said)


def _told(piece: Piece, old: Header | None) -> Told:
    commit = piece.commit
    for folded in piece.folded:
        fold = FOLD.fullmatch(folded.subject)
        if fold is not None and fold[1] == "amend" and folded.body:
            commit = replace(commit, message=folded.body)
        elif fold is not None and fold[1] == "squash" and folded.body:
            commit = replace(commit, message=f"{commit.message.rstrip()}\n\n{folded.body}")
    return header_of(commit, old, piece.name)


def _fold(pieces: list[Piece], commit: Taken, subject: str, kind: str) -> None:
    wanted = subject
    while True:
        inner = FOLD.fullmatch(wanted)
        if inner is None:
            break
        wanted = inner[2]
    for piece in reversed(pieces):
        if piece.commit.subject == wanted or piece.commit.subject.startswith(wanted):
            piece.folded.append(commit)
            return
    raise Refused(
        Finding(
            "missing-patch",
            f"the commit {commit.commit[:12]} is a {kind} for a commit that is not there",
            expected=f"an earlier commit with the subject {wanted!r}",
            found=", ".join(repr(p.commit.subject) for p in pieces[-SHOWN:]) or "no commit",
            next="give it a subject of its own, or fold it with git rebase -i --autosquash base",
        )
    )


def _stated_name(name: str, commit: Taken) -> str:
    try:
        return patch_name(name)
    except UsageFault as fault:
        raise Refused(
            Finding(
                "bad-header",
                f"commit {commit.commit[:12]}: {fault.findings[0].message}",
                found=f"Patch-Name: {name}",
                next="git commit --amend, and mend the line",
            )
        ) from None


def _twice(name: str, commit: Taken) -> Finding:
    return Finding(
        "duplicate-entry",
        f"two commits that do not follow each other are the patch {name}",
        Where(patch=name),
        expected="each Patch-Name once, or in commits one after the other",
        found=f"again in commit {commit.commit[:12]} ({commit.subject})",
        next="git rebase -i base: bring them together, or take the line Patch-Name: out of one",
    )


def _empty(piece: Piece) -> Finding:
    commit = piece.commit
    return Finding(
        "no-op",
        f"commit {commit.commit[:12]} ({commit.subject}) changes nothing"
        + (", with what is folded into it" if piece.folded else ""),
        Where(patch=piece.name),
        expected="at least one file that differs from the commit before",
        found="no file that differs",
        next="git rebase -i base in the work tree, and drop it there",
    )


def _clash(piece: Piece, commit: Taken, clash: Clash) -> Finding:
    return Finding(
        "conflict",
        f"commit {commit.commit[:12]} ({commit.subject}) cannot be folded into "
        f"{show_path(piece.name)}: {show_path(clash.path)} {clash.reason}",
        Where(patch=piece.name, file=clash.path),
        details=clash.shown,
        next=ADVICE,
    )


def _require_fit(standing: Standing, at: str, commits: Commits, taken: Sequence[Taken]) -> None:
    """There are commits, they stand on the base of today's pin, and nothing is uncommitted."""
    if not taken:
        raise Refused(
            Finding(
                "no-op",
                "the work tree has no commit on the bare upstream",
                Where(file=at),
                expected="at least one commit",
                next="commit your changes there, or patchkit refresh without --from-commits",
            )
        )
    if taken[0].before != standing.base.tree_id:
        raise Refused(
            Finding(
                "not-built-from-this",
                "the work tree stands on another base than the pin has now",
                Where(file=at),
                expected=f"tree {standing.base.tree_id}",
                found=f"tree {taken[0].before}",
                next="patchkit edit PATCH --to another folder",
            )
        )
    changed = sorted(take_files(standing.store, at, commits.tree(taken[-1].after)).changes)
    if changed:
        shown = ", ".join(map(show_path, changed[:SHOWN]))
        raise Refused(
            Finding(
                "foreign-edit",
                f"{len(changed)} file(s) of the work tree are not committed: {shown}",
                Where(file=changed[0]),
                expected="every change in a commit",
                next=f"git -C {near(at)} commit (--amend, or --fixup COMMIT), then the same again",
            )
        )


def _count_at(standing: Standing, point: Point, at: str, head: str) -> int:
    """How many patches of the series the work tree began with; the series must still give the
    trees that it began with. Raises Refused(not-built-from-this).
    """
    index, place = locate(standing, point, at)
    if index is None:
        return place
    now = standing.trees[place + 1]
    if not point.fresh and now not in (point.after, head):
        raise Refused(moved(standing, point, at, f"the patch in the series gives tree {now}"))
    return place + 1
