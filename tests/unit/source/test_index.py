from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from patchkit.errors import EnvironmentFault
from patchkit.source.index import IndexFile, find_file, normal_name, project_files
from patchkit.source.pipconf import PipSettings

from .conftest import NAME, SDIST, Answer, Web, index_page, reply, sha256


@pytest.fixture
def settings(web: Web, monkeypatch: pytest.MonkeyPatch) -> PipSettings:
    monkeypatch.setattr("patchkit.source.fetch.PAUSE", 0.01)
    return PipSettings(indexes=(f"{web.url}/simple/",), timeout=1, retries=1)


def html(*links: str) -> bytes:
    body = "".join(f'<a href="{link}">x</a>' for link in links)
    return f"<!DOCTYPE html><html><title>Links for demo</title>{body}</html>".encode()


def test_the_json_form_is_asked_for_and_read(web: Web, settings: PipSettings) -> None:
    web.routes["/simple/demo/"] = index_page
    assert project_files("Demo", settings) == [
        IndexFile(NAME, f"{web.url}/files/{NAME}", sha256(SDIST), len(SDIST))
    ]
    assert web.seen[0][1]["Accept"].startswith("application/vnd.pypi.simple.v1+json")


def test_an_index_that_knows_only_html_is_read_too(web: Web, settings: PipSettings) -> None:
    digest = "a" * 64
    page = html(
        f"../../p/{NAME}#sha256={digest}", "https://x.example/demo-1.0-py3-none-any.whl", "/"
    )
    web.routes["/simple/demo/"] = lambda handler: reply(handler, page, "text/html")
    assert project_files("demo", settings) == [
        IndexFile(NAME, f"{web.url}/p/{NAME}", digest),
        IndexFile("demo-1.0-py3-none-any.whl", "https://x.example/demo-1.0-py3-none-any.whl"),
    ]


def test_a_second_index_is_asked_where_the_first_has_none(web: Web, settings: PipSettings) -> None:
    web.routes["/other/demo/"] = index_page
    both = PipSettings((f"{web.url}/simple", f"{web.url}/other"), timeout=1, retries=0)
    assert find_file("demo", NAME, sha256(SDIST), both).sha256 == sha256(SDIST)


def test_of_two_files_of_one_name_the_pinned_one_is_taken(web: Web, settings: PipSettings) -> None:
    web.routes["/simple/demo/"] = lambda handler: index_page(handler, "b" * 64)
    web.routes["/other/demo/"] = index_page
    both = PipSettings((f"{web.url}/simple", f"{web.url}/other"), timeout=1, retries=0)
    assert find_file("demo", NAME, sha256(SDIST), both).sha256 == sha256(SDIST)
    assert find_file("demo", NAME, "c" * 64, both).sha256 == "b" * 64


def test_a_folder_of_files_serves_without_an_index(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / NAME).write_bytes(SDIST)
    for place in (str(tmp_path / "a b"), f"file://{tmp_path}/a%20b"):
        settings = PipSettings(indexes=(), find_links=(place,))
        assert find_file("demo", NAME, "", settings).url == f"file://{tmp_path}/a%20b/{NAME}"


def test_an_index_on_disk_is_read(tmp_path: Path) -> None:
    (tmp_path / "simple" / "demo").mkdir(parents=True)
    (tmp_path / "simple" / "demo" / "index.html").write_bytes(html(f"../../files/{NAME}"))
    settings = PipSettings(indexes=(f"file://{tmp_path}/simple",))
    assert find_file("demo", NAME, "", settings).url == f"file://{tmp_path}/files/{NAME}"
    assert project_files("other", settings) == []


def test_a_name_is_spelt_as_indexes_do() -> None:
    assert normal_name("My__Project.x") == "my-project-x"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<html><form>sign in</form></html>", "text/html"),
        (b'{"message": "no"}', "application/json"),
        (b"{not json", "application/vnd.pypi.simple.v1+json"),
        (json.dumps({"files": [3]}).encode(), "application/json"),
        (json.dumps({"files": {"filename": "x"}}).encode(), "application/json"),
        (b"[" * 200_000, "application/json"),
        (b'<title>Links for demo</title><a href="http://[::1/x.whl">x</a>', "text/html"),
    ],
)
def test_what_is_no_index_page_is_named(
    web: Web, settings: PipSettings, data: bytes, kind: str
) -> None:
    web.routes["/simple/demo/"] = lambda handler: reply(handler, data, kind)
    with pytest.raises(EnvironmentFault) as caught:
        project_files("demo", settings)
    (finding,) = caught.value.findings
    assert finding.name == "network"
    assert "package index" in finding.message
    assert "index-url" in finding.next


PAGE = json.dumps({"files": [{"filename": NAME, "url": f"/{NAME}"}]}).encode()


