"""A carried header keeps every byte but Last-Update and Rebased-From, whatever its shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SmallProject
from tests.unit.rebase.ground import release, with_sources

NOTES = "Notes  for the reviewer.\n\n engine/lanes.py | 2 +-\n 1 file changed\n\n"
MAIL = (
    "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n"
    'From: "A. Author" <a@example.invalid>\nDate: Mon, 30 Nov 2026 12:00:00 +0000\n'
    "Subject: [PATCH] lanes\nX-Own: kept\nLast-update: 2026-11-30\nForwarded: no,\n not yet\n\n"
    "Why.  \n\n\nMore.\n---\n"
) + NOTES
DEP3 = "Description: lanes\n long text\n .\n more\nAuthor: A. Author <a@example.invalid>\n"
PROSE = "Lanes,  as they are.\n\n  Indented: yes\n"


def carried(locked: SmallProject, header: str, edit: tuple[str, str]) -> tuple[str, str]:
    """The header of `later` on the new release, and its diff there."""
    project = with_sources(locked)
    patch = project.series / "later.patch"
    diff = patch.read_text().partition("diff --git")[2]
    patch.write_text(f"{header}diff --git{diff}")
    assert project.run("lock").code == 0
    release(project, "v2.0", {"engine/lanes.py": edit})
    done = project.run("rebase", "--pin", "v1.0", "--onto", "v2.0", "--date", "2031-02-03")
    assert done.code == 0, done.text
    assert project.run("check", "--pin", "v2.0").code == 0
    said = project.run("diff", "--series", "v1.0", "v2.0", "later", "--json")
    (row,) = json.loads(said.out)["patches"]
    text = (project.at / "series" / "v2.0" / "later.patch").read_text()
    head, _, new = text.partition("diff --git")
    return head, f"{row['state']} {new}"


MOVED = ("def lane_0", "# a\n# b\ndef lane_0")
CONTEXT = ("    return 8\n\n\ndef", "    return 8\n# near\n\ndef")
FIELDS = "Last-Update: 2031-02-03\nRebased-From: v1.0/later.patch\n"


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (
            MAIL,
            MAIL.replace("Last-update: 2026-11-30\n", "Last-Update: 2031-02-03\n").replace(
                " not yet\n", " not yet\nRebased-From: v1.0/later.patch\n"
            ),
        ),
        (DEP3, DEP3 + FIELDS),
        (f"{DEP3}---\n{NOTES}", f"{DEP3}{FIELDS}---\n{NOTES}"),
        (PROSE, f"Description: Lanes, as they are.\n{FIELDS}\n\n  Indented: yes\n"),
        ("", f"{FIELDS}\n"),
    ],
    ids=["mail", "dep3", "dep3-notes", "prose", "none"],
)
@pytest.mark.parametrize("edit", [MOVED, CONTEXT], ids=["moved", "context"])
def test_a_header_keeps_its_bytes(
    locked: SmallProject, header: str, wanted: str, edit: tuple[str, str]
) -> None:
    head, rest = carried(locked, header, edit)
    assert head == wanted
    assert rest.startswith("same" if edit is MOVED else "changed"), rest
    assert (" # near\n" in rest) == (edit is CONTEXT)


def test_a_patch_that_a_lower_one_rewrites_keeps_its_header(locked: SmallProject) -> None:
    patch = locked.series / "later.patch"
    diff = patch.read_text().partition("diff --git")[2]
    patch.write_text(f"{MAIL}diff --git{diff}")
    assert locked.run("lock", "--source", str(locked.base)).code == 0
    done = locked.run("edit", "deeper", "--source", str(locked.base))
    assert done.code == 0, done.text
    (at,) = (Path(locked.at) / "build").iterdir()
    lanes = at / "engine" / "lanes.py"
    lanes.write_text(lanes.read_text().replace(*CONTEXT))
    done = locked.run("refresh", "--source", str(locked.base), "--tree", str(at))
    assert done.code == 0, done.text
    assert patch.read_text().startswith(MAIL)
    assert " # near\n" in patch.read_text()
