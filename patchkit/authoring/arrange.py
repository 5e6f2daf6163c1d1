"""Order, names and absence of patches: move, rename, drop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from patchkit.authoring.builder import Builder
from patchkit.authoring.names import patch_name, require_free
from patchkit.authoring.proofs import proof_files, renamed
from patchkit.authoring.sealing import Ready, seal
from patchkit.authoring.standing import Standing, unsealed
from patchkit.engine.model import File
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.quilt_edit import rename as rename_entry

ADVICE = "patchkit edit, then git rebase -i base in that tree, and patchkit refresh --from-commits"
"""What to do about a conflict: the same change with every patch as a commit, and git's help."""


def drop(standing: Standing, names: list[str]) -> Ready:
    """The series without these patches, their files and proofs. Later ones are carried over.

    Raises Refused where a later patch needs one of them.
    """
    builder = _builder(standing)
    gone = [standing.index(name) for name in names]
    proofs: dict[str, File | None] = {}
    folder = standing.project.series_folder(standing.pin.name)
    for index in gone:
        proofs.update(dict.fromkeys(proof_files(folder, standing.names[index])))
    for index in range(len(standing.names)):
        if index not in gone:
            builder.keep(index)
    _notes(builder)
    states = {standing.names[index]: "dropped" for index in gone}
    return seal(builder, gone=states, proofs=proofs)


def move(standing: Standing, name: str, *, after: str | None) -> Ready:
    """The series with a patch behind another; first where `after` is None.

    Raises Refused where the patch, or one that it passes, needs the old order.
    """
    builder = _builder(standing)
    index = standing.index(name)
    order = [i for i in range(len(standing.names)) if i != index]
    if after is not None:
        behind = standing.index(after)
        if behind == index:
            raise UsageFault.because(f"{name} cannot stand after itself")
        order.insert(order.index(behind) + 1, index)
    else:
        order.insert(0, index)
    for place, each in enumerate(order):
        builder.keep(each)
        if place != each and builder.rows[-1].state != "refused":
            said = (*builder.rows[-1].said, f"now {place + 1} of {len(order)}")
            builder.rows[-1] = replace(builder.rows[-1], said=said)
    _notes(builder)
    return seal(builder)


def rename(standing: Standing, name: str, to: str) -> Ready:
    """The series with a patch under another name; its proof goes with it."""
    builder = _builder(standing)
    index = standing.index(name)
    old, new = standing.names[index], patch_name(to)
    proofs: Mapping[str, File | None] = {}
    file = standing.series.file
    if new != old:
        require_free(new, standing.names)
        folder = standing.project.series_folder(standing.pin.name)
        found = proof_files(folder, old)
        proofs = renamed(found, folder, old, new)
        for path in (new, *(p for p, f in proofs.items() if f is not None and p not in found)):
            _require_unused(folder.joinpath(path).exists(), path)
        file = rename_entry(file, old, new)
    for each in range(len(standing.names)):
        builder.keep(each, name=new if each == index else None)
    _notes(builder)
    return seal(builder, proofs=proofs, file=file)


def _builder(standing: Standing) -> Builder:
    builder = Builder(standing.whole(), ADVICE)
    builder.find(unsealed(standing))
    return builder


def _notes(builder: Builder) -> None:
    builder.find(f for f in builder.standing.series.findings if f.note)


def _require_unused(exists: bool, name: str) -> None:
    if exists:
        raise Refused(
            Finding(
                "target-exists",
                f"{name} exists already: nothing is overwritten",
                Where(file=name),
                expected="no file of that name",
                next="choose another name, or move that file away",
            )
        )
