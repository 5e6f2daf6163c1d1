"""What `patchkit rebase` prints: the plan as a table, its conflicts, where a rebase stands."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from patchkit.errors import Finding, Where

if TYPE_CHECKING:
    from patchkit.cli.out import Out
    from patchkit.engine.model import Tree
    from patchkit.rebase.plan import Cell, Resolved, Row
    from patchkit.rebase.state import State


SHOWN = 12
"""Lines of a settled conflict that are shown."""


def patches(number: int) -> str:
    """So many patches."""
    return f"{number} patch" if number == 1 else f"{number} patches"


def conflicts(out: Out, state: State, last: Row, shown: str = "") -> None:
    """Every conflict of the release, and what to do: of a plan, or (shown: the work tree) of the
    one that waits and those that come after it."""
    asked = f"patchkit rebase --pin {state.pin} --onto {state.onto}"
    asked += " --new" if state.into and (state.new or not state.again) else ""
    asked += "".join(f" --again {name}" for name in state.again)
    first = True
    for cell in last.cells:
        if cell.text != "conflict":
            continue
        for found in cell.findings:
            hint = asked
            if shown and first:
                path = found.where.file or ""
                at = os.path.join(shown, cell.moved.get(path, path))
                hint = f"edit {at}, then patchkit rebase --continue"
            elif shown:
                hint = "patchkit rebase --continue comes to it"
            out.find([replace(found, next=hint)])
        first = False


def remembers(out: Out, known: Resolved, now: Tree, shown: str) -> None:
    """A conflict that was settled before was put into the work tree: what it makes of it."""
    from patchkit.series.writer import write_diff

    out.line(f"a settled conflict of this kind was found and put into {shown}: look at it")
    lines = write_diff(now, known.changes, text=known.changes).decode("utf-8", "replace")
    rows = [text for text in lines.splitlines() if not text.startswith(("diff ", "index "))]
    for text in rows[:SHOWN]:
        out.line(f"  {text}")
    if len(rows) > SHOWN:
        out.line(f"  and {len(rows) - SHOWN} lines more: git -C {shown} diff")


def table(out: Out, state: State, rows: list[Row]) -> None:
    """The plan: patch by release."""
    columns = ["patch", *(row.pin for row in rows), "proof"]
    shown = [cell for cell in rows[-1].cells if cell.text != "stands"]
    said = [{cell.patch: cell.words for cell in row.cells} for row in rows]
    cells = [(c.patch, *(words.get(c.patch, "") for words in said), c.proof) for c in shown]
    out.table(f"{state.pin} onto {state.onto}", columns, cells)
    stand = len(rows[-1].cells) - len(shown)
    if stand:
        verb = "stands as it is" if stand == 1 else "stand as they are"
        out.line(f"{patches(stand)} of {state.onto} {verb}")
    out.put(
        pin=state.pin,
        onto=state.onto,
        plan=[{"pin": row.pin, "patches": list(map(cell_json, row.cells))} for row in rows],
    )
    for cell in rows[-1].cells:
        for old, new in cell.moved.items():
            out.line(f"{cell.patch}: {old} is {new} in {state.onto}")
        for hunk in cell.taken:
            out.line(f"{cell.patch}: {state.onto} has it already: {hunk}")
        if cell.proof == "obsolete":
            out.find(
                [
                    Finding(
                        "obsolete",
                        f"every witness of {cell.patch} passes on the bare {state.onto}",
                        Where(patch=cell.patch),
                        expected="a witness that fails without the patch",
                        found=f"text: {cell.words}",
                        next=f"patchkit rebase --pin {state.pin} --onto {state.onto} "
                        f"--drop {cell.patch}",
                        note=True,
                    )
                ]
            )


def cell_json(cell: Cell) -> dict[str, object]:
    """What becomes of a patch on a release, for JSON."""
    return {
        "patch": cell.patch,
        "text": cell.text,
        "since": cell.since,
        "taken": list(cell.taken),
        "moved": dict(cell.moved),
        "conflicts": sorted({clash.path for clash in cell.clashes}),
        "hunks": list(cell.hunks),
        "proof": cell.proof,
    }


def status(out: Out, state: State | None) -> int:
    """Where a rebase stands."""
    if state is None:
        out.line("no rebase is under way")
        out.put(under_way=False)
        return out.close()
    out.put(under_way=True, pin=state.pin, onto=state.onto, stopped=state.stopped, at=state.at)
    out.put(settled=sorted(state.resolved), left=dict(state.left))
    out.line(f"{state.pin} onto {state.onto}, {len(state.resolved)} conflict(s) settled")
    for name, reason in state.left.items():
        out.line(f"{name}: {reason}")
    if state.stopped:
        out.line(f"{state.stopped} waits in {os.path.relpath(state.at)}")
        out.line(
            "next: edit there, then patchkit rebase --continue (or --skip/--drop "
            f"{state.stopped}, --abort)"
        )
    else:
        out.line(f"next: patchkit rebase --pin {state.pin} --onto {state.onto} goes on")
    return out.close()
