"""Synthetic series: seeded edits of real files, written as stacked git patches.

Made without patchkit's own code, so that it cannot agree with itself: a hunk is written from the
edit that was drawn, no diff is searched for. Edits of one patch in one file stand at least `GAP`
lines apart, so each is a hunk of its own with three whole lines of context.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SEED = 20261130
CONTEXT = 3
GAP = 12
FILES = (1, 1, 2, 3)
HUNKS = (1, 1, 2, 2, 4)
"""Files of a patch and hunks of a file, each drawn evenly: 3.6 hunks a patch."""
ADDS = 0.08
"""Share of the patches that add a file."""
SMALLEST = 6000
"""Bytes of the smallest file that is edited."""

Lines = list[bytes]


@dataclass(frozen=True)
class Made:
    """A series. patches: (file name, bytes), in order. files: every touched path at the end."""

    patches: tuple[tuple[str, bytes], ...]
    files: Mapping[str, bytes]
    hunks: int


def pool_of(files: Mapping[str, bytes]) -> list[str]:
    """Paths that may be edited: Python below the package, long enough, ASCII, plain lines."""
    return sorted(
        path
        for path, data in files.items()
        if path.endswith(".py")
        and len(data) >= SMALLEST
        and data.isascii()
        and data.endswith(b"\n")
        and not any(byte in data for byte in b"\r\f\v\x1c\x1d\x1e\0")
    )


def many_patches(files: Mapping[str, bytes], count: int, seed: int = SEED) -> Made:
    """`count` patches of 1 to 3 files and 1 to 4 hunks each, in a pool that grows with them.

    The pool (8 files for 6 patches, 40 for 50, 120 for 500) makes patches stack as in a real
    series: most edit a file that an earlier one edited.
    """
    draw = random.Random(f"{seed} patches {count}")
    size = 8 if count <= 6 else 40 if count <= 50 else max(120, count * 120 // 500)
    pool = draw.sample(pool_of(files), size)
    sheet = _Sheet(files, draw)
    for number in range(count):
        for path in draw.sample(pool, draw.choice(FILES)):
            sheet.edit(number, path, draw.choice(HUNKS))
        if draw.random() < ADDS:
            sheet.create(number, f"vllm/synthetic/module_{number:04}.py")
        sheet.close(number)
    return sheet.made()


def many_files(files: Mapping[str, bytes], touched: int, seed: int = SEED) -> Made:
    """Up to ten patches that touch `touched` different files, one hunk each."""
    draw = random.Random(f"{seed} files {touched}")
    wanted = draw.sample(
        sorted(p for p, data in files.items() if _long(data)),
        touched,
    )
    sheet = _Sheet(files, draw)
    count = min(10, touched)
    for number in range(count):
        for path in sorted(wanted[number::count]):
            sheet.edit(number, path, 1)
        sheet.close(number)
    return sheet.made()


def with_last_changed(made: Made) -> Made:
    """The same series, its last patch adding one more file."""
    name, data = made.patches[-1]
    path, text = "vllm/synthetic/changed.py", b"CHANGED = True\n"
    patches = (*made.patches[:-1], (name, data + _new_file(path, [text])))
    return Made(patches, {**made.files, path: text}, made.hunks + 1)


def _long(data: bytes) -> bool:
    return data.count(b"\n") >= 30 and data.isascii() and data.endswith(b"\n") and b"\r" not in data


class _Sheet:
    """The files while patches are drawn on them."""

    def __init__(self, files: Mapping[str, bytes], draw: random.Random) -> None:
        self.base = files
        self.draw = draw
        self.now: dict[str, Lines] = {}
        self.patches: list[tuple[str, bytes]] = []
        self.body: list[bytes] = []
        self.hunks = 0

    def edit(self, number: int, path: str, count: int) -> None:
        lines = self.now.get(path) or self.base[path].split(b"\n")[:-1]
        old = b"\n".join(lines) + b"\n"
        spots = self._spots(len(lines), count)
        hunks: list[bytes] = []
        new: Lines = []
        at = 0
        for spot in spots:
            kind = self.draw.choice(("insert", "replace", "delete"))
            removed = lines[spot : spot + (0 if kind == "insert" else self.draw.randint(1, 3))]
            added = (
                []
                if kind == "delete"
                else [
                    b"    # synthetic patch %d, line %d, row %d" % (number, spot, row)
                    for row in range(self.draw.randint(1, 4))
                ]
            )
            new += lines[at:spot]
            hunks.append(_hunk(lines, spot, removed, added, len(new)))
            new += added
            at = spot + len(removed)
        new += lines[at:]
        self.now[path] = new
        self.hunks += len(hunks)
        ids = (blob_id(old), blob_id(b"\n".join(new) + b"\n"))
        name = path.encode()
        self.body.append(
            b"diff --git a/%s b/%s\nindex %s..%s 100644\n--- a/%s\n+++ b/%s\n%s"
            % (name, name, ids[0], ids[1], name, name, b"".join(hunks))
        )

    def _spots(self, length: int, count: int) -> list[int]:
        spots: list[int] = []
        for _ in range(count * 4):
            spot = self.draw.randrange(CONTEXT + 1, length - CONTEXT - 4)
            if len(spots) < count and all(abs(spot - other) >= GAP for other in spots):
                spots.append(spot)
        return sorted(spots)

    def create(self, number: int, path: str) -> None:
        lines = [b"# module of synthetic patch %d\n" % number] + [
            b"VALUE_%d = %d\n" % (row, row * number) for row in range(self.draw.randint(5, 60))
        ]
        self.now[path] = b"".join(lines).split(b"\n")[:-1]
        self.hunks += 1
        self.body.append(_new_file(path, lines))

    def close(self, number: int) -> None:
        header = (
            b"From: Synthetic Author <author@example.invalid>\n"
            b"Date: Mon, 30 Nov 2026 12:%02d:%02d +0000\n"
            b"Subject: synthetic change %d\n"
            b"Origin: vendor\nForwarded: not-needed\nLast-Update: 2026-11-30\n\n"
            b"Made by bench/series.py to measure what applying costs.\n---\n\n"
        ) % (number // 60 % 60, number % 60, number)
        self.patches.append((f"synthetic-{number:04}.patch", header + b"".join(self.body)))
        self.body = []

    def made(self) -> Made:
        files = {path: b"\n".join(lines) + b"\n" for path, lines in self.now.items()}
        return Made(tuple(self.patches), files, self.hunks)


def _hunk(
    lines: Sequence[bytes], at: int, removed: Sequence[bytes], added: Sequence[bytes], new_at: int
) -> bytes:
    """The hunk that replaces `removed` at index `at` by `added`; new_at: its index afterwards."""
    before, after = lines[at - CONTEXT : at], lines[at + len(removed) :][:CONTEXT]
    rows = [b" " + x for x in before]
    rows += [b"-" + x for x in removed] + [b"+" + x for x in added]
    rows += [b" " + x for x in after]
    context = len(before) + len(after)
    head = b"@@ -%d,%d +%d,%d @@" % (
        at - CONTEXT + 1,
        context + len(removed),
        new_at - CONTEXT + 1,
        context + len(added),
    )
    return b"\n".join([head, *rows]) + b"\n"


def _new_file(path: str, lines: Sequence[bytes]) -> bytes:
    name = path.encode()
    return b"diff --git a/%s b/%s\nnew file mode 100644\nindex %s..%s\n%s" % (
        name,
        name,
        b"0" * 40,
        blob_id(b"".join(lines)),
        b"--- /dev/null\n+++ b/%s\n@@ -0,0 +1,%d @@\n%s"
        % (name, len(lines), b"".join(b"+" + line for line in lines)),
    )


def blob_id(data: bytes) -> bytes:
    """git's id of a file's bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest().encode()
