"""What the tests of `import` share: patches that come, a folder for them, and how it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.authoring.importing import How, bring
from patchkit.authoring.incoming import arrive
from patchkit.authoring.sealing import Ready
from patchkit.errors import Finding, Refused
from tests.unit.authoring.making import AUTHOR, MOMENT, Bench

LANES = "engine/lanes.py"
GATES = "engine/gates.py"
HOW = How(author=AUTHOR)
BARE = """\
--- a/engine/lanes.py
+++ b/engine/lanes.py
@@ -4,5 +4,5 @@
 line 3
 line 4
-line 5
+line five
 line 6
 line 7
"""
MAIL = f"""\
From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001
From: =?UTF-8?q?J=C3=B6rg?= <j@example.org>
Date: Wed, 1 Jan 2031 10:00:00 +0100
Subject: [PATCH 1/2] [Bugfix][Core] Name line five

It was a digit.
---
 engine/lanes.py | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

diff --git a/engine/lanes.py b/engine/lanes.py
index 1111111..2222222 100644
{BARE}--{" "}
2.39.5

"""


def put(bench: Bench, *paths: Path | str, how: How = HOW, **options: object) -> Ready:
    name = options.pop("name", None)
    with bench.session() as (held, standing):
        folder = str(bench.series)
        arrived = arrive(map(str, paths), standing.names, folder=folder, name=name)  # type: ignore[arg-type]
        ready = bring(standing, arrived, how, MOMENT, **options)  # type: ignore[arg-type]
        held.commit(ready, "import")
        return ready


def refused(bench: Bench, *paths: Path | str, how: How = HOW, **options: object) -> list[Finding]:
    before = bench.snapshot()
    with pytest.raises(Refused) as refusal:
        put(bench, *paths, how=how, **options)
    assert bench.snapshot() == before
    return list(refusal.value.findings)


def said(ready: Ready, patch: str) -> str:
    return "; ".join(next(row.said for row in ready.rows if row.patch == patch))


def write(at: Path, text: str | bytes) -> Path:
    at.write_bytes(text.encode() if isinstance(text, str) else text)
    return at
