"""new, edit and refresh: what is written, what stays, and what is refused with nothing done."""

from __future__ import annotations

from tests.unit.authoring.conftest import Bench


def test_a_new_patch_is_written_with_its_series_line_and_lock(bench: Bench) -> None:
    bench.add_patch("fix-lanes", ("engine/lanes.py", "line 5\n", "line five\n"))
    assert (bench.series / "series").read_text() == "fix-lanes.patch\n"
    assert bench.check() == []
    print((bench.series / "fix-lanes.patch").read_text())
