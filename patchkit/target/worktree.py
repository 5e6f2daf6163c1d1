"""A git work tree of a patched series: made new as a whole, or brought up to date in place.

A new one is built beside its place and renamed into it. An existing one that patchkit made is
changed by a transaction: only files that differ are written, so that the others keep their
times and an incremental build survives. Its own `.git/config` is never obeyed while that is
done: the store's repository looks at its index.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from patchkit.engine.model import GITLINK, File
from patchkit.engine.paths import unsafe
from patchkit.errors import Finding, Refused, Where, unreadable
from patchkit.files.atomic import make_folder, move_folder, read_file, write_file
from patchkit.files.growing import remove_file, remove_folder
from patchkit.files.lock import locked
from patchkit.files.root import Root
from patchkit.files.transaction import Recovered, change, pending, recover
from patchkit.store.pipes import ObjectReader
from patchkit.store.repo import Store
from patchkit.store.tree import StoreTree
from patchkit.target.checkout import (
    BRANCH,
    check_out,
    copy_objects,
    edited_paths,
    index_entries,
    init_repository,
    label,
    refresh_index,
    require_own,
)

STATE = os.path.join(".git", "patchkit", "state.json")
NEXT = STATE + ".next"
"""The new record until the journal has gone: which of the two counts, the journal says."""
JOURNAL = os.path.join(".git", "patchkit", "journal")
FORMAT = 1


@dataclass(frozen=True)
class Wanted:
    """What the work tree is to be.

    commits and trees: the chain, base first, one more than there are patches. tag: name of the
    tag on the last commit. generated: files written beside the tracked ones, untracked.
    """

    pin: str
    stack: str
    tag: str
    commits: tuple[str, ...]
    trees: tuple[str, ...]
    generated: dict[str, File]


@dataclass(frozen=True)
class Written:
    """What was done. kind: new, updated or unchanged. files: how many were written or removed."""

    kind: str
    files: int
    recovered: Recovered | None = None


@dataclass(frozen=True)
class _State:
    commits: tuple[str, ...]
    trees: tuple[str, ...]
    generated: tuple[str, ...]
    tag: str


def write(store: Store, wanted: Wanted, to: str | os.PathLike[str]) -> Written:
    """Make the work tree at `to` be `wanted`, all or nothing.

    Raises Refused (foreign-edit with the paths; target-exists where a folder stands that
    patchkit did not make; journal), EnvironmentFault(disk, git).
    """
    at = os.path.abspath(to)
    parent = os.path.dirname(at)
    make_folder(parent)
    with locked(os.path.join(parent, f".{os.path.basename(at)}.pk-lock"), remove=True):
        _sweep(parent, os.path.basename(at))
        if not os.path.lexists(at) or (os.path.isdir(at) and not os.listdir(at)):
            return _make(store, wanted, at)
        return _update(store, wanted, at)


def would_write(store: Store, wanted: Wanted, to: str | os.PathLike[str]) -> tuple[Finding, ...]:
    """Why `write` would refuse; empty where it would not. Nothing is written."""
    at = os.path.abspath(to)
    if not os.path.lexists(at) or (os.path.isdir(at) and not os.listdir(at)):
        return ()
    try:
        state = _read_state(at)
    except Refused as refusal:
        return refusal.findings
    return tuple(_foreign(store, state, wanted, at))


def laid_out(to: str | os.PathLike[str]) -> str:
    """The commit that the work tree at `to` was last written at, whatever was done there since.

    Raises Refused(target-exists, journal) where it is none of ours.
    """
    return _read_state(os.path.abspath(to)).commits[-1]


def made_for(to: str | os.PathLike[str]) -> tuple[str, str, str]:
    """Pin and stack that the work tree at `to` was written for, and the id of its tree.

    Raises Refused(target-exists, journal) where it is none of ours.
    """
    at = os.path.abspath(to)
    state = _read_state(at)
    body = json.loads(read_file(_record(at)))
    return str(body.get("pin", "")), str(body.get("stack", "")), state.trees[-1]


def edited_since(store: Store, to: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """Every tracked path that is not as the work tree at `to` was written, whatever was committed
    there since; None where it is none of ours. Raises Refused(journal).
    """
    at = os.path.abspath(to)
    if not os.path.isfile(os.path.join(at, STATE)):
        return None
    tree = _read_state(at).trees[-1]
    with ObjectReader(store.git_dir, os.path.join(at, ".git", "objects")) as objects:
        listed = {e.path: (e.mode, e.oid) for e in StoreTree(tree, objects).walk()}
    index = {e.path: (e.mode, e.oid) for e in index_entries(store, at)}
    paths = {p for p in {*listed, *index} if listed.get(p) != index.get(p)}
    return tuple(sorted(paths.union(edited_paths(store, at))))


# -- new -------------------------------------------------------------------------------------
def _make(store: Store, wanted: Wanted, at: str) -> Written:
    temporary = _temporary(at)
    try:
        init_repository(temporary, wanted.generated)
        copy_objects(store, wanted.commits[-1], (), temporary)
        check_out(temporary, wanted.trees[-1])
        root = Root(temporary)
        for path, file in wanted.generated.items():
            root.put(path, file, sync=False)
        label(temporary, wanted.commits[-1], wanted.tag)
        _write_state(temporary, wanted)
        move_folder(temporary, at)
    except BaseException:
        remove_folder(temporary)
        raise
    return Written("new", sum(1 for _ in store.tree(wanted.trees[-1]).walk()))


def _temporary(at: str) -> str:
    return os.path.join(os.path.dirname(at), f".{os.path.basename(at)}.pk-new-{os.getpid()}")


def _sweep(parent: str, name: str) -> None:
    """Remove what a killed run left; the lock says that nobody else is at it."""
    for entry in os.listdir(parent):
        if entry.startswith(f".{name}.pk-new-"):
            remove_folder(os.path.join(parent, entry))


# -- in place --------------------------------------------------------------------------------
def _update(store: Store, wanted: Wanted, at: str) -> Written:
    require_own(at)
    root = Root(at)
    if pending(os.path.join(at, JOURNAL)):
        remove_file(os.path.join(at, NEXT))  # what it speaks of is taken back
    recovered = recover(root, os.path.join(at, JOURNAL))
    _keep_record(at)
    state = _read_state(at)
    if recovered is not None:
        _settle(at, state.commits[-1], state.trees[-1], state.tag)
    foreign = _foreign(store, state, wanted, at)
    if foreign:
        raise Refused(*foreign)
    changes = _changes(store, state, wanted, at)
    same = not changes and state.commits == wanted.commits and state.tag == wanted.tag
    if same:
        return Written("unchanged", 0, recovered)
    copy_objects(store, wanted.commits[-1], (state.commits[-1],), at)

    def finish() -> None:
        _settle(at, wanted.commits[-1], wanted.trees[-1], wanted.tag)
        _write_state(at, wanted, NEXT)

    change(root, changes, os.path.join(at, JOURNAL), what=f"apply to {at}", after=finish)
    _keep_record(at)
    return Written("updated", len(changes), recovered)


def _settle(at: str, commit: str, tree: str, tag: str) -> None:
    """Make index, branch and tag say what the files are."""
    refresh_index(at, tree)
    label(at, commit, tag)


def _changes(store: Store, state: _State, wanted: Wanted, at: str) -> dict[str, File | None]:
    """What has to be written: the new tree against what stands there."""
    new = store.tree(wanted.trees[-1])
    paths = set(edited_paths(store, at))
    if state.trees[-1] != wanted.trees[-1]:
        before = {e.path: e for e in index_entries(store, at)}
        after = {e.path: e for e in new.walk()}
        paths |= {p for p in {*before, *after} if before.get(p) != after.get(p)}
    new.prefetch(sorted(paths))
    changes: dict[str, File | None] = {}
    for path in paths:
        file = new.get(path)
        if file is None or file.mode != GITLINK:
            changes[path] = file
    root = Root(at)
    for path, file in wanted.generated.items():
        # A build writes these anew; only what was never there is put back.
        if root.stat(path) is None:
            changes[path] = file
    return changes


def _foreign(store: Store, state: _State, wanted: Wanted, at: str) -> list[Finding]:
    """Tracked paths that are neither base nor ours."""
    root = Root(at)
    known = [store.tree(t) for t in dict.fromkeys((*wanted.trees, *state.trees)) if store.has(t)]
    suspects: dict[str, str] = {}
    for path in edited_paths(store, at):
        file = root.get(path)
        suspects[path] = f"{file.oid} ({file.mode:o})" if file else "no file"
    listed = {e.path: e for e in index_entries(store, at)}
    # An index entry that no known tree has was added by somebody.
    for path, entry in listed.items():
        if path not in suspects and not any(t.listed(path) == entry for t in known[:1]):
            suspects[path] = f"{entry.oid} ({entry.mode:o})"
    # A file that nobody tracks is in nobody's way, but where the new tree has one of that name.
    untracked = set()
    for new in store.tree(wanted.trees[-1]).walk():
        if new.path in listed or new.path in suspects or new.mode == GITLINK:
            continue
        file = root.get(new.path)
        if file is not None:
            suspects[new.path] = f"{file.oid} ({file.mode:o})"
            untracked.add(new.path)
    found = []
    for path, shown in sorted(suspects.items()):
        ours = []
        for tree in known:
            blob = tree.listed(path)
            ours.append(f"{blob.oid} ({blob.mode:o})" if blob else "no file")
        if shown in ours and not (shown == "no file" and path not in listed):
            continue
        back = f"put it back with git -C {at} checkout -- {path}"
        found.append(
            Finding(
                "foreign-edit",
                f"{path} is not tracked, and the patched tree has a file of that name"
                if path in untracked
                else f"{path} is tracked and neither as in {wanted.pin} nor as patched",
                Where(file=path),
                expected=" or ".join(dict.fromkeys(ours)) or "not tracked",
                found=shown,
                next="move it away, or use another folder (--to)"
                if path in untracked
                else f"keep it elsewhere (git -C {at} diff), {back}, or use another folder (--to)",
            )
        )
    return found


# -- state -----------------------------------------------------------------------------------
def _record(at: str) -> str:
    """The file with what was applied: a killed command may have left two."""
    new = os.path.join(at, NEXT)
    there = os.path.lexists(new) and not pending(os.path.join(at, JOURNAL))
    return new if there else os.path.join(at, STATE)


def _keep_record(at: str) -> None:
    """Give the new record its name."""
    new = os.path.join(at, NEXT)
    if os.path.lexists(new):
        write_file(os.path.join(at, STATE), read_file(new))
        remove_file(new)


def _write_state(at: str, wanted: Wanted, name: str = STATE) -> None:
    body = {
        "format": FORMAT,
        "pin": wanted.pin,
        "stack": wanted.stack,
        "tag": wanted.tag,
        "commits": list(wanted.commits),
        "trees": list(wanted.trees),
        "generated": sorted(wanted.generated),
    }
    where = os.path.join(at, name)
    make_folder(os.path.dirname(where))
    write_file(where, (json.dumps(body, indent=1) + "\n").encode("ascii"))


def _read_state(at: str) -> _State:
    where = _record(at)
    if os.path.isfile(where):
        require_own(at)
    else:
        raise Refused(
            Finding(
                "target-exists",
                f"{at} exists and was not made by patchkit",
                Where(file=at),
                expected="a new folder, or one that patchkit apply made",
                found="a file" if not os.path.isdir(at) else "a folder of somebody else",
                next="patchkit apply … --to another folder",
            )
        )
    try:
        body = json.loads(read_file(where))
        if body["format"] != FORMAT:
            raise ValueError(f"format {body['format']}")
        state = _State(
            tuple(map(str, body["commits"])),
            tuple(map(str, body["trees"])),
            tuple(map(str, body["generated"])),
            str(body["tag"]),
        )
        ids = (*state.commits, *state.trees)
        if not state.commits or not all(len(i) == 40 and int(i, 16) >= 0 for i in ids):
            raise ValueError("not object ids")
        if unsafe(state.tag) is not None or not state.tag.isprintable() or " " in state.tag:
            raise ValueError("not a tag")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refused(
            Finding(
                "journal",
                f"the record of what was applied cannot be read: {unreadable(error)}",
                Where(file=where),
                next="apply --to another folder, or remove this one",
            )
        ) from error
    return state


__all__ = [
    "BRANCH",
    "Wanted",
    "Written",
    "edited_since",
    "laid_out",
    "made_for",
    "would_write",
    "write",
]
