"""The figures in docs/speed.md: put between two marks, so that they are those of the results."""

from __future__ import annotations

from pathlib import Path

from bench.results import Results
from bench.show import show

PAGE = Path(__file__).resolve().parents[1] / "docs" / "speed.md"
BEGIN, END = "<!-- figures: make bench-plot -->\n", "<!-- end of figures -->\n"


def page(text: str, results: Results) -> str:
    """`text` with the figures of `results`. Raises ValueError where a mark is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"docs/speed.md lacks {BEGIN.strip()} or {END.strip()}")
    return f"{before}{BEGIN}```text\n{show(results)}```\n{END}{after}"
