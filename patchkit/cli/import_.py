"""`patchkit import`: patch files, mails, quilt folders, pull requests, a fork's commits, overlays
and scripts into the series."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.options import (
    Accept,
    After,
    Author,
    Check,
    Date,
    First,
    Guard,
    Json,
    Offline,
    Pin,
    Source,
)

EXAMPLES = (
    "Examples:  patchkit import fix.patch    patchkit import ../their-series    "
    "patchkit import pr.mbox --after lanes-keep-order    "
    "patchkit import series/v0.30.0    (after quilt refresh in it)    "
    "patchkit import --pr 54513 --exclude 'tests/*'    "
    "patchkit import --commits v0.30.0..mine --from ../vllm-fork    "
    "patchkit import --overlay files/    patchkit import --run './patch_vllm.py {tree}'"
)


def run(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|DIR]...", help="Diffs, mails (- is a pipe), or one quilt folder."
        ),
    ] = None,
    pull: Annotated[
        str | None,
        typer.Option(
            "--pr", metavar="N|URL", help="A pull request; its head commit is recorded in Origin."
        ),
    ] = None,
    commits: Annotated[
        str | None,
        typer.Option("--commits", metavar="A..B", help="A fork's commits, one patch each."),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="REPO",
            help="Where --commits are: a clone or an address. With --pr: a clone that has it.",
        ),
    ] = None,
    overlay: Annotated[
        str | None,
        typer.Option("--overlay", metavar="DIR", help="Whole files that lie over the tree."),
    ] = None,
    run_: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="COMMAND",
            help="Run it on a copy ({tree}), and take what it changed. No shell is used.",
        ),
    ] = None,
    no_run: bool = typer.Option(False, "--no-run", help="Refuse --run."),
    allow_no_op: bool = typer.Option(
        False, "--allow-no-op", help="Take what --run changed though some edits matched nothing."
    ),
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", metavar="GLOB", help="Leave these files out, as 'tests/*'; several times."
        ),
    ] = None,
    pin: Pin = None,
    after: After = None,
    first: First = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What the patch is to be called.")
    ] = None,
    guard: Guard = None,
    strip: Annotated[
        int | None, typer.Option("-p", "--strip", metavar="N", min=0, help="Strip level.")
    ] = None,
    directory: Annotated[
        str | None,
        typer.Option("--directory", metavar="DIR", help="Folder that the names are rooted in."),
    ] = None,
    accept: Accept = None,
    recount: bool = typer.Option(False, "--recount", help="Correct the counts of hunk headers."),
    fuzz: Annotated[
        int, typer.Option("--fuzz", metavar="N", min=0, max=2, help="Context that may differ.")
    ] = 0,
    replace: bool = typer.Option(
        False, "--replace", help="Let it take the place of a patch of the same name."
    ),
    author: Author = None,
    date: Date = None,
    check: Check = False,
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Find root, -p level and line ends of what comes, and write it exact, in one form."""
    from patchkit.authoring.importing import How
    from patchkit.authoring.session import session
    from patchkit.authoring.when import when
    from patchkit.cli.apply_loose import place
    from patchkit.cli.bringing import Elsewhere, bring_elsewhere
    from patchkit.cli.given import given
    from patchkit.cli.importing import bring_in
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.cli.written import finish, one_place, said_first

    one_place(after, first)
    asked = Elsewhere(pull, commits, repo, overlay, run_, no_run, allow_no_op, tuple(exclude or ()))
    elsewhere = asked.checked(paths or [])
    moment = when(date)
    how = How(
        strip,
        directory,
        frozenset(place(a) for a in accept or ()),
        recount,
        fuzz,
        replace,
        guard,
        author or "",
        () if elsewhere else tuple(exclude or ()),
        given(context),
    )
    out = Out("import", as_json=as_json)
    with (
        progress(quiet=as_json) as bar,
        session(context.obj, source=source, offline=offline, progress=bar) as held,
    ):
        said_first(out, held)
        chosen = held.pin(pin)
        if elsewhere:
            ready = bring_elsewhere(held, chosen, asked, how, moment, name, after, first)
        else:
            ready = bring_in(held, chosen, paths or [], how, moment, name, after, first)
        finish(out, ready, held.commit(ready, "import", dry=check), dry=check)
    raise typer.Exit(out.close())