def in_parts(pause: float, length: int, *parts: bytes) -> Answer:
    """An answer of stated length that comes in parts."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        reply(handler, b"", "application/json", length=length)
        for part in parts:
            handler.wfile.write(part)
            handler.wfile.flush()
            time.sleep(pause)

    return answer


def test_a_page_that_is_cut_is_tried_again_and_never_read_as_a_shorter_one(
    web: Web, settings: PipSettings
) -> None:
    links = html(f"../../p/{NAME}", "../../p/demo-2.0.tar.gz")
    for kind, whole in (("application/json", PAGE), ("text/html", links)):
        for keep in (len(whole) - 1, len(whole) // 2, 0):
            web.seen.clear()
            cut = whole[:keep]
            web.routes["/simple/demo/"] = lambda handler, cut=cut, kind=kind, whole=whole: reply(
                handler, cut, kind, length=len(whole)
            )
            with pytest.raises(EnvironmentFault) as caught:
                project_files("demo", settings)
            (finding,) = caught.value.findings
            assert "cut short" in finding.message
            assert (finding.expected, finding.found) == (f"{len(whole)} bytes", f"{keep} bytes")
            assert web.asked("/simple/demo/") == 2


def test_a_page_that_stands_still_is_named_and_tried_again(web: Web, settings: PipSettings) -> None:
    web.routes["/simple/demo/"] = in_parts(1.0, len(PAGE), PAGE[:9], PAGE[9:])
    hasty = replace(settings, timeout=0.2)
    with pytest.raises(EnvironmentFault) as caught:
        project_files("demo", hasty)
    assert "no data for 0.2 s" in caught.value.findings[0].message
    assert web.asked("/simple/demo/") == 2


def test_a_page_that_trickles_is_given_up(
    web: Web, settings: PipSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchkit.source.index._PATIENCE", 0.3)
    web.routes["/simple/demo/"] = in_parts(0.1, 99, *([b"{"] * 99))
    with pytest.raises(EnvironmentFault) as caught:
        project_files("demo", settings)
    assert "too slowly" in caught.value.findings[0].message
    assert web.asked("/simple/demo/") == 1


@pytest.mark.parametrize(("code", "tries"), [(403, 1), (401, 1), (500, 2), (503, 2), (429, 2)])
def test_an_index_that_refuses_is_named_by_its_code(
    web: Web, settings: PipSettings, code: int, tries: int
) -> None:
    web.routes["/simple/demo/"] = lambda handler: reply(handler, b"no", code=code)
    with pytest.raises(EnvironmentFault) as caught:
        project_files("demo", settings)
    assert str(code) in caught.value.findings[0].found
    assert web.asked("/simple/demo/") == tries


@pytest.mark.parametrize("there", ["/simple/demo/", "/other"])
def test_redirects_that_do_not_end_are_named(web: Web, settings: PipSettings, there: str) -> None:
    for path, to in (("/simple/demo/", there), ("/other", "/simple/demo/")):
        web.routes[path] = lambda handler, to=to: reply(handler, b"", code=302, Location=to)
    with pytest.raises(EnvironmentFault) as caught:
        project_files("demo", settings)
    assert caught.value.findings[0].found == "302 a redirect that is not followed"
    assert len(web.seen) <= 10


def test_an_index_without_an_answer_does_not_hide_another_and_is_told_where_none_has_it(
    web: Web, settings: PipSettings
) -> None:
    web.routes["/simple/demo/"] = lambda handler: reply(handler, b"", code=500)
    web.routes["/other/demo/"] = index_page
    both = PipSettings((f"{web.url}/simple", f"{web.url}/other"), timeout=1, retries=0)
    assert find_file("demo", NAME, "", both).name == NAME
    with pytest.raises(EnvironmentFault) as caught:
        find_file("demo", "demo-2.0.tar.gz", "", both)
    (finding,) = caught.value.findings
    assert "no package index has demo-2.0.tar.gz" in finding.message
    assert finding.details == (f"{web.url}/simple/demo/ was refused: 500 Internal Server Error",)


def test_a_file_that_no_index_has_is_named_with_the_indexes(
    web: Web, settings: PipSettings
) -> None:
    web.routes["/simple/demo/"] = index_page
    secret = PipSettings((web.url.replace("//", "//u:secret@") + "/simple",), timeout=1, retries=0)
    with pytest.raises(EnvironmentFault) as caught:
        find_file("demo", "demo-2.0.tar.gz", "", secret)
    (finding,) = caught.value.findings
    assert "demo-2.0.tar.gz" in finding.message
    assert f"{web.url}/simple" in finding.found
    assert "secret" not in str(finding)


def test_without_any_index_that_is_said() -> None:
    with pytest.raises(EnvironmentFault, match="no package index"):
        find_file("demo", NAME, "", PipSettings(indexes=()))


def test_a_project_that_no_index_knows_is_a_404(web: Web, settings: PipSettings) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        project_files("demo", settings)
    assert caught.value.findings[0].found == "404 Not Found"
    assert os.environ.get("HOME")


def test_the_credentials_of_an_index_are_good_for_its_files_and_for_no_other_server(
    web: Web, settings: PipSettings
) -> None:
    files = [
        {"filename": "demo-1.0.tar.gz", "url": "../../files/demo-1.0.tar.gz"},
        {"filename": "demo-1.1.tar.gz", "url": "https://x.example/demo-1.1.tar.gz"},
        {"filename": "demo-1.2.tar.gz", "url": web.url.replace("//", "//other:pw@") + "/1.2"},
        {"filename": "demo-1.3.tar.gz", "url": "http://127.0.0.1:1/demo-1.3.tar.gz"},
        {"filename": "demo-1.4.tar.gz", "url": "http://127.0.0.1:x/demo-1.4.tar.gz"},
    ]
    page = json.dumps({"files": files}).encode()
    web.routes["/simple/demo/"] = lambda handler: reply(handler, page, "application/json")
    mine = web.url.replace("//", "//me:s3%40cret@")
    found = project_files("demo", replace(settings, indexes=(f"{mine}/simple",)))
    assert [file.url for file in found] == [
        f"{mine}/files/demo-1.0.tar.gz",
        "https://x.example/demo-1.1.tar.gz",
        web.url.replace("//", "//other:pw@") + "/1.2",
        "http://127.0.0.1:1/demo-1.3.tar.gz",
        "http://127.0.0.1:x/demo-1.4.tar.gz",
    ]


def test_a_digest_is_read_in_either_case_and_nonsense_is_none(
    web: Web, settings: PipSettings
) -> None:
    for said, read in ((sha256(SDIST).upper(), sha256(SDIST)), ("zz", ""), ("", "")):
        web.routes["/simple/demo/"] = lambda handler, said=said: index_page(handler, said)  # type: ignore[misc]
        assert [file.sha256 for file in project_files("demo", settings)] == [read]


def test_links_of_a_page_that_names_its_base_are_relative_to_that(
    web: Web, settings: PipSettings
) -> None:
    page = b'<html><base href="/files/"><a href="demo-1.0.tar.gz" data-yanked="bad">x</a></html>'
    web.routes["/simple/demo/"] = lambda handler: reply(handler, page, "text/html")
    assert project_files("demo", settings) == [
        IndexFile(NAME, f"{web.url}/files/{NAME}", yanked="bad")
    ]


def test_find_links_may_be_a_page_a_file_or_below_the_home_folder(
    web: Web, settings: PipSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / NAME).write_bytes(SDIST)
    (tmp_path / "kept.html").write_text(f'<a href="kept/{NAME}">x</a>')
    page = f'<a href="files/{NAME}">x</a>'.encode()
    web.routes["/links"] = lambda handler: reply(handler, page, "text/html")
    here = f"file://{tmp_path}/kept/{NAME}"
    for place, url in (
        (f"{web.url}/links", f"{web.url}/files/{NAME}"),
        ("~/kept", here),
        (str(tmp_path / "kept.html"), here),
        (f"file://{tmp_path}/kept.html", here),
        (str(tmp_path / "kept" / NAME), here),
    ):
        only = replace(settings, indexes=(), find_links=(place,))
        assert [file.url for file in project_files("demo", only)] == [url]
    gone = replace(settings, indexes=(), find_links=(f"{web.url}/gone",), retries=0)
    with pytest.raises(EnvironmentFault) as caught:
        project_files("demo", gone)
    assert caught.value.findings[0].found == "404 Not Found"


def test_an_index_may_be_a_folder(settings: PipSettings, tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "index.html").write_bytes(html(f"../{NAME}"))
    (file,) = project_files("demo", replace(settings, indexes=(str(tmp_path),)))
    assert file.url == f"file://{tmp_path}/{NAME}"


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1/simple",
        "http://127.0.0.1:x/simple",
        "http://127.0.0.1:99999/simple",
        "http://me:s3/cret@127.0.0.1:1/simple",
        "http://me:s3#cret@127.0.0.1:1/simple",
        "http://exa mple/simple",
        "nothing-of-the-kind",
    ],
)
def test_an_address_that_is_none_is_named_at_once_and_without_a_password(
    address: str, settings: PipSettings
) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        project_files("demo", replace(settings, indexes=(address,), retries=3))
    (finding,) = caught.value.findings
    assert finding.name == "network"
    assert finding.next.startswith("mend pip's index-url")
    assert finding.details == ()  # it was not tried again
    assert "s3" not in str(finding)
    assert "cret" not in str(finding)
