"""A series moved to a release with more lines in every file ends at the tree of git rebase."""

from __future__ import annotations

import random
from pathlib import Path

from bench.rebase import race
from bench.series import many_patches
from bench.work import CONFIG, QUIET, git

COUNT = 12


def sources() -> dict[str, bytes]:
    draw = random.Random(6)
    return {
        f"pkg/module_{number:02}.py": b"".join(
            b"value_%d = %d\n" % (line, draw.randrange(10**9)) for line in range(300)
        )
        for number in range(45)
    }


def test_many_patches_end_at_the_tree_of_git_rebase(tmp_path: Path) -> None:
    env = QUIET | {"HOME": str(tmp_path)}
    template = tmp_path / "template"
    template.mkdir()
    files = sources()
    for path, data in files.items():
        (template / path).parent.mkdir(exist_ok=True)
        (template / path).write_bytes(data)
    git(template, env, "init", "-q", "-b", "base")
    for key, value in CONFIG:
        git(template, env, "config", key, value)
    git(template, env, "add", "-A")
    git(template, env, "commit", "-q", "-m", "base")
    made = many_patches(files, COUNT)
    assert made.hunks > 2 * COUNT
    raced = race(tmp_path, template, made, env)
    raced.theirs()
    _, tree = raced.ours()
    assert raced.same_tree(tree) == tree
    assert tree != git(raced.repo, env, "rev-parse", "series^{tree}")
    # Every patch only moved: not a line of its hunks is another.
    lines = [
        sum(line.startswith((b"+", b"-")) for line in path.read_bytes().splitlines())
        for pin in ("v1.0", "v2.0")
        for path in sorted((raced.project / "series" / pin).glob("*.patch"))
    ]
    assert lines[:COUNT] == lines[COUNT:]
