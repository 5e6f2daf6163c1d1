"""`python -m tests.faults [--keep] [SCENE… WAY…]`: every point of every scene in every way.

A line a scene and way: points at which the command was stopped, different states that these left
(of those that no way before left), faults. Exit 1 with a fault. `--keep` writes what ran into
counted.json beside this file; `python -m tests.faults --counts` prints what stands there.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.counts import KEPT, Counts
from tests.faults.matrix import KINDS, SCENES, Case, Places
from tests.faults.place import warm_up

MEMORY = "/dev/shm"
"""Where the folders stand if it is there: no disk has to be waited for."""


def main(words: list[str]) -> int:
    """Run the scenes and ways that are named, all without one."""
    if words == ["--counts"]:
        print("\n".join(Counts.read(KEPT).lines()))
        return 0
    keep = "--keep" in words
    words = [word for word in words if word != "--keep"]
    warm_up()
    kinds = [kind for kind in KINDS if kind in words] or list(KINDS)
    names = [word for word in words if word not in KINDS]
    counts = Counts({})
    print(f"{'scene':18}{'way':12}{'points':>8}{'states':>8}{'faults':>8}{'s':>6}")
    home = MEMORY if os.path.isdir(MEMORY) else None
    with tempfile.TemporaryDirectory(prefix="patchkit-faults-", dir=home) as folder:
        places = Places(Path(folder))
        for name in names or sorted(SCENES, key=lambda n: SCENES[n].setup.__name__):
            case = Case(name, places)
            for kind in kinds:
                _way(case, kind, counts)
            if keep:
                Counts.read(KEPT).with_scene(name, counts.scenes[name]).write(KEPT)
    points, states, faults = counts.sums()
    print(f"{'all':30}{points:>8}{states:>8}{faults:>8}")
    return int(faults > 0)


def _way(case: Case, kind: str, counts: Counts) -> None:
    """Every point of one scene in one way; its row, and what was wrong."""
    began, points, states = time.monotonic(), case.points, len(case.shapes)
    wrong: list[str] = []
    for number in case.every(kind):
        try:
            case.stop(number, kind)
        except AssertionError as error:
            wrong.append(f"{kind} {number}: {error}")
    row = (case.points - points, len(case.shapes) - states, len(wrong))
    counts.add(case.name, kind, row)
    took = time.monotonic() - began
    cells = "".join(f"{n:>8}" for n in row)
    print(f"{case.name:18}{kind:12}{cells}{took:>6.0f}", flush=True)
    for fault in wrong[:3]:
        print("    " + fault.replace("\n", "\n    "), flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
