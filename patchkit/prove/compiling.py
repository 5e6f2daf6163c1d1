"""Whether what patches touch still compiles, imports, and is no worse under pyflakes' rules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.prove import configured, run
from patchkit.prove.children import run_child
from patchkit.prove.environment import Environment
from patchkit.prove.prove import Prover
from patchkit.prove.run import INSIDE, Where, environment_of
from patchkit.upstreams import Known, proving

CAPABILITIES = ("80", "90")
"""Compute capabilities that CUDA sources are compiled for."""

_PLACE = re.compile(r"^(.*?):\d+:(?:\d+:)? (.*)$")
_LINE = re.compile(r" from line \d+")


@dataclass(frozen=True)
class Touched:
    """What one patch changes: its name, the trees before and directly after it, the paths that
    are there afterwards."""

    patch: str
    before: str
    after: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """One patch. wrong: a line for each thing that is worse than before. said: what could not be
    judged. files, modules, sources: how many were."""

    patch: str
    files: int
    modules: int
    sources: int
    wrong: tuple[str, ...]
    said: tuple[str, ...]


def compile_all(
    prover: Prover, lint: Environment | None, touched: Sequence[Touched]
) -> list[Compiled]:
    """Judge every patch. lint: an interpreter with pyflakes; None where there is none.

    A module must import after the last patch if it did before the first: two runs for all of
    them, whose modules are loaded as a proof's are.
    """
    modules = sorted({m for t in touched for m in modules_of(prover.trees.known, t.paths)})
    old, new = (_imports(prover, tree, modules) for tree in (touched[0].before, touched[-1].after))
    out = []
    for each in touched:
        wrong: list[str] = []
        said: list[str] = []
        python = [p for p in each.paths if p.endswith(".py")]
        wrong += _syntax(prover, each, python)
        wrong += _flakes(prover, lint, each, python)
        if lint is None:
            said.append("pyflakes' rules: the interpreter has no pyflakes")
        mine = modules_of(prover.trees.known, each.paths)
        for module, path in zip(mine, _packaged(prover.trees.known, each.paths), strict=True):
            if new[module] and (not old[module] or _text(prover, touched[0].before, path) is None):
                wrong.append(f"{module} cannot be imported: {new[module]}")
            elif new[module]:
                said.append(f"{module} imports on neither tree: {new[module]}")
        native = [p for p in each.paths if prover.trees.known.native(p)]
        made = configured.here(prover.trees.known, prover.trees.store) if native else None
        if made is not None:
            worse, untold, cuda = _as_built(prover, made, each, native)
        else:
            worse, untold, cuda = _alone(prover, each, native)
        out.append(
            Compiled(
                each.patch,
                len(python),
                sum(not new[module] for module in mine),
                len(cuda),
                (*wrong, *worse),
                (*said, *untold),
            )
        )
    return out


def _text(prover: Prover, tree: str, path: str) -> bytes | None:
    file = prover.trees.store.tree(tree).get(path)
    return file.data if file is not None else None


def _syntax(prover: Prover, each: Touched, paths: Sequence[str]) -> list[str]:
    wrong = []
    for path in paths:
        try:
            compile(_text(prover, each.after, path) or b"", path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            wrong.append(f"{path} does not compile: {error}")
    return wrong


def _flakes(
    prover: Prover, lint: Environment | None, each: Touched, paths: Sequence[str]
) -> list[str]:
    """What pyflakes says of the files after the patch and not of those before it."""
    if lint is None or not paths:
        return []
    old = _flaked(prover, lint, each.before, paths)
    new = _flaked(prover, lint, each.after, paths)
    return [f"{path}: {words}" for path, words in sorted((new - old).elements())]


def _flaked(
    prover: Prover, lint: Environment, tree: str, paths: Sequence[str]
) -> Counter[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="patchkit-lint-") as scratch:
        there = []
        for path in paths:
            data = _text(prover, tree, path)
            if data is not None:
                make_folder(os.path.dirname(os.path.join(scratch, path)))
                write_file(os.path.join(scratch, path), data)
                there.append(path)
        if not there:
            return Counter()
        line = [lint.python, "-m", "pyflakes", *there]
        done = subprocess.run(line, cwd=scratch, capture_output=True, text=True, check=False)
    found: Counter[tuple[str, str]] = Counter()
    for said in (done.stdout + done.stderr).splitlines():
        match = _PLACE.match(said)
        if match is not None:  # a line's number moves, its words do not
            found[match[1], _LINE.sub("", match[2])] += 1
    return found


def _packaged(known: Known, paths: Sequence[str]) -> list[str]:
    """The paths that are modules of the package."""
    return [
        path
        for path in paths
        if path.endswith(".py")
        and not path.endswith("__main__.py")
        and known.package
        and not known.outside_package(path)
    ]


def modules_of(known: Known, paths: Sequence[str]) -> list[str]:
    """Import names of the package's modules among the paths."""
    lead = f"{known.root}/" if known.root else ""
    return [
        path.removeprefix(lead).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for path in _packaged(known, paths)
    ]


