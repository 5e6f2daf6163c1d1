"""A folder that runs proofs on another machine: proofs, trees, a runner, and how to start it."""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from patchkit.derive.proof_text import data_files, files_of, imports_of, kinds
from patchkit.engine.model import EXECUTABLE, REGULAR, File
from patchkit.errors import Finding, Refused, Where
from patchkit.files.publish import publish, take_back
from patchkit.prove.prove import Target
from patchkit.prove.trees import Trees
from patchkit.store.tree import StoreTree

LIMIT = 30_000_000
"""Largest export, bytes."""

INSIDE = Path(__file__).parent / "inside"
_HEAVY = (".js", ".css", ".map", ".jpg", ".png", ".gif", ".svg", ".html")
"""Files of a package that no proof loads."""

RUN = """#!/bin/sh
# Runs the proofs of this folder, each before and after its patch, and writes result.json.
# PYTHON: an interpreter with pytest, torch for the GPU, and: {imports}
# Sources of kernels are built by the proofs that need them, with nvcc on PATH:
{build}
exec "${{PYTHON:-python3}}" "$(dirname "$0")/pk_run.py" "$@"
"""


def export(trees: Trees, targets: Sequence[Target], pin: str, folder: str) -> tuple[str, ...]:
    """Write the folder; the patches whose proofs it holds.

    A target's `after` is the tree directly after its patch: what stands later in the series
    has no part in the result. Raises Refused where the folder exists already, where no target
    has a test for a GPU, or where it would be larger than LIMIT.
    """
    wanted = [t for t in targets if "gpu" in kinds(t.proof.module)]
    if not wanted:
        names = ", ".join(t.proof.patch for t in targets) or "none"
        raise _refused("no proof has a test for a GPU", "a test marked gpu", names)
    take_back(folder)
    if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise _refused("the folder is there already", "a new folder", folder)
    base = trees.base.tree(trees.store)
    native = any(_names_sources(trees, t) for t in wanted)
    archive = _archive(trees, base, native)
    manifest: dict[str, object] = {
        "format": 1,
        "pin": pin,
        "imports": imports_of((t.proof.module for t in wanted), trees.known.package),
    }
    files: dict[str, bytes] = {"base.tar.gz": archive}
    described: dict[str, object] = {}
    for target in wanted:
        described[target.proof.patch] = _describe(trees, base, target, native, files)
    manifest["patches"] = described
    for name in ("pk_run.py", "pk_proofs.py", "pk_watch.py", "sitecustomize.py"):
        files[name] = (INSIDE / name).read_bytes()
    files["manifest.json"] = json.dumps(manifest, indent=1, sort_keys=True).encode("ascii")
    files["run.sh"] = RUN.format(
        imports=", ".join(imports_of((t.proof.module for t in wanted), trees.known.package)),
        build=_build_lines(wanted),
    ).encode("utf-8")
    size = sum(map(len, files.values()))
    if size > LIMIT:
        raise _refused(
            "the export is too large", f"at most {LIMIT:,} bytes", f"{size:,}", "name fewer patches"
        )
    modes = {path: EXECUTABLE if path == "run.sh" else REGULAR for path in files}
    made = {path: File(data, modes[path]) for path, data in files.items()}
    publish(folder, made, "prove --export")
    return tuple(t.proof.patch for t in wanted)


def _refused(message: str, expected: str, found: str, next: str = "name others") -> Refused:
    return Refused(
        Finding("unsupported", message, Where(), expected=expected, found=found, next=next)
    )


def _names_sources(trees: Trees, target: Target) -> bool:
    """Whether the patch changes, or the proof speaks of, what has to be compiled."""
    text = b"".join(files_of(target.proof.module).values())
    return b"csrc/" in text or any(
        trees.known.native(path) for path in _differing(trees, target.before, target.after)
    )


def _differing(trees: Trees, one: str, other: str) -> list[str]:
    old = {f.path: f for f in trees.store.tree(one).walk()}
    new = {f.path: f for f in trees.store.tree(other).walk()}
    return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))


def _takes(trees: Trees, path: str, native: bool) -> bool:
    if path.endswith(_HEAVY):
        return False
    if trees.known.package and not trees.known.outside_package(path):
        return True
    return native and trees.known.native(path)


def _archive(trees: Trees, base: StoreTree, native: bool) -> bytes:
    """The base's needed part, packed: the same bytes each time."""
    listed = [f for f in base.walk() if _takes(trees, f.path, native)]
    base.prefetch(f.path for f in listed)
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        files = [(f.path, base.get(f.path)) for f in listed]
        for path, file in [*files, *trees.base.generated.items()]:
            if file is None or file.mode not in (REGULAR, EXECUTABLE):
                continue
            entry = tarfile.TarInfo(path)
            entry.size = len(file.data)
            entry.mode = file.mode & 0o777
            archive.addfile(entry, io.BytesIO(file.data))
    return packed.getvalue()


def _describe(
    trees: Trees, base: StoreTree, target: Target, native: bool, files: dict[str, bytes]
) -> Mapping[str, object]:
    """What the manifest says of one patch; its proof and what differs go into `files`."""
    module = target.proof.module
    own = {**files_of(module), **data_files(module)}
    files.update({f"proofs/{name}": data for name, data in own.items()})
    removed: dict[str, list[str]] = {}
    for which, oid in (("before", target.before), ("after", target.after)):
        tree = trees.store.tree(oid)
        removed[which] = []
        for path in _differing(trees, trees.base.tree_id, oid):
            if not _takes(trees, path, native):
                continue
            file = tree.get(path)
            if file is not None:
                files[f"over/{oid}/{path}"] = file.data
            elif base.get(path) is not None:
                removed[which].append(path)
    return {
        "module": module.name,
        "proof_sha256": target.proof.sha256,
        "trees": {"before": target.before, "after": target.after},
        "changes": _differing(trees, target.before, target.after),
        "removed": removed,
    }


def _build_lines(targets: Iterable[Target]) -> str:
    """How each helper that compiles says it is used: the indented lines of its docstring."""
    lines: set[str] = set()
    for target in targets:
        for name, data in files_of(target.proof.module).items():
            words = ast.get_docstring(ast.parse(data)) or ""
            if "nvcc" in words and name.startswith("_"):
                lines.update(f"#   {w.strip()}" for w in words.splitlines() if w[:4] == "    ")
    return "\n".join(sorted(lines)) or "#   (none of these)"
