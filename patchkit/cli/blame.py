"""`patchkit blame`: what upstream did to the lines that a patch needs, and in which commit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patchkit.cli.options import Json, Offline, Pin
from patchkit.errors import UsageFault

if TYPE_CHECKING:
    from patchkit.cli.out import Out
    from patchkit.rebase.blame import Need
    from patchkit.rebase.blame_history import Culprit
    from patchkit.rebase.blame_releases import Blamed
    from patchkit.source.history import Told

EXAMPLES = (
    "Examples:  patchkit blame yarn-config-json --onto v0.33.0    "
    "patchkit blame yarn-config-json --hunk 2 --onto v0.33.0 --history ~/vllm"
)
SHOWN = 60
"""Lines of a hunk's upstream diff that are printed; --json has all."""


def run(
    context: typer.Context,
    name: str = typer.Argument(metavar="PATCH", help="Name of a patch; .patch may be left out."),
    onto: str = typer.Option(
        ..., "--onto", metavar="PIN", help="The release, or a commit, tag or branch."
    ),
    hunk: Annotated[
        str | None,
        typer.Option(
            "--hunk", metavar="[FILE:]N", help="Only hunk N (of FILE), as drift names it."
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option("--history", metavar="DIR", help="A git clone: name the commit, too."),
    ] = None,
    pin: Pin = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Follow each hunk's lines over the releases, with a clone to the commit. Writes nothing."""
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.derive import derive
    from patchkit.derive.project import find
    from patchkit.derive.selection import Selection
    from patchkit.rebase.blame import needs_of
    from patchkit.rebase.blame_history import Bisection
    from patchkit.rebase.blame_releases import Release, over_releases
    from patchkit.rebase.onto import widened
    from patchkit.rebase.releases import between
    from patchkit.series.naming import named
    from patchkit.source.history import open_history

    out = Out("blame", as_json=as_json)
    project = find(context.obj)
    old = project.one_pin(pin)
    series = project.series(old.name)
    names = [entry.patch for entry in series.entries]
    patch = named(names, name, old.name)
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        new = widened(bases, old, [onto])[0].pin
        if old.name == new.name:
            raise UsageFault.because("--pin and --onto are the same release")
        project, store = bases.project, bases.store
        tree = bases.get(old).tree(store)
        derived = derive(series, tree, Selection(upto=patch))
        out.find(derived.findings)
        if not derived.ok:
            raise typer.Exit(out.close())
        needs = chosen(needs_of(derived, tree, patch), hunk, patch)
        releases = [Release(p.name, bases.get(p).tree(store)) for p in between(project, old, new)]
        found = over_releases(needs, Release(old.name, tree), releases)
        culprits: list[Culprit | None] = [None] * len(found)
        with open_history(store, history) if history else nullcontext() as opened:
            if opened is not None:
                line = opened.line(opened.commit_of(old), opened.commit_of(new))
                bisection = Bisection(opened, line, tree)
                culprits = [bisection.blame(blamed.need) for blamed in found]
    _show(out, patch, old.name, new.name, list(zip(found, culprits, strict=True)))
    raise typer.Exit(out.close(0))


def chosen(needs: Sequence[Need], hunk: str | None, patch: str) -> list[Need]:
    """The needs that --hunk names. Raises UsageFault where there is none."""
    if hunk is None:
        return list(needs)
    file, _, number = hunk.rpartition(":")
    kept = [n for n in needs if str(n.hunk) == number and file in ("", n.path)]
    if not kept:
        have = ", ".join(f"{n.path}:{n.hunk}" for n in needs)
        raise UsageFault.because(f"{patch} has no hunk {hunk}; it has {have}")
    return kept


def _show(
    out: Out, patch: str, old: str, new: str, rows: Sequence[tuple[Blamed, Culprit | None]]
) -> None:
    from patchkit.rebase.blame_releases import shown_span

    out.put(patch=patch, pin=old, onto=new, hunks=[_as_json(b, c) for b, c in rows])
    table: list[tuple[str, ...]] = []
    for blamed, culprit in rows:
        need = blamed.need
        lines = "(new file)" if need.absent else shown_span(need.lines)
        by = f"{culprit.told.commit[:12]}" if culprit is not None and culprit.told else ""
        hunk = str(need.hunk) if need.hunk else "file"
        table.append((need.path, hunk, lines, blamed.seen.state, blamed.since, by))
    columns = ["file", "hunk", f"lines in {old}", "state", "since", "commit"]
    if not any(row[-1] for row in table):
        columns = columns[:-1]
        table = [row[:-1] for row in table]
    out.table(f"{patch} on {new}", columns, table, right="hunk")
    for blamed, culprit in rows:
        _tell(out, new, blamed, culprit)
    if all(blamed.holds for blamed, _ in rows):
        out.line(f"every line that it needs stands in {new}")


def _tell(out: Out, new: str, blamed: Blamed, culprit: Culprit | None) -> None:
    from patchkit.cli.out import diff_line
    from patchkit.rebase.blame_releases import shown_span

    need = blamed.need
    moved = dict(blamed.moved)
    if culprit is not None:
        for told, name in culprit.renames:
            out.line(f"{need.path} became {name} in {_words(told)}")
    elif moved:
        for release, name in moved.items():
            out.line(f"{need.path} is {name} from {release} on")
    if blamed.holds:
        return
    title = f"{need.path} hunk {need.hunk}" if need.hunk else need.path
    out.line()
    where = "" if blamed.seen.state == "gone" else f", now lines {shown_span(blamed.seen.lines)}"
    out.line(f"{title}: {blamed.seen.state} since {blamed.since}{where}", style="bold")
    if need.on:
        out.line(f"  it stands on lines of {', '.join(need.on)}, too")
    if culprit is not None and culprit.told is not None:
        out.line(f"  {_words(culprit.told)}")
    elif culprit is not None and culprit.why:
        out.line(f"  no commit to name: {culprit.why}")
    if blamed.diff and not out.as_json:
        out.line(f"  {blamed.before} to {blamed.since}:")
        for line in blamed.diff[:SHOWN]:
            diff_line(line)
        if len(blamed.diff) > SHOWN:
            out.line(f"  and {len(blamed.diff) - SHOWN} more line(s); --json has them")


def _words(told: Told) -> str:
    return f"{told.commit[:12]} ({told.day}, {told.author}): {told.subject}"


def _as_json(blamed: Blamed, culprit: Culprit | None) -> dict[str, Any]:
    need = blamed.need
    body: dict[str, Any] = {
        "file": need.path,
        "hunk": need.hunk,
        "lines": [need.lines[0] + 1, need.lines[1]],
        "state": blamed.seen.state,
        "now": {"file": blamed.path, "lines": [blamed.seen.lines[0] + 1, blamed.seen.lines[1]]},
        "since": blamed.since,
        "before": blamed.before,
        "diff": list(blamed.diff),
        "moved": dict(blamed.moved),
        "on": list(need.on),
    }
    if culprit is not None:
        body["history"] = {
            "commit": _told(culprit.told) if culprit.told is not None else None,
            "file": culprit.path,
            "state": culprit.seen.state,
            "renames": [{**_told(told), "file": name} for told, name in culprit.renames],
            "looked": culprit.looked,
            "commits": culprit.of,
            "why": culprit.why,
        }
    return body


def _told(told: Told) -> dict[str, Any]:
    return {
        "id": told.commit,
        "subject": told.subject,
        "author": told.author,
        "day": told.day,
        "pull_request": told.number or None,
    }
