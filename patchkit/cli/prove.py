"""`patchkit prove`: run the proofs: red before the patch, green after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin, Source, Stack
from patchkit.errors import Finding, UsageFault, Where

if TYPE_CHECKING:
    from patchkit.cli.out import Out
    from patchkit.prove.prove import Proven

EXAMPLES = (
    "Examples:  patchkit prove    patchkit prove qsa-draft-metadata --hunks    "
    "patchkit prove --pin v0.30.0 --stack default --json"
)


def run(
    context: typer.Context,
    patches: Annotated[
        list[str] | None, typer.Argument(metavar="[PATCH]...", help="Without any: all.")
    ] = None,
    pin: Pin = None,
    stack: Stack = None,
    hunks: bool = typer.Option(False, "--hunks", help="Leave out one hunk at a time, too."),
    mutants: bool = typer.Option(False, "--mutants", help="Try the small wrong edits, too."),
    python: Annotated[
        str | None,
        typer.Option(
            "--python", metavar="EXE", help="An interpreter as it is: nothing is installed."
        ),
    ] = None,
    gpu: bool = typer.Option(False, "--gpu", help="Run the tests marked gpu; needs --python."),
    fresh: bool = typer.Option(False, "--fresh", help="Take no result that is known already."),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Proofs at a time.")] = 2,
    no_run: bool = typer.Option(False, "--no-run", help="Refuse to run code of the series."),
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Run each patch's proof before and after it. This runs code of the series and the source."""
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.derive import derive, trees_of
    from patchkit.derive.project import find
    from patchkit.derive.selection import Selection
    from patchkit.prove import environment, prove
    from patchkit.prove.proofs import proofs_of
    from patchkit.prove.trees import Trees
    from patchkit.upstreams import known

    if no_run:
        raise UsageFault.because("prove runs code of the series; --no-run forbids that")
    if gpu and python is None:
        raise UsageFault.because("--gpu needs --python: an interpreter that has torch for the GPU")
    out = Out("prove", as_json=as_json)
    project = find(context.obj)
    chosen = project.one_pin(pin)
    series = project.series(chosen.name)
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        base = bases.get(chosen, source)
        selection = Selection(project.stack(stack) if stack else None)
        derived = derive(series, base.tree(bases.store), selection)
        out.find(derived.findings)
        if not derived.ok:
            raise typer.Exit(out.close())
        trees = trees_of(bases.store, derived, base.tree_id)
        wanted = _wanted(patches or [], derived.names)
        every = proofs_of(project, chosen.name, series)
        proofs = {name: every[name] for name in wanted if name in every}
        made = environment.given(python) if python else environment.ready(bases.store.root, bar)
        prover = prove.Prover(
            Trees(bases.store, base, known(project.pins.upstream_of(chosen))),
            made,
            workers=jobs,
            fresh=fresh,
            gpu=gpu,
            told=_tell(as_json),
        )
        results = prover.prove(prove.targets_of(derived, trees, proofs))
        extra: dict[str, list[tuple[str, str, bool]]] = {}
        for name, proof in proofs.items():
            rows = extra.setdefault(name, [])
            if hunks:
                variants = prove.left_out_trees(prover, derived, trees, name)
                rows += [("hunk", *r) for r in prove.killed(prover, proof, variants)]
            if mutants and proof.mutants:
                variants = prove.mutant_trees(prover, derived, trees, proof)
                rows += [("mutant", *r) for r in prove.killed(prover, proof, variants)]
    missing = [n for n in wanted if n not in proofs]
    _report(out, results, missing, extra)
    raise typer.Exit(out.close())


def _wanted(patches: list[str], names: tuple[str, ...]) -> list[str]:
    wanted = []
    for patch in patches:
        name = patch if patch in names else f"{patch}.patch"
        if name not in names:
            raise UsageFault.because(f"{patch} is not among the patches", next="patchkit list")
        wanted.append(name)
    return wanted or list(names)


def _tell(quiet: bool) -> Callable[[str, str], None]:
    from patchkit.cli.streams import say

    def tell(patch: str, what: str) -> None:
        if not quiet and not sys.stderr.isatty():
            say(sys.stderr, f"running: {patch} ({what})\n")

    return tell


def _report(
    out: Out,
    results: list[Proven],
    missing: list[str],
    extra: dict[str, list[tuple[str, str, bool]]],
) -> None:
    rows = []
    for r in results:
        first = r.red.state if r.red else ""
        second = r.green.state if r.green else ""
        rows.append((r.patch, r.state, first, second, f"{r.seconds:.0f} s"))
        if r.state in ("broken", "not proven"):
            out.find([_finding(r)])
    rows += [(name, "no proof", "", "", "") for name in missing]
    out.table("", ("patch", "state", "before", "after", "time"), rows, right="time")
    for name, found in extra.items():
        for kind, place, red in found:
            out.line(f"{name}: {kind} {place}: {'goes red' if red else 'NOT PROVEN'}")
    out.find(
        Finding(
            "proof-missing",
            f"{name} has no proof",
            Where(patch=name),
            expected="a module in proofs/",
            found="none",
            next="write one: CONTRIBUTING.md says how",
            note=True,
        )
        for name in missing
    )
    out.put(
        patches=[
            {
                "patch": r.patch,
                "state": r.state,
                "red": r.red.state if r.red else None,
                "green": r.green.state if r.green else None,
                "seconds": round(r.seconds, 1),
                "variants": [
                    {"kind": k, "place": p, "red": red} for k, p, red in extra.get(r.patch, ())
                ],
            }
            for r in results
        ],
        missing=missing,
    )


def _finding(result: Proven) -> Finding:
    why = [*(result.red.why if result.red else ()), *(result.green.why if result.green else ())]
    broken = result.state == "broken"
    return Finding(
        "proof-broken" if broken else "obsolete",
        f"the proof of {result.patch} "
        + ("cannot be judged" if broken else "is not red before the patch and green after it"),
        Where(patch=result.patch),
        expected="every witness fails by assertion before the patch, everything passes after it",
        found=f"before: {result.red.state if result.red else '-'}, "
        f"after: {result.green.state if result.green else '-'}",
        details=tuple(why[:12]),
        next=f"patchkit prove {result.patch} --fresh, or mend the proof",
    )
