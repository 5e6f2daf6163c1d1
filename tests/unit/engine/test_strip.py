"""Names to paths, and finding the root."""

from __future__ import annotations

import pytest

from patchkit.engine.apply import apply_patch
from patchkit.engine.model import Section
from patchkit.engine.strip import Root, find_root, strip_name, target_paths
from tests.unit.engine.making import diff, numbered, patch, tree

OLD, NEW = numbered(1, 9), [*numbered(1, 4), "new\n", *numbered(6, 9)]


def edit(old: str, new: str | None = None) -> str:
    """A plain edit of one file under any two names."""
    body = diff("x", OLD, NEW).split("\n", 3)[3]
    return f"--- {old}\n+++ {new or old}\n{body}"


def created(name: str) -> str:
    return f"--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+new\n"


TEXT = "".join(OLD)


@pytest.mark.parametrize(
    ("name", "strip", "path"),
    [
        ("a/b/c.py", 0, "a/b/c.py"),
        ("a/b/c.py", 1, "b/c.py"),
        ("a//b/c.py", 1, "b/c.py"),
        ("./b/c.py", 1, "b/c.py"),
        ("/b/c.py", 1, "b/c.py"),
        ("c.py", 1, None),
        ("a/", 1, None),
        ("a/b c/d.py", 1, "b c/d.py"),
    ],
)
def test_stripping_counts_slashes_as_git_does(name: str, strip: int, path: str | None) -> None:
    assert strip_name(name, strip) == path


@pytest.mark.parametrize("suffix", [".orig", "~", ".before", "-old"])
def test_edit_with_a_suffix_on_one_name_means_the_other(suffix: str) -> None:
    section = Section("modify", f"a/x.py{suffix}", "b/x.py")
    assert target_paths(section, Root()) == ("x.py", "x.py")
    turned = Section("modify", "a/x.py", f"b/x.py{suffix}")
    assert target_paths(turned, Root()) == ("x.py", "x.py")


def test_two_files_in_one_edit_are_none() -> None:
    with pytest.raises(ValueError, match="different files"):
        target_paths(Section("modify", "./e/x.py", "../new/e/x.py"), Root())


def test_rename_lines_have_no_prefix_to_strip() -> None:
    section = Section("rename", "e/x.py", "e/y.py", bare_names=True)
    assert target_paths(section, Root(1, "d")) == ("d/e/x.py", "d/e/y.py")
    assert target_paths(section, Root(0)) == ("e/x.py", "e/y.py")
    assert target_paths(section, Root(2)) == ("x.py", "y.py")


def test_given_strip_level_is_not_questioned() -> None:
    found = find_root(tree({"e/x.py": TEXT}), patch(edit("a/e/x.py")), strip=3)
    assert found == Root(3)


@pytest.mark.parametrize(
    ("name", "root"),
    [
        ("a/e/x.py", Root(1)),
        ("e/x.py", Root(0)),
        ("a/x.py", Root(1, "e")),
        ("x.py", Root(0, "e")),
        ("/usr/lib/python3/dist-packages/e/x.py", Root(5)),
        ("/opt/v/lib/python3.12/site-packages/e/x.py", Root(6)),
        ("site-packages/e/x.py", Root(1)),
        ("a/recipe/overlay/e/x.py", Root(3)),
    ],
)
def test_root_is_where_the_file_is(name: str, root: Root) -> None:
    assert find_root(tree({"e/x.py": TEXT, "setup.py": ""}), patch(edit(name))) == root


def test_most_files_win() -> None:
    files = {"x.py": TEXT, "e/x.py": TEXT, "e/y.py": TEXT}
    found = find_root(tree(files), patch(edit("a/x.py") + edit("a/y.py")))
    assert (found.strip, found.directory) == (1, "e")


def test_known_package_is_the_only_folder_tried() -> None:
    base = tree({"other/x.py": TEXT})
    assert find_root(base, patch(edit("a/x.py")), package="e") == Root(1)
    assert find_root(base, patch(edit("a/x.py"))) == Root(1, "other")


