"""The site says what `drift` says, loads nothing from outside, and lets nothing hostile through."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from patchkit.report.prose import linked
from tests.conftest import SmallProject


class Page(HTMLParser):
    """What a page holds: its tags with attributes, its text, its ids."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        assert self.open == [], f"{path}: not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "hr", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_the_table_says_what_drift_says(told: SmallProject, site: Path) -> None:
    drift = json.loads(told.run("drift", "--pin", "v1.0", "--json").out)
    (row,) = drift["releases"]
    page = Page(site / "index.html")
    cells = [c for t, a in page.tags if t == "td" and "cell" in (c := a.get("class") or "")]
    told_there = [c.split("s-")[1] for c in cells if "s-applied" not in c]
    assert told_there == [patch["text"] for patch in row["patches"]]
    assert told_there == ["conflict", "conflict", "clean"]
    assert {patch["proof"] for patch in row["patches"]} == {"not proven here"}
    assert page.text.count("not proven here") == 3
    assert "not run here" in page.text
    assert "1 of 3 carry over" in page.text


def test_every_link_resolves(site: Path) -> None:
    seen = 0
    for path, page in pages(site).items():
        for tag, attrs in page.tags:
            for name in ("href", "src"):
                target = attrs.get(name)
                if target is None or urlsplit(target).scheme in ("http", "https"):
                    continue
                seen += 1
                assert (path.parent / unquote(target)).is_file(), f"{path.name}: {tag} {target}"
    assert seen > 10
    reached = {
        (path.parent / unquote(attrs["href"] or "")).resolve()
        for path, page in pages(site).items()
        for tag, attrs in page.tags
        if tag == "a" and not urlsplit(attrs["href"] or "").scheme
    }
    assert {p.resolve() for p in site.rglob("*.html")} <= reached


def test_nothing_is_loaded_from_outside_and_no_script_is_there(site: Path) -> None:
    outside = set()
    for path, page in pages(site).items():
        for tag, attrs in page.tags:
            assert tag not in ("script", "iframe", "object", "embed", "img", "form", "base"), path
            assert not any(name.startswith("on") or name == "style" for name in attrs), (path, tag)
            for name in ("href", "src", "srcset", "action", "data", "poster", "xlink:href"):
                scheme = urlsplit(attrs.get(name) or "").scheme
                if scheme:
                    outside.add(attrs[name])
                    assert (tag, name) == ("a", "href"), (path, tag, attrs)
                    assert scheme in ("http", "https"), attrs
        policy = [a.get("content") for t, a in page.tags if a.get("http-equiv")]
        assert policy == ["default-src 'none'; style-src 'self' file:"]
    assert outside == {"https://example.invalid/pr/1?a=1&b=2", "https://example.invalid/x"}
    assert not re.search(r"url\(|@import|https?:", (site / "style.css").read_text())


def test_hostile_text_is_shown_and_does_nothing(site: Path) -> None:
    raw = (site / "v1.0" / "deeper.html").read_text()
    page = Page(site / "v1.0" / "deeper.html")
    assert "<script>alert(1)</script> & \"quotes\" 'too'" in page.text
    assert "<script" not in raw
    assert "one <item>" in page.text
    assert "<GPU>" in page.text
    assert "Deeper <is> deeper." in page.text
    assert "javascript:alert(1)" in page.text
    assert r"\033[2J" in page.text
    assert r"\u202ebidi" in page.text
    deepest = Page(site / "v1.0" / "deepest.html").text
    assert r"DEPTH = 4 # <b>\033[31m" in deepest
    for path in site.rglob("*.html"):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", path.read_text()), path


def test_a_patch_page_has_all_that_is_known(site: Path) -> None:
    text = Page(site / "v1.0" / "deeper.html").text
    for words in (
        "patch 1 of 3",
        "A. Author <a@example.invalid>",
        "2026-11-30",
        "LANES_DEEP",
        "deeper & deeper",
        "Needed by deepest",
        "test_deeper.py",
        "It is deeper",
        "By one.",
        "witness",
        "Recorded run deeper.json",
        "1 failed",
        "engine/plan.py",
        "@@ -1,3 +1,3 @@",
        "conflict v1.1",
    ):
        assert words in text, words
    assert "Needs deeper" in Page(site / "v1.0" / "deepest.html").text


