"""`patchkit pin`: a new pin in pins.toml, or the missing half of one."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import Json

EXAMPLES = (
    "Examples:  patchkit pin v0.34.0 --add    patchkit pin nightly --add --commit SHA    "
    "patchkit pin v0.32.0 --complete"
)


def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PIN", help="Its name: the tag's, say v0.34.0.")],
    add: bool = typer.Option(False, "--add", help="Add a pin: from a tag, a release or a commit."),
    complete: bool = typer.Option(
        False, "--complete", help="Ask the git server for the whole commit id, compare, write."
    ),
    upstream: Annotated[
        str | None, typer.Option("--upstream", metavar="NAME", help="Of which upstream.")
    ] = None,
    commit: Annotated[
        str | None,
        typer.Option("--commit", metavar="SHA", help="The commit; compared with the tag's."),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="V", help="The release, where the name is not it."),
    ] = None,
    check: bool = typer.Option(False, "--check", help="Write nothing; say what would be written."),
    as_json: Json = False,
) -> None:
    """Pin a release: its commit and the digests of its files, from several witnesses, compared."""
    from patchkit.check import pinning
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.project import find
    from patchkit.errors import UsageFault
    from patchkit.store.repo import Store

    if add == complete:
        raise UsageFault.because("give --add or --complete", next=f"patchkit pin {name} --add")
    for option, given in (("--upstream", upstream), ("--commit", commit), ("--version", version)):
        if complete and given is not None:
            raise UsageFault.because(f"{option} goes with --add")
    out = Out("pin", as_json=as_json)
    project = find(context.obj)
    with progress(quiet=as_json) as bar, Store.open() as store:
        if add:
            asked = pinning.asked_for(project, name, upstream, commit, version)
            plan = pinning.add(project, store, asked, bar)
        else:
            plan = pinning.complete(project, store, name, bar)
        if plan.changed and not check:
            pinning.write(project, plan)
    out.find(plan.findings)
    pin = plan.pin
    out.put(
        pin=pin.name,
        upstream=pin.upstream,
        commit=pin.commit,
        commit_prefix=pin.commit_prefix,
        files=dict(pin.files),
        written=plan.changed and not check,
    )
    rows = [("commit", pin.commit or f"{pin.commit_prefix}… (first digits)")]
    rows += [(file, f"sha256:{digest}") for file, digest in sorted(pin.files.items())]
    out.table(f"{pin.name}, {pin.upstream}", ("what", "id"), rows)
    if not plan.changed:
        out.line("nothing to complete: the tag is the pinned commit")
    elif check:
        out.line("nothing was written (--check)")
    else:
        out.line("written: pins.toml" + (", and the pin in its lock" if plan.lock else ""))
        out.line(f"next: patchkit fetch --pin {pin.name}")
    raise typer.Exit(out.close())
