"""Many files changed as one: all new, or all old.

A journal stands beside the files from before the first write until after the last. It holds
what each path was and what it is to be (blob ids and modes), and the old bytes. After a crash
the next command finds it and rolls back; a path that is neither old nor new then was edited by
somebody else since, and is named, not overwritten.

Rolling back (and never forward) needs nothing that may fail for the same reason twice: the old
bytes are on the disk already.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, File
from patchkit.errors import Finding, Refused, Where, unreadable
from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.files.root import Root, disk_fault

JOURNAL = "journal.json"
FORMAT = 1


@dataclass(frozen=True)
class Recovered:
    """What an interrupted transaction had touched, all of it put back."""

    what: str
    paths: tuple[str, ...]

    @property
    def words(self) -> str:
        """That it was undone, and what of it, for people."""
        done = f"{len(self.paths)} file(s) put back" if self.paths else "it had changed no file yet"
        return f"an interrupted {self.what} was undone first: {done}"


def change(
    root: Root,
    changes: Mapping[str, File | None],
    journal: str | os.PathLike[str],
    *,
    what: str,
    after: Callable[[], None] | None = None,
) -> None:
    """Make `changes` (None removes) below `root`, all or nothing.

    journal: a folder (outside the changed paths, same file system as `root` or not) for the
    journal while it lasts. what: words for the message after a crash. after: the last step,
    run when every path is new and before the journal goes; where it raises, all is rolled back.
    Paths that are already as wanted are not written. Raises EnvironmentFault(disk), Refused.
    """
    wanted = {p: f for p, f in changes.items() if not _same(root.get(p), f)}
    at = _own(journal)
    make_folder(at)
    old = {path: root.get(path) for path in wanted}
    _write_journal(at, what, old, wanted)
    try:
        for path in sorted(wanted, key=lambda p: (wanted[p] is not None, p)):
            file = wanted[path]
            if file is None:
                root.remove(path)
            else:
                root.put(path, file)
        for path, file in wanted.items():
            if not _same(root.get(path), file):
                raise Refused(
                    Finding(
                        "verify-failed",
                        "the file read back is not the one written",
                        Where(file=path),
                        expected=file.oid if file else "no file",
                        found=_name(root.get(path)),
                    )
                )
        if after is not None:
            after()
    except BaseException:
        recover(root, at)
        raise
    _drop(at)


def recover(root: Root, journal: str | os.PathLike[str]) -> Recovered | None:
    """Roll an interrupted transaction back. None where there was none.

    Raises Refused(journal) naming paths that are neither as before nor as intended: nothing is
    written then, and the journal stays.
    """
    at = _own(journal)
    where = os.path.join(at, JOURNAL)
    if not os.path.lexists(where):
        if os.path.isdir(at):
            _drop(at)
        return None
    record = _read_journal(where)
    foreign: list[str] = []
    back: list[tuple[str, File | None]] = []
    for path, (old_id, old_mode, new_id, new_mode) in record.paths.items():
        found = root.get(path)
        state = (found.oid, found.mode) if found else (None, None)
        if state == (old_id, old_mode):
            continue
        if state != (new_id, new_mode):
            foreign.append(path)
            continue
        if old_id is None or old_mode is None:
            back.append((path, None))
        else:
            file = File(read_file(os.path.join(at, old_id), limit=1 << 31), old_mode)
            if file.oid != old_id:
                foreign.append(path)
                continue
            back.append((path, file))
    if foreign:
        raise Refused(
            *(
                Finding(
                    "journal",
                    f"an interrupted {record.what} cannot be undone: the file was edited since",
                    Where(file=path),
                    expected="the file as before or as intended",
                    found=_name(root.get(path)),
                    next=f"put the file back (its old bytes are in {at}), "
                    f"or remove {where} to keep all as it is",
                )
                for path in foreign
            )
        )
    for path, before in back:
        if before is None:
            root.remove(path)
        else:
            root.put(path, before)
    for path in record.paths:
        root.sweep(path)
    _drop(at)
    return Recovered(record.what, tuple(p for p, _ in back))


def _own(journal: str | os.PathLike[str]) -> str:
    """The path of the journal's folder. Raises Refused(symlink-in-path) where it is a link."""
    at = os.fspath(journal)
    if os.path.islink(at):
        raise Refused(
            Finding(
                "symlink-in-path",
                "the folder of the journal is a symbolic link, which is never followed",
                Where(file=at),
                expected="a folder, or nothing",
                found="a symbolic link",
                next=f"look at it, then remove {at}",
            )
        )
    return at


def pending(journal: str | os.PathLike[str]) -> bool:
    """Whether an interrupted transaction waits to be rolled back."""
    return os.path.lexists(os.path.join(os.fspath(journal), JOURNAL))


def _write_journal(
    at: str, what: str, old: Mapping[str, File | None], new: Mapping[str, File | None]
) -> None:
    paths: dict[str, list[str | int | None]] = {}
    for path, file in new.items():
        before = old[path]
        if before is not None:
            write_file(os.path.join(at, before.oid), before.data, tidy=False)
        paths[path] = [
            before.oid if before else None,
            before.mode if before else None,
            file.oid if file else None,
            file.mode if file else None,
        ]
    body = {"format": FORMAT, "what": what, "paths": paths}
    # ASCII JSON keeps names that are not UTF-8 as lone surrogates, and reads them back.
    write_file(os.path.join(at, JOURNAL), json.dumps(body, indent=0).encode("ascii"))
    _sync_folder(at)


@dataclass(frozen=True)
class _Journal:
    what: str
    paths: dict[str, tuple[str | None, int | None, str | None, int | None]]


def _read_journal(where: str) -> _Journal:
    try:
        body = json.loads(read_file(where))
        if body["format"] != FORMAT or not isinstance(body["what"], str):
            raise ValueError("another format")
        paths = {path: _row(row) for path, row in body["paths"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused(
            Finding(
                "journal",
                f"the journal of an interrupted command cannot be read: {unreadable(error)}",
                Where(file=where),
                next=f"look at the folder, then remove {where}",
            )
        ) from error
    return _Journal(body["what"], paths)


def _row(row: object) -> tuple[str | None, int | None, str | None, int | None]:
    if not isinstance(row, list) or len(row) != 4:
        raise ValueError("a row is not of four parts")
    for oid, mode in (row[:2], row[2:]):
        if (oid is None) != (mode is None):
            raise ValueError("an id without a mode")
        if oid is not None and not (isinstance(oid, str) and _is_oid(oid)):
            raise ValueError("not a blob id")
        if mode is not None and mode not in (REGULAR, EXECUTABLE, SYMLINK):
            raise ValueError("not a mode")
    return row[0], row[1], row[2], row[3]


def _is_oid(text: str) -> bool:
    return len(text) == 40 and all(c in "0123456789abcdef" for c in text)


def _drop(at: str) -> None:
    """The journal file goes first: without it the rest is only litter."""
    try:
        if os.path.lexists(os.path.join(at, JOURNAL)):
            os.unlink(os.path.join(at, JOURNAL))
            _sync_folder(at)
        shutil.rmtree(at)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk_fault(error, at, "remove") from error


def _sync_folder(at: str) -> None:
    handle = os.open(at, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError:
        return
    finally:
        os.close(handle)


def _same(found: File | None, wanted: File | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    # By id, which is known of what is to be written: its bytes are not joined once more.
    return found.mode == wanted.mode and found.oid == wanted.oid


def _name(file: File | None) -> str:
    return f"{file.oid} ({file.mode:o})" if file else "no file"
