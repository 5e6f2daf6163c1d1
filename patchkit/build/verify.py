"""A wheel against what the same inputs give now: equal, or which members differ."""

from __future__ import annotations

import os
from dataclasses import dataclass

from patchkit.build.content import Content, digest_of_wheel, read_all
from patchkit.build.wheelfile import Wheel, open_wheel
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Refused, Where
from patchkit.source.digest import digest_of
from patchkit.target.dist_info import STATE
from patchkit.target.installed_state import BUILD, State, load_state

SHOWN = 20
HOWS = {f"patchkit-{how}": how for how in ("overlay", "empty", "cuda", "cpu")}


@dataclass(frozen=True)
class Claim:
    """What a wheel says of itself: how it was built, and its record."""

    how: str
    state: State


def claim_of(path: str) -> Claim:
    """Read what the wheel `path` says of itself. Raises Refused(not-built-from-this)."""
    with open_wheel(path, digest_of(path)) as wheel:
        name = f"{wheel.dist_info}/{STATE}"
        text = wheel.read(f"{wheel.dist_info}/WHEEL").decode("utf-8", "replace")
        maker = next((w.split()[1] for w in text.splitlines() if w.startswith("Generator: ")), "")
        if name not in wheel.members or maker not in HOWS:
            raise Refused(
                Finding(
                    "not-built-from-this",
                    f"{wheel.file_name} says nothing of a series: patchkit did not build it",
                    Where(file=path),
                    expected=f"a wheel with {STATE} in its dist-info",
                    found=maker or "no Generator line",
                    next="patchkit build --pin PIN --stack NAME builds one",
                )
            )
        state = load_state(wheel.read(name, 64 << 20), f"{wheel.file_name}: {name}")
        if state.made_by != BUILD:
            raise Refused(Finding("not-built-from-this", f"{wheel.file_name} was patched in place"))
        return Claim(HOWS[maker], state)


def compare(path: str, again: str) -> list[Finding]:
    """not-built-from-this findings, empty where the two wheels install the same files.

    A note where only the zip around them differs.
    """
    first, second = digest_of(path), digest_of(again)
    if first == second:
        return []
    with open_wheel(path, first) as old, open_wheel(again, second) as new:
        return _differing(path, old, new)


def _differing(path: str, old: Wheel, new: Wheel) -> list[Finding]:
    first, second = read_all(old), read_all(new)
    was, now = _without_label(old, first), _without_label(new, second)
    lines = [
        f"{show_path(name)}: {_words(was.get(name), now.get(name))}"
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    ]
    there, here = digest_of_wheel(first), digest_of_wheel(second)
    same = there == here and old.file_name == new.file_name
    return [
        Finding(
            "not-built-from-this",
            f"{os.path.basename(path)} is not what its inputs give"
            if not same
            else f"{os.path.basename(path)} holds what its inputs give, packed by another program",
            Where(file=path),
            expected=f"{new.file_name}, sha256:{new.sha256}, content {here}",
            found=f"{old.file_name}, sha256:{old.sha256}, content {there}",
            next="" if same else "do not install it; look at the members that differ",
            details=_capped(lines),
            note=same,
        )
    ]


def _without_label(wheel: Wheel, contents: dict[str, Content]) -> dict[str, Content]:
    """The members with one name for the dist-info folder, which holds the label in its name."""
    lead = f"{wheel.dist_info}/"
    return {
        f"*.dist-info/{name[len(lead) :]}" if name.startswith(lead) else name: content
        for name, content in contents.items()
    }


def _capped(lines: list[str]) -> tuple[str, ...]:
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return (*lines[:SHOWN], *more)


def _words(was: Content | None, now: Content | None) -> str:
    if was is None:
        return "missing"
    if now is None:
        return "nothing gives it"
    if was.sha256 != now.sha256:
        return f"sha256 {was.sha256[:12]}… instead of {now.sha256[:12]}…"
    return "executable bit"
