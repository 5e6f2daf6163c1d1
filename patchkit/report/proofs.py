"""What a page says of a proof: its tests, its recorded runs, the results beside it."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchkit.files.root import Root
from patchkit.prove.judge import Seen
from patchkit.prove.proofs import Proof
from patchkit.series.folder import PROOFS

RESULTS = f"{PROOFS}/results"
LARGEST = 4 << 20
_FACTS = ("gpu", "machine", "driver", "torch", "triton", "cuda", "python", "date", "command")
_SHOWN = 200_000


@dataclass(frozen=True)
class Test:
    """A test of a proof. marks: witness, gpu. before, after: what recorded runs saw, "" for
    none."""

    name: str
    words: str
    marks: tuple[str, ...]
    before: str
    after: str


@dataclass(frozen=True)
class Recorded:
    """A result file beside the proof. facts: where and when it ran. text: all of it."""

    name: str
    facts: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True)
class Told:
    """A proof for a page. words: its module's docstring. state: what recorded runs come to.
    inherited: the pin that it stands in, "" for the patch's own."""

    module: str
    inherited: str
    words: str
    sha256: str
    tests: tuple[Test, ...]
    mutants: tuple[str, ...]
    state: str
    why: tuple[str, ...]


def tests_of(proof: Proof, before: Seen | None, after: Seen | None) -> tuple[str, tuple[Test, ...]]:
    """The docstring of a proof's module, and its tests in order."""
    try:
        tree = ast.parse(proof.module.read_bytes())
    except (SyntaxError, ValueError):
        return "", ()
    everywhere = _marks(tree.body)
    tests = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
            continue
        marks = [m for d in node.decorator_list for m in _names(d) if m in ("witness", "gpu")]
        words = (ast.get_docstring(node) or "").split("\n\n")[0]
        tests.append(
            Test(
                node.name,
                " ".join(words.split()),
                tuple(dict.fromkeys([*everywhere, *marks])),
                _outcome(before, node.name),
                _outcome(after, node.name),
            )
        )
    return ast.get_docstring(tree) or "", tuple(tests)


def results_of(folder: Path, patch: str) -> tuple[Recorded, ...]:
    """The result files that are of this patch, by name: PATCH.json and PATCH.*.json."""
    root = Root(folder)
    if not root.is_folder(RESULTS):
        return ()
    stem = patch.removesuffix(".patch")
    out = []
    for path in sorted(root.walk(RESULTS)):
        name = path.rpartition("/")[2]
        if not name.endswith(".json") or not (
            name == f"{stem}.json" or name.startswith(f"{stem}.")
        ):
            continue
        file = root.get(path, LARGEST)
        if file is not None:
            out.append(_recorded(name, file.data))
    return tuple(out)


def _recorded(name: str, data: bytes) -> Recorded:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return Recorded(name, (("unreadable", "the file is not JSON"),), "")
    if not isinstance(body, Mapping):
        return Recorded(name, (), json.dumps(body, indent=1, ensure_ascii=False)[:_SHOWN])
    facts = tuple((key, str(body[key])) for key in _FACTS if body.get(key))
    for side in ("red", "green", "base", "patched"):
        ran = body.get(side)
        if isinstance(ran, Mapping) and isinstance(ran.get("pytest"), list):
            facts += ((side, "; ".join(map(str, ran["pytest"]))),)
        elif isinstance(ran, Mapping) and isinstance(ran.get("tests"), Mapping):
            facts += ((side, _counted(ran["tests"])),)
    return Recorded(name, facts, json.dumps(body, indent=1, ensure_ascii=False)[:_SHOWN])


def _counted(tests: Mapping[str, Any]) -> str:
    seen: dict[str, int] = {}
    for row in tests.values():
        outcome = str(row.get("outcome", "?")) if isinstance(row, Mapping) else str(row)
        seen[outcome] = seen.get(outcome, 0) + 1
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(seen.items()))


def _marks(body: list[ast.stmt]) -> list[str]:
    """What `pytestmark` says of every test of the module."""
    return [
        name
        for node in body
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
        for name in _names(node.value)
        if name in ("witness", "gpu")
    ]


def _names(node: ast.expr) -> list[str]:
    return [part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)]


def _outcome(seen: Seen | None, test: str) -> str:
    """The outcomes of a test's cases in one word, the worst first."""
    if seen is None:
        return ""
    rows = [r for key, r in seen.tests.items() if key.rpartition("::")[2].partition("[")[0] == test]
    have = {str(row["outcome"]) for row in rows}
    return next((o for o in ("failed", "error", "skipped", "passed") if o in have), "")
