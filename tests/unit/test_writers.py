"""Only `patchkit/files` opens for writing.

Here the source is searched for every way that the library has, and each exception is named with
its reason. `tests/faults` sees the same of every writing verb by an audit hook, which no way of
spelling a call escapes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import patchkit

ROOT = Path(patchkit.__file__).parent

_OS = (
    "chflags chmod chown copy_file_range fchmod fchown fdopen ftruncate lchflags lchmod lchown "
    "link makedirs mkdir mkfifo mknod posix_fallocate pwrite pwritev remove removedirs "
    "removexattr rename renames replace rmdir sendfile setxattr splice symlink truncate unlink "
    "utime write writev system popen execv execve execvp fork forkpty posix_spawn spawnv"
)
_SHUTIL = (
    "chown copy copy2 copyfile copyfileobj copymode copystat copytree make_archive move rmtree "
    "unpack_archive"
)
_METHODS = (
    "chmod extract extractall hardlink_to lchmod mkdir rename rmdir symlink_to touch unlink "
    "write_bytes write_text"
)
OF_OS, OF_SHUTIL = frozenset(_OS.split()), frozenset(_SHUTIL.split())
METHODS = frozenset(_METHODS.split())
"""Of pathlib's paths and of archives, whatever they are called on. (`Path.replace` has one
argument, `str.replace` two or more.)"""
OPEN_FLAGS = frozenset(["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"])
ARCHIVES = frozenset(["ZipFile", "TarFile", "PyZipFile", "GzipFile", "BZ2File", "LZMAFile"])
WHOLE = frozenset(["tempfile", "subprocess", "mmap", "ctypes", "shelve", "dbm", "pickle", "runpy"])
"""Modules each use of which has to be named below."""
GIT_READS = frozenset(
    [
        "cat-file",
        "diff",
        "diff-files",
        "diff-tree",
        "for-each-ref",
        "log",
        "ls-files",
        "ls-remote",
        "ls-tree",
        "merge-base",
        "pack-objects",
        "rev-list",
        "rev-parse",
        "show",
        "var",
        "version",
    ]
)

ALLOWED: dict[str, dict[str, str]] = {
    # file: {call: why it may}
    "cli/streams.py": {
        "os.open": "the null device, where a stream was closed or its reader has gone",
        "os.fdopen": "the handles 1 and 2, which the caller opened",
    },
    "target/bundle_text.py": {"os.open": "the null device, for a reader that has gone"},
    "target/bundle.py": {"zipfile.ZipFile": "in memory; the files layer writes what it gives"},
    "prove/export.py": {
        "gzip.GzipFile": "in memory",
        "tarfile.open": "in memory; the files layer writes what it gives",
    },
    "bring/copied.py": {"os.utime": "times of a copy of our own; opens nothing"},
    # Folders that the system gives, for children that run a proof's or a build's own code.
    "prove/children.py": {
        "subprocess.Popen": "the child itself",
        "tempfile.TemporaryFile": "what a child says, without a name",
        "ctypes.CDLL": "prctl: the child dies with us",
    },
    "prove/compiling.py": {
        "subprocess.run": "compilers",
        "tempfile.TemporaryDirectory": "what they make",
    },
    "prove/configured.py": {
        "subprocess.run": "cmake",
        "tempfile.TemporaryDirectory": "what it makes",
    },
    "prove/nursery.py": {
        "subprocess.Popen": "the child that forks the others",
        "tempfile.TemporaryDirectory": "its socket, and what it says",
        "open": "what it says, in that folder",
    },
    "prove/trials.py": {"tempfile.TemporaryDirectory": "what a trial leaves"},
    "prove/run.py": {"tempfile.TemporaryDirectory": "what a proof leaves"},
    "prove/theirs.py": {"tempfile.TemporaryDirectory": "what upstream's tests leave"},
    "prove/environment.py": {"subprocess.run": "python -c, uv and pip"},
    "prove/trees.py": {"subprocess.run": "python -c: compiles the copied tree"},
    "build/backend.py": {"subprocess.run": "upstream's build backend"},
    "build/environment.py": {"subprocess.run": "venv and pip, into the cache"},
    "build/configure.py": {"subprocess.run": "cmake"},
    "build/crates.py": {"subprocess.run": "cargo"},
    "build/toolkit.py": {"subprocess.run": "gcc: an empty library with the driver's name"},
    "build/machine.py": {"subprocess.run": "asks compilers for their version"},
    "cli/judging.py": {"subprocess.run": "asks an interpreter for pytest"},
    "target/installed_sites.py": {"subprocess.run": "asks an interpreter for its site folder"},
    "target/installed_hints.py": {"subprocess.run": "nvidia-smi", "mmap.mmap": "to read"},
    # git: its object store and repositories are its own.
    "store/git.py": {"subprocess.run": "git, with a scrubbed environment"},
    "store/pipes.py": {"subprocess.Popen": "git cat-file"},
    "store/repo.py": {"git repack": "of the store"},
    "source/asking.py": {"git init": "a repository in the cache, into which it fetches"},
    "target/checkout.py": {
        "subprocess.run": "git, in a work tree of ours",
        "git init": "a new work tree",
        "git index-pack": "its objects",
        "git read-tree": "its index",
        "git checkout-index": "its files, into an empty folder",
        "git update-index": "its index",
        "git update-ref": "its tags",
        "git symbolic-ref": "its branch",
    },
}


def calls(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of everything in a module's source that may write, run or hide a call."""
    tree = ast.parse(text)
    names = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found = _call(node, names)
            if found:
                yield node.lineno, found
        elif isinstance(node, ast.Attribute | ast.Name):
            # Not called here, but handed on: `remove = os.unlink`, `map(os.unlink, names)`.
            name = _dotted(node, names)
            if name.partition(".")[0] in ("os", "shutil") and _writer(name):
                yield node.lineno, name


