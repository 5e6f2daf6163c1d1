"""`patchkit show`: one patch, its header, and what it changes."""

from __future__ import annotations

import sys

import typer

from patchkit.cli.options import Json, Pin

EXAMPLES = (
    "Examples:  patchkit show qsa-draft-metadata    patchkit show --raw NAME | git apply --stat"
)


def run(
    context: typer.Context,
    name: str = typer.Argument(metavar="PATCH", help="Name of a patch; .patch may be left out."),
    pin: Pin = None,
    raw: bool = typer.Option(False, "--raw", help="The file's bytes as they are."),
    as_json: Json = False,
) -> None:
    """Show a patch: where it stands, its header, and its diff."""
    from patchkit.check.counts import counts
    from patchkit.cli.out import Out, is_terminal, shown
    from patchkit.cli.streams import say_bytes
    from patchkit.derive.project import find
    from patchkit.errors import UsageFault
    from patchkit.series.naming import named

    if raw and as_json:
        raise UsageFault.because("--raw and --json exclude each other: raw bytes are not JSON")
    out = Out("show", as_json=as_json)
    project = find(context.obj)
    chosen = project.one_pin(pin).name
    series = project.series(chosen, strict=False)
    names = [e.patch for e in series.entries]
    wanted = named(names, name, chosen)
    at = names.index(wanted)
    patch, header, entry = series.patches[at], series.headers[at], series.entries[at]
    if raw:
        if is_terminal(sys.stdout) and not _shows(patch.data):
            raise UsageFault.because(
                f"{wanted} holds control characters, which do something to a terminal",
                next=f"patchkit show {wanted} --raw > FILE",
            )
        say_bytes(patch.data)
        raise typer.Exit(0)
    files, plus, minus = counts(patch)
    out.put(
        pin=chosen,
        patch=wanted,
        place=at + 1,
        guard=entry.guard,
        sha256=patch.sha256,
        header=header.view(),
        files=[s.path for s in patch.sections],
        added=plus,
        removed=minus,
    )
    out.line(f"{wanted}  ({at + 1} of {len(names)} in {chosen})", style="bold")
    rows = [("Subject", header.description), ("From", header.author), ("Date", header.date)]
    rows += [(field.name, field.value) for field in header.fields]
    rows += [("Guard", entry.guard or "(none)"), ("Sha256", patch.sha256)]
    for label, value in rows:
        if value:
            out.line(f"{label}: {value}")
    out.line()
    for text in header.long.splitlines():
        out.line(text)
    out.line()
    out.line(f"{files} file(s), +{plus} -{minus}")
    for section in patch.sections:
        out.line(f"  {section.kind:7} {shown(section.path)}")
    out.line()
    if not as_json:
        _diff(patch.data[len(patch.header) :])
    raise typer.Exit(out.close(0))


def _shows(data: bytes) -> bool:
    """Whether a terminal does no more than show the text."""
    from patchkit.engine.plain import plain_but_tabs

    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    return all(plain_but_tabs(line) == line for line in text.split("\n"))


def _diff(data: bytes) -> None:
    from patchkit.cli.out import diff_line

    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        diff_line(line)
