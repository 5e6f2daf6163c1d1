"""`import --overlay DIR`: whole files that lie over the tree, as one patch."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from patchkit.authoring.names import from_file, patch_name, subject_from
from patchkit.bring.carried import Piece
from patchkit.bring.copied import LEFT_BEHIND
from patchkit.bring.leaving import without
from patchkit.engine.model import GITLINK, SYMLINK, File
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.files.root import Root
from patchkit.series.header import Field, Header
from patchkit.store.tree import StoreTree

LARGEST = 64 << 20
_JUNK = (*LEFT_BEHIND, ".rej", ".DS_Store")
_PARTS = {".git", "__pycache__", ".hg", ".svn", ".mypy_cache", ".ruff_cache"}


def overlaid(
    tree: StoreTree,
    folder: str,
    package: str,
    exclude: Sequence[str],
    name: str | None,
    *,
    strip: int | None = None,
    directory: str | None = None,
) -> tuple[Piece, tuple[Finding, ...]]:
    """The files of `folder` in place of those of `tree`, and notes.

    package: path of the package in the tree, for a folder that begins inside it. strip,
    directory: where the user says how names map. Raises UsageFault, Refused.
    """
    if not os.path.isdir(folder):
        raise UsageFault.because(f"--overlay {folder}: there is no such folder")
    root = Root(folder)
    paths = [p for p in root.walk() if not p.endswith(_JUNK) and not _PARTS & set(p.split("/"))]
    if not paths:
        raise Refused(Finding("no-op", f"{folder} holds no file", Where(file=folder)))
    known = {listed.path: listed for listed in tree.walk()}
    cut, lead = _mapping(paths, known.keys(), package, strip, directory, folder)
    places = {path: _mapped(path, cut, lead) for path in paths}
    tree.prefetch(sorted(set(places.values()) & known.keys()))
    changes: dict[str, File | None] = {}
    notes: list[Finding] = []
    same = 0
    for path, place in sorted(places.items()):
        file = root.get(path, LARGEST)
        old = known.get(place)
        if file is None or (old is not None and old.mode == GITLINK):
            continue
        before = tree.get(place)
        if before is not None:
            file = _like(file, before)
        if before is not None and (file.oid, file.mode) == (before.oid, before.mode):
            same += 1
        else:
            changes[place] = file
    changes, gone = without(changes, exclude, folder)
    notes += [_new(place) for place in changes if place not in known]
    made = patch_name(name) if name is not None else from_file(os.path.abspath(folder))
    header = Header(
        "",
        "",
        subject_from(made),
        (Field("Origin", "vendor"),),
        "Whole files, as an overlay had them.",
    )
    said = [f"overlay: {len(changes)} file(s)"]
    said += [f"{same} as they are in the pin"] if same else []
    said += [f"names: {_words(cut, lead)}"] if cut or lead else []
    said += [f"left out: {path}" for path in gone]
    piece = Piece(made, header, tree, changes, folder, tuple(said), fixed=name is not None)
    return piece, tuple(notes)


def _mapping(
    paths: Sequence[str],
    known: Collection[str],
    package: str,
    strip: int | None,
    directory: str | None,
    folder: str,
) -> tuple[int, str]:
    """How many leading folders of the overlay's names go, and what comes in front of the rest.

    The one under which most files are in the tree; the shortest way where several are equal.
    """
    common = os.path.commonpath([os.path.dirname(p) for p in paths]) if paths else ""
    deep = len(common.split("/")) if common else 0
    cuts = range(deep + 1) if strip is None else [strip]
    leads = ["", package] if directory is None else [directory.strip("/")]
    rows = []
    for lead in dict.fromkeys(leads):
        for cut in cuts:
            found = [_mapped(p, cut, lead) for p in paths if p.count("/") >= cut]
            rows.append((-sum(p in known for p in found), cut + bool(lead), cut, lead))
    hits, _, cut, lead = min(rows)
    if hits or (strip is not None or directory is not None):
        return cut, lead
    raise Refused(
        Finding(
            "missing-target",
            f"no file of {folder} has the name of a file of the tree",
            Where(file=folder),
            expected="a folder like the tree's, or like its package",
            found=", ".join(sorted(paths)[:4]),
            next="--directory DIR: the folder of the tree that the names are rooted in; -p N",
        )
    )


def _mapped(path: str, cut: int, lead: str) -> str:
    rest = "/".join(path.split("/")[cut:])
    return f"{lead}/{rest}" if lead else rest


def _words(cut: int, lead: str) -> str:
    return " and ".join(
        part
        for part in (f"{cut} folder(s) taken away" if cut else "", f"below {lead}" if lead else "")
        if part
    )


def _like(file: File, before: File) -> File:
    """The overlay's bytes with the tree's mode, and its line ends where only these differ in
    kind: a copy that went over Windows is no change of every line."""
    if SYMLINK in (file.mode, before.mode):
        return file
    data = file.data
    if _ends(data) == b"\r\n" and b"\r" not in before.data:
        data = data.replace(b"\r\n", b"\n")
    elif _ends(before.data) == b"\r\n" and b"\r" not in data:
        data = data.replace(b"\n", b"\r\n")
    return File(data, before.mode)


def _ends(data: bytes) -> bytes:
    """The line end that all lines have; empty for a mixture, or for none."""
    crlf, all_ = data.count(b"\r\n"), data.count(b"\n")
    return b"\r\n" if crlf and crlf == all_ else b"\n" if all_ and not crlf else b""


def _new(path: str) -> Finding:
    return Finding("missing-target", f"{path} is new: the tree has no such file", note=True)
