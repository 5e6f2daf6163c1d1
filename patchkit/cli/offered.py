"""A pin that was made on the fly, shown as pins.toml would have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from patchkit.errors import Finding, Where

if TYPE_CHECKING:
    from patchkit.cli.out import Out
    from patchkit.rebase.onto import Onto
    from patchkit.series.pins import Pin


def offer(out: Out, targets: Iterable[Onto]) -> None:
    """The lines that would pin each target that is not pinned, and the command that writes them."""
    from patchkit.rebase.onto import add_command, as_toml

    new = [target.pin for target in targets if target.offered]
    if not new:
        return
    out.put(
        offered=[{"pin": p.name, "upstream": p.upstream, "commit": p.commit} for p in new],
    )
    for pin in new:
        out.line(f"{pin.name} is not in pins.toml; it would be pinned as:")
        for line in as_toml(pin):
            out.line(f"  {line}")
        out.line(f"  ({add_command(pin)})")


def not_pinned(pin: Pin) -> Finding:
    """Why a rebase onto a commit writes nothing yet."""
    from patchkit.rebase.onto import add_command

    return Finding(
        "pin-incomplete",
        f"nothing is written: {pin.name} is not in pins.toml, and a series stands for a pin",
        Where(file="pins.toml"),
        expected=f'a table [pins."{pin.name}"]',
        found="none",
        next=f"the same command with --add-pin, or {add_command(pin)}",
    )
