"""Loose patches in somebody's folder: applied in place, recorded, taken back byte for byte.

`DIR/.patchkit/` holds `state.json` (which patches, what each path was and is) and the old bytes
of every touched path, compressed, by blob id. The record is what tells a second apply of a pure
insertion, which the tree alone cannot. Taking all back removes the folder again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from patchkit.engine.apply import Outcome
from patchkit.engine.chain import Step, apply_chain
from patchkit.engine.model import File, Overlay
from patchkit.engine.rule import Rule
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.files.growing import remove_folder
from patchkit.files.lock import folder_locked
from patchkit.files.root import OWN, Root
from patchkit.files.transaction import Recovered, change, pending, recover
from patchkit.target.record import STATE, Applied, Record, blob, dump_record, read_record

EXPANDED = 1 << 30
"""Bytes that one recorded old file may take when it is expanded."""


@dataclass(frozen=True)
class Result:
    """What was done, or would be.

    outcomes: one a patch, in order. changed: paths written or removed. recovered: an earlier
    interrupted command that was undone first.
    """

    outcomes: tuple[Outcome, ...]
    findings: tuple[Finding, ...]
    changed: tuple[str, ...] = ()
    recovered: Recovered | None = None

    @property
    def ok(self) -> bool:
        """Whether only notes were found."""
        return all(f.note for f in self.findings)


def apply(
    to: str | os.PathLike[str], steps: Sequence[Step], rule: Rule, *, dry: bool = False
) -> Result:
    """Apply patches in order to the folder `to`, all or nothing. dry: only say what would happen.

    Raises Refused(foreign-edit) where a recorded path was edited since, EnvironmentFault(disk).
    """
    at = _folder(to)
    with _held(at, dry):
        recovered = None if dry else _recover(at)
        root = Root(at)
        record = read_record(at)
        done = {row.sha256 for row in record.applied}
        todo = [step for step in steps if step.patch.sha256 not in done]
        touched = {p for row in record.applied for p in row.paths if row.sha256 in _digests(steps)}
        edited = _edited(root, record, touched)
        if edited:
            return Result((), tuple(edited), recovered=recovered)
        chain = apply_chain(Overlay(root), todo, rule)
        outcomes = _in_order(steps, done, chain.outcomes)
        if any(not f.note for f in chain.findings) or not chain.changes or dry:
            return Result(outcomes, tuple(chain.findings), recovered=recovered)
        after = _grown(root, record, todo, chain.outcomes)
        _commit(root, at, dict(chain.changes), after, "apply")
        return Result(outcomes, tuple(chain.findings), tuple(sorted(chain.changes)), recovered)


def revert(to: str | os.PathLike[str], *, dry: bool = False) -> Result:
    """Take back everything recorded in the folder `to`, byte for byte.

    Raises Refused(no-op) where nothing is recorded and nothing was undone. A path that is not as
    apply left it is a foreign-edit finding.
    """
    at = _folder(to)
    with _held(at, dry):
        recovered = None if dry else _recover(at)
        root = Root(at)
        record = read_record(at)
        if not record.applied and recovered is not None:
            return Result((), (), recovered=recovered)  # undoing an apply is what was to be done
        if not record.applied:
            raise Refused(
                Finding(
                    "no-op",
                    "there is nothing to take back: no patch is recorded here",
                    Where(file=os.path.join(OWN, "state.json")),
                    expected="a folder that patchkit apply changed",
                    found=at,
                    next="patchkit apply FILE… --to " + at,
                )
            )
        before = record.before()
        # What was put back by hand is as it is to be.
        back = {path for path, row in before.items() if blob(root.get(path)) == row}
        edited = _edited(root, record, set(record.now()) - back)
        if edited:
            return Result((), tuple(edited), recovered=recovered)
        changes = {path: _old(at, row) for path, row in before.items() if path not in back}
        if not dry:
            _commit(root, at, changes, Record(()), "revert")
        return Result((), (), tuple(sorted(changes)), recovered)


def state(to: str | os.PathLike[str]) -> tuple[Record, tuple[Finding, ...]]:
    """What is recorded in the folder, and every recorded path that is not as it was left."""
    at = _folder(to)
    record = read_record(at)
    return record, tuple(_edited(Root(at), record, set(record.now())))


# -- steps -----------------------------------------------------------------------------------
def _folder(to: str | os.PathLike[str]) -> str:
    at = os.path.abspath(to)
    if not os.path.isdir(at):
        raise UsageFault(
            Finding(
                "missing-target",
                f"there is no folder {at}",
                Where(file=at),
                expected="a folder to patch",
                found="a file" if os.path.lexists(at) else "nothing",
                next="name the folder with --to",
            )
        )
    own = os.path.join(at, OWN)
    if os.path.lexists(own) and (os.path.islink(own) or not os.path.isdir(own)):
        raise Refused(
            Finding(
                "symlink-in-path",
                f"{OWN} in {at} is not a folder of patchkit's",
                Where(file=own),
                expected="a folder, or nothing",
                found="a symbolic link" if os.path.islink(own) else "a file",
                next=f"move {own} away",
            )
        )
    return at


@contextmanager
def _held(at: str, dry: bool) -> Iterator[None]:
    """The folder's lock; nothing at all when only looking."""
    if dry:
        yield
        return
    with folder_locked(at):
        yield


