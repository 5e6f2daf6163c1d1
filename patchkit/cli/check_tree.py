"""`patchkit check --tree DIR`: what the lock says of a tree, path by path."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from patchkit.errors import Finding, UsageFault, Where

if TYPE_CHECKING:
    from patchkit.cli.out import Out
    from patchkit.derive.project import Project
    from patchkit.series.state import TreeState


def check_tree(out: Out, project: Project, pin: str | None, stack: str | None, at: str) -> int:
    """Classify the tree at `at`; the exit code is returned: 0 only for the patched tree."""
    from patchkit.check.tree import classify_folder

    if not os.path.isdir(at):
        raise UsageFault(
            Finding("missing-target", f"there is no folder {at}", Where(file=at), next="--tree DIR")
        )
    name = project.one_pin(pin).name
    if stack is not None:
        project.stack(stack)
    state = classify_folder(project.lock(name), stack or "default", at)
    out.find(findings(state, name, stack or "default", at))
    edited = _elsewhere(at, {p.path for p in state.paths})
    out.find(_edited(path, at) for path in edited or ())
    rows = [(p.path, p.kind, p.patch or "(base)") for p in state.paths]
    out.table("", ("path", "state", "as after"), rows)
    looked = f"looked at {len(rows)} path(s) that the series touches"
    if edited is None:
        out.line(f"{looked}; no other file was looked at ({at} is no work tree of patchkit's)")
    else:
        out.line(f"{looked}, and every other tracked file: {len(edited)} edited")
    out.line(f"{at} is {words(state)}")
    out.put(
        pin=name,
        stack=stack or "default",
        state=state.kind,
        upto=state.patch,
        whole=edited is not None,
        edited=list(edited or ()),
        paths=[{"path": p.path, "state": p.kind, "after": p.patch} for p in state.paths],
    )
    return out.close()


def _elsewhere(at: str, touched: set[str]) -> list[str] | None:
    """Edited files that no patch touches; None where the tree does not say what they were."""
    from patchkit.store.repo import Store
    from patchkit.target.worktree import edited_since

    with Store.open() as store:
        edited = edited_since(store, at)
    return [path for path in edited if path not in touched] if edited is not None else None


def _edited(path: str, at: str) -> Finding:
    return Finding(
        "foreign-edit",
        f"{path} was edited, and no patch touches it",
        Where(file=path),
        next=f"git -C {at} diff -- {path}",
        note=True,
    )


def words(state: TreeState) -> str:
    """The tree's state for people."""
    if state.kind == "upto":
        return f"patched up to {state.patch} ({state.count} patches)"
    return {"mixed": "partly applied"}.get(state.kind, state.kind)


def findings(state: TreeState, pin: str, stack: str, at: str) -> list[Finding]:
    """Why the tree is not the patched one."""
    if state.kind == "patched":
        return []
    if state.kind == "foreign":
        return [
            Finding(
                "foreign-edit",
                f"{p.path} is neither as in {pin} nor as after any patch of {stack}",
                Where(file=p.path),
                expected=str(p.patched or "no file"),
                found=str(p.found or "no file"),
                next=f"git -C {at} diff -- {p.path}",
            )
            for p in state.paths
            if p.kind == "foreign"
        ]
    return [
        Finding(
            "partly-applied",
            f"the tree is {words(state)}, not patched with all of {stack}",
            Where(file=at),
            expected=f"every path as after {stack} of {pin}",
            found=words(state),
            next=f"patchkit apply --pin {pin} --stack {stack} --to {at}",
        )
    ]
