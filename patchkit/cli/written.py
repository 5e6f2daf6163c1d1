"""What a verb that writes the series says when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.errors import UsageFault

if TYPE_CHECKING:
    from patchkit.authoring.sealing import Ready
    from patchkit.authoring.session import Session
    from patchkit.cli.out import Out

SHOWN = 6
"""Files that the last line names."""
QUIET = ("unchanged",)
"""States that the table only counts."""


def said_first(out: Out, run: Session) -> None:
    """What a killed verb had left, which was taken back."""
    if run.recovered is not None:
        out.line(f"an interrupted {run.recovered.what} was undone first")


def finish(out: Out, ready: Ready, written: Sequence[str], *, dry: bool = False) -> None:
    """The table of patches, and the files that were written."""
    from patchkit.check.counts import counts

    out.find(ready.findings)
    sizes = {patch.name: counts(patch) for patch in ready.series.patches}
    rows: list[tuple[str, ...]] = []
    for row in ready.rows:
        if row.state in QUIET and not row.said:
            continue
        size = sizes.get(row.patch)
        files, plus, minus = (str(size[0]), f"+{size[1]}", f"-{size[2]}") if size else ("", "", "")
        rows.append((row.patch, row.state, files, plus, minus, "; ".join(row.said)))
    columns = ["patch", "state", "files", "+", "-", "notes"]
    if not any(row[-1] for row in rows):
        columns = columns[:-1]
        rows = [row[:-1] for row in rows]
    if rows:
        count = len(ready.series.patches)
        title = f"{ready.pin}: {count} patch{'es' if count != 1 else ''}"
        out.table(title, columns, rows, right="files + -")
    out.put(
        pin=ready.pin,
        patches=[{"patch": r.patch, "state": r.state, "said": list(r.said)} for r in ready.rows],
        written=list(written),
        tree=ready.tree,
    )
    if not written:
        out.line("nothing to write: every byte is as it should be")
    elif dry:
        out.line(f"would write {len(written)} file(s); nothing was written (--check)")
    else:
        kept = [path for path in written if ready.files.get(path) is not None]
        gone = [path for path in written if path not in kept]
        out.line(
            "written together: "
            + _names(ready.pin, kept)
            + (f"; removed: {_names(ready.pin, gone)}" if gone else "")
        )


def _names(pin: str, paths: Sequence[str]) -> str:
    """The files, named as the series names them: below its folder."""
    shown = ", ".join(path.removeprefix(f"series/{pin}/") for path in paths[:SHOWN])
    more = len(paths) - SHOWN
    return shown + (f" and {more} more" if more > 0 else "")


def one_place(after: str | None, first: bool) -> None:
    """Raise UsageFault where --after and --first are both given."""
    if after is not None and first:
        raise UsageFault.because("--after and --first exclude each other")