def test_new_file_follows_the_others() -> None:
    base = tree({"e/x.py": TEXT})
    assert find_root(base, patch(created("b/new.py") + edit("a/x.py"))) == Root(1, "e")


@pytest.mark.parametrize(
    ("name", "strip"), [("b/e/new.py", 1), ("e/new.py", 0), ("b/new/new.py", 1), ("new.py", 0)]
)
def test_new_file_alone_stands_where_git_reads_it(name: str, strip: int) -> None:
    found = find_root(tree({"e/x.py": TEXT, "e/new/y.py": ""}), patch(created(name)))
    assert found == Root(strip)


def test_name_is_never_stripped_to_fit_another_folder() -> None:
    base = tree({"e/core/x.py": TEXT})
    assert find_root(base, patch(edit("a/e/x.py"))) == Root(1)


def test_dots_and_absolute_names_are_not_stripped_away() -> None:
    base = tree({"e/x.py": TEXT})
    assert find_root(base, patch(edit("a/b/c/e/x.py", "../b/c/e/x.py"))) == Root(1)
    assert find_root(tree({"etc/x": ""}), patch(created("/etc/y"))) == Root(0)


def test_other_fitting_root_is_reported() -> None:
    files = {"tools/x.py": TEXT, "e/tools/x.py": TEXT}
    found = find_root(tree(files), patch(edit("a/tools/x.py")))
    assert (found.strip, found.directory, found.also) == (1, "", ("e/tools/x.py",))
    assert [f.note for f in found.findings] == [True]
    assert found.findings[0].next.startswith("patchkit apply … --directory e")
    files["e/tools/x.py"] = "other\n"
    assert find_root(tree(files), patch(edit("a/tools/x.py"))) == Root(1)


def test_git_s_reading_stays_where_another_root_is_exact_and_that_is_said() -> None:
    files = {"tools/x.py": "moved\n" + TEXT, "e/tools/x.py": TEXT}
    found = find_root(tree(files), patch(edit("a/tools/x.py")))
    assert (found.strip, found.directory, found.also) == (1, "", ("e/tools/x.py",))
    assert "is not exact there, and fits exactly at another root" in found.findings[0].message
    assert found.findings[0].note


@pytest.mark.parametrize("name", ["a/x.py", "x.py"])
def test_an_exact_fit_beats_a_file_of_the_same_name(name: str) -> None:
    files = {"a1/x.py": "other\n" * 9, "b2/x.py": "moved\n" + TEXT, "c3/x.py": TEXT}
    found = find_root(tree(files), patch(edit(name)))
    assert (found.directory, found.findings) == ("c3", ())


def test_several_equally_good_roots_are_none() -> None:
    files = {"a1/x.py": TEXT, "b2/x.py": TEXT, "c3/x.py": "other\n"}
    one = patch(edit("a/x.py"))
    (finding,) = find_root(tree(files), one).findings
    assert not finding.note
    assert "equally well at 2 roots" in finding.message
    assert finding.next.endswith("--directory a1 or --directory b2")
    outcome = apply_patch(tree(files), one)
    assert outcome.state == "refused"
    assert [f.name for f in outcome.findings] == ["ambiguous"]
    assert find_root(tree(files), one, directory="b2") == Root(1, "b2")


def test_a_patch_that_is_there_already_does_not_go_to_another_root() -> None:
    files = {"a1/x.py": "".join(NEW), "b2/x.py": TEXT}
    (finding,) = find_root(tree(files), patch(edit("a/x.py"))).findings
    assert "equally well" in finding.message


def test_a_root_with_the_folder_of_the_new_file_is_the_better_one() -> None:
    files = {"a1/x.py": TEXT, "b2/x.py": TEXT, "b2/new/y.py": ""}
    found = find_root(tree(files), patch(edit("a/x.py") + created("b/new/n.py")))
    assert (found.directory, found.findings) == ("b2", ())
