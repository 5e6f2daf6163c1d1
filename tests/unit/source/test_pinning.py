"""`patchkit pin`: what tag, index and sdist say is compared, and only then written."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchkit.check import pinning
from patchkit.cli.main import main
from patchkit.derive.project import Project, find
from patchkit.derive.relock import locked_pin
from patchkit.errors import EnvironmentFault, Refused, UsageFault
from patchkit.series.lockfile import Chain, Lock
from patchkit.series.lockjson import dumps, loads
from patchkit.series.pins import Pin, load_pins
from patchkit.store import Store

from .conftest import FILES, NAME, VERSION_FILE, Daemon, Web, reply, sha256, tar_of

WHEEL = "demo-1.0-py3-none-any.whl"
NOWHERE = "git://127.0.0.1:1/nothing"


def sdist(commit: str) -> bytes:
    """The demo's sdist, whose version file names the first nine digits of `commit`."""
    says = VERSION_FILE.replace(b"gc0ffee123", b"g" + commit[:9].encode())
    return tar_of(FILES | {"demo/_version.py": (0o644, says)})


def serve(web: Web, data: bytes) -> None:
    """The index has release 1.0 with a sdist of these bytes, and a wheel."""
    files = [
        {"filename": name, "url": f"../../files/{name}", "hashes": {"sha256": digest}}
        for name, digest in ((NAME, sha256(data)), (WHEEL, "b" * 64))
    ]
    page = json.dumps({"files": files}).encode()
    web.routes["/simple/demo/"] = lambda handler: reply(handler, page, "application/json")
    web.routes[f"/files/{NAME}"] = data


def made(at: Path, git: str, *pins: str) -> Project:
    """A project of one upstream, and of `pins` (text of pins.toml)."""
    at.mkdir(exist_ok=True)
    head = f'[upstreams.demo]\nkind = "plain"\ngit = "{git}"\npypi = "demo"\npackage = "demo"\n'
    (at / "pins.toml").write_text("# mine\n" + head + "".join(pins))
    return find(at)


def plan_of(project: Project, store: Store, name: str = "v1.0", **given: str) -> pinning.Plan:
    asked = pinning.asked_for(
        project, name, given.get("upstream"), given.get("commit"), given.get("version")
    )
    return pinning.add(project, store, asked)