def _imports(prover: Prover, tree: str, modules: Sequence[str]) -> Mapping[str, str]:
    """Module -> "" or why it cannot be imported, on that tree."""
    if not modules:
        return {}
    how = proving(prover.trees.known)
    python = prover.environment.python
    at = prover.trees.folder(tree)
    prefix = prover.trees.bytecode(tree, python, prover.environment.short)
    root = os.path.join(at, prover.trees.known.root)
    with tempfile.TemporaryDirectory(prefix="patchkit-import-") as scratch:
        report = os.path.join(scratch, "report.json")
        env = {
            **environment_of(Where(python, root, prefix), scratch),
            **how.environment,
            "PYTHONPATH": root,
        }
        line = [python, str(INSIDE / "pk_import.py"), report, how.prelude, *modules]
        code, printed = run_child(line, env, scratch, run.SECONDS, run.CPU)
        if not os.path.exists(report):
            words = f"no report, exit status {code}: {printed.decode('utf-8', 'replace')[-300:]}"
            return dict.fromkeys(modules, words.strip())
        found: dict[str, str] = json.loads(read_file(report))
        return found


def _as_built(
    prover: Prover, made: configured.Configured, each: Touched, native: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """What the build's own commands refuse after the patch and not before it, what could not be
    judged, and what was compiled."""
    sources = configured.sources_of(made, native)
    said = [f"{path}: no command compiles it" for path in native if path not in sources]
    wanted, store = sorted({*sources.values()}), prover.trees.store
    archs = " ".join(CAPABILITIES)
    known = prover.trees.known
    after = configured.compiled(made, known, store, each.after, wanted, archs)
    failed = [source for source in wanted if after[source]]
    before = configured.compiled(made, known, store, each.before, failed, archs)
    wrong = []
    for source in failed:
        if before[source]:
            said.append(f"{source} compiles on neither tree: {after[source]}")
        else:
            wrong.append(f"{source} does not compile: {after[source]}")
    return wrong, said, [source for source in wanted if not after[source]]


def _alone(
    prover: Prover, each: Touched, native: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """The same without a configured build: CUDA sources by themselves, with flags that are known
    to go."""
    cuda = [path for path in native if path.endswith(".cu")]
    worse, untold = _nvcc(prover, each, cuda)
    untold += [
        f"{path} is compiled only with what includes it" for path in native if path not in cuda
    ]
    return worse, untold, [] if untold else cuda


def _nvcc(prover: Prover, each: Touched, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """What nvcc refuses after the patch and not before it, and what could not be judged."""
    if not paths:
        return [], []
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return [], [f"{path} was not compiled: no nvcc on PATH" for path in paths]
    wrong, said = [], []
    for path in paths:
        after = _built(prover, nvcc, each.after, path)
        if not after:
            continue
        if _built(prover, nvcc, each.before, path):
            said.append(f"{path} compiles by itself on neither tree: {after}")
        else:
            wrong.append(f"{path} does not compile: {after}")
    return wrong, said


def _built(prover: Prover, nvcc: str, tree: str, path: str) -> str:
    """ "" or nvcc's first error, for the tree's own headers laid out beside the source."""
    known, store = prover.trees.known, prover.trees.store.tree(tree)
    if store.get(path) is None:
        return "there is no such file"
    where = "import os, torch; print(os.path.join(os.path.dirname(torch.__file__), 'include'))"
    asked = [prover.environment.python, "-c", where]
    include = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="patchkit-nvcc-") as scratch:
        for listed in store.walk():
            if known.native(listed.path):
                file = store.get(listed.path)
                target = os.path.join(scratch, listed.path)
                make_folder(os.path.dirname(target))
                write_file(target, file.data if file is not None else b"")
        flags = [
            f"-I{os.path.join(scratch, f[2:])}" if f.startswith("-I") else f
            for f in proving(known).nvcc
        ]
        if include:
            flags += [f"-I{include}", f"-I{include}/torch/csrc/api/include"]
        for name, text in proving(known).headers.items():
            make_folder(os.path.join(scratch, "stand-ins"))
            write_file(os.path.join(scratch, "stand-ins", name), text.encode("ascii"))
            flags += ["-Xcompiler", "-idirafter", "-Xcompiler", os.path.join(scratch, "stand-ins")]
        for arch in CAPABILITIES:
            flags += ["-gencode", f"arch=compute_{arch},code=sm_{arch}"]
        line = [nvcc, *flags, "-c", os.path.join(scratch, path), "-o", os.path.join(scratch, "o")]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        said = (done.stderr + done.stdout).replace(scratch + os.sep, "").splitlines()
        return next((row for row in said if "error" in row), said[-1] if said else "no reason")
