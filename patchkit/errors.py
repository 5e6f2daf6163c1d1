"""The findings and the exceptions of the whole tool; every layer may use them.

A *finding* is one named fact about an input (a drift, a refusal or a note; DESIGN's
vocabulary). Functions return findings as values wherever more than one can be found in
one run; an exception carries findings when nothing useful can follow.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

OK = 0
REFUSED = 1
USAGE = 2
ENVIRONMENT = 3

DRIFT = frozenset(
    [
        "pin-mismatch",
        "tag-moved",
        "head-moved",
        "patch-edited",
        "series-edited",
        "lock-stale",
        "offset",
        "ambiguous",
        "conflict",
        "upstreamed",
        "obsolete",
        "moved",
        "missing-target",
        "duplicate",
        "partly-applied",
        "foreign-edit",
        "wrong-order",
        "not-built-from-this",
        "no-op",
        "unused",
        "sdist-gap",
        "pin-incomplete",
        "proof-broken",
        "proof-fails",
        "proof-missing",
        "proof-stale",
        "guard-cuts",
        "fuzz",
        "already-applied",
        "yanked",
    ]
)
"""Names of differences between what the lock says and what is found."""

REFUSALS = frozenset(
    [
        "corrupt-hunk-count",
        "bare-hunk-header",
        "no-diff",
        "no-file-header",
        "not-unified",
        "encoded-mail",
        "no-context",
        "hunks-out-of-order",
        "overlapping-hunks",
        "duplicate-section",
        "line-endings",
        "target-exists",
        "symlink-in-path",
        "path-escape",
        "binary-unsupported",
        "needs-build",
        "missing-patch",
        "duplicate-entry",
        "bad-series-option",
        "too-large",
        "bad-pins",
        "bad-lock",
        "bad-header",
        "bad-record",
        "network",
        "git",
        "disk",
        "usage",
        "not-a-project",
        "journal",
        "unsupported",
        "verify-failed",
        "script-failed",
        "not-idempotent",
    ]
)
"""Names of refused inputs and surroundings."""

NAMES = DRIFT | REFUSALS


@dataclass(frozen=True)
class Where:
    """The place a finding speaks of. Every part may be absent.

    patch: file name of the patch as the series names it (or as given on the command line).
    file: path in the tree, utf-8 with surrogateescape; renderers quote it.
    hunk: 1-based number of the hunk within its file section.
    line: 1-based line in `file`; patch_line: 1-based line in `patch`.
    """

    patch: str | None = None
    file: str | None = None
    hunk: int | None = None
    line: int | None = None
    patch_line: int | None = None


NOWHERE = Where()


@dataclass(frozen=True)
class Finding:
    """One named fact: what was expected, what was found, where, and what to type next.

    name: a name of `NAMES`. message: one sentence for a person.
    note: True where the finding does not make the command fail (exit 0).
    details: further lines (nearest place, differing lines, candidates), shown indented.
    """

    name: str
    message: str
    where: Where = NOWHERE
    expected: str = ""
    found: str = ""
    next: str = ""
    details: tuple[str, ...] = ()
    note: bool = False

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValueError(f"not a finding's name: {self.name!r}")

    def as_note(self) -> Finding:
        """The same finding as a note."""
        return replace(self, note=True)

    def in_patch(self, patch: str) -> Finding:
        """The same finding, said of `patch`."""
        return replace(self, where=replace(self.where, patch=patch))

    def to_json(self) -> dict[str, Any]:
        """A plain dict; absent parts are left out."""
        out: dict[str, Any] = {"name": self.name, "message": self.message, "note": self.note}
        for key in ("patch", "file", "hunk", "line", "patch_line"):
            value = getattr(self.where, key)
            if value is not None:
                out[key] = value
        for key in ("expected", "found", "next"):
            value = getattr(self, key)
            if value:
                out[key] = value
        if self.details:
            out["details"] = list(self.details)
        return out


_PYTHON = ("invalid literal", "non-", "not enough values", "too many values", "Exceeds")


def unreadable(error: Exception) -> str:
    """Why a document that patchkit wrote cannot be read, in words; an interpreter's own words for
    it (`Expecting value`) tell nobody what is wrong."""
    line = getattr(error, "lineno", None)
    if line is not None:  # JSON
        return (
            f"line {line} is no JSON" if str(getattr(error, "doc", "")).strip() else "it is empty"
        )
    if isinstance(error, UnicodeDecodeError):
        return "it is no text"
    if isinstance(error, KeyError) and error.args:
        return f"its {error.args[0]!r} is missing"
    words = str(error)
    if type(error) is ValueError and words and not words.startswith(_PYTHON):
        return words
    return "it does not have the form that patchkit writes"


class PatchkitError(Exception):
    """Base of everything patchkit raises on purpose. `findings` say why."""

    exit_code = REFUSED

    def __init__(self, *findings: Finding) -> None:
        super().__init__("; ".join(f"{f.name}: {f.message}" for f in findings))
        self.findings = findings


class Refused(PatchkitError):
    """An input is refused or has drifted (exit 1)."""


class UsageFault(PatchkitError):
    """The command line cannot be meant (exit 2)."""

    exit_code = USAGE

    @classmethod
    def because(cls, message: str, next: str = "") -> UsageFault:
        """A usage fault from one sentence."""
        return cls(Finding("usage", message, next=next))


class EnvironmentFault(PatchkitError):
    """Network, git or disk failed (exit 3)."""

    exit_code = ENVIRONMENT
