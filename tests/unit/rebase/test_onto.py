"""A rebase onto what is no pin: a commit, tag or branch of the git server, pinned on the fly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import BASE, SmallProject
from tests.unit.rebase.ground import git, history


@pytest.fixture
def served(locked: SmallProject, tmp_path: Path) -> SmallProject:
    """The project with a git server: v1.0, then on main lines that only moved, then a change."""
    lanes = BASE["engine/lanes.py"]
    at = tmp_path / "server"
    ids = history(
        at,
        locked.base,
        [
            ("Comment (#2)", {"engine/lanes.py": "# a\n# b\n" + lanes}),
            ("Depth (#3)", {"engine/plan.py": BASE["engine/plan.py"].replace("= 2", "= two()")}),
        ],
    )
    git(at, "config", "uploadpack.allowFilter", "true")
    git(at, "tag", "v1.0", ids[0])
    git(at, "tag", "-a", "-m", "candidate", "v1.1rc1", ids[1])
    pins = locked.at / "pins.toml"
    text = pins.read_text().replace("1" * 40, ids[0])
    pins.write_text(
        text.replace('package = "engine"\n', f'package = "engine"\ngit = "{at.as_uri()}"\n')
    )
    # The pin has no sdist: its base is the commit.
    assert locked.run("lock").code == 0
    return locked


def ids_of(project: SmallProject) -> list[str]:
    at = project.at.parent / "server"
    return git(at, "rev-list", "--reverse", "main").splitlines()


def test_the_key_of_a_branch_stays_and_the_command_that_is_named_works(
    served: SmallProject,
) -> None:
    *_, third = ids_of(served)
    findings = json.loads(served.run("drift", "--onto", "main", "--json").out)["findings"]
    (found,) = [f for f in findings if f["name"] == "conflict"]
    assert "key: v1.0/main/deeper.patch/conflict" in found["details"]
    assert found["next"] == f"patchkit rebase --pin v1.0 --onto {third} --add-pin"
    done = served.run(*found["next"].split()[1:])
    assert (done.code, "deeper.patch waits" in done.out) == (1, True), done.text
    (key,) = (
        detail
        for f in json.loads(served.run("drift", "--onto", third, "--json").out)["findings"]
        for detail in f["details"]
        if detail.startswith("key")
    )
    assert key == f"key: v1.0/commit-{third[:12]}/deeper.patch/conflict"


def test_drift_onto_a_commit_looks_at_that_commit_and_offers_the_pin(served: SmallProject) -> None:
    _, second, third = ids_of(served)
    before = (served.at / "pins.toml").read_bytes()
    done = served.run("drift", "--onto", second, "--onto", "main", "--json")
    body = json.loads(done.out)
    assert [row["pin"] for row in body["releases"]] == [
        f"commit-{second[:12]}",
        f"main-{third[:12]}",
    ]
    texts = [[p["text"] for p in row["patches"]] for row in body["releases"]]
    assert texts == [["clean", "clean", "clean"], ["conflict", "clean", "clean"]]
    assert body["offered"][0] == {
        "pin": f"commit-{second[:12]}",
        "upstream": "engine",
        "commit": second,
    }
    assert (served.at / "pins.toml").read_bytes() == before


def test_a_rebase_onto_a_commit_writes_nothing_before_it_is_pinned(served: SmallProject) -> None:
    second = ids_of(served)[1]
    before = (served.at / "pins.toml").read_bytes()
    done = served.run("rebase", "--onto", second)
    assert done.code == 1
    assert f'[pins."commit-{second[:12]}"]' in done.out
    assert f'commit = "{second}"' in done.out
    assert "with --add-pin" in done.err
    assert (served.at / "pins.toml").read_bytes() == before
    assert [p.name for p in (served.at / "series").iterdir()] == ["v1.0"]
    planned = served.run("rebase", "--onto", second, "--plan")
    assert planned.code == 0, planned.text
    assert "nothing was written" in planned.out


def test_with_add_pin_the_series_of_the_commit_is_written(served: SmallProject) -> None:
    second = ids_of(served)[1]
    name = f"commit-{second[:12]}"
    done = served.run("rebase", "--onto", second, "--add-pin", "--date", "2031-02-03")
    assert done.code == 0, done.text
    assert served.run("check", "--pin", name).code == 0
    text = (served.at / "series" / name / "later.patch").read_text()
    assert "Rebased-From: v1.0/later.patch" in text
    # The offered command would have written the same pin.
    assert f'commit = "{second}"' in (served.at / "pins.toml").read_text()
    again = served.run("rebase", "--pin", "v1.0", "--onto", second)
    assert again.code == 1
    assert "has a series already" in again.err


def test_the_offered_command_pins_it(served: SmallProject) -> None:
    second = ids_of(served)[1]
    name = f"commit-{second[:12]}"
    assert served.run("pin", name, "--add", "--commit", second).code == 0
    done = served.run("rebase", "--onto", second)
    assert done.code == 0, done.text
    assert (served.at / "series" / name / "series.lock").exists()


def test_a_conflict_onto_a_branch_goes_on_when_the_branch_has_moved(served: SmallProject) -> None:
    third = ids_of(served)[2]
    name = f"main-{third[:12]}"
    done = served.run("rebase", "--onto", "main", "--add-pin")
    assert done.code == 1
    server = served.at.parent / "server"
    git(server, "commit", "-q", "--allow-empty", "-m", "later")
    tree = served.at / "build" / f"rebase-v1.0-{name}"
    plan = tree / "engine" / "plan.py"
    assert "<<<<<<<" in plan.read_text()
    plan.write_text(BASE["engine/plan.py"].replace("= 2", "= two() + 1"))
    done = served.run("rebase", "--continue")
    assert done.code == 0, done.text
    assert served.run("check", "--pin", name).code == 0


def test_a_tag_is_pinned_under_its_own_name(served: SmallProject) -> None:
    done = served.run("drift", "--onto", "v1.1rc1", "--json")
    assert done.code == 0, done.text
    body = json.loads(done.out)
    assert body["offered"][0]["pin"] == "v1.1rc1"
    assert body["offered"][0]["commit"] == ids_of(served)[1]


def test_releases_are_not_guessed_to_come_before_a_commit_and_that_is_said(
    served: SmallProject,
) -> None:
    _, second, third = ids_of(served)
    assert served.run("pin", "v1.1", "--add", "--commit", second).code == 0
    planned = ("rebase", "--pin", "v1.0", "--onto", third, "--plan")
    done = served.run(*planned)
    assert "not looked at on the way: v1.1 (" in done.out
    plan = json.loads(served.run(*planned, "--json").out)["plan"]
    assert [row["pin"] for row in plan] == [f"commit-{third[:12]}"]
    assert "not looked at" not in served.run(*planned, "--direct").out


def test_blame_takes_a_commit_too(served: SmallProject) -> None:
    clone = served.at.parent / "server"
    done = served.run("blame", "deeper", "--onto", "main", "--history", str(clone), "--json")
    (hunk,) = json.loads(done.out)["hunks"]
    assert (hunk["state"], hunk["history"]["commit"]["pull_request"]) == ("conflict", 3)


@pytest.mark.parametrize(
    ("onto", "code", "words"),
    [
        ("nowhere", 2, ["no pin 'nowhere'", "no such tag or branch"]),
        ("v9", 2, ["no pin 'v9'", "a whole commit id"]),
        ("0123456", 2, ["all of its 40 digits"]),
        ("../x", 2, ["no such tag or branch"]),
        ("--help-me", 2, ["no such tag or branch"]),
        ("f" * 40, 3, ["cannot be asked"]),
    ],
)
def test_what_is_nothing_of_it_is_named(
    served: SmallProject, onto: str, code: int, words: list[str]
) -> None:
    before = (served.at / "pins.toml").read_bytes()
    for verb in (["drift"], ["rebase", "--add-pin"]):
        done = served.run(*verb, "--onto", onto)
        assert (done.code, "Traceback" in done.text) == (code, False), done.text
        assert all(word in done.err for word in words), done.err
    assert (served.at / "pins.toml").read_bytes() == before


def test_offline_and_an_unreachable_server_are_named(served: SmallProject) -> None:
    done = served.run("drift", "--onto", "main", "--offline")
    assert done.code == 2
    assert "--offline forbids asking" in done.err
    (served.at.parent / "server").rename(served.at.parent / "elsewhere")
    done = served.run("drift", "--onto", "main")
    assert done.code == 2
    assert "cannot be asked" in done.err
