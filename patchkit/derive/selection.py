"""Which patches of a series: every guard on, one stack, or the first few of either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from patchkit.series.naming import named
from patchkit.series.pins import Stack
from patchkit.series.quilt import Entry, selects

WHOLE = "(all)"
"""How the whole series is called where a stack's name would stand."""


class Ordered(Protocol):
    """What has entries in series order: a series, parsed or not."""

    @property
    def entries(self) -> tuple[Entry, ...]: ...


@dataclass(frozen=True)
class Selection:
    """A choice. stack: None is the whole series. upto: name of the last patch taken."""

    stack: Stack | None = None
    upto: str | None = None

    @property
    def name(self) -> str:
        """The stack's name, or `WHOLE`."""
        return self.stack.name if self.stack is not None else WHOLE

    def of(self, series: Ordered) -> tuple[bool, ...]:
        """For each patch of the series, whether it is taken.

        Raises UsageFault(missing-patch) where `upto` is not in the series or not in the stack.
        """
        chosen = [self._takes(entry) for entry in series.entries]
        if self.upto is None:
            return tuple(chosen)
        names = [entry.patch for entry in series.entries]
        have = [n for n, c in zip(names, chosen, strict=True) if c]
        last = names.index(named(have, self.upto, self.name))
        return tuple(c and i <= last for i, c in enumerate(chosen))

    def _takes(self, entry: Entry) -> bool:
        return self.stack is None or selects(self.stack.guards, entry)
