"""Small installed packages, as pip, uv or conda would leave them, and series for them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from patchkit.engine.chain import Step, apply_chain
from patchkit.engine.model import EXECUTABLE, File, MemoryTree
from patchkit.engine.parse import parse
from patchkit.engine.rule import EXACT
from patchkit.series.lockfile import Blob, Chain, Lock, LockedPin, chain_of
from patchkit.series.writer import write_diff
from patchkit.target.installed_packet import Packet
from patchkit.target.record_csv import digest_of

COMMIT = "c0ffee" + "0" * 34


def numbered(count: int, **other: str) -> bytes:
    """`count` lines; `l7="x"` makes line 7 another one."""
    lines = [f"line {n}" for n in range(1, count + 1)]
    for key, text in other.items():
        lines[int(key[1:]) - 1] = text
    return ("\n".join(lines) + "\n").encode()


BASE: dict[str, bytes] = {
    "engine/__init__.py": b"__version__ = '1.0'\n",
    "engine/_version.py": b"commit_id = 'gc0ffee0'\n",
    "engine/a.py": numbered(60),
    "engine/b.py": numbered(40),
    "engine/old.py": numbered(5),
    "engine/sub/c.py": numbered(30),
    "engine/data/table.json": b"{}\n",
    "engine/_C.abi3.so": b"\x7fELF native",
}


class Site:
    """A site folder with distributions in it."""

    def __init__(self, at: Path) -> None:
        self.at = at
        at.mkdir(parents=True, exist_ok=True)

    @property
    def sites(self) -> tuple[str, ...]:
        return (os.path.realpath(self.at),)

    def install(
        self,
        files: Mapping[str, bytes] = BASE,
        name: str = "engine",
        version: str = "1.0",
        *,
        end: str = "\r\n",
        installer: str = "pip",
        more: Sequence[str] = (),
    ) -> Path:
        """The dist-info folder of what was installed. more: further RECORD rows, as written."""
        info = f"{name}-{version}.dist-info"
        own = {
            **files,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            "Summary: x\n\nVersion: no\n".encode(),
            f"{info}/INSTALLER": f"{installer}\n".encode(),
        }
        rows = [f"{quoted(p)},{digest_of(d)},{len(d)}" for p, d in own.items()]
        rows = sorted([*rows, f"{info}/RECORD,,", *more])
        for path, data in own.items():
            (self.at / path).parent.mkdir(parents=True, exist_ok=True)
            (self.at / path).write_bytes(data)
            (self.at / path).chmod(0o755 if path.endswith(".so") else 0o644)
        (self.at / info / "RECORD").write_bytes("".join(r + end for r in rows).encode())
        return self.at / info

    def look(self) -> dict[str, tuple[int, bytes]]:
        """Every file but bytecode: bits and bytes."""
        out = {}
        for path in sorted(self.at.rglob("*")):
            name = path.relative_to(self.at).as_posix()
            if path.is_file() and "__pycache__" not in name:
                out[name] = (path.stat().st_mode & 0o7777, path.read_bytes())
            elif path.is_dir() and path.name != "__pycache__":
                out[name + "/"] = (path.stat().st_mode & 0o7777, b"")
        return out

    def digests(self, info: str = "engine-1.0.dist-info") -> dict[str, str]:
        """RECORD as a table."""
        lines = (self.at / info / "RECORD").read_text().splitlines()
        return {line.split(",")[0]: line.partition(",")[2] for line in lines}


def quoted(path: str) -> str:
    """A path as csv writes it."""
    return '"' + path.replace('"', '""') + '"' if set(path) & set(',"') else path


class Series:
    """Patches on a tree, each with an optional guard; gives packets and patch files."""

    def __init__(self, base: Mapping[str, bytes] = BASE, root: str = "") -> None:
        lead = f"{root}/" if root else ""
        files = {lead + p: File(d) for p, d in base.items()}
        so = f"{lead}engine/_C.abi3.so"
        if so in files:
            files[so] = File(files[so].data, EXECUTABLE)
        self.base = MemoryTree(files)
        self.root = root
        self.whole = self.base
        self.rows: list[tuple[str, bytes, str | None]] = []

    def add(
        self, name: str, changes: Mapping[str, bytes | File | None], guard: str | None = None
    ) -> Series:
        """A patch that makes `changes` of what stands after the patches before it."""
        files = {p: d if d is None or isinstance(d, File) else File(d) for p, d in changes.items()}
        diff = write_diff(self.whole, files)
        head = f"From: A <a@example.org>\nSubject: {name}\n\n---\n".encode()
        self.rows.append((name, head + diff, guard))
        self.whole = self.whole.with_changes(files)
        return self

    def steps(self, guards: Sequence[str] | None) -> tuple[Step, ...]:
        return tuple(
            Step(parse(data, name), 1, selected=guards is None or guard is None or guard in guards)
            for name, data, guard in self.rows
        )

    def chain(self, guards: Sequence[str] | None) -> Chain:
        steps = self.steps(guards)
        done = apply_chain(self.base, steps, EXACT)
        assert done.ok, done.findings
        taken = [o for o, s in zip(done.outcomes, steps, strict=True) if s.selected]
        paths = {p for o in taken for p in o.changes}
        base = {p: blob(self.base.get(p)) for p in paths}
        changes = [{p: blob(f) for p, f in o.changes.items()} for o in taken]
        return chain_of([o.patch.name for o in taken], {}, base, changes)

    def lock(self, stacks: Mapping[str, Sequence[str]], pin: str = "v1.0") -> Lock:
        return Lock(
            LockedPin(pin, "engine", COMMIT),
            hashlib.sha256(b"entries").hexdigest(),
            tuple((n, hashlib.sha256(d).hexdigest()) for n, d, _ in self.rows),
            {},
            self.chain(None),
            {name: self.chain(guards) for name, guards in stacks.items()},
        )

    def packet(
        self,
        stack: str | None = "default",
        stacks: Mapping[str, Sequence[str]] | None = None,
        *,
        exclude: tuple[str, ...] = (),
        dist: str = "engine",
        version: str = "1.0",
    ) -> Packet:
        table = {"default": (), **(stacks or {})}
        guards = None if stack is None else table[stack]
        lock = self.lock(table)
        return Packet(dist, dist, self.root, version, stack, lock, self.steps(guards), exclude)

    def loose(self, *names: str) -> list[Step]:
        """The patches as files that somebody gave."""
        return [Step(parse(d, n), None) for n, d, _ in self.rows if not names or n in names]


def blob(file: File | None) -> Blob | None:
    return Blob(file.mode, file.oid) if file is not None else None


def two_patches() -> Series:
    """edit.patch (a.py, sub/c.py) and files.patch (a new module, a deleted one)."""
    return (
        Series()
        .add(
            "edit.patch",
            {
                "engine/a.py": numbered(60, l10="ten", l50="fifty"),
                "engine/sub/c.py": numbered(30, l3="three\nand more"),
            },
        )
        .add(
            "files.patch",
            {
                "engine/new/module.py": b"print('new')\n",
                "engine/old.py": None,
                "engine/a.py": numbered(60, l10="ten", l30="thirty", l50="fifty"),
            },
        )
    )
