"""Native sources compiled with the commands of the build itself, one tree after the other.

`patchkit build --how cuda --configure-only` leaves a build folder with CMake's list of commands
and with everything that they need: generated headers, other projects' sources, the toolkit. Here
the native files of a tree take their place in it, for as long as they are compiled.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from patchkit.engine.model import GITLINK, blob_id
from patchkit.errors import PatchkitError
from patchkit.files.atomic import read_file
from patchkit.files.lock import locked
from patchkit.files.root import Root
from patchkit.store.repo import Store
from patchkit.upstreams import Known
from patchkit.upstreams.building import CONFIGURED, recipe

TREE = "tree"
SECONDS = 3600
_LIMIT = 1 << 30
_DROPPED = {"-o": 2, "-gencode": 2, "-MF": 2, "-MT": 2, "-MD": 1, "-O2": 1, "-O3": 1}
"""Words of a command that are left out, with what follows them. Without -O the code of the host is
not optimised, which takes minutes and tells nothing; nvcc's default for the GPU stays 3."""


@dataclass(frozen=True)
class Configured:
    """A configured build folder. tree: id of the tree that it was configured for. commands: path
    in the tree -> the words of its command, and the folder that it runs in."""

    at: str
    tree: str
    commands: Mapping[str, tuple[tuple[str, ...], str]]


def here(known: Known, store: Store) -> Configured | None:
    """What is configured on this machine; None where nothing is, or for no GPU, or a tree that
    the store does not know."""
    at = recipe(known.kind).at
    try:
        facts = json.loads(read_file(os.path.join(at, CONFIGURED)))
        if facts["device"] != "cuda" or not store.has(facts["tree"]):
            return None
        rows = json.loads(read_file(facts["commands"], _LIMIT))
        lead = os.path.join(at, TREE) + os.sep
        commands = {
            row["file"].removeprefix(lead): (tuple(shlex.split(row["command"])), row["directory"])
            for row in rows
            if row["file"].startswith(lead)
        }
        return Configured(at, facts["tree"], commands)
    except (PatchkitError, ValueError, KeyError, TypeError):
        return None


def sources_of(made: Configured, paths: Sequence[str]) -> dict[str, str]:
    """Path -> the source whose command compiles it: itself, or for a header the smallest source
    beside it that includes it. What nothing compiles is left out."""
    out = {}
    for path in paths:
        if path in made.commands:
            out[path] = path
        elif path.endswith((".h", ".hpp", ".cuh", ".inl")):
            there = [s for s in _including(made, path) if s in made.commands]
            if there:
                at = os.path.join(made.at, TREE)
                out[path] = min(there, key=lambda s: (os.path.getsize(os.path.join(at, s)), s))
    return out


def _including(made: Configured, path: str) -> Iterator[str]:
    folder, _, name = path.rpartition("/")
    word = re.compile(rb'#\s*include\s*"(?:[^"]*/)?' + re.escape(name.encode()) + rb'"')
    for source in made.commands:
        if source.rpartition("/")[0] == folder:
            full = os.path.join(made.at, TREE, source)
            if os.path.isfile(full) and word.search(read_file(full)):
                yield source


def compiled(
    made: Configured, known: Known, store: Store, tree: str, sources: Sequence[str], archs: str
) -> dict[str, str]:
    """Source -> "" or the first error, with the native files of the tree.

    archs: nvcc's capabilities (80 90) in place of the command's own.
    """
    with locked(f"{made.at}.lock", wait=600), _laid(made, known, store, tree):
        return {source: _compile(made, source, archs) for source in sources}


@contextmanager
def _laid(made: Configured, known: Known, store: Store, tree: str) -> Iterator[None]:
    """The native files of the tree in the build folder; afterwards what stood there."""
    try:
        _put(made, known, store, tree)
        yield
    finally:
        _put(made, known, store, made.tree)


def _put(made: Configured, known: Known, store: Store, tree: str) -> None:
    """Make the native files on disk those of the tree, whatever a killed run left there; what
    CMake made stays."""
    root, there = Root(os.path.join(made.at, TREE)), store.tree(tree)
    wanted = {f.path: f for f in there.walk() if known.native(f.path)}
    for listed in store.tree(made.tree).walk():
        if known.native(listed.path) and listed.path not in wanted:
            root.remove(listed.path, empty_folders=False)
    for path, listed in wanted.items():
        found = root.get(path)
        if found is None or (blob_id(found.data), found.mode) != (listed.oid, listed.mode):
            file = there.get(path)
            if file is not None and listed.mode != GITLINK:
                root.put(path, file, sync=False)


def _compile(made: Configured, source: str, archs: str) -> str:
    words, folder = made.commands[source]
    if not os.path.isfile(os.path.join(made.at, TREE, source)):
        return "there is no such file"
    line = _without(words)
    if os.path.basename(words[0]) == "nvcc":
        for arch in archs.split():
            line += ["-gencode", f"arch=compute_{arch},code=sm_{arch}"]
    with tempfile.TemporaryDirectory(prefix="patchkit-object-") as scratch:
        line += ["-o", os.path.join(scratch, "object")]
        env = {"PATH": os.environ.get("PATH", ""), "TMPDIR": scratch, "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(
                line,
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0:
        return ""
    lead = os.path.join(made.at, TREE) + os.sep
    said = (done.stderr + done.stdout).replace(lead, "").splitlines()
    return next((row for row in said if "error" in row), said[-1] if said else "no reason")


def _without(words: Sequence[str]) -> list[str]:
    out: list[str] = []
    skip = 0
    for word in words:
        skip = skip or _DROPPED.get(word, 0)
        if skip:
            skip -= 1
        else:
            out.append(word)
    return out