def test_the_graph_is_drawn_and_a_cut_is_said(told: SmallProject, tmp_path: Path) -> None:
    told.edited("after", "engine/plan.py", "DEPTH = 4  # <b>\x1b[31m\n", "DEPTH = 5\n")
    done = told.run("report", "-o", str(tmp_path / "again"))
    assert done.code == 0, done.text
    page = Page(tmp_path / "again" / "index.html")
    boxes = [a for tag, a in page.tags if tag == "g"]
    edges = [a["class"] for tag, a in page.tags if tag == "path"]
    assert len(boxes) == 3
    assert edges == ["edge", "edge cut"]
    assert "A guard cuts: after needs deepest , which only stacks with wide have." in page.text


def test_the_same_inputs_give_the_same_bytes(
    told: SmallProject, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "77")
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.setenv("LC_ALL", "C")
    done = told.run("report", "-o", str(tmp_path / "again"))
    assert done.code == 0, done.text
    one = {p.relative_to(site): p.read_bytes() for p in site.rglob("*") if p.is_file()}
    again = tmp_path / "again"
    two = {p.relative_to(again): p.read_bytes() for p in again.rglob("*") if p.is_file()}
    assert one == two


def test_recorded_runs_give_the_state(told: SmallProject, tmp_path: Path) -> None:
    from dataclasses import asdict

    from patchkit.derive.base import open_bases
    from patchkit.derive.derive import derive, trees_of
    from patchkit.derive.project import find
    from patchkit.derive.selection import Selection
    from patchkit.prove import environment
    from patchkit.prove.judge import Seen
    from patchkit.prove.proofs import proofs_of
    from patchkit.prove.prove import RULES
    from patchkit.store.results import key_of

    project = find(told.at)
    pin = project.pins.pin("v1.0")
    series = project.series("v1.0")
    with open_bases(project) as bases:
        base = bases.get(pin)
        derived = derive(series, base.tree(bases.store), Selection())
        trees = trees_of(bases.store, derived, base.tree_id)
        proof = proofs_of(project, "v1.0", series)["deeper.patch"]
        for tree, outcome in ((trees[0], "failed"), (trees[-1], "passed")):
            row = {"witness": True, "needs": False, "outcome": outcome, "by_assertion": True}
            seen = Seen({"test_deeper.py::test_it_is_deeper": row})
            key = key_of(RULES, "cpu", proof.sha256, tree, environment.digest_of_list())
            bases.store.remember(key, (), json.dumps(asdict(seen)))
    assert told.run("report", "-o", str(tmp_path / "ran")).code == 0
    text = Page(tmp_path / "ran" / "v1.0" / "deeper.html").text
    assert "proven test_deeper.py" in text
    assert "By one. failed passed witness" in text
    assert "proven" in Page(tmp_path / "ran" / "index.html").text


def test_a_carried_patch_has_its_history(told: SmallProject, tmp_path: Path) -> None:
    done = told.run("rebase", "--pin", "v1.0", "--onto", "v1.1")
    for patch in ("deeper", "deepest"):
        if done.code:
            done = told.run("rebase", "--drop", patch)
    assert done.code == 0, done.text
    assert told.run("report", "-o", str(tmp_path / "both")).code == 0
    new = Page(tmp_path / "both" / "v1.1" / "later.html")
    assert "History v1.0: later v1.1: later" in new.text
    old = Page(tmp_path / "both" / "v1.0" / "later.html")
    assert "History v1.0: later v1.1: later" in old.text
    assert "../v1.1/later.html" in [a.get("href") for _, a in old.tags]


