"""How `lint` finds what it is to look at, and shows what it found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchkit.errors import OK, REFUSED, Refused, UsageFault

if TYPE_CHECKING:
    from patchkit.authoring.mend import Linted
    from patchkit.cli.out import Out
    from patchkit.derive.project import Project
    from patchkit.series.lint import Lint

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


@dataclass(frozen=True)
class Asked:
    """The command line of `lint`."""

    names: tuple[str, ...]
    pin: str | None
    fix: bool
    source: str | None
    offline: bool


def lint(out: Out, start: str, asked: Asked, *, quiet: bool) -> int:
    """Lint, after mending where that was asked for; the exit code."""
    from patchkit.authoring.mend import lint_pin

    project = _project(start, asked)
    if project is not None and project.recovered is not None:
        out.line(f"an interrupted {project.recovered.what} was undone first")
    chosen = _chosen(project, asked) if project is not None else {}
    if asked.fix and project is not None and chosen:
        _mend(out, start, asked, chosen, quiet)
    looked = [lint_pin(project, pin, only) for pin, only in chosen.items() if project is not None]
    if not chosen:
        looked.append(_files(out, asked))
    lints = [each for linted in looked for each in linted.lints]
    for each in lints:
        _show(out, each)
    counts = {level: sum(e.level == level for e in lints) for level in STYLES}
    patches = sum(linted.patches for linted in looked)
    fixable = sum(bool(e.fix) for e in lints)
    out.put(lints=[e.to_json() for e in lints], patches=patches, counts=counts, fixable=fixable)
    words = ", ".join(f"{n} {level}(s)" for level, n in counts.items() if n) or "nothing to say"
    out.line(f"{patches} patch(es): {words}")
    if fixable and not asked.fix:
        out.line(f"next: patchkit lint --fix mends {fixable} of them")
    return REFUSED if counts["error"] + counts["warning"] or not out.ok() else OK


def _project(start: str, asked: Asked) -> Project | None:
    """The project; None where there is none and only files were named."""
    from patchkit.derive.project import find

    try:
        return find(start)
    except Refused as refusal:
        only_files = asked.names and all(map(os.path.isfile, asked.names))
        if only_files and refusal.findings[0].name == "not-a-project":
            return None
        raise


def _chosen(project: Project, asked: Asked) -> dict[str, list[str] | None]:
    """Pin -> the patches of it to look at, None for all; empty where loose files are meant."""
    from patchkit.authoring.mend import members, missing

    pins = [project.pins.pin(asked.pin).name] if asked.pin else list(project.pins.pins)
    pins = [name for name in pins if asked.pin or project.has_series(name)]
    if not asked.names:
        return dict.fromkeys(pins)
    found = {pin: members(project, pin, asked.names) for pin in pins}
    ours: dict[str, list[str] | None] = {pin: names for pin, names in found.items() if names}
    if not ours:
        absent = [name for name in asked.names if not os.path.lexists(name)]
        if absent:
            raise UsageFault(*map(missing, absent))
    return ours


def _mend(
    out: Out, start: str, asked: Asked, chosen: dict[str, list[str] | None], quiet: bool
) -> None:
    from patchkit.authoring.mend import mend
    from patchkit.authoring.session import session
    from patchkit.cli.progress import progress
    from patchkit.cli.written import finish, said_first

    with (
        progress(quiet=quiet) as bar,
        session(start, source=asked.source, offline=asked.offline, progress=bar) as held,
    ):
        said_first(out, held)
        for pin, only in chosen.items():
            ready = mend(held, held.project.pins.pin(pin), only)
            finish(out, ready, held.commit(ready, "lint --fix"))


def _files(out: Out, asked: Asked) -> Linted:
    """Loose files, mended in place where that was asked for."""
    from patchkit.authoring.mend import lint_files
    from patchkit.files.atomic import given_file, write_file
    from patchkit.series.lint import fix_patch

    files: list[tuple[str, bytes]] = []
    for name in asked.names:
        data = given_file(name)
        if asked.fix:
            fixed = fix_patch(data, name)
            if fixed != data:
                write_file(name, fixed, os.stat(name).st_mode & 0o777)
                out.line(f"mended: {name}")
            data = fixed
        files.append((name, data))
    return lint_files(files)


def _show(out: Out, lint: Lint) -> None:
    from patchkit.cli.out import shown

    where = lint.where
    place = shown(lint.path or where.patch or "series")
    if where.patch_line:
        place += f":{where.patch_line}"
    out.line(f"{place}: {lint.level}: {lint.rule}: {lint.message}", style=STYLES[lint.level])
    rows: Sequence[tuple[str, str]] = (("--fix", lint.fix), ("next:", lint.next))
    for label, text in rows:
        if text:
            out.line(f"    {label} {text}")
