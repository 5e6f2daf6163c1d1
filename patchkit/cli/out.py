"""What a verb says: colours and tables for a terminal, plain lines in a pipe, or one JSON.

A verb collects everything in an `Out`; nothing else prints. Findings go to standard error,
results to standard output; with `--json` there is one object on standard output and no more.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

from patchkit.cli.streams import say
from patchkit.engine.plain import plain, plain_but_tabs
from patchkit.errors import OK, REFUSED, Finding

if TYPE_CHECKING:
    from rich.console import Console


class Out:
    """One run's output. ok() is whether only notes were found."""

    def __init__(self, verb: str, *, as_json: bool = False) -> None:
        self.verb = verb
        self.as_json = as_json
        self.findings: list[Finding] = []
        self._known: set[Finding] = set()
        self.result: dict[str, Any] = {}

    # -- what was found --------------------------------------------------------------------
    def find(self, findings: Iterable[Finding]) -> None:
        """Take findings in, and show them at once unless the output is JSON."""
        for finding in findings:
            if finding in self._known:
                continue
            self._known.add(finding)
            self.findings.append(finding)
            if not self.as_json:
                show_finding(finding)

    def ok(self) -> bool:
        """Whether nothing but notes was found."""
        return all(f.note for f in self.findings)

    # -- results ---------------------------------------------------------------------------
    def line(self, text: str = "", *, style: str = "") -> None:
        """One line of result, for people."""
        if self.as_json:
            return
        _print(sys.stdout, plain(text), style)

    def table(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: str = ""
    ) -> None:
        """A table. `right` names the columns (blank-separated) that are set to the right."""
        if self.as_json:
            return
        title, columns = plain(title), [plain(column) for column in columns]
        cells = [[plain(c) for c in row] for row in rows]
        rights = set(right.split())
        if is_terminal(sys.stdout):
            _rich_table(title, columns, cells, rights)
        else:
            _plain_table(title, columns, cells, rights)

    def put(self, **values: Any) -> None:
        """Values of the JSON result."""
        self.result.update(values)

    def close(self, code: int | None = None) -> int:
        """Print the JSON where asked; the exit code is returned: 0, or 1 with real findings."""
        if code is None:
            code = OK if self.ok() else REFUSED
        if self.as_json:
            body = {"verb": self.verb, "ok": code == OK, "exit": code, **self.result}
            body["findings"] = [f.to_json() for f in self.findings]
            # ASCII keeps names that are not UTF-8 printable in any locale.
            say(sys.stdout, json.dumps(body, indent=2, sort_keys=True, ensure_ascii=True) + "\n")
        return code


def show_finding(finding: Finding) -> None:
    """One finding on standard error, every part on a line of its own."""
    w = finding.where
    mark, style = ("note", "cyan") if finding.note else ("error", "bold red")
    _print(sys.stderr, f"{mark}: {finding.name}: {plain(finding.message)}", style)
    place = []
    if w.patch is not None:
        place.append(f"patch {shown(w.patch)}" + (f", line {w.patch_line}" if w.patch_line else ""))
    if w.file is not None:
        place.append(f"file {shown(w.file)}" + (f", line {w.line}" if w.line else ""))
    if w.hunk is not None:
        place.append(f"hunk {w.hunk}")
    rows = [
        ("where", "; ".join(place)),
        ("expected", finding.expected),
        ("found", finding.found),
    ]
    for label, text in rows:
        if text:
            for number, part in enumerate(text.split("\n")):
                _print(sys.stderr, f"  {label + ':' if number == 0 else '':9} {plain(part)}")
    for detail in finding.details:
        for part in detail.split("\n"):
            _print(sys.stderr, f"            {plain(part)}")
    if finding.next:
        _print(sys.stderr, f"  next:     {plain(finding.next)}", "green")


def shown(path: str) -> str:
    """A path as git quotes it, where it needs quoting."""
    from patchkit.engine.quote import show_path

    return show_path(path)


# -- terminals -------------------------------------------------------------------------------
def is_terminal(stream: IO[str]) -> bool:
    """Whether a person reads it there, with colours."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def console(stream: IO[str]) -> Console:
    """A rich console that interprets nothing in what it is given."""
    from rich.console import Console

    return Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _print(stream: IO[str], text: str, style: str = "") -> None:
    if style and is_terminal(stream):
        console(stream).print(text, style=style)
        return
    say(stream, text + "\n")


def _rich_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], rights: set[str]
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left")
    for column in columns:
        side = "right" if column in rights else "left"
        table.add_column(Text(column), justify=side, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(c, style=_STATES.get(c, "")) for c in row))
    Console(markup=False, highlight=False, emoji=False).print(table)


_STATES = {
    "applied": "green",
    "would apply": "green",
    "not written": "dim",
    "clean": "green",
    "ok": "green",
    "already-applied": "cyan",
    "refused": "bold red",
    "not tried": "dim",
    "left out": "dim",
}


def _plain_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], rights: set[str]
) -> None:
    lines = [title] if title else []
    widths = [max(len(r[i]) for r in [list(columns), *rows]) for i in range(len(columns))]
    for row in [list(columns), *rows]:
        cells = [
            c.rjust(w) if columns[i] in rights else c.ljust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    _print(sys.stdout, "\n".join(lines))


def diff_line(line: str) -> None:
    """One line of a diff on standard output, coloured on a terminal."""
    style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
    _print(sys.stdout, plain_but_tabs(line), style)
