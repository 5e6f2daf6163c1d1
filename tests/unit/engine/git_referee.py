"""git as a referee: trees into a scratch repository, diffs out of it, `git apply` as judge."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hypothesis import strategies as st

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, path_text
from patchkit.engine.paths import unsafe

Files = Mapping[bytes, tuple[int, bytes]]
"""path -> (git mode, content)"""


class Git:
    """A repository in `home`, out of reach of any configuration."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.repo = home / "repo.git"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CEILING_DIRECTORIES": str(home.parent),
            "LC_ALL": "C",
        }
        self.run("init", "-q", "--bare", str(self.repo))
        self.count = 0

    def run(
        self, *args: str, stdin: bytes = b"", ok: Sequence[int] = (0,), cwd: Path | None = None
    ) -> bytes:
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.home,
            env=self.env,
            input=stdin,
            capture_output=True,
            check=False,
        )
        if done.returncode not in ok:
            raise RuntimeError(f"git {args}: {done.returncode}: {done.stderr!r}")
        return done.stdout

    def trees(self, *all_files: Files) -> list[str]:
        """Names of one branch a tree, each holding exactly these files."""
        out: list[bytes] = []
        names = []
        for files in all_files:
            self.count += 1
            name = f"refs/heads/t{self.count}"
            names.append(name)
            out.append(b"commit %s\ncommitter a <a> 0 +0000\ndata 0\n" % name.encode())
            for path, (mode, data) in files.items():
                out.append(b"M %o inline %s\n" % (mode, _quoted(path)))
                out.append(b"data %d\n" % len(data) + data + b"\n")
        stdin = b"".join(out)
        self.run("--git-dir", str(self.repo), "fast-import", "--quiet", "--force", stdin=stdin)
        return names

    def diff(self, old: str, new: str, *options: str, config: Sequence[str] = ()) -> bytes:
        settings = [word for c in config for word in ("-c", c)]
        where = ("--git-dir", str(self.repo))
        return self.run(*where, *settings, "diff", *options, old, new)

    def numstat(self, patch: bytes, strip: int = 1) -> list[tuple[int, int, bytes]] | None:
        """(added, deleted, path) of each file as `git apply` reads it; None where it refuses."""
        done = subprocess.run(
            ["git", "apply", "--numstat", "-z", f"-p{strip}", "-"],
            cwd=self.home,
            env=self.env,
            input=patch,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            return None
        rows = []
        for row in done.stdout.split(b"\0")[:-1]:
            added, deleted, path = row.split(b"\t", 2)
            rows.append((int(added.replace(b"-", b"0")), int(deleted.replace(b"-", b"0")), path))
        return rows


def _quoted(path: bytes) -> bytes:
    plain = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return (
        b'"'
        + b"".join(bytes((byte,)) if 32 <= byte < 127 else b"\\%03o" % byte for byte in plain)
        + b'"'
    )


OPTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("-U1",),
    ("-U10",),
    ("--full-index",),
    ("--abbrev=4",),
    ("-M",),
    ("-M", "-C", "--find-copies-harder"),
    ("--no-renames",),
    ("-B", "-M"),
    ("--patience",),
    ("--histogram", "--indent-heuristic"),
    ("--minimal", "--no-indent-heuristic"),
    ("-W",),
    ("--inter-hunk-context=4",),
    ("-R",),
    ("--text",),
    ("--stat", "-p"),
    ("--summary", "-p", "-M"),
    ("--raw", "-p"),
    ("--src-prefix=old/", "--dst-prefix=new/"),
    ("--no-prefix",),
)
"""Option sets of `git diff` whose output `git apply` is made to read."""

CONFIG: tuple[tuple[str, ...], ...] = (
    (),
    ("core.quotePath=false",),
    ("diff.mnemonicPrefix=true",),
    ("diff.noprefix=true",),
    ("diff.suppressBlankEmpty=true",),
)

_NAMES = """a.py|b.py|two words.py| b|q"uote|back\\slash|tab\there|café|\x1b[2J|x b|a|dev|null|-x
--- y|trailing |dot.|1970-01-01|\u2028.txt|{a => b}|x 2031-01-01 00:00:01 +0100"""
_NAME = st.one_of(
    st.sampled_from(
        [b"caf\xe9", *(n.encode() for line in _NAMES.split("\n") for n in line.split("|"))]
    ),
    st.binary(min_size=1, max_size=6).filter(
        lambda b: not any(c in b for c in b"\0\n/") and b not in (b".", b"..")
    ),
)
PATH = st.lists(_NAME, min_size=1, max_size=3).map(b"/".join)

_LINES = """|a|b|    return x|\tindent|-- |--|- item|+ plus| lead|def f():|päth \u2028|2.43.0
@@ -1,2 +1,2 @@|diff --git a/x b/x|--- a/x|+++ b/x|\\ No newline|-- a/x|++ b/x|From 1234567 Mon
crlf\r|\r|cr\rinside|ff\x0cinside|Binary files x differ|GIT binary patch|index 1..2|@@"""
LINE = st.sampled_from(
    [b"\xff\xfe", b"x" * 90, *(n.encode() for n in _LINES.replace("\n", "|").split("|"))]
)
LINES = st.lists(LINE, max_size=30)


@st.composite
def content(draw: st.DrawFn) -> bytes:
    data = b"".join(line + b"\n" for line in draw(LINES))
    if data and draw(st.booleans()):
        data = data[:-1]
    return data


@st.composite
def edited(draw: st.DrawFn, data: bytes) -> bytes:
    """`data` with a few lines taken out, put in or changed."""
    lines = data.split(b"\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines)))
        lines[at : at + draw(st.integers(0, 3))] = draw(st.lists(LINE, max_size=3))
    return b"\n".join(lines)


_STEP = st.sampled_from(["edit", "edit", "keep", "mode", "add", "delete", "move", "copy", "link"])


@st.composite
def two_trees(draw: st.DrawFn) -> tuple[dict[bytes, tuple[int, bytes]], ...]:
    """A tree and a later one: files edited, added, deleted, moved, copied, their modes changed."""
    old: dict[bytes, tuple[int, bytes]] = {}
    new: dict[bytes, tuple[int, bytes]] = {}
    mode = st.sampled_from([REGULAR, REGULAR, EXECUTABLE])
    for path in draw(st.lists(PATH, min_size=1, max_size=5, unique=True)):
        data = (draw(mode), draw(content()))
        step = draw(
            st.sampled_from(
                ["edit", "edit", "keep", "mode", "add", "delete", "move", "copy", "link"]
            )
        )
        if step != "add":
            put(old, path, data)
        if step == "edit":
            put(new, path, (data[0], draw(edited(data[1]))))
        elif step == "mode":
            put(new, path, (draw(mode), data[1]))
        elif step in ("keep", "add"):
            put(new, path, data)
        elif step == "link":
            put(new, path, (SYMLINK, draw(_NAME)))
        elif step in ("move", "copy"):
            if step == "copy":
                put(new, path, data)
            put(
                new, path + b".moved", (data[0], draw(st.one_of(st.just(data[1]), edited(data[1]))))
            )
    return old, new


def put(files: dict[bytes, tuple[int, bytes]], path: bytes, data: tuple[int, bytes]) -> None:
    """Add a file unless its path is a folder, or lies below a file, or is refused by name."""
    parts = path.split(b"/")
    above = {b"/".join(parts[:n]) for n in range(1, len(parts))}
    taken = any(p.startswith(path + b"/") for p in files)
    if not taken and not above & set(files) and not unsafe(path_text(path)):
        files[path] = data
