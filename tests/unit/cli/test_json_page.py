"""docs/json.md names every key that a verb prints, every state of a patch, every finding."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import patchkit
from patchkit.authoring import commits, form
from patchkit.engine import said
from patchkit.errors import NAMES
from tests.unit.cli.desk import LANES, Desk

ROOT = Path(patchkit.__file__).parent
PAGE = (ROOT.parent / "docs" / "json.md").read_text()
ALWAYS = {"verb", "ok", "exit", "findings"}


def words(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def row(verb: str) -> set[str]:
    """What the row of the verb names."""
    for line in PAGE.splitlines():
        cells = line.split(" | ")
        if len(cells) == 2 and line.startswith("| `") and verb in words(cells[0]):
            return words(cells[1])
    raise AssertionError(f"no row for {verb}")


def keys(value: Any, deep: int = 2) -> set[str]:
    """The keys of an object and of the objects in its lists."""
    if isinstance(value, list):
        return set().union(*(keys(v, deep) for v in value))
    if not isinstance(value, dict) or not deep:
        return set()
    return set(value).union(*(keys(v, deep - 1) for v in value.values() if isinstance(v, list)))


PATCH = f"--- a/{LANES}\n+++ b/{LANES}\n@@ -20,3 +20,3 @@\n line 19\n-line 20\n+XX\n line 21\n"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("apply --pin", ["apply", "--pin", "base", "--to", "out"]),
        ("apply FILE… --to", ["apply", "x.patch", "--to", "d"]),
        ("revert", ["revert", "--to", "d"]),
        ("check", ["check"]),
        ("check --tree", ["check", "--tree", "out"]),
        ("list", ["list"]),
        ("show", ["show", "five"]),
        ("lock", ["lock"]),
        ("edit", ["edit", "five"]),
        ("import", ["import", "x.patch", "--author", "A <a@b.org>", "--check"]),
        ("refresh", ["refresh", "five"]),
        ("rename", ["rename", "five", "vee", "--check"]),
        ("drop", ["drop", "five", "--check"]),
        ("lint", ["lint"]),
        ("export", ["export", "--format", "quilt", "-o", "exported"]),
        ("graph", ["graph"]),
        ("report", ["report", "-o", "site"]),
        ("doctor", ["doctor"]),
        ("cache", ["cache"]),
    ],
)
def test_a_verb_prints_no_key_that_the_page_lacks(begun: Desk, name: str, args: list[str]) -> None:
    (begun.at / "x.patch").write_text(PATCH)
    (begun.at / "d/engine").mkdir(parents=True)
    (begun.at / "d" / LANES).write_text("".join(f"line {n}\n" for n in range(40)))
    if name in ("revert", "check --tree"):
        begun.run("apply", "x.patch", "--to", "d")
        begun.run("apply", "--pin", "base", "--to", "out")
    body = begun.json(*args)
    found = keys(body, 1 if name in ("doctor", "graph") else 2) - ALWAYS - keys(body["findings"])
    if name == "doctor":
        found -= {k for k in found if " " in k or k not in {"project", "pins", "at", "command"}}
    assert found <= row(name), sorted(found - row(name))
    assert found, "it prints something"


def test_every_key_of_every_verb_is_on_the_page() -> None:
    named = words(PAGE)
    put = {
        keyword.arg
        for path in sorted((ROOT / "cli").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "put"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "out"
        for keyword in node.keywords
        if keyword.arg
    }
    assert len(put) > 60
    assert put <= named, sorted(put - named)


def test_every_finding_is_on_the_page_and_no_other() -> None:
    part = PAGE.partition("## The names of findings")[2]
    assert words(part) == NAMES


def test_every_state_is_on_the_page() -> None:
    part = " ".join(PAGE.partition("## The state of a patch")[2].split())
    for state in (form.NEW, form.REFRESHED, form.RENUMBERED, form.REWRITTEN, form.HEADER):
        assert f"`{state}`" in part
    for state in (form.UNCHANGED, commits.DROPPED, "refused", "left out", "not tried", "applied"):
        assert f"`{state}`" in part
    for ok in (True, False):
        assert f"`{said.state_shown('applied', ok=ok, written=False)}`" in part
