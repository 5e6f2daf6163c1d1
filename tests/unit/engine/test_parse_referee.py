"""The parser against `git apply`: the same patches, the same names, the same counts."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from patchkit.engine.model import Patch, Section, path_bytes
from patchkit.engine.parse import names_of, scan
from tests.cases.loader import load_cases
from tests.unit.engine.git_referee import CONFIG, LINE, OPTIONS, Git, two_trees

Rows = list[tuple[int, int, bytes]]


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    return Git(tmp_path_factory.mktemp("referee"))


def stripped(section: Section, strip: int) -> bytes:
    name = path_bytes(section.path)
    count = max(strip - 1, 0) if section.bare_names else strip
    rest = name.split(b"/", count)[count] if count else name
    return re.sub(b"/+", b"/", rest)


def rows(patch: Patch, strip: int) -> Rows:
    """What `git apply --numstat` would say."""
    found = []
    for section in patch.sections:
        tags = [tag for hunk in section.hunks for tag, _ in hunk.lines]
        found.append((tags.count(b"+"), tags.count(b"-"), stripped(section, strip)))
    return found


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(trees=two_trees(), options=st.sampled_from(OPTIONS), config=st.sampled_from(CONFIG))
def test_every_text_patch_of_git_diff_is_read_as_git_reads_it(git, trees, options, config) -> None:
    old, new = git.trees(*trees)
    data = git.diff(old, new, *options, config=config)
    plain = "--no-prefix" in options or "diff.noprefix=true" in config
    strip = 0 if plain and "--src-prefix=old/" not in options else 1
    note(data.decode("latin-1"))
    want = git.numstat(data, strip)
    found = scan(data, "x.patch")
    if b"\nBinary files " in b"\n" + data:
        assert want is None or "binary-unsupported" in {f.name for f in found.findings}
        return
    if want is None:
        # git 2.39 loses a name with a folder that ends in a space, where only its own
        # "diff --git" line has it (t4135 has no such name).
        assert not data or found.findings or b" /" in data
        return
    assert not found.findings
    assert rows(found.patch, strip) == want


SEEDS = [
    data
    for case in load_cases()
    if not case.generated
    for _, data in case.patch_files()
    if data and not scan(data, "x").findings
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good patch, or two in one file, with a few lines gone, doubled, new or cut."""
    lines = [
        line
        for seed in draw(st.lists(st.sampled_from(SEEDS), min_size=1, max_size=2))
        for line in seed.split(b"\n")[:-1]
    ]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1)) if lines else 0
        step = draw(st.sampled_from(["drop", "double", "line", "tag", "number", "blank", "move"]))
        if step == "drop":
            del lines[at : at + 1]
        elif step == "double":
            lines[at:at] = lines[at : at + draw(st.integers(1, 12))]
        elif step == "line":
            lines[at:at] = draw(st.lists(LINE, min_size=1, max_size=2))
        elif step == "tag" and lines:
            lines[at] = draw(st.sampled_from([b" ", b"+", b"-", b"\\ ", b"@"])) + lines[at][1:]
        elif step == "number" and lines:
            old = draw(st.sampled_from([b"1", b"3", b"5", b"6", b"7"]))
            lines[at] = lines[at].replace(old, draw(st.sampled_from([b"0", b"4", b"6", b""])), 1)
        elif step == "blank" and lines:
            lines[at] = b"" if not lines[at].strip() else lines[at].strip()
        elif step == "move" and lines:
            lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(at))
    data = b"".join(line + b"\n" for line in lines)
    return data[: -draw(st.integers(1, 9))] if draw(st.integers(0, 5)) == 5 else data


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=damaged())
def test_a_damaged_patch_is_refused_or_read_as_git_reads_it(git: Git, data: bytes) -> None:
    note(data.decode("latin-1"))
    found = scan(data, "x.patch")
    names = [name for section in found.patch.sections for name in names_of(section)]
    if found.findings or not all("/" in name for name in names):
        return
    if not reads_more_than_git(found.patch):
        assert git.numstat(data) == rows(found.patch, 1)


def reads_more_than_git(patch: Patch) -> bool:
    """`--- /dev/null` without "new file mode" under a git header, where git looks for
    dev/null; and a git header behind a byte order mark, which git does not see.
    """
    return patch.data.startswith(b"\xef\xbb\xbf") or any(
        s.git and s.kind in ("create", "delete") and b" file mode " not in s.raw
        for s in patch.sections
    )
