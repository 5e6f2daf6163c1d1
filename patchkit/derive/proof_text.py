"""What a proof is made of and which machine it asks for, from its text: nothing is run."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

__all__ = ["data_files", "digest", "files_of", "imports_of", "kinds"]


def files_of(module: Path) -> dict[str, bytes]:
    """The module and every module of its folder that it needs, directly or not: name -> bytes.

    Needed is what is imported or, since a helper may be run as a program, what is named.
    """
    folder = module.parent
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
        for helper in folder.glob("_*.py"):
            named = helper.name.encode() in data or helper.stem.encode() in data
            if named and helper.is_file():
                todo.append(helper)
    return dict(sorted(seen.items()))


def data_files(module: Path) -> dict[str, bytes]:
    """Files of the folder that are no Python and that the proof's text names: name -> bytes."""
    text = b"\n".join(files_of(module).values())
    return {
        path.name: path.read_bytes()
        for path in sorted(module.parent.iterdir())
        if path.is_file() and path.suffix != ".py" and path.name.encode() in text
    }


def digest(module: Path, called: str = "") -> str:
    """sha256 over the names and digests of `files_of` and `data_files`: the proof's identity.

    called: the module's name where it is to be another than the file's.
    """
    found = {**files_of(module), **data_files(module)}
    if called:
        found[called] = found.pop(module.name)
    total = hashlib.sha256()
    for name, data in sorted(found.items()):
        total.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    return total.hexdigest()


def kinds(module: Path) -> frozenset[str]:
    """ "cpu" and "gpu": which of the two the tests of the module are for. Empty: it has none."""
    try:
        tree = ast.parse(module.read_bytes())
    except SyntaxError:
        return frozenset()
    everywhere = any(
        isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
        and _marks_gpu(node.value)
        for node in tree.body
    )
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
            node.name.startswith("test_")
        ):
            gpu = everywhere or any(_marks_gpu(mark) for mark in node.decorator_list)
            found.add("gpu" if gpu else "cpu")
    return frozenset(found)


def imports_of(modules: Iterable[Path], package: str) -> list[str]:
    """Packages that proofs import at their top and that are neither theirs, Python's, nor the
    one that is under proof; and pytest."""
    found = {"pytest"}
    for module in modules:
        own = files_of(module)
        for data in own.values():
            for node in ast.parse(data).body:
                if isinstance(node, ast.Import):
                    found.update(alias.name.partition(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found.add(node.module.partition(".")[0])
        found -= {name.removesuffix(".py") for name in own}
    return sorted(found - {package} - sys.stdlib_module_names)


def _marks_gpu(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == "gpu" for part in ast.walk(node))


@lru_cache(maxsize=256)
def _imports(data: bytes) -> frozenset[str]:
    """The first words of what a module imports; many proofs share a helper."""
    try:
        tree = ast.parse(data)
    except SyntaxError:
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return frozenset(names)
