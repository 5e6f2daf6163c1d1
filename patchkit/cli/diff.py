"""`patchkit diff --series A B`: what became of each patch from one series to another."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patchkit.cli.options import Json
from patchkit.errors import REFUSED, UsageFault

if TYPE_CHECKING:
    from patchkit.cli.out import Out
    from patchkit.rebase.pairs import Pair
    from patchkit.rebase.rangediff import Compared
    from patchkit.series.folder import Series

EXAMPLES = (
    "Examples:  patchkit diff --series v0.30.0 v0.33.0    "
    "patchkit diff --series v0.30.0 v0.33.0 qsa-fp8-kv"
)
SAME = "same"


def run(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[PATCH]...", help="Only these patches.")
    ] = None,
    series: tuple[str, str] = typer.Option(
        ..., "--series", metavar="A B", help="The pins whose series are compared."
    ),
    exit_code: bool = typer.Option(False, "--exit-code", help="Exit 1 where anything differs."),
    as_json: Json = False,
) -> None:
    """Compare two series patch by patch; numbers that only follow from lines are no difference."""
    from patchkit.cli.out import Out
    from patchkit.derive.project import find
    from patchkit.rebase.pairs import pairs
    from patchkit.rebase.rangediff import compare

    out = Out("diff", as_json=as_json)
    project = find(context.obj)
    old, new = (project.series(project.pins.pin(name).name) for name in series)
    rows: list[tuple[Pair, Compared | None]] = []
    for pair in _asked(pairs(project, old, new), old, new, names or []):
        compared = None
        if pair.old is not None and pair.new is not None:
            compared = compare(
                old.patches[pair.old],
                new.patches[pair.new],
                old.headers[pair.old],
                new.headers[pair.new],
            )
        rows.append((pair, compared))
    differ = _show(out, old, new, rows)
    raise typer.Exit(out.close(REFUSED if differ and exit_code else 0))


def _asked(found: list[Pair], old: Series, new: Series, names: list[str]) -> list[Pair]:
    """The pairs that the command line names. Raises UsageFault for a name that neither has."""
    if not names:
        return found
    wanted = {n if n.endswith((".patch", ".diff")) else f"{n}.patch": n for n in names}
    kept = []
    for pair in found:
        have = {_name(old, pair.old), _name(new, pair.new)} & wanted.keys()
        if have:
            kept.append(pair)
        for name in have:
            del wanted[name]
    if wanted:
        raise UsageFault.because(
            f"neither {old.pin} nor {new.pin} has a patch {next(iter(wanted.values()))}",
            next="patchkit list",
        )
    return kept


def _name(series: Series, place: int | None) -> str:
    return series.entries[place].patch if place is not None else ""


def _state(old: Series, new: Series, pair: Pair, compared: Compared | None) -> tuple[str, str]:
    """State and notes of a pair."""
    if pair.old is None:
        return "added", ""
    if pair.new is None:
        return "dropped", pair.reason
    assert compared is not None
    one, two = old.entries[pair.old], new.entries[pair.new]
    notes = []
    if one.patch != two.patch:
        notes.append(f"was {one.patch}")
    for what, before, after in (
        ("guard", one.guard or "none", two.guard or "none"),
        ("strip", f"-p{one.strip}", f"-p{two.strip}"),
        ("reverse", str(one.reverse), str(two.reverse)),
    ):
        if before != after:
            notes.append(f"{what} {before} -> {after}")
    if pair.aside:
        notes.append("its place in the series changed")
    notes += [f"{before} -> {after}" for before, after in compared.renamed]
    header = any(not change.file for change in compared.changes)
    hunks = sum(1 for change in compared.changes if change.file)
    notes += ["header"] if header else []
    notes += [f"{hunks} hunk{'s' if hunks != 1 else ''}"] if hunks else []
    return ("changed" if notes else SAME), "; ".join(notes)


def _show(out: Out, old: Series, new: Series, rows: list[tuple[Pair, Compared | None]]) -> bool:
    """Table and hunks; whether anything differs."""
    table = []
    patches: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    for pair, compared in rows:
        state, note = _state(old, new, pair, compared)
        counts[state] += 1
        name = _name(new, pair.new) or _name(old, pair.old)
        if state != SAME:
            table.append((_place(pair.old), _place(pair.new), name, state, note))
        patches.append(
            {
                "patch": name,
                "old": {"place": pair.old + 1, "patch": _name(old, pair.old)}
                if pair.old is not None
                else None,
                "new": {"place": pair.new + 1, "patch": _name(new, pair.new)}
                if pair.new is not None
                else None,
                "state": state,
                "note": note,
                "reason": pair.reason,
                "renamed": [list(names) for names in compared.renamed] if compared else [],
                "changes": [
                    {"file": c.file, "old": c.old, "new": c.new, "diff": list(c.lines)}
                    for c in compared.changes
                ]
                if compared
                else [],
            }
        )
    out.put(old=old.pin, new=new.pin, patches=patches, counts=dict(sorted(counts.items())))
    if table:
        columns = (old.pin, new.pin, "patch", "state", "what")
        out.table("", columns, table, right=f"{old.pin} {new.pin}")
    for pair, compared in rows:
        if compared is not None and compared.changes and not out.as_json:
            _hunks(out, _name(new, pair.new), compared)
    words = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    out.line(f"{old.pin} to {new.pin}: {words or 'no patches'}")
    return bool(table)


def _place(place: int | None) -> str:
    return "-" if place is None else str(place + 1)


def _hunks(out: Out, name: str, compared: Compared) -> None:
    from patchkit.cli.out import diff_line

    for change in compared.changes:
        what = "its header" if not change.file else change.file
        if change.old or change.new:
            what += f" hunk {change.new or change.old}"
            what += "" if change.old and change.new else " (new)" if change.new else " (gone)"
        out.line()
        out.line(f"{name}: {what}", style="bold")
        for line in change.lines:
            diff_line(line)
    out.line()
