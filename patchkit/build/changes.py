"""What a patched tree changes in a wheel, and the changes that no wheel can take from a copy."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from patchkit.engine.model import GITLINK, SYMLINK
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Where
from patchkit.store.tree import Listed, StoreTree
from patchkit.target.installed_cut import NOT_PACKAGED
from patchkit.upstreams import Known

SHOWN = 20


@dataclass(frozen=True)
class Changes:
    """Tree paths, sorted: put (new or changed, as they are then), gone, and left_out (no wheel
    holds them). native: those that take effect only when something is built."""

    put: Mapping[str, Listed]
    gone: tuple[str, ...]
    left_out: tuple[str, ...]
    native: tuple[str, ...]

    @property
    def touched(self) -> tuple[str, ...]:
        """Every path that the wheel sees."""
        return tuple(sorted({*self.put, *self.gone}))


def changed(base: Mapping[str, Listed], patched: Mapping[str, Listed]) -> dict[str, Listed | None]:
    """Path -> what it is in the patched tree (None: it is gone), where the two trees differ."""
    return {p: patched.get(p) for p in sorted({*base, *patched}) if base.get(p) != patched.get(p)}


def listing(tree: StoreTree) -> dict[str, Listed]:
    """Every file of a tree, without contents."""
    return {listed.path: listed for listed in tree.walk()}


def member_of(known: Known, path: str) -> str:
    """Where a tree path of the package stands in a wheel."""
    return path.removeprefix(f"{known.root}/") if known.root else path


def sort_out(
    known: Known, differing: Mapping[str, Listed | None], members: Collection[str]
) -> Changes:
    """Which of the differing paths an overlay takes. members: names in the base wheel."""
    put: dict[str, Listed] = {}
    gone: list[str] = []
    left_out: list[str] = []
    native: list[str] = []
    for path, now in differing.items():
        if needs_build(known, path):
            native.append(path)
        elif not known.package or known.outside_package(path):
            left_out.append(path)
        elif known.native(path) and member_of(known, path) not in members:
            # A package may ship sources, for compiling at run time: those are its data.
            native.append(path)
        elif now is None:
            gone.append(path)
        else:
            put[path] = now
    return Changes(put, tuple(gone), tuple(left_out), tuple(native))


def needs_build(known: Known, path: str) -> bool:
    """Whether a path outside the package may shape a wheel: sources, build scripts, metadata."""
    return (not known.package or known.outside_package(path)) and not _inert(path)


def refuse(
    known: Known,
    changes: Changes,
    base: Mapping[str, Listed],
    members: Collection[str],
    title: str,
    way_out: str,
) -> list[Finding]:
    """Why the changes cannot be laid over a wheel; empty where they can."""
    found = []
    if changes.native:
        found.append(
            Finding(
                "needs-build",
                f"{title} changes what takes effect only when it is built, "
                "so the official wheel with other files would not be it",
                Where(file=changes.native[0]),
                expected=f"changes of Python and data below {known.package or 'the package'}/",
                found=f"{len(changes.native)} other paths",
                next=way_out,
                details=tuple(show_path(p) for p in changes.native),
            )
        )
    for path, now in changes.put.items():
        if now.mode in (SYMLINK, GITLINK):
            found.append(
                Finding(
                    "unsupported",
                    f"{show_path(path)} is a link, and wheels hold none",
                    Where(file=path),
                    expected="a file",
                    found=f"mode {now.mode:06o}",
                )
            )
        elif path not in base and member_of(known, path) in members:
            found.append(
                Finding(
                    "target-exists",
                    f"{show_path(path)} is new in {title}, but the base wheel has another such "
                    "file that its build made",
                    Where(file=path),
                    expected="no such file in the wheel",
                    found="one",
                    next="give the file another name, or build from source",
                )
            )
    return found


def _inert(path: str) -> bool:
    """Whether a path outside the package has no influence on any wheel of the project."""
    first, slash, _ = path.partition("/")
    if not slash:
        return first.startswith(".") or first.lower().startswith(("changelog", "contributing"))
    return first in NOT_PACKAGED or first.startswith(".")
