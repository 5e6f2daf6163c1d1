"""No module reaches up a layer, and the parts that must run anywhere import only the library."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import patchkit

ROOT = Path(patchkit.__file__).parent
# Lowest first; a package may import itself and what stands before it.
LAYERS = (
    ("errors",),
    ("engine",),
    ("files",),
    ("series",),
    ("store",),
    ("upstreams",),
    ("source",),
    ("derive",),
    ("target",),
    ("check",),
    ("build", "prove", "authoring"),
    ("rebase", "bring"),
    ("report",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
STANDARD_ONLY = (
    "errors.py",
    "engine/*.py",
    "files/*.py",
    "series/lockfile.py",
    "series/lockjson.py",
    "series/state.py",
    "target/bundle*.py",
    "target/bytecode.py",
    "target/dist_info.py",
    "target/installed*.py",
    "target/record_csv.py",
    "upstreams/caches.py",
    "upstreams/setuptools_files.py",
)


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Dotted names of every import in the file, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found.add(module)
            if module == "patchkit":
                found.update(f"patchkit.{a.name}" for a in node.names)
    return found


def layer(path: Path) -> str:
    part = path.relative_to(ROOT).parts[0]
    return part.removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_imports_from_a_layer_above(path: Path) -> None:
    own = layer(path)
    if own in ("__init__", "__main__"):
        return
    for name in imported(path):
        if not name.startswith("patchkit.") or name == "patchkit.__version__":
            continue
        other = name.split(".")[1]
        if other == own:
            continue
        assert other in RANK, f"{name} is in no layer"
        assert RANK[other] < RANK[own], f"{own} imports {name}, which stands above or beside it"


@pytest.mark.parametrize("pattern", STANDARD_ONLY)
def test_the_bundled_parts_import_only_the_standard_library(pattern: str) -> None:
    for path in sorted(ROOT.glob(pattern)):
        for name in imported(path):
            top = name.split(".")[0]
            assert top == "patchkit" or top in sys.stdlib_module_names, f"{path.name}: {name}"


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="runs once, where the old one is looked for"
)
def test_the_bundled_parts_compile_as_python_3_10() -> None:
    for pattern in STANDARD_ONLY:
        for path in sorted(ROOT.glob(pattern)):
            ast.parse(path.read_text(), feature_version=(3, 10))
    assert (
        subprocess.run(
            [sys.executable, "-S", "-c", "import patchkit.errors"], check=False
        ).returncode
        == 0
    )
