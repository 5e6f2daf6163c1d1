from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import UsageFault
from patchkit.series.pins import Upstream
from patchkit.source import open_source


def test_each_word_and_path_names_a_source(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_bytes(b"")
    kinds = {
        spec: open_source(spec, upstream).kind
        for spec in ("sdist", "git", str(tmp_path), str(tmp_path / "x.tar.gz"))
    }
    assert list(kinds.values()) == ["sdist", "git", "folder", "sdist"]


def test_anything_else_is_a_wrong_command_line(upstream: Upstream) -> None:
    with pytest.raises(UsageFault) as caught:
        open_source("wheel", upstream)
    assert caught.value.exit_code == 2
    assert "--source wheel" in caught.value.findings[0].message
