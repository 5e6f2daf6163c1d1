"""Projects that several tests of rebase begin with."""

from __future__ import annotations

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import TO, release, with_sources


@pytest.fixture
def carried(locked: SmallProject) -> SmallProject:
    """The series on v1.0 and, carried, on v2.0, which has two lines more in a file."""
    project = with_sources(locked)
    release(project, "v2.0", {"engine/lanes.py": ("def lane_0", "# a\n# b\ndef lane_0")})
    done = project.run(*TO, "--date", "2031-02-03")
    assert done.code == 0, done.text
    return project
