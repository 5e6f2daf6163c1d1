"""`prove --compile` and `prove --upstream-tests`: what patches touch, judged without proofs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from patchkit.cli.out import Out
from patchkit.errors import Finding, Where
from patchkit.prove import environment
from patchkit.prove.compiling import Touched, compile_all
from patchkit.prove.prove import Prover

if TYPE_CHECKING:
    from patchkit.cli.proving import Opened


def touched_of(opened: Opened) -> list[Touched]:
    """What each wanted patch changes, in series order."""
    out = []
    for number, name in enumerate(opened.derived.names):
        if name in opened.wanted:
            changes = opened.derived.outcomes[number].changes
            paths = tuple(sorted(path for path, file in changes.items() if file is not None))
            trees = opened.trees
            out.append(Touched(name, trees[number], trees[number + 1], paths))
    return out


def compile_touched(out: Out, opened: Opened, prover: Prover, *, given: bool) -> None:
    """Compile, import and lint what is touched. given: the interpreter is the user's, and nothing
    is installed beside it."""
    lint: environment.Environment | None
    if given:
        asked = [prover.environment.python, "-c", "import pyflakes"]
        has = subprocess.run(asked, capture_output=True, check=False).returncode == 0
        lint = prover.environment if has else None
    else:
        lint = environment.ready(opened.at.store.root, lists=environment.LINT)
    results = compile_all(prover, lint, touched_of(opened))
    rows = []
    for r in results:
        state = "worse" if r.wrong else "no worse"
        rows.append((r.patch, state, str(r.files), str(r.modules), str(r.sources)))
        for words in r.said:
            out.line(f"{r.patch}: {words}")
        if r.wrong:
            out.find(
                [
                    Finding(
                        "proof-broken",
                        f"what {r.patch} touches is worse than before it",
                        Where(patch=r.patch),
                        expected="it compiles, imports, and pyflakes says nothing new",
                        found=r.wrong[0],
                        details=r.wrong[1:12],
                        next=f"patchkit edit {r.patch}",
                    )
                ]
            )
    columns = ("patch", "state", "Python", "imported", "by nvcc")
    out.table("", columns, rows, right="Python imported by nvcc")
    out.put(
        compiled=[
            {
                "patch": r.patch,
                "files": r.files,
                "modules": r.modules,
                "sources": r.sources,
                "wrong": list(r.wrong),
                "not_judged": list(r.said),
            }
            for r in results
        ]
    )


def upstream_tests(out: Out, opened: Opened, prover: Prover) -> None:
    """Run the project's own tests of what is touched, on both trees."""
    from patchkit.prove.theirs import compare_tests

    results = compare_tests(prover, touched_of(opened))
    rows = []
    for r in results:
        rows.append((r.file, r.state, str(r.passed), str(r.failed), f"{r.seconds:.0f} s"))
        for words, number in r.reasons:
            out.line(f"{r.file}: {number} on both trees {words}")
        out.find(
            Finding(
                "proof-broken",
                f"{r.file} does not give the same on both trees",
                Where(file=r.file),
                expected=f"{test}: {before}, as before the patches",
                found=after,
                next=f"patchkit prove --upstream-tests {' '.join(r.patches)}",
                note=after == "passed",
            )
            for test, before, after in r.differs
        )
    columns = ("tests", "state", "passed", "not passed", "time")
    out.table("", columns, rows, right="passed not time")
    same = [r for r in results if r.state == "same"]
    out.line(
        f"{len(same)} of {len(results)} files give the same on both trees: "
        f"{sum(r.passed for r in same)} tests pass, {sum(r.failed for r in same)} do not"
    )
    out.put(
        upstream=[
            {
                "file": r.file,
                "patches": list(r.patches),
                "state": r.state,
                "passed": r.passed,
                "not_passed": r.failed,
                "differs": [list(d) for d in r.differs],
                "reasons": [list(reason) for reason in r.reasons],
            }
            for r in results
        ]
    )
