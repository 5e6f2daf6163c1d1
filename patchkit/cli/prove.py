"""`patchkit prove`: run the proofs: red before the patch, green after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin, Source, StackOrWhole
from patchkit.errors import UsageFault

if TYPE_CHECKING:
    from patchkit.cli.out import Out
    from patchkit.cli.proving import Opened

EXAMPLES = (
    "Examples:  patchkit prove    patchkit prove qsa-draft-metadata --hunks    "
    "patchkit prove --pin v0.30.0 --stack default --json    "
    "patchkit prove --gpu --export DIR    patchkit prove --record result.json"
)


def run(
    context: typer.Context,
    patches: Annotated[
        list[str] | None, typer.Argument(metavar="[PATCH]...", help="Without any: all.")
    ] = None,
    pin: Pin = None,
    stack: StackOrWhole = None,
    hunks: bool = typer.Option(False, "--hunks", help="Leave out one hunk at a time, too."),
    mutants: bool = typer.Option(False, "--mutants", help="Try the small wrong edits, too."),
    python: Annotated[
        str | None,
        typer.Option(
            "--python", metavar="EXE", help="An interpreter as it is: nothing is installed."
        ),
    ] = None,
    gpu: bool = typer.Option(
        False, "--gpu", help="The tests marked gpu; with --python or --export."
    ),
    export: Annotated[
        str | None,
        typer.Option(
            "--export", metavar="DIR", help="With --gpu: write a folder that runs them elsewhere."
        ),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option("--record", metavar="FILE", help="File what came back from such a folder."),
    ] = None,
    compiles: bool = typer.Option(
        False, "--compile", help="Instead: what is touched compiles, imports, pleases pyflakes."
    ),
    upstream_tests: bool = typer.Option(
        False, "--upstream-tests", help="Instead: the project's own tests of what is touched."
    ),
    fresh: bool = typer.Option(False, "--fresh", help="Take no result that is known already."),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Proofs at a time.")] = 2,
    no_run: bool = typer.Option(False, "--no-run", help="Refuse to run code of the series."),
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Run each patch's proof before and after it. This runs code of the series and the source."""
    from patchkit.cli import judging, proving
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.derive import derive, trees_of
    from patchkit.derive.project import find
    from patchkit.derive.proof_text import imports_of
    from patchkit.derive.selection import Selection
    from patchkit.prove import environment, prove
    from patchkit.prove.proofs import proofs_of
    from patchkit.prove.trees import Trees
    from patchkit.upstreams import known

    runs = export is None and record is None
    if no_run and runs:
        raise UsageFault.because("prove runs code of the series; --no-run forbids that")
    if gpu and python is None and export is None:
        raise UsageFault.because(
            "--gpu needs --python (an interpreter that has torch for the GPU) or --export"
        )
    if export is not None and (not gpu or record is not None):
        raise UsageFault.because("--export goes with --gpu, and without --record")
    if compiles + upstream_tests + (hunks or mutants or gpu or not runs) > 1:
        raise UsageFault.because("--compile and --upstream-tests stand alone")
    if not runs and (hunks or mutants or python is not None):
        raise UsageFault.because(
            "--export and --record run nothing: no --hunks, --mutants, --python"
        )
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
        wanted = proving.wanted_of(patches or [], derived.names)
        every = proofs_of(project, chosen.name, series)
        opened = proving.Opened(
            chosen.name,
            project.series_folder(chosen.name),
            derived,
            trees_of(bases.store, derived, base.tree_id),
            Trees(bases.store, base, known(project.pins.upstream_of(chosen))),
            {name: every[name] for name in wanted if name in every},
            wanted,
            whole=not patches,
            chain=proving.chain_of(project, chosen.name),
        )
        if export is not None:
            _export(out, opened, export)
        elif record is not None:
            _record(out, opened, record)
        else:
            targets = opened.targets(gpu=gpu)
            if not targets and not compiles and not upstream_tests:
                proving.report(out, opened, [], gpu=gpu, hunks=hunks)
                raise typer.Exit(out.close())
            if python is not None:
                needs = imports_of((t.proof.module for t in targets), opened.at.known.package)
                made = environment.given(python, needs, gpu=gpu)
            else:
                made = environment.ready(bases.store.root, bar)
            say = proving.tell(as_json)
            prover = prove.Prover(opened.at, made, jobs, fresh, gpu, say)
            if compiles:
                judging.compile_touched(out, opened, prover, given=python is not None)
            elif upstream_tests:
                judging.upstream_tests(out, opened, prover)
            else:
                results = prover.prove(targets)
                if hunks or mutants:
                    proving.run_variants(opened, prover, hunks=hunks, mutants=mutants)
                proving.report(out, opened, results, gpu=gpu, hunks=hunks)
    raise typer.Exit(out.close())


def _export(out: Out, opened: Opened, folder: str) -> None:
    from patchkit.prove.export import export

    names = export(opened.at, opened.targets(gpu=True), opened.pin, folder)
    for name in names:
        out.line(f"exported: {name}")
    out.line(f"there: sh {folder}/run.sh; here: patchkit prove --record result.json")
    out.put(exported=list(names), folder=folder)


def _record(out: Out, opened: Opened, file: str) -> None:
    from patchkit.files.atomic import read_file
    from patchkit.prove.record import file_results

    filed, wrong = file_results(
        read_file(file),
        file,
        opened.at.store,
        opened.targets(gpu=True),
        opened.pin,
        opened.folder,
    )
    out.find(wrong)
    for path in filed:
        out.line(f"filed: {path.relative_to(Path(opened.folder).parent.parent)}")
    out.put(filed=[path.name for path in filed])
