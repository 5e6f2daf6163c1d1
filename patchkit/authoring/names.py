"""Names of patch files: of what a person types, of a subject, of a file that comes from elsewhere.

No running numbers: the order is the series file's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.series.quilt import parse_series

LONGEST = 60
"""Characters of a name made from a subject."""
ENDINGS = (".patch", ".diff")

_TYPED = re.compile(r"[A-Za-z0-9][\w.+-]*(?:/[A-Za-z0-9][\w.+-]*)*", re.ASCII)
_NUMBER = re.compile(r"(?:v\d+-)?\d{1,5}[-_.]+(?=.)")
_MAIL_ENDINGS = (".eml", ".mbox", ".mbx", ".txt", ".mail")


def patch_name(text: str) -> str:
    """The file name that a person means by NAME: .patch is added where it is left out.

    Raises UsageFault where a series file cannot name it.
    """
    name = text if text.endswith(ENDINGS) else f"{text}.patch"
    why = "" if _TYPED.fullmatch(text) else "it has other characters, or begins with one of them"
    try:
        entries = parse_series(f"{name}\n".encode("utf-8", "surrogateescape")).entries
        if not why and [entry.patch for entry in entries] != [name]:
            why = "quilt reads it otherwise"
    except Refused as refusal:
        why = refusal.findings[0].message
    if why:
        raise UsageFault.because(
            f"{text!r} cannot be the name of a patch: {why}",
            next="letters and digits first, then also '-', '_', '.', '+'",
        )
    return name


def free_name(name: str, taken: Collection[str]) -> str:
    """`name`, or it with the first number that makes it free."""
    stem, ending = os.path.splitext(name)
    number = 2
    while name in taken:
        name = f"{stem}-{number}{ending}"
        number += 1
    return name


def from_subject(subject: str) -> str:
    """A name made of a subject's words."""
    words = re.findall(r"[a-z0-9]+", subject.lower())
    name = ""
    for word in words:
        if name and len(name) + 1 + len(word) > LONGEST:
            break
        name += ("-" if name else "") + word[:LONGEST]
    return f"{name or 'patch'}.patch"


def from_file(path: str) -> str:
    """A name for what comes from the file `path`: without numbers in front, ending in .patch."""
    stem = os.path.basename(path)
    for ending in (*_MAIL_ENDINGS, *ENDINGS):
        stem = stem.removesuffix(ending)
    stem = _NUMBER.sub("", stem, count=1) if _NUMBER.match(stem) else stem
    stem = re.sub(r"[^A-Za-z0-9._+-]+", "-", stem).strip("-.") or "patch"
    return f"{stem}.patch"


def subject_from(name: str) -> str:
    """A subject for a patch that nobody has described: the words of its name."""
    stem = os.path.splitext(os.path.basename(name))[0]
    words = re.sub(r"[-_.]+", " ", stem).strip()
    return (words[:1].upper() + words[1:]) or "Change"


def require_free(name: str, taken: Collection[str]) -> None:
    """Raise Refused(duplicate-entry) where the series has a patch of that name."""
    if name in taken:
        raise Refused(
            Finding(
                "duplicate-entry",
                f"the series already has a patch {name}",
                Where(patch=name),
                expected="a name that no line of the series has",
                next=f"patchkit edit {name}, or choose another name",
            )
        )