def test_an_earlier_report_is_replaced_and_other_folders_are_not(
    told: SmallProject, site: Path, tmp_path: Path
) -> None:
    (site / "mine.txt").write_text("kept")
    assert told.run("drop", "later", "--pin", "v1.0").code == 0
    assert told.run("report", "-o", str(site)).code == 0
    assert not (site / "v1.0" / "later.html").exists()
    assert (site / "mine.txt").read_text() == "kept"
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("mine")
    done = told.run("report", "-o", str(other))
    assert done.code == 1
    assert "target-exists" in done.err
    assert (other / "index.html").read_text() == "mine"


def test_a_series_that_does_not_apply_has_no_report(told: SmallProject, tmp_path: Path) -> None:
    patch = told.series / "later.patch"
    patch.write_text(patch.read_text().replace("-    return 9\n", "-    return 8\n"))
    done = told.run("report", "-o", str(tmp_path / "none"))
    assert done.code == 1
    assert "conflict" in done.err
    assert not (tmp_path / "none").exists()


def test_several_series_have_a_page_that_compares_them(told: SmallProject, tmp_path: Path) -> None:
    done = told.run("rebase", "--pin", "v1.0", "--onto", "v1.1")
    for patch in ("deeper", "deepest"):
        if done.code:
            done = told.run("rebase", "--drop", patch, "--why", "upstream: <does> it")
    assert done.code == 0, done.text
    at = tmp_path / "both"
    assert told.run("report", "-o", str(at)).code == 0
    test_every_link_resolves(at)
    page = Page(at / "index.html")
    cells = [c for t, a in page.tags if t == "td" and "cell" in (c := a.get("class") or "")]
    states = [cell.split("s-")[1] for cell in cells]
    # Rows are patches, columns v1.0 and v1.1.
    assert states == ["applied", "upstreamed"] * 2 + ["applied", "applied"]
    assert "gone since v1.1 upstream" in page.text
    assert "deeper , not on v1.1: upstream: <does> it" in page.text
    one = Page(at / "v1.0" / "index.html")
    assert "1 of 3 carry over" in one.text
    assert "all pins" in one.text
    # What conflicts and was dealt with says so, with the reason.
    assert one.text.count("left out of its series: upstream") == 2
    assert "carried in its series" not in one.text


def test_a_conflict_that_the_release_s_own_series_has_settled_leads_there(
    told: SmallProject, tmp_path: Path
) -> None:
    series = told.at / "series" / "v1.1"
    series.mkdir(parents=True)
    mail = (told.at / "series" / "v1.0" / "deeper.patch").read_text()
    header = mail.partition("---\n")[0].replace(
        "Origin: ", "Rebased-From: v1.0/deeper.patch\nOrigin: "
    )
    if "Rebased-From" not in header:
        header = header.replace("\n\n", "\nRebased-From: v1.0/deeper.patch\n\n", 1)
    (series / "series").write_text("deeper.patch\n")
    (series / "deeper.patch").write_text(f"{header}---\n{CREATES}")
    assert told.run("lock", "--pin", "v1.1").code == 0
    at = tmp_path / "both"
    assert told.run("report", "-o", str(at)).code == 0
    test_every_link_resolves(at)
    page = Page(at / "v1.0" / "index.html")
    assert page.text.count("carried in its series") == 1
    assert "../v1.1/deeper.html" in [a.get("href") for _, a in page.tags]


CREATES = """\
diff --git a/engine/new.py b/engine/new.py
new file mode 100644
index 0000000000000000000000000000000000000000..d00491fd7e5bb6fa28c517a0bb32b8b506539d4d
--- /dev/null
+++ b/engine/new.py
@@ -0,0 +1 @@
+1
"""


def test_backticks_are_code_and_nothing_else_is() -> None:
    assert str(linked("see `a<b>` and `c d`, not `` or ``x``")) == (
        "see <code>a&lt;b&gt;</code> and <code>c d</code>, not `` or ``x``"
    )
    assert "<code>" not in str(linked("it's ` open"))
    assert str(linked("`https://a.example/b`")) == "<code>https://a.example/b</code>"
