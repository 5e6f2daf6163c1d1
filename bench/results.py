"""bench/results.json: one row a tool and size. Read and written; ratios between rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.measure import Cost, median

FILE = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Row:
    """What `runs` runs of a tool took, the median of each.

    n: patches of the series, or touched files in the part "files". above_s: cpu_s less that of
    `patchkit --version` where the tool is patchkit; else cpu_s. rss_mb: the largest of its
    processes. note: why there are no figures.
    """

    tool: str
    n: int
    cpu_s: float = 0.0
    above_s: float = 0.0
    wall_s: float = 0.0
    rss_mb: float = 0.0
    runs: int = 0
    note: str = ""


def row(tool: str, n: int, costs: Sequence[Cost], start: float = 0.0) -> Row:
    """The medians of `costs`. start: CPU seconds that are taken off for `above_s`."""
    found = median(costs)
    return Row(
        tool,
        n,
        round(found.cpu, 3),
        round(found.cpu - start, 3),
        round(found.wall, 3),
        round(found.rss, 1),
        len(costs),
    )


class Results:
    """The parts of a results file: "patches" (side by side), "start", "growth", "files"."""

    def __init__(self, body: dict[str, Any] | None = None) -> None:
        self.body = body or {}

    @classmethod
    def load(cls, at: Path = FILE) -> Results:
        """What was measured before; empty where nothing was."""
        return cls(json.loads(at.read_text()) if at.exists() else None)

    def put(self, part: str, rows: Iterable[Row], about: dict[str, Any]) -> None:
        """Replace a part. about: the machine and the versions it was measured with."""
        self.body[part] = {"rows": [_bare(each) for each in rows], **about}

    def rows(self, part: str) -> list[Row]:
        """The rows of a part, in the order of the file."""
        return [Row(**each) for each in self.body.get(part, {}).get("rows", [])]

    def of(self, part: str, tool: str, n: int) -> Row:
        """One row. Raises KeyError."""
        for each in self.rows(part):
            if (each.tool, each.n) == (tool, n):
                return each
        raise KeyError(f"{part}: {tool} with {n}")

    def save(self, at: Path = FILE) -> None:
        """Write the file: sorted keys, one row a line."""
        parts = []
        for name, body in sorted(self.body.items()):
            about = {key: value for key, value in body.items() if key != "rows"}
            lines = [f"  {json.dumps(key)}: {json.dumps(about[key])}," for key in sorted(about)]
            rows = ",\n".join(f"   {json.dumps(each)}" for each in body["rows"])
            parts.append(
                f" {json.dumps(name)}: {{\n" + "\n".join(lines) + f'\n  "rows": [\n{rows}\n  ]\n }}'
            )
        at.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _bare(each: Row) -> dict[str, Any]:
    """A row as a mapping; without figures where it has none."""
    if each.note:
        return {"tool": each.tool, "n": each.n, "note": each.note}
    return {key: value for key, value in asdict(replace(each)).items() if key != "note"}
