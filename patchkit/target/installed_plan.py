"""What a plan for one installed package is, and the base that it begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from patchkit.engine.apply import Outcome
from patchkit.engine.model import SYMLINK, File, Overlay, Tree
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import Root
from patchkit.target.dist_info import Dist
from patchkit.target.installed_base import blob_oid, linked, read_state, record_disagrees
from patchkit.target.installed_replay import gives_back, take_back
from patchkit.target.installed_state import BUILD, Recorded, State
from patchkit.target.installed_tree import InstalledTree
from patchkit.target.installed_words import Words, of
from patchkit.target.installed_write import Part

KEPT = 16 << 20
"""Bytes of base files that a state holds in any case."""
APPLIED = "applied"
ALREADY = "already-applied"
REFUSED = "refused"


@dataclass(frozen=True)
class Plan:
    """What is to be done to one package, or why nothing can be.

    kind: APPLIED, ALREADY or REFUSED. part: what to write, None unless APPLIED. outcomes: one a
    patch, in order. left_out: tree paths that an installed package lacks. changed: site paths
    whose bytes the patches change, seen from what stands there now.
    """

    dist: Dist
    kind: str
    part: Part | None = None
    outcomes: tuple[Outcome, ...] = ()
    left_out: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    changed: tuple[str, ...] = ()
    state: State | None = field(default=None, compare=False)

    @property
    def ok(self) -> bool:
        """Whether only notes were found."""
        return all(f.note for f in self.findings)


def patchable(dist: Dist, words: Words) -> State | None:
    """The state of a package that may be patched or reverted in place.

    Raises Refused(unsupported) where a wheel was built with its patches: there is no base to go
    back to.
    """
    state = read_state(dist)
    if state is not None and state.made_by == BUILD:
        raise Refused(
            Finding(
                "unsupported",
                f"{dist.name} {dist.version} was built with its patches ({of(state)}): "
                "its base files are not here",
                Where(file=dist.at("patchkit.json")),
                expected="a package that was patched in place, or the base wheel",
                found="a wheel that patchkit built",
                next=f"reinstall the base wheel: {dist.reinstall}, then {words.apply}",
            )
        )
    return state


def base_files(tree: InstalledTree, state: State) -> dict[str, File | None]:
    """Tree path -> the file before patching, for every path of the state; ids as in its lock.

    Raises Refused(verify-failed, …) where the record does not give them back.
    """
    changes: Mapping[str, File | None] = state.kept
    if not changes:
        changes, wrong = take_back(tree, state.patches)
        if wrong:
            raise Refused(*wrong)
    out: dict[str, File | None] = {}
    for path in sorted(state.chain.paths):
        before = state.chain.before(path)
        file = changes[path] if path in changes else tree.get(path)
        if blob_oid(before) != (file.oid if file is not None else None):
            raise Refused(
                Finding(
                    "verify-failed",
                    f"taking the patches out of {show_path(path)} does not give the file back",
                    Where(file=path),
                    expected=blob_oid(before) or "no file",
                    found=file.oid if file is not None else "no file",
                    next=tree.dist.reinstall,
                )
            )
        out[path] = File(file.data, before.mode) if file is not None and before else None
    return out


def read_base(
    root: Root, tree: InstalledTree, state: State | None, paths: list[str]
) -> tuple[dict[str, File | None], list[Finding]]:
    """Tree path -> file before patching, for `paths` and all of the state, and foreign-edit
    findings. Raises Refused(symlink-in-path, verify-failed)."""
    base: dict[str, File | None] = base_files(tree, state) if state is not None else {}
    findings = []
    inside = [inner for path in paths if path not in base and (inner := tree.site_path(path))]
    links = [inner for inner in inside if (f := root.get(inner)) and f.mode == SYMLINK]
    if links:
        raise Refused(linked(tree.dist, links))
    for path in paths:
        inner = tree.site_path(path)
        if path in base or inner is None:
            continue
        file = root.get(inner)
        if file is not None:
            wrong = record_disagrees(tree.dist, inner, file)
            findings += [wrong] if wrong is not None else []
        base[path] = tree.get(path)
    return base, findings


def with_kept(
    tree: Tree,
    final: Mapping[str, File | None],
    base: Mapping[str, File | None],
    patches: tuple[Recorded, ...],
) -> Mapping[str, File | None]:
    """The base files to put into the state: with them an edit by hand can be discarded. None where
    they are too many, and the patches give them back."""
    size = sum(len(file.data) for file in base.values() if file is not None)
    if size > KEPT and gives_back(Overlay(tree, final), patches, base):
        return {}
    return dict(base)