def _digests(steps: Sequence[Step]) -> set[str]:
    return {step.patch.sha256 for step in steps}


def _recover(at: str) -> Recovered | None:
    found = recover(Root(at), os.path.join(at, OWN, "journal"))
    _tidy(at, read_record(at))
    if found is None:
        return None
    return Recovered(found.what, tuple(p for p in found.paths if p != f"{OWN}/{STATE}"))


def _edited(root: Root, record: Record, paths: set[str]) -> list[Finding]:
    found = []
    now, before = record.now(), record.before()
    for path in sorted(paths):
        expected, file = now[path], root.get(path)
        back = blob(file) == before[path]
        if blob(file) != expected:
            found.append(
                Finding(
                    "foreign-edit",
                    f"{path} is not as patchkit left it"
                    + (", but as it was before the patches" if back else ""),
                    Where(file=path),
                    expected=str(expected) if expected else "no file",
                    found=str(blob(file)) if file else "no file",
                    next=f"patchkit revert --to {root.at}, then the same again"
                    if back
                    else "put your change aside (or into a patch of its own) and give the file "
                    "back what it had with the patches, or before them; then the same again",
                )
            )
    return found


def _in_order(
    steps: Sequence[Step], done: set[str], outcomes: Sequence[Outcome]
) -> tuple[Outcome, ...]:
    rest = iter(outcomes)
    return tuple(
        Outcome(step.patch, "already-applied") if step.patch.sha256 in done else next(rest)
        for step in steps
    )


def _grown(root: Root, record: Record, todo: Sequence[Step], outcomes: Sequence[Outcome]) -> Record:
    """The record with a row for each patch that changed something."""
    tree = Overlay(root)
    rows = list(record.applied)
    for step, outcome in zip(todo, outcomes, strict=True):
        if outcome.changes:
            paths = {p: (blob(tree.get(p)), blob(f)) for p, f in sorted(outcome.changes.items())}
            rows.append(Applied(step.patch.name, step.patch.sha256, paths))
            tree.changes.update(outcome.changes)
    return Record(tuple(rows))


def _commit(
    root: Root, at: str, changes: Mapping[str, File | None], after: Record, what: str
) -> None:
    own = os.path.join(at, OWN)
    _keep_old(root, own, read_record(at), after)

    # The record is one of the files: undone with them, or there with them.
    state = File(dump_record(after)) if after.applied else None
    try:
        change(root, {**changes, f"{OWN}/{STATE}": state}, os.path.join(own, "journal"), what=what)
    finally:
        _tidy(at, read_record(at))


def _keep_old(root: Root, own: str, before: Record, after: Record) -> None:
    """Put aside the bytes of every path that is touched for the first time."""
    known = before.before()
    for path in after.before():
        if path in known:
            continue
        file = root.get(path)
        if file is not None:
            kept = File(zlib.compress(file.data, 6))
            root.put(f"{OWN}/base/{file.oid}", kept)


def _old(at: str, row: object) -> File | None:
    from patchkit.series.lockfile import Blob

    if row is None:
        return None
    assert isinstance(row, Blob)
    where = os.path.join(at, OWN, "base", row.oid)
    try:
        expander = zlib.decompressobj()
        kept = Root(at).get(f"{OWN}/base/{row.oid}", EXPANDED)
        data = expander.decompress(kept.data if kept is not None else b"", EXPANDED)
        file = File(data, row.mode)
    except zlib.error:
        file = File(b"", 0)
    if file.oid != row.oid:
        raise Refused(
            Finding(
                "journal",
                "the old bytes that were put aside are damaged",
                Where(file=where),
                expected=row.oid,
                found=file.oid,
                next="restore the file from its source",
            )
        )
    return file


def _tidy(at: str, record: Record) -> None:
    """Drop old bytes that no record needs, and the folder when nothing is recorded."""
    own = os.path.join(at, OWN)
    if not record.applied and not pending(os.path.join(own, "journal")):
        remove_folder(own)
