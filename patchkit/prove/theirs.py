"""The project's own tests of what the patches touch: the same on the tree before and after.

Which tests belong to a touched module a.b.c of the package:
1. the file that mirrors its path, tests/b/test_c.py (the package's own name left out);
2. each test file that names the module a.b.c in its text, as an import or in a string (or
   imports c from a.b), unless more than COMMON files do: such a module (vLLM's envs, say) is
   used by tests of everything, and only rule 1 holds for it.

A file runs on the tree before the first patch and on that after the last one, in a process of its
own, with the base's tests folder: a test that fails alike on both (no GPU, no network) is the
same, and why it does not pass is said. A long file runs in pieces; a test that takes too long on
either tree is not compared.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from patchkit.files.atomic import make_folder, move_folder, read_file, write_file
from patchkit.files.growing import remove_folder
from patchkit.files.lock import locked
from patchkit.files.root import Root
from patchkit.prove.children import none_outlives_us, run_child
from patchkit.prove.compiling import Touched, modules_of
from patchkit.prove.judge import Seen
from patchkit.prove.kept import keep, kept
from patchkit.prove.prove import Prover
from patchkit.prove.run import INSIDE, Where, environment_of
from patchkit.store.results import key_of
from patchkit.upstreams import proving

COMMON = 12
"""A module that more test files name is of no use for choosing tests."""

PIECE, PIECES, TEST = 240, 5, 60
"""Seconds after which no test of a piece begins, how many pieces a file may take, and the seconds
a test may."""

HARD = 600
"""A piece that is not done by then is ended, and what it ran is lost."""

RULES = "theirs-2"
LATE = ("not run", "out of time")
"""Outcomes of tests that were not judged."""

NEEDS = (
    ("needs compiled code", r"\b_(moe_)?C\b|torch\.ops\.|custom op|No such operator"),
    ("needs a GPU", r"CUDA|cuda|GPU|NVIDIA|nvidia|[Dd]evice capability|ROCm|[Tt]riton"),
    (
        "needs a model or the network",
        r"[Hh]ugging ?[Ff]ace|HF_HUB|[Oo]ffline|LocalEntryNotFound|[Cc]onnection|locate the file",
    ),
    ("needs a module that is not installed", r"ModuleNotFoundError|No module named|not installed"),
)
"""What a test that does not pass on either tree lacks, by words of its last line."""

_CHANGING = re.compile(r"0x[0-9a-f]+|/\S+/|\b\d+(\.\d+)?\b")


@dataclass(frozen=True)
class Compared:
    """One test file on both trees. differs: (test, outcome before, outcome after). state: same,
    differs, or not run, with why there is nothing to compare. reasons: why tests do not pass on
    the tree after, though they do not differ: (words, how many)."""

    file: str
    patches: tuple[str, ...]
    state: str
    passed: int
    failed: int
    differs: tuple[tuple[str, str, str], ...]
    seconds: float
    reasons: tuple[tuple[str, int], ...] = ()


def tests_of(prover: Prover, touched: Sequence[Touched]) -> dict[str, list[str]]:
    """Test file -> the patches that touch a module it is of, by the rules above."""
    folder = proving(prover.trees.known).tests
    base = prover.trees.base.tree(prover.trees.store)
    listed = [
        f
        for f in base.walk(folder)
        if f.path.endswith(".py") and f.path.rpartition("/")[2].startswith("test_")
    ]
    texts = {f.path: data.decode("utf-8", "replace") for f, data in base.contents(listed)}
    out: dict[str, list[str]] = {}
    for each in touched:
        for module in modules_of(prover.trees.known, each.paths):
            for path in files_for(module, folder, texts):
                patches = out.setdefault(path, [])
                if each.patch not in patches:
                    patches.append(each.patch)
    return dict(sorted(out.items()))


def files_for(module: str, folder: str, texts: dict[str, str]) -> list[str]:
    """The test files of one module. texts: path -> text of every test file."""
    _, _, inner = module.partition(".")
    above, _, name = inner.rpartition(".")
    mirror = "/".join(part for part in (folder, above.replace(".", "/"), f"test_{name}.py") if part)
    parent, _, last = module.rpartition(".")
    named = re.compile(
        rf"\b{re.escape(module)}\b"
        rf"|\bfrom {re.escape(parent)} import (?:\([^)]*|[^\n]*)\b{re.escape(last)}\b"
    )
    found = [path for path, text in texts.items() if named.search(text)]
    if len(found) > COMMON:
        found = []
    return sorted({*found, *([mirror] if mirror in texts else [])})


def compare_tests(prover: Prover, touched: Sequence[Touched]) -> list[Compared]:
    """Run the tests of what is touched on both trees."""
    wanted = tests_of(prover, touched)
    if not wanted:
        return []
    before, after = touched[0].before, touched[-1].after
    at = _tests_folder(prover)
    for tree in (before, after):
        prover.trees.folder(tree)

    def one(path: str) -> Compared:
        prover.told(path, "before")
        old = _seen(prover, at, path, before)
        prover.told(path, "after")
        return judge(path, wanted[path], old, _seen(prover, at, path, after))

    with none_outlives_us(), ThreadPoolExecutor(prover.workers) as pool:
        return list(pool.map(one, wanted))


def judge(path: str, patches: Sequence[str], old: Seen, new: Seen) -> Compared:
    """Compare two runs of a file, test by test."""
    seconds = old.seconds + new.seconds
    if not old.tests and not new.tests:
        last = (new.trouble.strip().splitlines() or ["it holds no test"])[-1].removeprefix("E ")
        why = f"not run: {lacks(last)}"
        return Compared(path, tuple(patches), why, 0, 0, (), seconds)
    differs = []
    late = 0
    reasons: Counter[str] = Counter()
    for test in sorted({*old.tests, *new.tests}):
        had, has = _outcome(old, test), _outcome(new, test)
        if had in LATE or has in LATE:
            late += 1
        elif had != has:
            differs.append((test, had, has))
        elif has != "passed":
            reasons[f"{has}: {lacks(str(new.tests[test].get('why', '')))}"] += 1
    if late:
        reasons[f"not compared: more than {TEST} s a test, or {PIECES * PIECE} s a file"] += late
    passed = sum(row["outcome"] == "passed" for row in new.tests.values())
    state = "differs" if differs else "same"
    return Compared(
        path,
        tuple(patches),
        state,
        passed,
        len(new.tests) - passed,
        tuple(differs),
        seconds,
        tuple(reasons.most_common()),
    )


def lacks(line: str) -> str:
    """What a failing test's last line says that it lacks; the line itself, without what changes
    from run to run, where that is not known."""
    for words, pattern in NEEDS:
        if re.search(pattern, line):
            return words
    return _CHANGING.sub("…", line.strip())[:120]


def _outcome(seen: Seen, test: str) -> str:
    row = seen.tests.get(test)
    return str(row["outcome"]) if row is not None else "not collected"


def _tests_folder(prover: Prover) -> str:
    """The base's tests, laid out once; the folder that holds their folder."""
    folder = proving(prover.trees.known).tests
    at = os.path.join(prover.trees.at, "tests", prover.trees.base.tree_id)
    make_folder(os.path.dirname(at))
    with locked(f"{at}.lock", wait=600):
        if not os.path.isdir(at):
            new = f"{at}.new"
            remove_folder(new)
            make_folder(new)
            root = Root(new)
            base = prover.trees.base.tree(prover.trees.store)
            listed = list(base.walk(folder))
            base.prefetch(f.path for f in listed)
            for each in listed:
                file = base.get(each.path)
                if file is not None:
                    root.put(each.path, file, sync=False)
            move_folder(new, at)
    return at


