"""The acceptance cases as objects: base trees, patches, and what must come out.

The format is described in `data/README.md`; how a tree is laid out, read back and compared
is `data/verify.py`'s own code, so that the cases and their proof cannot part ways.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import tomllib

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, File, MemoryTree, path_text
from patchkit.errors import Finding

DATA = Path(__file__).resolve().parent / "data"

Snapshot = dict[bytes, tuple[str, str]]
"""path -> (git mode, sha256 of the bytes or of the link's target)"""


@cache
def verify() -> ModuleType:
    """The module `data/verify.py`."""
    spec = importlib.util.spec_from_file_location("cases_verify", DATA / "verify.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def snapshot(root: Path, skip: tuple[bytes, ...] = (b".git", b".pc")) -> Snapshot:
    """What stands below `root`; the names in `skip` are left out at the top."""
    found: Snapshot = verify().snapshot(root, skip)
    return found


@dataclass(frozen=True)
class Step:
    """One patch of a case, as a series would name it."""

    name: str
    data: bytes
    strip: int | None
    reverse: bool = False


@dataclass(frozen=True)
class Case:
    """One folder of `data/`."""

    folder: Path
    expect: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The folder's name without its number."""
        return self.folder.name.partition("-")[2]

    @property
    def verdict(self) -> str:
        """applied, refused, already-applied or usage-error."""
        return str(self.expect["verdict"])

    @property
    def reason(self) -> str:
        """The finding's name, or "" where there is nothing to report."""
        return str(self.expect.get("reason", ""))

    @property
    def words(self) -> tuple[str, ...]:
        """What the output must hold, whatever the verdict."""
        suggested = self.expect.get("suggest")
        return (*self.expect.get("explain", ()), *([suggested] if suggested else ()))

    @property
    def is_series(self) -> bool:
        """Whether the patches come by a series file."""
        return (self.folder / "series").is_file()

    @property
    def installed(self) -> bool:
        """Whether the target is an installed package."""
        return self.expect.get("target") == "installed"

    @property
    def allow(self) -> tuple[str, ...]:
        """What the patch allows by name (fuzz=1, line-endings=target)."""
        return tuple(self.expect.get("allow", ()))

    @property
    def generated(self) -> bool:
        """Whether base and patch are large and come from generate.py."""
        return "generate" in self.expect

    @cached_property
    def source(self) -> Path:
        """The folder that holds base/ and the patches: the case's own, or a generated one."""
        return _generate(self) if self.generated else self.folder

    def patch_files(self) -> list[tuple[str, bytes]]:
        """Every patch file beside the case, by path; the proof is not one of them."""
        found = sorted(p for p in self.source.rglob("*.patch") if p.name != "proof.patch")
        return [(p.relative_to(self.source).as_posix(), p.read_bytes()) for p in found]

    def steps(self) -> list[Step]:
        """The patches in the order of the case; those that do not exist are left out."""
        if "order" not in self.expect:
            data = (self.source / "input.patch").read_bytes()
            return [Step("input.patch", data, self.expect.get("strip"))]
        return [
            Step(
                entry["patch"],
                (self.source / entry["patch"]).read_bytes(),
                entry.get("strip", 1),
                entry.get("reverse", False),
            )
            for entry in self.expect["order"]
            if (self.source / entry["patch"]).is_file()
        ]

    def lay_out(self, dest: Path) -> Path:
        """The base tree in the folder `dest`, which is made."""
        verify().materialise(self.source, self.expect, dest)
        return dest

    def expected(self, base: Snapshot) -> Snapshot:
        """The tree after, from a snapshot of the base."""
        found: Snapshot = verify().expected(self.expect, base)
        return found

    def tree(self) -> MemoryTree:
        """The base tree in memory; folders without a file are not in it."""
        files: dict[str, File] = {}
        base = self.source / "base"
        for path in sorted(base.rglob("*")) if base.is_dir() else []:
            if path.is_file() and path.name != ".keep":
                name = path.relative_to(base).as_posix()
                files[name] = File(path.read_bytes())
        for entry in self.expect.get("make", ()):
            name = path_text(verify().path_bytes(entry["path"]))
            if "symlink" in entry:
                files[name] = File(os.fsencode(entry["symlink"]), SYMLINK)
            elif not entry.get("dir"):
                old = files.get(name, File(b""))
                mode = EXECUTABLE if entry.get("mode") == "100755" else REGULAR
                data = old.data
                if "text" in entry or "hex" in entry:
                    text = entry.get("text")
                    data = bytes.fromhex(entry["hex"]) if text is None else text.encode()
                files[name] = File(data, mode)
        return MemoryTree(files)


def tree_snapshot(tree: MemoryTree) -> Snapshot:
    """A tree in memory in the form of `snapshot`."""
    return {
        name.encode("utf-8", "surrogateescape"): (
            f"{file.mode:o}",
            hashlib.sha256(file.data).hexdigest(),
        )
        for name, file in tree.files.items()
    }


@cache
def load_cases() -> tuple[Case, ...]:
    """All cases, by number."""
    found = []
    for path in sorted(DATA.glob("*/expect.toml")):
        with open(path, "rb") as handle:
            found.append(Case(path.parent, tomllib.load(handle)))
    return tuple(found)


def pending() -> tuple[str, ...]:
    """Names of the cases that need an installed target or a permission."""
    return tuple(c.name for c in load_cases() if c.installed or c.allow)


def said(findings: Iterable[Finding]) -> str:
    """Everything that findings say, for a search for words: as plain as it can be printed."""
    parts: list[str] = []
    for f in findings:
        where = (f.where.patch, f.where.file, f.where.hunk, f.where.line, f.where.patch_line)
        parts += [f.name, f.message, *(str(w) for w in where if w is not None)]
        parts += [f.expected, f.found, f.next, *f.details]
    return "\n".join(parts)


@cache
def _generated_root() -> Path:
    import atexit
    import shutil
    import tempfile

    root = Path(tempfile.mkdtemp(prefix="patchkit-cases-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


def _generate(case: Case) -> Path:
    dest = _generated_root() / case.folder.name
    if not dest.exists():
        script = case.folder / str(case.expect["generate"])
        subprocess.run([sys.executable, str(script), str(dest)], check=True, timeout=120)
    return dest
