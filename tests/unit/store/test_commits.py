from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from patchkit.engine.content import Text, TextFile
from patchkit.engine.model import REGULAR, File
from patchkit.store import Commit, Store
from patchkit.store.commits import git_date, identity

from .conftest import imported

DATE = "Mon, 30 Nov 2026 10:25:24 +0200"
STEPS = [
    Commit({"a": File(b"2\n")}, "A Üser <a@b.example>", DATE, "Subject\n\nThe why.\n"),
    Commit({"d/e": File(b"new\n")}, "B <b@b.example>", "@1700000000 -0730", "Second"),
    Commit({"a": None}, "B <b@b.example>", "", "Third"),
]
BASE = {"a": File(b"1\n"), "b/c": File(b"c\n")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DATE, "1796027124 +0200"),
        ("30 Nov 2026 08:25 +0000", "1796027100 +0000"),
        ("Thu, 1 Jan 1970 00:00:00 GMT", "0 +0000"),
        ("Sun, 29 Feb 2032 23:59:59 -0730", "1961738999 -0730"),
        ("@1700000000 +0530", "1700000000 +0530"),
        ("", "0 +0000"),
    ],
)
def test_a_date_becomes_seconds_and_its_own_offset(text: str, expected: str) -> None:
    assert git_date(text) == expected


@pytest.mark.parametrize(
    "text", ["tomorrow", "2026-11-30", "Mon, 31 Foo 2026 10:00:00 +0000", "1 Jan 1969 00:00 +0000"]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        git_date(text)


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("A B <a@b>", "A B <a@b>"),
        ("a@b", "a@b <a@b>"),
        ("A\nB <a@b>", "A B <a@b>"),
        ('"A, B" <a@b>', "A, B <a@b>"),
        ("<a@b>", "a@b <a@b>"),
    ],
)
def test_an_author_cannot_break_the_commit(author: str, expected: str) -> None:
    assert identity(author) == expected


def test_the_commits_are_those_that_git_would_make(store: Store, referee) -> None:
    base = imported(store, BASE)
    chain = store.commit_chain(base, STEPS, Commit({}, message="base"))
    assert len(chain.commits) == len(chain.trees) == 4
    parent: list[str] = []
    for commit, tree, step in zip(
        chain.commits, chain.trees, [Commit({}, message="base"), *STEPS], strict=True
    ):
        name, mail = identity(step.author).removesuffix(">").split(" <")
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (
                ("NAME", name),
                ("EMAIL", mail),
                ("DATE", "@" + git_date(step.date)),
            )
        }
        made = referee(
            "commit-tree", tree, *parent, input=step.message.rstrip().encode() + b"\n", **who
        )
        assert made.decode().strip() == commit
        parent = ["-p", commit]
    assert referee("ls-tree", "-r", "--name-only", chain.commit) == b"b/c\nd/e\n"
    referee("fsck", "--strict", "--full")


def test_a_chain_goes_on_from_a_commit_of_an_earlier_one(store: Store) -> None:
    base = imported(store, BASE)
    whole = store.commit_chain(base, STEPS, Commit({}, message="base"))
    begun = store.commit_chain(base, STEPS[:2], Commit({}, message="base"))
    ended = store.commit_chain(begun.tree, STEPS[2:], begun.commit)
    assert ended.commit == whole.commit
    assert ended.trees == whole.trees[2:]


def test_trees_alone_need_no_commit(store: Store) -> None:
    base = imported(store, BASE)
    chain = store.commit_chain(base, STEPS, None)
    assert chain.commits == ()
    assert chain.trees[-1] == store.commit_chain(base, STEPS, Commit({})).tree


def test_nothing_outside_the_series_decides_an_id(store: Store, tmp_path) -> None:
    config = tmp_path / "hostile"
    config.write_text("[core]\nautocrlf = true\nhooksPath = /x\n[commit]\ngpgSign = true\n")
    code = f"""
import os
os.umask(0o077)
from patchkit.engine.model import File
from patchkit.store import Commit, Store
with Store.open({str(tmp_path / "other")!r}) as store:
    base = store.import_tree([("a", 0o100644, b"1\\n"), ("b/c", 0o100644, b"c\\n")])
    steps = [Commit({{"a": File(b"2\\n")}}, "A \\u00dcser <a@b.example>", {DATE!r}, "Subject")]
    print(store.commit_chain(base, steps, Commit({{}}, message="base")).commit)
"""
    env = os.environ | {
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_DIR": "/nowhere",
        "GIT_OBJECT_DIRECTORY": "/nowhere",
        "GIT_AUTHOR_NAME": "X",
        "TZ": "Asia/Tokyo",
        "LC_ALL": "de_DE.UTF-8",
        "HOME": str(tmp_path),
        "SOURCE_DATE_EPOCH": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    steps = [Commit(STEPS[0].changes, STEPS[0].author, DATE, "Subject")]
    here = store.commit_chain(imported(store, BASE), steps, Commit({}, message="base"))
    assert done.stdout.strip() == here.commit


def test_a_file_changed_by_forty_patches_reads_back_at_each(store: Store) -> None:
    lines = [b"line %d\n" % n for n in range(400)]
    base = imported(store, {"f": File(b"".join(lines)), "g": File(b"g")})
    steps, states = [], []
    for step in range(40):
        lines[step * 9] = b"patched by %d\n" % step
        states.append(b"".join(lines))
        steps.append(Commit({"f": File(states[-1])}, message=f"patch {step}"))
    chain = store.commit_chain(base, steps, Commit({}))
    for tree, state in zip(chain.trees[1:], states, strict=True):
        found = store.tree(tree).get("f")
        assert found is not None
        assert found.data == state


def test_a_version_is_not_held_longer_than_a_later_step_needs_it(store: Store) -> None:
    """90 files of 1 MB, each changed once: 90 MB if all were held, 16 MB is what a pack holds."""
    base = imported(store, {"f": File(b"1\n"), "g": File(b"1\n")})
    files = (TextFile(Text([b"%d\n" % n, b"x" * (1 << 20)])) for n in range(90))
    steps = [Commit({f"big{n}": file}) for n, file in enumerate(files)]
    tracemalloc.start()
    store.commit_chain(base, steps, Commit({}))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 45 << 20


def test_what_the_engine_made_is_told_by_what_was_replaced_and_reads_back(
    store: Store, referee
) -> None:
    """Patches at both ends of a long file: a delta of the ends alone, not of all between them."""
    lines = [b"line %d of a long file\n" % n for n in range(2000)]
    base = imported(store, {"a": File(b"".join(lines))})
    text, steps, wanted = Text(list(lines)), [], []
    for number in range(40):
        new = list(text.lines)
        new[3:5] = [b"near the top, %d\n" % number] * (number % 3)
        size = len(new)
        new[size - 9 : size - 8] = [b"near the end, %d\n" % number]
        moved = len(new) - len(text.lines)
        edits = [(3, 2, 2 + moved), (len(text.lines) - 9, 1, 1)]
        made = TextFile(Text(new), REGULAR, text, edits)
        steps.append(Commit({"a": made}))
        wanted.append(b"".join(new))
        text = made.text
    chain = store.commit_chain(base, steps, Commit({}))
    for commit, data in zip(chain.commits[1:], wanted, strict=True):
        assert referee("cat-file", "-p", f"{commit}:a") == data
    referee("fsck", "--full", "--strict")
    packs = sorted(Path(store.git_dir, "objects", "pack").glob("*.pack"), key=os.path.getmtime)
    assert packs[-1].stat().st_size < 4 * len(b"".join(lines))
