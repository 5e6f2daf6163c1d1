"""`patchkit drift`: patch by release: what would become of each, and what its proof says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin
from patchkit.cli.rebase_said import cell_json
from patchkit.errors import Finding, Where
from patchkit.series.naming import named

if TYPE_CHECKING:
    from patchkit.cli.out import Out
    from patchkit.derive.project import Project
    from patchkit.rebase.onto import Onto
    from patchkit.rebase.plan import Cell, Row

EXAMPLES = (
    "Examples:  patchkit drift    patchkit drift --pin v0.30.0 --onto v0.33.0 --json    "
    "patchkit drift PATCH --prove    patchkit drift --prove --markdown"
)


def run(
    context: typer.Context,
    patches: Annotated[
        list[str] | None, typer.Argument(metavar="[PATCH]...", help="Without any: all.")
    ] = None,
    pin: Pin = None,
    onto: Annotated[
        list[str] | None,
        typer.Option(
            "--onto",
            metavar="PIN",
            help="A release, or a commit, tag or branch of the git server; several times.",
        ),
    ] = None,
    every: bool = typer.Option(False, "--all", help="Earlier releases too."),
    prove: bool = typer.Option(False, "--prove", help="Run the proofs that have no result yet."),
    python: Annotated[
        str | None, typer.Option("--python", metavar="EXE", help="Interpreter for --prove.")
    ] = None,
    markdown: bool = typer.Option(False, "--markdown", help="The table as Markdown."),
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Merge the series onto other releases in memory. Nothing is written; exit 1 unless clean."""
    from patchkit.cli.offered import offer
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.derive import derive
    from patchkit.derive.project import find
    from patchkit.derive.selection import Selection
    from patchkit.prove import environment
    from patchkit.prove.proofs import proofs_of
    from patchkit.rebase import plan as planning
    from patchkit.rebase import proving
    from patchkit.rebase.onto import widened
    from patchkit.rebase.prover import prover_for
    from patchkit.rebase.releases import wanted

    out = Out("drift", as_json=as_json)
    project = find(context.obj)
    chosen = project.one_pin(pin)
    series = project.series(chosen.name)
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        targets = widened(bases, chosen, onto or [])
        project = bases.project
        releases = wanted(project, chosen, [target.pin.name for target in targets], every)
        offer(out, targets)
        old = bases.get(chosen)
        derived = derive(series, old.tree(bases.store), Selection())
        out.find(derived.findings)
        if not derived.ok:
            raise typer.Exit(out.close())
        pairs = [(release.name, bases.get(release)) for release in releases]
        rows = planning.plan(bases.store, derived, old, pairs)
        asked = [named(derived.names, name) for name in patches or derived.names]
        every_proof = proofs_of(project, chosen.name, derived.series)
        proofs = {name: proof for name, proof in every_proof.items() if name in asked}
        if prove and proofs:
            made = environment.given(python) if python else environment.ready(bases.store.root, bar)
            rows = [prover_for(project, bases.store, made, row, proofs) for row in rows]
        else:
            own = bool(python and proofs)
            digest = environment.given(python or "").digest if own else environment.digest_of_list()
            rows = [proving.recorded(bases.store, row, proofs, digest) for row in rows]
    rows = [replace(r, cells=tuple(c for c in r.cells if c.patch in asked)) for r in rows]
    known = {target.pin.name: target for target in targets}
    to = {row.pin: To(project, chosen.name, known.get(row.pin), row.pin) for row in rows}
    out.find(f for row in rows for cell in row.cells for f in findings(cell, to[row.pin]))
    _show(out, chosen.name, rows, to, markdown)
    there = [row.pin for row in rows if to[row.pin].carried]
    if there and not markdown:
        have = "has a series of its own" if len(there) == 1 else "have series of their own"
        out.line(f"{', '.join(there)} {have}; the table is about the patches of {chosen.name}")
    raise typer.Exit(out.close())


def _name(cell: Cell) -> str:
    """What is wrong with a cell, as a finding's name; "" for nothing."""
    if cell.text == "dropped":
        return ""
    if cell.proof == "obsolete":
        return "obsolete"
    if cell.carried and cell.proof in ("proof-fails", "proof-broken"):
        return cell.proof
    return {"clean": "", "merged": "offset"}.get(cell.text, cell.text)


class To:
    """The way from `pin` to a release: its name in keys, and the commands that carry a patch."""

    def __init__(self, project: Project, pin: str, target: Onto | None, release: str) -> None:
        self.pin = pin
        self.release = release
        self.stable = target.stable if target is not None else release
        self.carried = project.has_series(release)
        self._onto = target.options if target is not None else release

    def key(self, cell: Cell) -> str:
        """PIN/RELEASE/PATCH/STATE: the same in every run, as long as the same is wrong."""
        return f"{self.pin}/{self.stable}/{cell.patch}/{_name(cell)}" if _name(cell) else ""

    def command(self, more: str = "") -> str:
        """What to do about a cell that is not clean."""
        if self.carried:
            return f"patchkit diff --series {self.pin} {self.release}, to see what became of it"
        return f"patchkit rebase --pin {self.pin} --onto {self._onto}{more}"


def findings(cell: Cell, to: To) -> list[Finding]:
    """Why a cell is not clean; the key names pin, release, patch and state, and no day."""
    name = _name(cell)
    if not name:
        return []
    details = [f"{f.message}" for f in cell.findings]
    details += [f"so does {hunk}" for hunk in _further(cell)]
    details += [f"{old} is now {new}" for old, new in cell.moved.items()]
    details += [f"the release has it: {hunk}" for hunk in cell.taken]
    details.append(f"key: {to.key(cell)}")
    drops = f" --drop {cell.patch}" if name == "obsolete" else ""
    return [
        Finding(
            name,
            f"{cell.patch} on {cell.pin}: {cell.words}"
            + (f"; proof: {cell.proof}" if cell.proof else ""),
            Where(patch=cell.patch),
            expected=f"the patch as it is in {to.pin}, at other lines at most",
            found=cell.words,
            next=to.command(drops),
            details=tuple(details),
            note=name == "offset",
        )
    ]


def _further(cell: Cell) -> list[str]:
    """The hunks in conflict that no message of the cell names."""
    named = {f"{f.where.file} hunk {f.where.hunk}" for f in cell.findings}
    whole = {f.where.file for f in cell.findings if f.where.hunk is None}
    return [h for h in cell.hunks if h not in named and h.rpartition(" hunk ")[0] not in whole]


def _show(out: Out, pin: str, rows: list[Row], to: dict[str, To], markdown: bool) -> None:
    out.put(
        pin=pin,
        releases=[
            {
                "pin": row.pin,
                "base": row.base.tree_id,
                "patches": [{**cell_json(c), "key": to[row.pin].key(c)} for c in row.cells],
            }
            for row in rows
        ],
    )
    columns = ["patch", *(row.pin for row in rows)]
    table = [
        (cells[0].patch, *(_cell(cell) for cell in cells))
        for cells in zip(*(row.cells for row in rows), strict=True)
    ]
    if markdown:
        out.line("| " + " | ".join(columns) + " |")
        out.line("|" + " --- |" * len(columns))
        for cells in table:
            out.line("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return
    out.table(f"the series of {pin} on other releases (text; proof)", columns, table)


def _cell(cell: Cell) -> str:
    if cell.text == "dropped":
        return cell.words
    return f"{cell.words}; {cell.proof}" if cell.proof else cell.words
