"""The results as text: tables, and the promises with their figures."""

from __future__ import annotations

from collections.abc import Sequence

from bench.goals import goals
from bench.results import Results, Row

_TITLES = {
    "patches": "side by side, by number of patches",
    "start": "start-up",
    "growth": "growth with patches",
    "files": "growth with touched files",
}


def show(results: Results) -> str:
    """Everything, in the order in which it is measured."""
    parts = [_part(part, results) for part in _TITLES if results.rows(part)]
    return "\n".join([*parts, _goals(results)]) + "\n"


def _part(part: str, results: Results) -> str:
    about = results.body[part]
    where = about["machine"]
    head = ("n", "tool", "cpu s", "above start", "wall s", "MB", "runs")
    rows = [head, *map(_cells, results.rows(part))]
    return (
        f"{_TITLES[part]} ({where['cores']} cores, {where['processor']}, "
        f"Python {where['python']})\n{_table(rows)}"
    )


def _cells(each: Row) -> tuple[str, ...]:
    if each.note:
        return (str(each.n), each.tool, each.note, "", "", "", "")
    figures = (each.cpu_s, each.above_s, each.wall_s)
    return (
        str(each.n),
        each.tool,
        *(f"{figure:.3f}" for figure in figures),
        f"{each.rss_mb:.0f}",
        str(each.runs),
    )


def _goals(results: Results) -> str:
    words = {True: "kept", False: "missed", None: "not measured"}
    rows = [("promise (500 patches, CPU seconds above start)", "measured", "at most", "")]
    rows += [
        (
            goal.what,
            "" if goal.found is None else f"{goal.found:.3f}",
            f"{goal.most:.3f}",
            words[goal.kept],
        )
        for goal in goals(results)
    ]
    return _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need; figures to the right, words to the left."""
    widths = [max(len(line[at]) for line in rows) for at in range(len(rows[0]))]
    left = [at for at in range(len(widths)) if not rows[-1][at][:1].isdigit()]
    return "".join(
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in rows
    )