def _imported(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for: `from os import unlink as u` gives u -> os.unlink."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                names[one.asname or one.name.partition(".")[0]] = (
                    one.name if one.asname else one.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                names[one.asname or one.name] = f"{node.module}.{one.name}"
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """`os.path.join` of an expression, imports resolved; "?" for a part that is computed."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return "?"


def _writer(name: str) -> bool:
    module, _, last = name.rpartition(".")
    return (
        (module in ("os", "posix") and last in OF_OS)
        or (module == "shutil" and last in OF_SHUTIL)
        or name.partition(".")[0] in WHOLE - {"subprocess"}
    )


def _call(node: ast.Call, names: dict[str, str]) -> str:
    name = _dotted(node.func, names)
    module, _, last = name.rpartition(".")
    first = name.partition(".")[0]
    if name in ("exec", "eval", "__import__", "builtins.exec", "builtins.eval"):
        return name
    if name in ("getattr", "setattr", "vars") and node.args:
        of = _dotted(node.args[0], names)
        return f"{name}({of})" if of in ("os", "shutil", "io", "builtins", "posix") else ""
    if _writer(name) or (first == "subprocess" and last[:1].islower() and last != "list2cmdline"):
        return name
    if name == "subprocess.Popen":
        return name
    if name == "os.open":
        return name if _flags(node) & OPEN_FLAGS or not _flags(node) else ""
    if last in ARCHIVES or last == "open":
        return "" if _reads(node, module, last) else (name if module else last)
    method = isinstance(node.func, ast.Attribute) and first != "patchkit"
    if method and module not in ("os", "shutil") and last in METHODS:
        return name
    given = [*node.args, *(k for k in node.keywords if k.arg in ("target", None))]
    if method and last == "replace" and len(given) == 1:
        # str.replace has two or three.
        return name
    return _git(node, names)


def _flags(node: ast.Call) -> set[str]:
    """Names of the flags that an `os.open` is called with, however they are put together."""
    given = node.args[1:2] or [k.value for k in node.keywords if k.arg == "flags"]
    return {
        part.attr if isinstance(part, ast.Attribute) else part.id
        for one in given
        for part in ast.walk(one)
        if isinstance(part, ast.Attribute | ast.Name)
    } - {"os"}


def _reads(node: ast.Call, module: str, last: str) -> bool:
    """Whether the mode of an `open` is a constant that reads (or left out, which reads)."""
    # Path.open(mode) has it first; io.open(file, mode), tarfile.open(name, mode) second.
    place = 0 if last == "open" and module and module not in OPENERS else 1
    modes = [k.value for k in node.keywords if k.arg in ("mode", None)]
    modes += [a for a in node.args[: place + 1] if isinstance(a, ast.Starred)]
    if len(node.args) > place:
        modes.append(node.args[place])
    if last == "open" and place == 0:
        # The first argument of an archive's `open` is a member, of an opener's a request.
        modes = [m for m in modes if isinstance(m, ast.Constant) or m not in node.args]
    return all(
        isinstance(m, ast.Constant) and isinstance(m.value, str) and not set(m.value) & set("wax+")
        for m in modes
    )


OPENERS = frozenset(["builtins", "bz2", "codecs", "gzip", "io", "lzma", "tarfile", "tokenize"])


def _git(node: ast.Call, names: dict[str, str]) -> str:
    """`git WORD` where a list that begins with a git command that writes is handed to something
    that is called run, attempt, command, _git, _in_tree or _looked_at."""
    last = _dotted(node.func, names).rpartition(".")[2]
    if last not in ("run", "attempt", "command", "_git", "_in_tree", "_looked_at") or not node.args:
        return ""
    words = next((a.elts for a in node.args if isinstance(a, ast.List) and a.elts), [])
    head = words[0] if words else None
    if not isinstance(head, ast.Constant) or not isinstance(head.value, str):
        return ""
    return "" if head.value in GIT_READS else f"git {head.value}"


def found_in(path: Path) -> list[tuple[int, str]]:
    return sorted(set(calls(path.read_text())))


def modules() -> list[Path]:
    """Every module but the files layer, and what runs in a proof's interpreter or a script's
    place, without patchkit."""
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] != "files" and "inside" not in path.parts
    ]


def test_only_the_files_layer_opens_for_writing() -> None:
    wrong: list[str] = []
    for path in modules():
        name = path.relative_to(ROOT).as_posix()
        allowed = ALLOWED.get(name, {})
        wrong += [f"{name}:{line} {call}" for line, call in found_in(path) if call not in allowed]
    assert wrong == []


def test_no_exception_outlives_its_call() -> None:
    for name, allowed in ALLOWED.items():
        there = {call for _, call in found_in(ROOT / name)}
        assert set(allowed) <= there, name


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("open(p, 'w')", "open"),
        ("open(p, mode='ab')", "open"),
        ("open(p, 'r+')", "open"),
        ("open(p, mode)", "open"),
        ("open(*given)", "open"),
        ("open(p, **given)", "open"),
        ("import io\nio.open(p, 'x')", "io.open"),
        ("import gzip as g\ng.open(p, 'wb')", "gzip.open"),
        ("from tarfile import open as o\no(p, 'w:gz')", "tarfile.open"),
        ("Path(p).open('w')", "?.open"),
        ("at.open(mode='w')", "at.open"),
        ("Path(p).write_text(t)", "?.write_text"),
        ("at.touch()", "at.touch"),
        ("at.replace(other)", "at.replace"),
        ("at.rename(other)", "at.rename"),
        ("at.symlink_to(other)", "at.symlink_to"),
        ("import os\nos.open(p, os.O_WRONLY)", "os.open"),
        ("import os\nos.open(p, flags=os.O_RDONLY | os.O_CREAT)", "os.open"),
        ("import os\nos.open(p, 65)", "os.open"),
        ("import os\nos.replace(a, b)", "os.replace"),
        ("import os as system\nsystem.unlink(p)", "os.unlink"),
        ("from os import rmdir\nrmdir(p)", "os.rmdir"),
        ("from os import remove as forget\nforget(p)", "os.remove"),
        ("import os\nforget = os.unlink", "os.unlink"),
        ("import os\nlist(map(os.mkdir, names))", "os.mkdir"),
        ("import os\ngetattr(os, 'un' + 'link')(p)", "getattr(os)"),
        ("import posix\nposix.unlink(p)", "posix.unlink"),
        ("import shutil\nshutil.copytree(a, b)", "shutil.copytree"),
        ("from shutil import *\nrmtree(a)", None),
        ("import tempfile\ntempfile.mkstemp()", "tempfile.mkstemp"),
        ("from tempfile import NamedTemporaryFile as N\nN()", "tempfile.NamedTemporaryFile"),
        ("import zipfile\nzipfile.ZipFile(p, 'w')", "zipfile.ZipFile"),
        ("import tarfile\ntarfile.TarFile(p, mode='a')", "tarfile.TarFile"),
        ("archive.extractall(p)", "archive.extractall"),
        ("import subprocess\nsubprocess.run(['cp', a, b])", "subprocess.run"),
        ("from subprocess import check_call\ncheck_call(x)", "subprocess.check_call"),
        ("import os\nos.system(x)", "os.system"),
        ("git.run(['-C', target, 'apply'])", "git -C"),
        ("git.run(['checkout', '--', target])", "git checkout"),
        ("exec(text)", "exec"),
    ],
)
def test_no_spelling_escapes_the_search(text: str, call: str | None) -> None:
    if call is None:
        assert "import *" in text  # ruff refuses those (F403)
        return
    assert call in {found for _, found in calls(text)}


@pytest.mark.parametrize(
    "text",
    [
        "open(p)",
        "open(p, 'rb')",
        "open(p, encoding='utf-8')",
        "import os\nos.open(p, os.O_RDONLY | os.O_NOFOLLOW)",
        "text.replace('a', 'b')",
        "from dataclasses import replace\nreplace(value, mode=1)",
        "import zipfile\nzipfile.ZipFile(stream)",
        "import tarfile\ntarfile.open(fileobj=s, mode='r|')",
        "git.run(['cat-file', '-t', oid])",
        "stream.write(text)",
    ],
)
def test_reading_is_not_taken_for_writing(text: str) -> None:
    assert list(calls(text)) == []
