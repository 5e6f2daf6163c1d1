"""How strictly hunks are placed: exact (a locked series) or loose, and what is allowed by name."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_FUZZ = 2
"""Fuzz 3 drops all context of an ordinary hunk; it is refused even where a patch asks for it."""


@dataclass(frozen=True)
class Allow:
    """What one loose patch allows by name. fuzz: context lines that may be dropped at each end
    (at most MAX_FUZZ is honoured). line_endings: "" or "target": read the patch with the file's
    own line ends.
    """

    fuzz: int = 0
    line_endings: str = ""


@dataclass(frozen=True)
class Rule:
    """How strictly a patch is placed.

    exact: the whole pre-image at the computed line, byte for byte, else drift; otherwise the
    loose rule (a unique place may be taken at an offset). accept: (path, 1-based line) pairs that
    a person chose for hunks that may stand at several places. pin_base: the tree is a verified
    upstream release, so that a patch found in it is `upstreamed`.
    """

    exact: bool = False
    allow: Allow = field(default_factory=Allow)
    accept: frozenset[tuple[str, int]] = frozenset()
    pin_base: bool = False


LOOSE = Rule()
EXACT = Rule(exact=True, pin_base=True)
