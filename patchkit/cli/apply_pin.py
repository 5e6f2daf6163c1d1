"""`patchkit apply --pin`: the series of a pin, under its lock, as a work tree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from patchkit.cli.out import Out
from patchkit.engine.said import state_shown
from patchkit.errors import PatchkitError

if TYPE_CHECKING:
    from patchkit.check.locked import Prepared


def run_pin(
    start: str,
    pin: str | None,
    stack: str | None,
    every: bool,
    to: str | None,
    upto: str | None,
    source: str | None,
    tree_only: bool,
    check: bool,
    offline: bool,
    as_json: bool,
) -> int:
    """Prepare under the lock, then write the work tree; the exit code is returned."""
    from patchkit.check.locked import prepare
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.outputs import output_folder
    from patchkit.derive.project import find
    from patchkit.derive.selection import Selection

    out = Out("apply", as_json=as_json)
    project = find(start)
    chosen = project.one_pin(pin)
    selection = Selection(None if every else project.stack(stack or "default"), upto)
    at = to or output_folder(project, f"{chosen.upstream}-{chosen.name}")
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        ready = prepare(project, chosen, selection, bases, source=source)
        out.find(ready.findings)
        if ready.chain is None:
            _summary(out, ready, selection.name, "refused")
            out.line("nothing was written")
            return out.close()
        if tree_only:
            _summary(out, ready, selection.name, "done")
            out.line(ready.chain.tree)
            return out.close()
        from patchkit.target.worktree import Wanted, would_write, write

        wanted = Wanted(
            chosen.name,
            selection.name,
            ready.tag,
            ready.chain.commits,
            ready.chain.trees,
            dict(ready.base.generated),
        )
        if check:
            out.find(would_write(bases.store, wanted, at))
            _summary(out, ready, selection.name, "would" if out.ok() else "refused")
            out.line("nothing was written (--check)")
            return out.close()
        bar("writing", 0)
        ready.base.complete(bases.store)
        try:
            done = write(bases.store, wanted, at)
        except PatchkitError:
            _summary(out, ready, selection.name, "refused")
            raise
        _summary(out, ready, selection.name, "done")
    if done.recovered is not None:
        out.line(f"an interrupted {done.recovered.what} was undone first")
    words = {
        "new": f"new work tree, {done.files} files",
        "updated": f"updated in place, {done.files} files written or removed",
        "unchanged": "already as wanted, nothing written",
    }
    shown = os.path.relpath(at) if not os.path.relpath(at).startswith("..") else at
    out.put(to=os.path.abspath(at), written=done.kind, files_written=done.files, tag=ready.tag)
    out.line(f"{shown}: {words[done.kind]}; tag {ready.tag}")
    out.line(f"next: cd {shown} && git log --oneline, or patchkit check --pin {chosen.name}")
    return out.close()


def _summary(out: Out, ready: Prepared, stack: str, became: str) -> None:
    """The table and the ids. became: "done", "would" (nothing stands against it) or "refused"."""
    ok, written = became != "refused", became == "done"
    states = [state_shown(r.state, ok=ok, written=written) for r in ready.rows]
    rows = [
        (r.patch, str(r.files), f"+{r.added}", f"-{r.removed}", r.guard or "", state)
        for r, state in zip(ready.rows, states, strict=True)
    ]
    patches = [
        {"patch": r.patch, "guard": r.guard, "state": state}
        for r, state in zip(ready.rows, states, strict=True)
    ]
    title = f"{ready.pin.name}, stack {stack}"
    out.table(title, ("patch", "files", "+", "-", "guard", "state"), rows, right="files + -")
    tree = ready.chain.tree if ready.chain else ""
    commit = ready.chain.commit if ready.chain else ""
    out.put(
        pin=ready.pin.name,
        stack=stack,
        patches=patches,
        base_tree=ready.base.tree_id,
        tree=tree,
        commit=commit,
    )
    out.line(f"base tree    {ready.base.tree_id}  ({ready.base.source})")
    if tree:
        out.line(f"patched tree {tree}")
