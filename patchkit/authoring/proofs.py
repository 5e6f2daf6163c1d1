"""The files of a patch's proof, which go where the patch goes: its test module, its mutants, the
reasons for hunks that it does not prove, and what was recorded of it on a GPU."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from patchkit.derive.proofs import proof_module
from patchkit.derive.records import RESULTS, renamed_record
from patchkit.engine.model import File
from patchkit.files.root import Root
from patchkit.series.folder import PROOFS


def module_of(patch: str) -> str:
    """Path of a patch's proof below the series folder."""
    return f"{PROOFS}/{proof_module(patch)}"


def mutants_of(patch: str) -> str:
    """Folder of a patch's mutants below the series folder."""
    return f"{PROOFS}/{_stem(patch)}.mutants"


def unproven_of(patch: str) -> str:
    """Path of the reasons for hunks that are not proven, below the series folder."""
    return f"{PROOFS}/{_stem(patch)}.unproven"


def recorded_of(patch: str) -> str:
    """What the paths of a patch's records begin with, below the series folder: the record itself
    ends in "json", a trace beside it in more."""
    return f"{PROOFS}/{RESULTS}/{_stem(patch)}."


def _stem(patch: str) -> str:
    return os.path.basename(patch).removesuffix(".patch").removesuffix(".diff")


def proof_files(folder: str | os.PathLike[str], patch: str) -> dict[str, File]:
    """Every file of the proof of `patch`, by path below the series folder."""
    root = Root(folder)
    paths = [module_of(patch), unproven_of(patch)]
    if root.is_folder(PROOFS) and root.is_folder(mutants_of(patch)):
        paths += root.walk(mutants_of(patch))
    if root.is_folder(PROOFS) and root.is_folder(f"{PROOFS}/{RESULTS}"):
        recorded = root.walk(f"{PROOFS}/{RESULTS}")
        paths += (path for path in recorded if path.startswith(recorded_of(patch)))
    found = {path: root.get(path) for path in paths}
    return {path: file for path, file in found.items() if file is not None}


def renamed(
    files: dict[str, File], folder: str | os.PathLike[str], patch: str, to: str
) -> dict[str, File | None]:
    """What becomes of the files of a proof when its patch is renamed. folder: of the series."""
    out: dict[str, File | None] = dict.fromkeys(files)
    module = Path(folder, module_of(patch))
    for path, file in files.items():
        if path == module_of(patch):
            out[module_of(to)] = file
        elif path == unproven_of(patch):
            out[unproven_of(to)] = file
        elif path.startswith(recorded_of(patch)):
            kind = path.removeprefix(recorded_of(patch))
            if kind == "json":
                file = replace(file, data=renamed_record(file.data, to, module))
            out[recorded_of(to) + kind] = file
        else:
            out[mutants_of(to) + path.removeprefix(mutants_of(patch))] = file
    return out
