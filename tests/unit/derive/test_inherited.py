"""Proofs that a carried patch inherits: found however far back, each series read once."""

from __future__ import annotations

from collections import Counter

import pytest

from patchkit.derive.project import Project, find
from patchkit.derive.proofs import locked_proofs
from patchkit.series.listing import Listing
from tests.conftest import SmallProject
from tests.unit.rebase.ground import release, with_sources


def test_a_series_is_read_once_for_all_its_patches(
    locked: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = with_sources(locked)
    proof = project.series / "proofs" / "test_later.py"
    proof.parent.mkdir()
    proof.write_text("def test_nothing(): pass\n")
    for old, new in (("v1.0", "v2.0"), ("v2.0", "v3.0")):
        release(project, new, {"engine/lanes.py": ("def lane_0", f"# {new}\ndef lane_0")})
        done = project.run("rebase", "--pin", old, "--onto", new)
        assert done.code == 0, done.text
    found = find(project.at)
    series = found.series("v3.0")
    read: Counter[str] = Counter()
    real = Project.listing

    def counted(self: Project, pin: str) -> Listing:
        read[pin] += 1
        return real(self, pin)

    monkeypatch.setattr(Project, "listing", counted)
    assert list(locked_proofs(found, "v3.0", series)) == ["v1.0/proofs/test_later.py"]
    assert read == {"v2.0": 1, "v1.0": 1}
