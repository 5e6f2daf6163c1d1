"""`python -m tests.faults [SCENE… WAY…]`: every point of every scene in every way, counted.

A line a scene: writes and gits of the command, points at which it was stopped, different states
that these left, faults. Exit 1 with a fault.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.faults.matrix import KINDS, SCENES, Case, Places
from tests.faults.place import warm_up


def main(words: list[str]) -> int:
    """Run the scenes and ways that are named, all without one."""
    warm_up()
    kinds = [kind for kind in KINDS if kind in words] or KINDS
    names = [word for word in words if word not in KINDS]
    total = [0, 0, 0]
    print(f"{'scene':18}{'writes':>8}{'gits':>6}{'points':>8}{'states':>8}{'faults':>8}{'s':>6}")
    with tempfile.TemporaryDirectory(prefix="patchkit-faults-") as home:
        places = Places(Path(home))
        for name in names or sorted(SCENES, key=lambda n: SCENES[n].setup.__name__):
            began = time.monotonic()
            faults: list[str] = []
            case = Case(name, places)
            for kind in kinds:
                for number in case.every(kind):
                    try:
                        case.stop(number, kind)
                    except AssertionError as error:
                        faults.append(f"{kind} {number}: {error}")
            counts = (case.points, len(case.shapes), len(faults))
            total = [a + b for a, b in zip(total, counts, strict=True)]
            row = "".join(f"{n:>8}" for n in counts)
            took = time.monotonic() - began
            print(f"{name:18}{case.writes:>8}{case.gits:>6}{row}{took:>6.0f}", flush=True)
            for fault in faults[:3]:
                print("    " + fault.replace("\n", "\n    "), flush=True)
    print(f"{'all':32}" + "".join(f"{n:>8}" for n in total))
    return int(total[2] > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
