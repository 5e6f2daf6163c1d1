"""The writing half of the installed target: files, RECORD and state as one transaction."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from patchkit.engine.model import EXECUTABLE, REGULAR, File
from patchkit.errors import PatchkitError
from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.files.growing import remove_folder
from patchkit.files.keeping import KeepingRoot
from patchkit.files.transaction import Recovered, change, pending, recover
from patchkit.target import bytecode
from patchkit.target.dist_info import JOURNAL, STATE, Dist, pending_journal
from patchkit.target.installed_state import State, dump_state
from patchkit.target.record_csv import NAME, RecordFile, changed_rows, restored

MODES = "modes.json"
"""In the journal: permission bits of what is about to change, for rolling back."""
_FOLDER = 0o755


@dataclass(frozen=True)
class Part:
    """What is to become of one package.

    before, after: its state now, and then (None: not patched). files: site path -> the file then,
    for every path that either state touches. base: the same paths as the installer left them. In
    both the modes are git's, as the lock has them.
    """

    dist: Dist
    before: State | None
    after: State | None
    files: Mapping[str, File | None]
    base: Mapping[str, File | None]


@dataclass(frozen=True)
class Sealed:
    """Everything to write for a part: site path -> file. bits: permission bits to give back.
    record_edited: whether RECORD was changed by somebody else since it was patched."""

    dist: Dist
    changes: Mapping[str, File | None]
    bits: Mapping[str, int]
    record_edited: bool


def seal(part: Part) -> Sealed:
    """Work out RECORD, state and modes of a part; nothing is written."""
    dist, before = part.dist, part.before
    root = KeepingRoot(dist.site)
    record = dist.record
    base = restored(record, before.record) if before is not None else record
    edited = before is not None and base.sha256 != before.record_sha256
    changed: dict[str, bytes | None] = {
        path: file.data if file is not None else None
        for path, file in part.files.items()
        if not _same_bytes(file, part.base.get(path))
    }
    old_bits = before.modes if before is not None else {}
    bits = {path: _original(root, path, old_bits) for path in part.files}
    changes: dict[str, File | None] = {}
    known = {path: mode for path, mode in old_bits.items() if path not in part.files}
    for path, file in part.files.items():
        mode = bits[path]
        at_base = part.base.get(path)
        if file is not None and at_base is not None and file.mode == at_base.mode and mode:
            # The patches leave the mode alone: it stays what the installer made it.
            file = File(file.data, EXECUTABLE if mode & 0o100 else REGULAR)
            known[path] = mode
        changes[path] = file
    if part.after is None:
        changes[dist.path(STATE)] = None
        changes[dist.path(NAME)] = File(bytes(base))
    else:
        state = _completed(part, base, changed, _modes(root, part, bits, old_bits))
        data = dump_state(state)
        changes[dist.path(STATE)] = File(data)
        changes[dist.path(NAME)] = File(bytes(base.edited({**changed, dist.path(STATE): data})))
    return Sealed(dist, changes, known, edited)


def _completed(
    part: Part, base: RecordFile, changed: Mapping[str, bytes | None], modes: Mapping[str, int]
) -> State:
    assert part.after is not None
    # The rows that go or change do not depend on the state's own digest.
    draft = base.edited({**changed, part.dist.path(STATE): b""})
    return replace(
        part.after,
        record_sha256=base.sha256,
        record=changed_rows(base, draft),
        modes=modes,
    )


def _same_bytes(one: File | None, two: File | None) -> bool:
    if one is None or two is None:
        return one is two
    return one.data == two.data


def _original(root: KeepingRoot, path: str, recorded: Mapping[str, int]) -> int | None:
    if path in recorded:
        return recorded[path]
    found = root.bits(path)
    return found.mode if found is not None else None


def _modes(
    root: KeepingRoot, part: Part, bits: Mapping[str, int | None], recorded: Mapping[str, int]
) -> dict[str, int]:
    """Bits to keep in the state: of files that go or change their mode, and of their folders."""
    out: dict[str, int] = {}
    for path, file in part.files.items():
        at_base, mode = part.base.get(path), bits[path]
        if at_base is None or mode is None or (file is not None and file.mode == at_base.mode):
            continue
        out[path] = mode
        if file is None:
            out.update(_folder_modes(root, path, recorded))
    return out


def _folder_modes(
    root: KeepingRoot, path: str, recorded: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Bits of the folders above `path` that are not the usual ones."""
    out = {}
    while "/" in path:
        path = path.rpartition("/")[0]
        mode = _original(root, path, recorded or {})
        if mode is not None and mode != _FOLDER:
            out[path] = mode
    return out


# -- the transaction -------------------------------------------------------------------------
def needs_writing(sealed: Sequence[Sealed]) -> list[str]:
    """The site paths that are not yet as wanted."""
    out = []
    for part in sealed:
        root = KeepingRoot(part.dist.site, part.bits)
        for path, file in sorted(part.changes.items()):
            found = root.get(path)
            same = _same_bytes(found, file) and (
                found is None or file is None or found.mode == file.mode
            )
            if not same:
                out.append(path)
    return out


def commit(sealed: Sequence[Sealed], what: str) -> list[str]:
    """Write all parts (of one site folder), all or nothing. The removed bytecode is returned.

    The site must be locked. Raises EnvironmentFault(disk), Refused.
    """
    dist = sealed[0].dist
    root = KeepingRoot(dist.site)
    changes = {path: file for part in sealed for path, file in part.changes.items()}
    now = _present_modes(root, changes)
    # What goes now must come back with its bits, should all be rolled back.
    root.known.update((p, b) for p, b in now.items() if changes.get(p) is None)
    root.known.update((p, b) for part in sealed for p, b in part.bits.items())
    modules = [p for p, f in changes.items() if not _same_bytes(root.get(p), f)]
    gone: list[str] = []
    journal = dist.at(JOURNAL)
    try:
        make_folder(journal)
        write_file(os.path.join(journal, MODES), json.dumps(now, sort_keys=True).encode("ascii"))
        change(
            root,
            changes,
            journal,
            what=what,
            after=lambda: gone.extend(bytecode.drop(root, modules)),
        )
    except BaseException:
        if not pending(journal):
            _forget(journal)
        raise
    return gone


def roll_back(site: str) -> Recovered | None:
    """Undo what an interrupted command left in `site`; None where there is nothing.

    The site must be locked. A command that was stopped before its journal was whole has changed
    nothing; it is undone too, with no paths. Raises Refused(journal) where a file was edited
    since.
    """
    dist = pending_journal(site)
    if dist is None:
        return None
    journal = dist.at(JOURNAL)
    root = KeepingRoot(site, _kept_modes(journal))
    done = recover(root, journal)
    if done is None:
        return Recovered("command", ())
    bytecode.drop(root, done.paths)
    return done


def _present_modes(root: KeepingRoot, paths: Iterable[str]) -> dict[str, int]:
    """Bits of `paths` and of their folders, as they are now."""
    modes: dict[str, int] = {}
    for path in paths:
        found = root.bits(path)
        if found is not None:
            modes[path] = found.mode
        modes.update(_folder_modes(root, path))
    return modes


def _kept_modes(journal: str) -> dict[str, int]:
    try:
        body = json.loads(read_file(os.path.join(journal, MODES)))
        return {str(path): int(mode) & 0o777 for path, mode in body.items()}
    except (PatchkitError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _forget(journal: str) -> None:
    try:
        remove_folder(journal)
    except PatchkitError:
        pass  # what stopped the command is worth more words than litter