def test_a_tag_is_pinned_with_its_commit_and_the_digests_of_the_index(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    data = sdist(daemon.commit)
    serve(pip, data)
    project = made(tmp_path / "p", daemon.url)
    plan = plan_of(project, store)
    files = {NAME: sha256(data), WHEEL: "b" * 64}
    assert plan.pin == Pin("v1.0", "demo", daemon.commit, "", files)
    assert plan.findings == ()
    pinning.write(project, plan)
    assert (project.folder / "pins.toml").read_text().startswith("# mine\n")
    assert find(project.folder).pins.pins == {"v1.0": plan.pin}


def test_nothing_is_written_where_the_sdist_was_made_from_another_commit(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    serve(pip, sdist("deadbeef12"))
    project = made(tmp_path / "p", daemon.url)
    with pytest.raises(Refused) as caught:
        plan_of(project, store)
    (finding,) = caught.value.findings
    assert finding.name == "pin-mismatch"
    assert daemon.commit in finding.expected
    assert "deadbeef1" in finding.found


def test_without_the_git_server_a_release_is_pinned_by_what_its_sdist_says_and_that_is_said(
    pip: Web, store: Store, tmp_path: Path
) -> None:
    serve(pip, sdist("c0ffee1234"))
    plan = plan_of(made(tmp_path / "p", NOWHERE), store)
    assert (plan.pin.commit, plan.pin.commit_prefix) == ("", "c0ffee123")
    assert [(f.name, f.note) for f in plan.findings] == [
        ("network", True),
        ("pin-incomplete", True),
    ]
    assert "the tag was not compared" in plan.findings[0].message
    assert plan.findings[0].next.startswith("patchkit pin v1.0 --complete")


def test_a_commit_that_the_tag_does_not_name_is_refused(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    serve(pip, sdist(daemon.commit))
    project = made(tmp_path / "p", daemon.url)
    with pytest.raises(Refused) as caught:
        plan_of(project, store, commit=daemon.later)
    assert caught.value.findings[0].name == "tag-moved"
    assert plan_of(project, store, commit=daemon.commit[:8]).pin.commit == daemon.commit


def test_a_commit_alone_is_pinned_once_the_server_has_shown_it(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    project = made(tmp_path / "p", daemon.url)
    plan = plan_of(project, store, "nightly", commit=daemon.later)
    assert plan.pin == Pin("nightly", "demo", daemon.later)
    assert store.has(daemon.later)
    with pytest.raises(EnvironmentFault):
        plan_of(project, store, "nightly", commit="1" * 40)
    assert pip.seen == []


def test_a_release_under_another_name_is_found_by_its_version(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    serve(pip, sdist(daemon.commit))
    plan = plan_of(made(tmp_path / "p", daemon.url), store, "stable", version="1.0")
    assert plan.pin.commit == daemon.commit
    assert NAME in plan.pin.files


def test_what_nobody_knows_is_not_pinned(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    serve(pip, sdist(daemon.commit))
    project = made(tmp_path / "p", daemon.url)
    with pytest.raises(EnvironmentFault) as caught:
        plan_of(project, store, "v9.9")
    assert "demo 9.9" in caught.value.findings[0].expected
    with pytest.raises(Refused) as refused:
        plan_of(project, store, "main")
    assert refused.value.findings[0].name == "pin-incomplete"


def test_a_taken_name_is_refused_with_the_way_to_complete_it(store: Store, tmp_path: Path) -> None:
    pin = '[pins."v1.0"]\nupstream = "demo"\ncommit-prefix = "c0ffee123"\n'
    with pytest.raises(Refused) as caught:
        plan_of(made(tmp_path / "p", NOWHERE, pin), store)
    assert caught.value.findings[0].next == "patchkit pin v1.0 --complete"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"upstream": "other"}, "no upstream 'other'"),
        ({"commit": "C0FFEE1"}, "hex digits"),
        ({"commit": "abc"}, "hex digits"),
    ],
)
def test_options_that_cannot_be_meant_are_usage_faults(
    store: Store, tmp_path: Path, given: dict[str, str], words: str
) -> None:
    with pytest.raises(UsageFault, match=words):
        plan_of(made(tmp_path / "p", NOWHERE), store, **given)


@pytest.mark.parametrize("name", ["../x", "v1 0", "", "-x", "a/b", "v1.lock", "x\ny", "é"])
def test_a_name_that_no_pin_can_have_is_refused_before_anybody_is_asked(
    store: Store, tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageFault, match="cannot be the name of a pin"):
        plan_of(made(tmp_path / "p", NOWHERE), store, name, version="1.0")


def partial(daemon: Daemon, tmp_path: Path, digits: str, data: bytes = b"") -> Project:
    """A project with an incomplete pin of release 1.0."""
    pin = f'[pins."v1.0"]\nupstream = "demo"\ncommit-prefix = "{digits}"\n'
    if data:
        pin += f'[pins."v1.0".files]\n"{NAME}" = "sha256:{sha256(data)}"\n'
    return made(tmp_path / "p", daemon.url, pin)


def test_complete_writes_the_commit_of_the_tag_into_pin_and_lock(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    data = sdist(daemon.commit)
    serve(pip, data)
    project = partial(daemon, tmp_path, daemon.commit[:9], data)
    series = project.series_folder("v1.0")
    series.mkdir(parents=True)
    (series / "series").write_text("")
    old = project.pins.pin("v1.0")
    lock = Lock(locked_pin(old), "0" * 64, series=Chain(), stacks={"default": Chain()})
    (series / "series.lock").write_bytes(dumps(lock))
    plan = pinning.complete(project, store, "v1.0")
    pinning.write(project, plan)
    whole = find(project.folder).pins.pin("v1.0")
    assert whole == replace(old, commit=daemon.commit, commit_prefix="")
    found = loads((series / "series.lock").read_bytes())
    assert found == replace(lock, pin=locked_pin(whole))


def test_complete_leaves_the_lock_of_another_pin_to_check(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    project = partial(daemon, tmp_path, daemon.commit[:9])
    serve(pip, sdist(daemon.commit))
    series = project.series_folder("v1.0")
    series.mkdir(parents=True)
    (series / "series").write_text("")
    other = replace(locked_pin(project.pins.pin("v1.0")), commit_prefix="1234567")
    (series / "series.lock").write_bytes(dumps(Lock(other, "0" * 64)))
    assert pinning.complete(project, store, "v1.0").lock is None


def test_complete_brings_the_files_of_a_release_that_has_none(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    data = sdist(daemon.commit)
    serve(pip, data)
    plan = pinning.complete(partial(daemon, tmp_path, daemon.commit[:9]), store, "v1.0")
    assert plan.pin.files == {NAME: sha256(data), WHEEL: "b" * 64}
    assert load_pins(plan.data).pin("v1.0") == plan.pin


def test_a_pin_that_is_not_called_as_its_release_is_completed_by_the_releases_tag(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    data = sdist(daemon.commit)
    serve(pip, data)
    pin = (
        f'[pins.stable]\nupstream = "demo"\ncommit-prefix = "{daemon.commit[:9]}"\n'
        f'[pins.stable.files]\n"{NAME}" = "sha256:{sha256(data)}"\n'
    )
    plan = pinning.complete(made(tmp_path / "p", daemon.url, pin), store, "stable")
    assert plan.pin.commit == daemon.commit


def test_complete_refuses_a_tag_that_is_another_commit_and_one_that_is_gone(
    daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    project = partial(daemon, tmp_path, "1234567")
    before = (project.folder / "pins.toml").read_bytes()
    with pytest.raises(Refused) as caught:
        pinning.complete(project, store, "v1.0")
    assert caught.value.findings[0].found == f"commit {daemon.commit}"
    daemon.git("tag", "-d", "v1.0")
    with pytest.raises(Refused) as gone:
        pinning.complete(project, store, "v1.0")
    assert gone.value.findings[0].found == "no such tag"
    assert {e.value.findings[0].name for e in (caught, gone)} == {"tag-moved"}
    assert (project.folder / "pins.toml").read_bytes() == before


def test_completing_a_whole_pin_compares_and_changes_nothing(
    pip: Web, daemon: Daemon, store: Store, tmp_path: Path
) -> None:
    data = sdist(daemon.commit)
    pin = (
        f'[pins."v1.0"]\nupstream = "demo"\ncommit = "{daemon.commit}"\n'
        f'[pins."v1.0".files]\n"{NAME}" = "sha256:{sha256(data)}"\n'
    )
    project = made(tmp_path / "p", daemon.url, pin)
    plan = pinning.complete(project, store, "v1.0")
    assert not plan.changed
    assert plan.data == (project.folder / "pins.toml").read_bytes()


class Desk:
    """The command in this process."""

    def __init__(
        self, at: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.at, self.patch, self.capsys = at, patch, capsys

    def run(self, *args: str) -> tuple[int, dict[str, Any]]:
        self.patch.setattr(sys, "argv", ["patchkit", "-C", str(self.at), *args, "--json"])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), json.loads(self.capsys.readouterr().out)


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    return Desk(tmp_path / "p", monkeypatch, capsys)


def test_the_verb_adds_a_pin_and_says_so(pip: Web, daemon: Daemon, desk: Desk) -> None:
    serve(pip, sdist(daemon.commit))
    made(desk.at, daemon.url)
    before = (desk.at / "pins.toml").read_bytes()
    code, body = desk.run("pin", "v1.0", "--add", "--check")
    assert (code, body["written"], body["commit"]) == (0, False, daemon.commit)
    assert (desk.at / "pins.toml").read_bytes() == before
    code, body = desk.run("pin", "v1.0", "--add")
    assert (code, body["written"]) == (0, True)
    assert find(desk.at).pins.pin("v1.0").commit == daemon.commit


def test_a_server_that_cannot_be_asked_completes_nothing(
    pip: Web, daemon: Daemon, desk: Desk, tmp_path: Path
) -> None:
    made(desk.at, NOWHERE, '[pins."v1.0"]\nupstream = "demo"\ncommit-prefix = "c0ffee123"\n')
    before = (desk.at / "pins.toml").read_bytes()
    code, body = desk.run("pin", "v1.0", "--complete")
    assert code == 3
    assert [f["name"] for f in body["findings"]] == ["network"]
    assert (desk.at / "pins.toml").read_bytes() == before


@pytest.mark.parametrize(
    "args", [(), ("--add", "--complete"), ("--complete", "--version", "1.0")], ids=str
)
def test_a_command_line_that_cannot_be_meant_exits_2(
    desk: Desk, daemon: Daemon, args: tuple[str, ...]
) -> None:
    made(desk.at, daemon.url)
    assert desk.run("pin", "v1.0", *args)[0] == 2
