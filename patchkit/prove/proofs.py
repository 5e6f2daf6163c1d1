"""Which proof belongs to which patch, and what its digest covers."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from patchkit.derive.project import Project
from patchkit.series.folder import PROOFS, Series


@dataclass(frozen=True)
class Proof:
    """A proof: the patch it is of, its module, its mutants, and the digest of all it is made of.

    sha256 covers the module and every module of the folder that it imports, directly or not.
    """

    patch: str
    module: Path
    mutants: tuple[Path, ...]
    sha256: str


def stem(patch: str) -> str:
    """The patch's name without its folder and ending."""
    return Path(patch).name.removesuffix(".patch").removesuffix(".diff")


def module_name(patch: str) -> str:
    """File name of the proof of `patch`."""
    return f"test_{stem(patch).replace('-', '_').replace('.', '_')}.py"


def find_proof(series_folder: Path, patch: str) -> Proof | None:
    """The proof of `patch`; None where it has none."""
    folder = series_folder / PROOFS
    module = folder / module_name(patch)
    if not module.is_file():
        return None
    mutants = tuple(sorted((folder / f"{stem(patch)}.mutants").glob("*.diff")))
    return Proof(patch, module, mutants, _digest(folder, module))


def proofs_of(project: Project, pin: str, series: Series) -> dict[str, Proof]:
    """The proof of every patch of `pin` that has one: its own, or that of the patch it was
    rebased from (header `Rebased-From: PIN/PATCH`), however far back."""
    found = {}
    for entry, header in zip(series.entries, series.headers, strict=True):
        proof = find_proof(project.series_folder(pin), entry.patch)
        if proof is None:
            proof = _inherited(project, header.first("Rebased-From"), {pin})
        if proof is not None:
            found[entry.patch] = replace(proof, patch=entry.patch)
    return found


def _inherited(project: Project, origin: str, seen: set[str]) -> Proof | None:
    pin, _, patch = origin.partition("/")
    if not patch or pin in seen or pin not in project.pins.pins:
        return None
    proof = find_proof(project.series_folder(pin), patch)
    if proof is not None:
        return proof
    if not project.has_series(pin):
        return None
    series = project.series(pin, strict=False)
    for entry, header in zip(series.entries, series.headers, strict=True):
        if entry.patch == patch:
            return _inherited(project, header.first("Rebased-From"), {*seen, pin})
    return None


def _digest(folder: Path, module: Path) -> str:
    seen: dict[str, bytes] = {}
    todo = [module]
    while todo:
        path = todo.pop()
        if path.name in seen:
            continue
        data = path.read_bytes()
        seen[path.name] = data
        for name in _imports(data):
            helper = folder / f"{name}.py"
            if helper.is_file():
                todo.append(helper)
        # Helpers that a proof runs as programs are named in a string, not imported.
        for helper in folder.glob("_*.py"):
            if helper.name.encode() in data or helper.stem.encode() in data:
                todo.append(helper)
    total = hashlib.sha256()
    for name in sorted(seen):
        total.update(f"{name}\0{hashlib.sha256(seen[name]).hexdigest()}\n".encode())
    return total.hexdigest()


def _imports(data: bytes) -> set[str]:
    try:
        tree = ast.parse(data)
    except SyntaxError:
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names
