"""A pull request becomes a patch that says what it was; one that moved on is told of."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from patchkit.bring.pull import pull_of
from patchkit.errors import UsageFault
from patchkit.series.pins import Upstream
from tests.conftest import BASE, SmallProject
from tests.unit.bring.served import Served

PLAN = BASE["engine/plan.py"]
DEEP = PLAN.replace("DEPTH = 2", "DEPTH = 3")


def pulled(served: Served) -> str:
    """Pull request 7: two commits, one with a test, made after main has gone on."""
    served.commit("main goes on", engine__plan_py="TOP = 0\n" + PLAN, new_txt="later\n")
    served.git("checkout", "-q", "-b", "work")
    served.commit("Plan deeper\n\nOne more level was needed.", engine__plan_py="TOP = 0\n" + DEEP)
    served.commit("Test it", tests__test_plan_py="assert True\n")
    return served.pull(7)


def test_a_pull_request_is_what_it_changed_since_it_left(
    mine: SmallProject, served: Served
) -> None:
    head = pulled(served)
    done = mine.run("import", "--pr", "7", "--exclude", "tests/*", "--date", "2031-01-31")
    assert done.code == 0, done.text
    text = (mine.series / "plan-deeper.patch").read_text()
    assert f"Origin: upstream, {served.url}#7, head {head}\n" in text
    assert "From: Pia Puller <pia@example.invalid>\n" in text
    assert "Date: Tue, 14 Nov 2023 23:13:20 +0100\n" in text
    assert "One more level was needed." in text
    assert "- Plan deeper\n- Test it\n" in text
    assert "Left out: tests/test_plan.py." in text
    # The line of main that the pin has not is no part of it; the place is the pin's own.
    assert "+DEPTH = 3\n" in text
    assert "TOP" not in text
    assert "@@ -1,3 +1,3 @@" in text
    assert "new.txt" not in text
    assert mine.run("check").code == 0


def test_a_moved_head_is_said_when_the_network_is_asked(mine: SmallProject, served: Served) -> None:
    head = pulled(served)
    assert mine.run("import", "--pr", "7", "--exclude", "tests/*").code == 0
    assert mine.run("check", "--upstream").code == 0
    served.git("checkout", "-q", "work")
    new = served.commit("Deeper still", engine__plan_py="TOP = 0\n" + DEEP.replace("3", "9"))
    served.pull(7)
    assert mine.run("check").code == 0, "without being asked nothing is fetched"
    done = mine.run("check", "--upstream", "--json")
    assert done.code == 1
    (finding,) = [f for f in json.loads(done.out)["findings"] if f["name"] == "head-moved"]
    assert finding["expected"] == f"head {head}"
    assert finding["found"] == f"head {new}"
    assert finding["next"].endswith("--replace --exclude tests/test_plan.py")
    command = finding["next"].removeprefix("patchkit ").split()
    again = mine.run(*command)
    assert again.code == 0, again.text
    assert "+DEPTH = 9\n" in (mine.series / "plan-deeper.patch").read_text()
    assert mine.run("check", "--upstream").code == 0


def test_a_pull_request_that_went_away_is_a_note(mine: SmallProject, served: Served) -> None:
    pulled(served)
    assert mine.run("import", "--pr", "7", "--exclude", "tests/*").code == 0
    served.git("update-ref", "-d", "refs/pull/7/head")
    done = mine.run("check", "--upstream")
    assert done.code == 0
    assert "is not there any more" in done.err


def test_one_that_was_merged_is_what_it_changed_before_that(
    mine: SmallProject, served: Served
) -> None:
    pulled(served)
    served.git("merge", "-q", "--no-ff", "-m", "Merge pull request #7", "work")
    served.commit("and on", more_txt="x\n")
    done = mine.run("import", "--pr", f"{served.url}#7", "--exclude", "tests/*", "--name", "deep")
    assert done.code == 0, done.text
    text = (mine.series / "deep.patch").read_text()
    assert "+DEPTH = 3\n" in text
    assert "more.txt" not in text


def test_a_conflict_with_the_pin_names_both_sides(mine: SmallProject, served: Served) -> None:
    served.commit("main", engine__plan_py=PLAN.replace("DEPTH = 2", "DEPTH = 20"))
    served.git("checkout", "-q", "-b", "work")
    served.commit("Deeper", engine__plan_py=PLAN.replace("DEPTH = 2", "DEPTH = 21"))
    served.pull(8)
    done = mine.run("import", "--pr", "8")
    assert done.code == 1
    assert "conflict" in done.err
    assert "DEPTH = 21" in done.err
    assert (mine.series / "series").read_text() == ""


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--pr", "99"], "#99 is not there"),
        (["--pr", "7", "--exclude", "none/*"], "matches no file"),
        (["--pr", "7", "--exclude", "*"], "changes nothing that is not left out"),
    ],
)
def test_what_cannot_be_had_is_said(
    mine: SmallProject, served: Served, args: list[str], words: str
) -> None:
    pulled(served)
    done = mine.run("import", *args)
    assert done.code == 1
    assert words in done.err
    assert "next:" in done.err


def test_a_server_that_filters_nothing_and_serves_no_ids_is_enough(
    mine: SmallProject, served: Served
) -> None:
    pulled(served)
    served.git("config", "uploadpack.allowFilter", "false")
    served.git("config", "uploadpack.allowAnySHA1InWant", "false")
    done = mine.run("import", "--pr", "7", "--exclude", "tests/*")
    assert done.code == 0, done.text
    assert mine.run("check").code == 0


def test_no_hook_or_filter_of_the_server_or_project_runs(
    mine: SmallProject, served: Served, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    served.git("checkout", "-q", "-b", "evil")
    (served.at / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    served.git("config", "filter.evil.smudge", f"touch {mark}")
    hook = served.at / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    served.commit("Evil", engine__plan_py=DEEP)
    served.pull(6)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    done = mine.run("import", "--pr", "6", "--exclude", ".gitattributes")
    assert done.code == 0, done.text
    assert not mark.exists()


def test_offline_forbids_it(mine: SmallProject, served: Served) -> None:
    done = mine.run("import", "--pr", "7", "--offline")
    assert done.code == 3
    assert "--offline forbids" in done.err


UPSTREAM = Upstream("vllm", "vllm", git="https://github.com/vllm-project/vllm.git")
PAGE = "https://github.com/vllm-project/vllm/pull/54513"


@pytest.mark.parametrize(
    "text", ["54513", PAGE, f"{PAGE}/files", f"{PAGE}/commits/0123abc", f"{UPSTREAM.git}#54513"]
)
def test_a_number_and_every_page_of_it_are_one_pull_request(text: str) -> None:
    pull = pull_of(text, UPSTREAM)
    assert (pull.url, pull.page, pull.ref) == (UPSTREAM.git, PAGE, "refs/pull/54513/head")


def test_a_merge_request_of_gitlab() -> None:
    pull = pull_of("https://gitlab.example/group/sub/name/-/merge_requests/3/diffs", None)
    assert pull.url == "https://gitlab.example/group/sub/name.git"
    assert pull.ref == "refs/merge-requests/3/head"


def test_no_page_that_a_header_names_holds_a_password() -> None:
    private = Upstream("demo", "plain", git="https://me:s3cret@git.example/o/n.git")
    page = "https://git.example/o/n/pull/7"
    for text in ("7", page, f"{private.git}#7"):
        pull = pull_of(text, private)
        assert (pull.url, pull.page) == (private.git, page)
    pull = pull_of(page.replace("//", "//me:other@"), private)
    assert (pull.url, pull.page) == ("https://me:other@git.example/o/n.git", page)
    assert pull_of("https://git.example/o/other/pull/7", private).url.endswith("/o/other.git")


@pytest.mark.parametrize("text", ["", "x", "7x", "ext::sh -c x#1", "--upload-pack=x#1", "²"])
def test_what_is_no_pull_request_is_refused(text: str) -> None:
    with pytest.raises(UsageFault):
        pull_of(text, UPSTREAM)


def unreachable(mine: SmallProject, old: str) -> str:
    """The address of a server that answers nobody, in the place of `old` in pins.toml."""
    url = "https://127.0.0.1:9/owner/engine.git"
    pins = mine.at / "pins.toml"
    pins.write_text(pins.read_text().replace(old, url))
    return url


def test_a_server_that_is_not_reached_is_said_with_what_to_do(
    mine: SmallProject, served: Served
) -> None:
    unreachable(mine, served.url)
    for more in ([], ["--offline"]):
        done = mine.run("import", "--pr", "7", "--exclude", "tests/*", *more)
        assert done.code == 3, done.text
        assert "curl -fLO https://127.0.0.1:9/owner/engine/pull/7.patch;" in done.err
        assert "patchkit import 7.patch --exclude 'tests/*'" in done.err
        assert "git -C CLONE fetch origin refs/pull/7/head:refs/pull/7/head\n" in done.err
        assert "patchkit import --pr 7 --from CLONE --exclude 'tests/*'\n" in done.err
    done = mine.run("import", "--pr", "7", "--name", "deep")
    assert "pull/7.diff; here, with that file: patchkit import 7.diff --name deep" in done.err
    done = mine.run("import", "--pr", "git://127.0.0.1:9/engine#7")
    assert done.code == 3
    assert "curl" not in done.err
    assert "patchkit import --pr git://127.0.0.1:9/engine#7 --from CLONE" in done.err


def test_with_a_clone_no_server_is_asked_and_origin_is_the_page(
    mine: SmallProject, served: Served, tmp_path: Path
) -> None:
    head = pulled(served)
    clone = tmp_path / "clone"
    git("clone", "-q", served.url, str(clone))
    url = unreachable(mine, served.url)
    ask = ("import", "--pr", "7", "--from", str(clone), "--exclude", "tests/*")
    done = mine.run(*ask)
    assert done.code == 1, done.text
    fetch = f"git -C {clone} fetch origin refs/pull/7/head:refs/pull/7/head"
    assert f"next:     {fetch}" in done.err
    git(*fetch.split()[1:])
    # What is checked out in the clone plays no part.
    git("-C", str(clone), "checkout", "-q", head)
    done = mine.run(*ask)
    assert done.code == 0, done.text
    text = (mine.series / "plan-deeper.patch").read_text()
    page = url.removesuffix(".git")
    assert f"Origin: upstream, {page}/pull/7, head {head}\n" in text
    assert "+DEPTH = 3\n" in text
    assert "TOP" not in text
    assert mine.run("check").code == 0


def git(*args: str) -> None:
    subprocess.run(["git", *args], check=True, capture_output=True)