def _seen(prover: Prover, at: str, path: str, tree: str) -> Seen:
    """One test file on one tree, from what is known or by running it, in pieces."""
    store = prover.trees.store
    base = prover.trees.base.tree_id
    key = key_of(RULES, base, path, tree, prover.environment.digest)
    known = None if prover.fresh else kept(store, key)
    if known is not None:
        return known
    seen = Seen()
    for _ in range(PIECES):
        done = [test for test, row in seen.tests.items() if row["outcome"] != "not run"]
        piece = _piece(prover, at, path, tree, done)
        if piece.lost and not seen.tests:
            return piece
        rows = {**seen.tests, **piece.tests}
        seen = Seen(rows, seen.trouble or piece.trouble, seen.seconds + piece.seconds)
        if piece.lost or all(row["outcome"] != "not run" for row in rows.values()):
            break
    keep(store, key, seen)
    return seen


def _piece(prover: Prover, at: str, path: str, tree: str, done: Sequence[str]) -> Seen:
    """A run of the file's tests that are not among `done`."""
    python = prover.environment.python
    prefix = prover.trees.bytecode(tree, python, prover.environment.short)
    root = os.path.join(prover.trees.folder(tree), prover.trees.known.root)
    with tempfile.TemporaryDirectory(prefix="patchkit-tests-") as scratch:
        report, left_out = (os.path.join(scratch, n) for n in ("report.json", "done.json"))
        write_file(left_out, json.dumps(done).encode("ascii"))
        env = {
            **environment_of(Where(python, root, prefix), scratch),
            **proving(prover.trees.known).environment,
            "PYTHONPATH": os.pathsep.join([root, at, str(INSIDE)]),
            "PK_REPORT": report,
            "PK_PROOFS": at,
            "PK_PRELUDE": proving(prover.trees.known).prelude,
            "PK_DONE": left_out,
            "PK_SECONDS": str(PIECE),
            "PK_TEST_SECONDS": str(TEST),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        line = [python, "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={at}"]
        line += ["-p", "no:cacheprovider", "-p", "pk_proofs", os.path.join(at, path)]
        code, printed = run_child(line, env, scratch, HARD)
        if not os.path.exists(report):
            tail = printed.decode("utf-8", "replace").strip()[-300:]
            return Seen({}, f"no report, exit status {code}: {tail}", 0.0, lost=True)
        body = json.loads(read_file(report))
    rows = {
        test: {
            "outcome": row["outcome"],
            "why": str(row.get("line") or row.get("reason") or "").partition("\n")[0][:300],
        }
        for test, row in body["tests"].items()
    }
    return Seen(rows, "; ".join(map(str, body["errors"]))[-1500:], body.get("seconds", 0.0))
