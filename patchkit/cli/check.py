"""`patchkit check`: everything that has drifted, by name, in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.options import Exclude, Installed, Json, Offline, Pin, Python, Site, Source, Stack

if TYPE_CHECKING:
    from patchkit.derive.base import Bases
    from patchkit.errors import Finding

EXAMPLES = (
    "Examples:  patchkit check    patchkit check --pin v0.30.0 --json    "
    "patchkit check --pin v0.30.0 --tree build/vllm-v0.30.0    patchkit check --installed"
)


def run(
    context: typer.Context,
    pin: Pin = None,
    stack: Stack = None,
    tree: Annotated[
        str | None,
        typer.Option(
            "--tree",
            metavar="DIR",
            help="Say what this tree is instead: of files that patches touch, "
            "and of all tracked ones where apply --pin made it.",
        ),
    ] = None,
    source: Source = None,
    installed: Installed = False,
    python: Python = None,
    site: Site = None,
    exclude: Exclude = None,
    upstream: bool = typer.Option(
        False, "--upstream", help="Ask, too, whether pull requests of the series have moved on."
    ),
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Apply every series again in memory and compare every id with its lock. Exit 1 on drift."""
    from patchkit.cli.out import Out
    from patchkit.derive.project import find
    from patchkit.errors import ENVIRONMENT, UsageFault

    out = Out("check", as_json=as_json)
    if upstream and (offline or installed or tree is not None):
        raise UsageFault.because(
            "--upstream asks the network about a series: not with --offline, --installed or --tree"
        )
    if installed:
        from patchkit.cli.apply_installed import Asked
        from patchkit.cli.check_installed import check_installed

        pins = (pin,) if pin is not None else ()
        asked = Asked(
            context.obj, python, site, pins, stack, exclude=tuple(exclude or ()), as_json=as_json
        )
        raise typer.Exit(check_installed(out, asked))
    if python is not None or site is not None or exclude:
        raise UsageFault.because("--python, --site and --exclude go with --installed")
    project = find(context.obj)
    if tree is not None:
        from patchkit.cli.check_tree import check_tree

        raise typer.Exit(check_tree(out, project, pin, stack, tree))
    if stack is not None:
        project.stack(stack)
    from patchkit.check.pin import check_pin
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases

    names = [project.pins.pin(pin).name] if pin else list(project.pins.pins)
    rows: list[tuple[str, ...]] = []
    reports = []
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        for name in names:
            report = check_pin(project, project.pins.pin(name), bases, stack=stack, source=source)
            out.find(report.findings)
            if upstream and project.has_series(name):
                out.find(_moved(bases, name))
            reports.append(report)
            if not report.stacks:
                rows.append((name, "", "", report.state, ""))
            if report.not_verified:
                out.line(f"{name}: not verified: {', '.join(report.not_verified)}")
            for each in report.stacks:
                rows.append((name, each.name, str(each.patches), each.state, each.tree[:12]))
    out.put(
        pins=[
            {
                "pin": r.pin,
                "state": r.state,
                "source": r.source,
                "base": r.base,
                "not_verified": list(r.not_verified),
                "stacks": [
                    {"name": s.name, "patches": s.patches, "state": s.state, "tree": s.tree}
                    for s in r.stacks
                ],
            }
            for r in reports
        ]
    )
    out.table("", ("pin", "stack", "patches", "state", "patched tree"), rows, right="patches")
    drift = sum(not f.note for f in out.findings)
    out.line(
        f"{drift} finding(s), {len(out.findings) - drift} note(s)" if out.findings else "clean"
    )
    raise typer.Exit(out.close(ENVIRONMENT if any(r.not_verified for r in reports) else None))


def _moved(bases: Bases, pin: str) -> tuple[Finding, ...]:
    """What the git servers say of the pull requests that the pin's patches came from."""
    from patchkit.bring.pull import moved

    project = bases.project
    upstream = project.pins.upstream_of(project.pins.pin(pin))
    return moved(bases.store, upstream, project.series(pin, strict=False))
