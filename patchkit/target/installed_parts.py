"""A package that is patched in part (--exclude), or whose record is lost.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Where
from patchkit.target.dist_info import STATE, Dist
from patchkit.target.installed_base import SHOWN
from patchkit.target.installed_packet import Packet, excluded
from patchkit.target.installed_state import State
from patchkit.target.installed_words import of

Parts = Mapping[str, Sequence[str]]
"""Site path that was left out -> the patches that would have changed it."""


def left_out(dist: Dist, state: State) -> dict[str, list[str]]:
    """The package's own paths that --exclude kept from being patched, with their patches.

    Files that no package holds (tests/) are not among them. The recorded patches are read for it,
    and only where something was excluded.
    """
    found: dict[str, list[str]] = {}
    if not state.exclude:
        return found
    from patchkit.engine.strip import Root, target_paths

    for recorded in state.patches:
        root = Root(recorded.strip, recorded.directory)
        for section in recorded.others():
            for path in dict.fromkeys(target_paths(section, root)):
                if path is None or not excluded(path, state.exclude):
                    continue
                inner = state.site_path(path)
                if inner.partition("/")[0] in dist.tops:
                    found.setdefault(inner, []).append(recorded.name)
    return dict(sorted(found.items()))


def shown(parts: Parts) -> str:
    """Paths with their patches, for people."""
    rows = [f"{show_path(path)} ({', '.join(names)})" for path, names in parts.items()]
    more = f", and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return ", ".join(rows[:SHOWN]) + more


def in_part(dist: Dist, state: State, parts: Parts) -> Finding:
    """A note: patched, less what --exclude left out."""
    return Finding(
        "partly-applied",
        f"{dist.name} {dist.version} is patched in part: applied {_by(state.exclude)}, "
        f"without {len(parts)} file(s) of its patches",
        Where(file=dist.at(STATE)),
        expected=f"every file of {of(state)}",
        found=f"without {shown(parts)}",
        next="nothing, if that is meant; else apply again without --exclude",
        note=True,
    )


def lost_record(dist: Dist, title: str = "", next: str = "") -> Finding:
    """That the record of the patches is gone: what is there, and the way out.

    title: what the files are by their content, "" where that is not known; then it is no note.
    """
    return Finding(
        "journal",
        f"{dist.name} {dist.version} was patched, and the record of that is lost: RECORD lists "
        f"{STATE}, and there is none",
        Where(file=dist.at(STATE)),
        expected=f"{STATE}, which says how to take the patches back",
        found=f"no file; by their content the files are {title}" if title else "no file",
        next=next or f"to have the base again: {dist.reinstall}",
        note=bool(title),
    )


def otherwise(dist: Dist, state: State, packet: Packet, apply: str) -> Finding | None:
    """A finding where the package holds the very series of `packet`, and another part of it."""
    same = (
        state.kind == "series"
        and state.lock.pin.name == packet.lock.pin.name
        and state.stack == packet.stack
        and state.digest == packet.digest
    )
    chain = packet.chain
    lacks = {
        packet.site_path(path): [step.patch for step in chain.paths[path][1:]]
        for path in packet.paths()
        if excluded(path, state.exclude)
    }
    more = {state.site_path(p) for p in state.chain.paths if excluded(p, packet.exclude)}
    if not same or not (lacks or more):
        return None
    found = [f"without {shown(lacks)}"] if lacks else []
    found += ["with " + ", ".join(map(show_path, sorted(more)[:SHOWN]))] if more else []
    return Finding(
        "partly-applied" if lacks else "not-built-from-this",
        f"{dist.name} {dist.version} is patched with {'a part' if lacks else 'more'} of "
        f"{packet.title}: it was applied {_by(state.exclude)}, and is compared "
        f"{_by(packet.exclude)}",
        Where(file=dist.at(STATE)),
        expected=f"{packet.title}, series {packet.digest[:12]}, {_by(packet.exclude)}",
        found="; ".join(found),
        next=apply,
    )


def _by(exclude: Sequence[str]) -> str:
    return "with " + " ".join(f"--exclude '{p}'" for p in exclude) if exclude else "in whole"
