"""What was done elsewhere, done on a pin's tree: merged three-way, written as exact patches.

Whoever brings a pull request, a fork's commit or an overlay for another release also brings what
it was made on, so no hunk has to look for its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from shlex import quote

from patchkit.authoring.incoming import Incoming
from patchkit.derive.carry import Files, carry, finding_of, same
from patchkit.engine.model import File, Overlay, Tree
from patchkit.engine.parse import parse
from patchkit.engine.strip import Root
from patchkit.errors import Finding, Refused, Where
from patchkit.series.header import Header
from patchkit.series.header_out import dump_header
from patchkit.series.writer import write_diff


@dataclass(frozen=True)
class Piece:
    """One change from elsewhere. before: what it was made on. where: its address, for messages.

    fixed: the name is somebody's choice.
    """

    name: str
    header: Header
    before: Tree
    changes: Mapping[str, File | None]
    where: str
    said: tuple[str, ...] = ()
    guard: str | None = None
    fixed: bool = False


def carried(now: Tree, pieces: Iterable[Piece]) -> list[Incoming]:
    """Exact patches, each on the tree after the ones before.

    Raises Refused with every conflict, and for what is there already.
    """
    tree = Overlay(now)
    out: list[Incoming] = []
    wrong: list[Finding] = []
    failed: dict[str, str] = {}  # path -> the first piece that could not be put there
    for piece in pieces:
        try:
            found = _one(tree, piece)
        except Refused as refusal:
            wrong += [_after(finding, failed) for finding in refusal.findings]
            for path in piece.changes:
                failed.setdefault(path, piece.name)
            continue
        out.append(found)
    if wrong:
        raise Refused(*wrong)
    return out


def _one(tree: Overlay, piece: Piece) -> Incoming:
    done = carry(piece.before, piece.changes, tree)
    if done.clashes:
        patch = parse(write_diff(piece.before, piece.changes), piece.name)
        raise Refused(
            *(
                finding_of(clash, patch, Root(1), "--exclude GLOB, or resolve it as a patch file")
                for clash in done.clashes
            )
        )
    if all(same(tree.get(path), file) for path, file in done.changes.items()):
        raise Refused(_there(piece))
    try:
        data = dump_header(piece.header) + write_diff(tree, done.changes)
    except Refused as refusal:
        raise Refused(*(_excludable(f, piece) for f in refusal.findings)) from None
    moved = _offset(piece.before, tree, piece.changes)
    tree.changes.update(done.changes)
    said = (*piece.said, "merged onto the pin") if moved else piece.said
    return Incoming(
        piece.name, data, piece.where, 1, False, piece.guard, said, piece.fixed, made=True
    )


def _after(finding: Finding, failed: Mapping[str, str]) -> Finding:
    """A conflict that may be another one's doing, with that one's name."""
    first = failed.get(finding.where.file or "")
    if first is None:
        return finding
    words = f"{finding.message} (first settle {first}, which changes it, too)"
    return replace(finding, message=words)


def _offset(before: Files, now: Files, changes: Mapping[str, File | None]) -> bool:
    """Whether the pin has other files than those that the change was made on."""
    return any(not same(before.get(path), now.get(path)) for path in changes)


def _there(piece: Piece) -> Finding:
    return Finding(
        "upstreamed",
        f"{piece.where}: all of it is in the tree already",
        Where(patch=piece.name),
        expected="a change of at least one file",
        found=f"{len(piece.changes)} file(s), each as the change makes it",
        next="nothing is needed; or name another place with --after",
    )


def _excludable(finding: Finding, piece: Piece) -> Finding:
    named = finding if finding.where.patch else finding.in_patch(piece.name)
    glob = quote(named.where.file) if named.where.file else "GLOB"
    if named.name == "binary-unsupported" or not named.next:
        return replace(named, next=f"the same command with --exclude {glob}, or '*.END' for all")
    return named
