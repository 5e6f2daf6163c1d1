"""What `python -m tests.faults --keep` has run, scene by scene and way by way, in counted.json."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "counted.json"
Row = tuple[int, int, int]
"""Points at which the command was stopped, states that no way before had left, faults."""


@dataclass
class Counts:
    """scenes: {scene: {"on": the day, "machine": its class, "ways": {way: row}}}."""

    scenes: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, at: Path) -> Counts:
        """What stands in the file, nothing where there is none."""
        return cls(json.loads(at.read_text()) if at.exists() else {})

    def write(self, at: Path) -> None:
        """A scene a line; a run that ends early leaves a whole file."""
        rows = (f"{json.dumps(n)}: {json.dumps(s)}" for n, s in sorted(self.scenes.items()))
        new = at.with_name(f"{at.name}.new")
        new.write_text("{\n" + ",\n".join(rows) + "\n}\n")
        new.replace(at)

    def add(self, scene: str, way: str, row: Row) -> None:
        """One way of a scene has been run today."""
        kind = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
        fresh = {"on": date.today().isoformat(), "machine": kind, "ways": {}}
        self.scenes.setdefault(scene, fresh)["ways"][way] = list(row)

    def with_scene(self, name: str, found: dict[str, Any]) -> Counts:
        """The same with the ways of one scene that were just run in place of what was known."""
        ways = {**self.scenes.get(name, {}).get("ways", {}), **found["ways"]}
        return Counts({**self.scenes, name: {**found, "ways": ways}})

    def sums(self, way: str = "") -> Row:
        """The rows of all scenes together, or those of one way."""
        scenes = self.scenes.values()
        rows = [row for s in scenes for name, row in s["ways"].items() if way in ("", name)]
        points, states, faults = ([row[n] for row in rows] for n in range(3))
        return sum(points), sum(states), sum(faults)

    def lines(self) -> Iterator[str]:
        """A row a scene with the points of each way; what SECURITY.md says is the last line."""
        ways = sorted({way for scene in self.scenes.values() for way in scene["ways"]})
        yield f"{'scene':18}" + "".join(f"{way:>12}" for way in ways) + f"{'faults':>8}  on"
        for name, scene in sorted(self.scenes.items()):
            points = "".join(f"{scene['ways'].get(way, [0])[0]:>12,}" for way in ways)
            faults = sum(row[2] for row in scene["ways"].values())
            yield f"{name:18}{points}{faults:>8}  {scene['on']}, {scene['machine']}"
        yield f"{'all':18}" + "".join(f"{self.sums(way)[0]:>12,}" for way in ways)
        yield self.sentence()

    def sentence(self) -> str:
        """What the documents say."""
        points, states, faults = self.sums()
        ways = {way for scene in self.scenes.values() for way in scene["ways"]}
        return (
            f"{points:,} stops, {len(self.scenes)} scenes, {len(ways)} ways, "
            f"{states:,} different states, {faults} faults"
        )
