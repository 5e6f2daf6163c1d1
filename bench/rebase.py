"""`python -m bench.rebase [N]`: 500 patches moved to a release with three lines more in every file.

git rebase (merge backend) moves the same patches as commits of one repository; both must end at
the same tree. Measured is CPU of the whole process tree, cache and repository warm. Ours writes
patches, series and lock besides.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Cost, median, run
from bench.series import Made, many_patches
from bench.work import CONFIG, git, lay, our_env, patchkit

GOAL = 0.25
"""Our share of git's CPU, at most."""
ROUNDS = 3
ADDED = b"# a line more\n# and another\n# and a third\n"
OLD, NEW = "v1.0", "v2.0"


class Differs(Exception):
    """The two came to different trees."""


@dataclass(frozen=True)
class Race:
    """repo: the releases as branches `base` and `upstream`, the patches as branch `series`.
    project: the same series as a project of ours. env: for git."""

    repo: Path
    project: Path
    cache: Path
    env: Mapping[str, str]

    def theirs(self) -> Cost:
        """git rebase --merge; the branch is put back first."""
        git(self.repo, self.env, "checkout", "-q", "-B", "moving", "series")
        return run(["git", "rebase", "--merge", "-q", "upstream"], self.repo, self.env)[0]

    def ours(self) -> tuple[Cost, str]:
        """patchkit rebase, and the tree that it says; a series of the round before is removed."""
        for path in sorted((self.project / "series" / NEW).glob("*")):
            path.unlink()
        words = ("rebase", "--pin", OLD, "--onto", NEW, "--date", "2031-01-31", "--json")
        command = [*patchkit(), "-C", str(self.project), *words]
        cost, said = run(command, self.project, our_env(self.cache))
        return cost, str(json.loads(said)["tree"])

    def same_tree(self, ours: str) -> str:
        """The tree that both came to. Raises Differs."""
        theirs = git(self.repo, self.env, "rev-parse", "moving^{tree}")
        if ours != theirs:
            raise Differs(f"git rebase: tree {theirs}; patchkit rebase: tree {ours}")
        return ours


def race(at: Path, template: Path, made: Made, env: Mapping[str, str]) -> Race:
    """Lay both out below `at`. template: a repository whose HEAD is the base and nothing else."""
    repo = at / "repo"
    git(at, env, "clone", "-q", "--no-hardlinks", str(template), str(repo))
    for key, value in (*CONFIG, ("uploadpack.allowAnySHA1InWant", "true")):
        git(repo, env, "config", key, value)
    git(repo, env, "config", "uploadpack.allowFilter", "true")
    git(repo, env, "checkout", "-q", "-B", "base")
    _upstream(repo, env, sorted(made.files))
    git(repo, env, "checkout", "-q", "-B", "series", "base")
    mails = at / "mails"
    mails.mkdir()
    for name, data in made.patches:
        (mails / name).write_bytes(data)
    git(repo, env, "am", "-q", *(str(mails / name) for name, _ in made.patches))
    project = at / "project"
    _project(project, repo, env, made)
    moved = Race(repo, project, at / "race-cache", env)
    run([*patchkit(), "-C", str(project), "lock", "--pin", OLD], project, our_env(moved.cache))
    return moved


def _upstream(repo: Path, env: Mapping[str, str], touched: Iterable[str]) -> None:
    """A commit on the base: three lines more at the head of every touched file that it has."""
    git(repo, env, "checkout", "-q", "-B", "upstream", "base")
    for path in touched:
        file = repo / path
        if file.is_file():
            file.write_bytes(ADDED + file.read_bytes())
    git(repo, env, "commit", "-q", "-a", "-m", "upstream")


def _project(at: Path, repo: Path, env: Mapping[str, str], made: Made) -> None:
    series = at / "series" / OLD
    series.mkdir(parents=True)
    for name, data in made.patches:
        (series / name).write_bytes(data)
    (series / "series").write_text("".join(f"{name}\n" for name, _ in made.patches))
    rows = [f'[upstreams.raced]\nkind = "plain"\ngit = "{repo.as_uri()}"\n']
    for pin, branch in ((OLD, "base"), (NEW, "upstream")):
        commit = git(repo, env, "rev-parse", branch)
        rows.append(f'[pins."{pin}"]\nupstream = "raced"\ncommit = "{commit}"\n')
    (at / "pins.toml").write_text("\n".join(rows))


def main() -> int:
    """Measure and print; 1 where the goal is missed."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory(prefix="patchkit-bench-") as scratch:
        at = Path(scratch)
        ground = lay(at)
        made = many_patches(ground.files, count)
        raced = race(at, ground.template, made, ground.env)
        raced.ours()  # fetches what the series needs of the new release
        theirs: list[Cost] = []
        ours: list[Cost] = []
        for _ in range(ROUNDS):
            theirs.append(raced.theirs())
            cost, tree = raced.ours()
            ours.append(cost)
            raced.same_tree(tree)
        one, two = median(theirs), median(ours)
    share = two.cpu / one.cpu
    print(f"{count} patches, {made.hunks} hunks; both at tree {tree}")
    print(f"git rebase --merge   {one.cpu:6.2f} s CPU  {one.rss:5.0f} MB")
    print(f"patchkit rebase      {two.cpu:6.2f} s CPU  {two.rss:5.0f} MB")
    print(f"share {share:.2f}, at most {GOAL} is the goal")
    return 0 if share <= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
