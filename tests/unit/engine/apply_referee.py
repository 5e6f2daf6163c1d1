"""`git apply` as the judge of what holds: the same patch on the same tree, with the same result."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from patchkit.engine.model import EXECUTABLE, REGULAR, File, MemoryTree, path_text
from tests.unit.engine.git_referee import LINE, Files, Git, edited, put

Ids = dict[str, tuple[int, str]]
"""path -> (mode, blob id)"""


@dataclass(frozen=True)
class Judgement:
    """What git made of a patch. holds: it applied; moved: some hunk not at its stated line;
    tree: the tree after; said: what git printed.
    """

    holds: bool
    moved: bool
    tree: Ids | None
    said: str


def judge(git: Git, ref: str, patch: bytes, strip: int, *, reverse: bool = False) -> Judgement:
    """Apply `patch` (reverse: take it out) to the tree of `ref` in an index of its own."""
    index = git.home / "index"
    index.unlink(missing_ok=True)
    env = {**git.env, "GIT_INDEX_FILE": str(index), "GIT_DIR": str(git.repo)}
    _run(env, git.home, b"", "read-tree", ref)
    options = ["--cached", "-v", "--whitespace=nowarn", f"-p{strip}"]
    options += ["-R"] if reverse else []
    done = _run(env, git.home, patch, "apply", *options, "-", ok=False)
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        return Judgement(False, False, None, said)
    listed = _run(env, git.home, b"", "ls-files", "-s", "-z").stdout
    tree: Ids = {}
    for row in listed.split(b"\0")[:-1]:
        meta, path = row.split(b"\t", 1)
        mode, blob, _ = meta.split()
        tree[path_text(path)] = (int(mode, 8), blob.decode())
    return Judgement(True, "(offset " in said, tree, said)


def ids(tree: MemoryTree) -> Ids:
    """A tree of ours in the same form."""
    return {path: (file.mode, file.oid) for path, file in tree.files.items()}


def _run(
    env: dict[str, str], cwd: Path, stdin: bytes, *args: str, ok: bool = True
) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        ["git", *args], cwd=cwd, env=env, input=stdin, capture_output=True, check=False
    )
    if ok and done.returncode:
        raise RuntimeError(f"git {args}: {done.stderr!r}")
    return done


def memory(files: Files) -> MemoryTree:
    """The same files as a tree of ours."""
    return MemoryTree({path_text(p): File(data, mode) for p, (mode, data) in files.items()})


@st.composite
def drifted(draw: st.DrawFn, files: Files) -> dict[bytes, tuple[int, bytes]]:
    """The tree as somebody else has it: lines put in, taken out, files missing, modes changed."""
    out: dict[bytes, tuple[int, bytes]] = {}
    for path, (mode, data) in files.items():
        step = draw(st.sampled_from(["keep", "keep", "top", "edit", "mode", "gone", "folder"]))
        if step == "top":
            lines = draw(st.lists(LINE, min_size=1, max_size=4))
            put(out, path, (mode, b"".join(line + b"\n" for line in lines) + data))
        elif step == "edit":
            put(out, path, (mode, draw(edited(data))))
        elif step == "mode" and mode in (REGULAR, EXECUTABLE):
            put(out, path, (EXECUTABLE if mode == REGULAR else REGULAR, data))
        elif step == "folder":
            put(out, path + b"/x", (REGULAR, b"x\n"))
        elif step == "keep":
            put(out, path, (mode, data))
    return out


@st.composite
def long_trees(draw: st.DrawFn) -> tuple[dict[bytes, tuple[int, bytes]], ...]:
    """A tree, a later one, and the first one as somebody else has it: files of some length with
    many lines alike, so that hunks stand away from the ends, move, and find look-alikes.
    """
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    old: dict[bytes, tuple[int, bytes]] = {}
    new: dict[bytes, tuple[int, bytes]] = {}
    other: dict[bytes, tuple[int, bytes]] = {}
    words = [b"row %d" % n for n in range(rng.choice([4, 12, 400]))]
    for name in rng.sample([b"a.py", b"b/c.py", b"b/d.py", b"e"], rng.randint(1, 3)):
        lines = [rng.choice(words) for _ in range(rng.randint(10, 60))]
        old[name] = (REGULAR, b"\n".join(lines) + b"\n" * rng.randint(0, 1))
        new[name] = (REGULAR, _stirred(rng, old[name][1], words, rng.randint(1, 4)))
        drift = rng.choice([0, 0, 1, 1, 3])
        other[name] = (REGULAR, _stirred(rng, old[name][1], words, drift))
    return old, new, other


def _stirred(rng: random.Random, data: bytes, words: list[bytes], times: int) -> bytes:
    lines = data.split(b"\n")
    for _ in range(times):
        at = rng.randrange(len(lines))
        put_in = [rng.choice([*words, b"new %d" % rng.randrange(9)])] * rng.randint(0, 3)
        lines[at : at + rng.randint(0, 2)] = put_in
    return b"\n".join(lines)
