"""`patchkit list`: pins, or the patches of a pin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from patchkit.cli.options import Json, Pin, StackOrWhole

if TYPE_CHECKING:
    from patchkit.cli.out import Out
    from patchkit.derive.project import Project
    from patchkit.series.folder import Series

EXAMPLES = "Examples:  patchkit list    patchkit list --pin v0.30.0    patchkit list --switches"


def run(
    context: typer.Context,
    pin: Pin = None,
    stack: StackOrWhole = None,
    switches: bool = typer.Option(
        False, "--switches", help="List what can be switched at run time."
    ),
    as_json: Json = False,
) -> None:
    """List the patches of a pin in series order; of all pins that have a series without --pin."""
    from patchkit.cli.out import Out
    from patchkit.derive.project import find
    from patchkit.derive.selection import Selection

    out = Out("list", as_json=as_json)
    project = find(context.obj)
    names = (
        [project.pins.pin(pin).name]
        if pin
        else [n for n in project.pins.pins if project.has_series(n)]
    )
    result = []
    for name in names:
        series = project.series(name, strict=False)
        out.find(series.findings)
        chosen = Selection(project.stack(stack) if stack else None).of(series)
        if switches:
            _switches(out, name, series, chosen)
        else:
            _patches(out, project, series, chosen)
        result.append({"pin": name, "patches": _json(project, series, chosen)})
    if not switches and pin is None:
        _pins(out, project.pins.pins, names)
    out.put(pins=result)
    raise typer.Exit(out.close())


def _patches(out: Out, project: Project, series: Series, chosen: tuple[bool, ...]) -> None:
    from patchkit.check.counts import counts
    from patchkit.derive.records import standing

    rows, reasons = [], []
    for entry, patch, header, taken in zip(
        series.entries, series.patches, series.headers, chosen, strict=True
    ):
        if not taken:
            continue
        files, plus, minus = counts(patch)
        proof, reason = standing(project, series.pin, entry.patch, header)
        if reason:
            reasons.append(f"{entry.patch} is not proven: {reason}")
        rows.append(
            (
                entry.patch,
                entry.guard or "",
                proof,
                str(files),
                f"+{plus}",
                f"-{minus}",
                header.description,
            )
        )
    columns = ("patch", "guard", "proof", "files", "+", "-", "subject")
    out.table(f"{series.pin}: {len(rows)} patches", columns, rows, right="files + -")
    for words in reasons:
        out.line(words)


def _switches(out: Out, pin: str, series: Series, chosen: tuple[bool, ...]) -> None:
    rows = [
        (switch.name, switch.default, entry.patch, entry.guard or "", switch.meaning)
        for entry, header, taken in zip(series.entries, series.headers, chosen, strict=True)
        if taken
        for switch in header.switches()
    ]
    columns = ("switch", "default", "patch", "guard", "meaning")
    out.table(f"{pin}: {len(rows)} switches", columns, rows)


def _pins(out: Out, pins: Iterable[str], have: list[str]) -> None:
    rest = [name for name in pins if name not in have]
    if rest:
        out.line("pins without a series: " + ", ".join(rest))


def _json(project: Project, series: Series, chosen: tuple[bool, ...]) -> list[dict[str, object]]:
    from patchkit.check.counts import counts
    from patchkit.derive.records import standing

    rows: list[dict[str, object]] = []
    for entry, patch, header, taken in zip(
        series.entries, series.patches, series.headers, chosen, strict=True
    ):
        if taken:
            files, plus, minus = counts(patch)
            proof, reason = standing(project, series.pin, entry.patch, header)
            rows.append(
                {
                    "proof": proof,
                    "not_proven": reason,
                    "patch": entry.patch,
                    "guard": entry.guard,
                    "strip": entry.strip,
                    "reverse": entry.reverse,
                    "sha256": patch.sha256,
                    "files": files,
                    "added": plus,
                    "removed": minus,
                    "subject": header.description,
                    "switches": [
                        {"name": s.name, "default": s.default, "meaning": s.meaning}
                        for s in header.switches()
                    ],
                }
            )
    return rows
