"""How alike two files are, by git's estimate: the share of the larger one's bytes that stand in
chunks both have.

A chunk is a line, or 64 bytes of a longer one (git's diffcore-delta). Their order has no influence,
so a file that was moved and edited is found under its new name.
"""

from __future__ import annotations

from collections import Counter

from patchkit.engine.merge import is_binary
from patchkit.engine.model import SYMLINK, File
from patchkit.engine.text import split_lines

ENOUGH = 0.5
"""From here on git takes a new file for the old one under another name."""
CHUNK = 64


def likeness(one: File, two: File) -> float:
    """0 to 1: how much of the larger file both have. An empty file is like none, and a symbolic
    link only like its own twin."""
    if not one.data or not two.data:
        return 0.0
    if (one.mode == SYMLINK) is not (two.mode == SYMLINK):
        return 0.0
    if one.data == two.data:
        return 1.0
    if one.mode == SYMLINK:
        return 0.0
    smaller, larger = sorted((len(one.data), len(two.data)))
    if smaller < larger * ENOUGH:
        return smaller / larger * ENOUGH  # too far apart for the lines to be counted
    shared = _chunks(one.data) & _chunks(two.data)
    return min(sum(len(chunk) * n for chunk, n in shared.items()) / larger, 1.0)


def _chunks(data: bytes) -> Counter[bytes]:
    """The chunks of a file and how often each is there; a text's CR LF counts as LF."""
    if not is_binary(data):
        data = data.replace(b"\r\n", b"\n")
    return Counter(
        line[at : at + CHUNK] for line in split_lines(data) for at in range(0, len(line), CHUNK)
    )
