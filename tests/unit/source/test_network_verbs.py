"""What a network can do to a command: named, exit 3, nothing kept, and the next try holds."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from patchkit.cli import app as application
from patchkit.cli.main import main
from patchkit.source import fetch
from tests.unit.cli.desk import Once

from .conftest import NAME, SDIST, Answer, Web, index_page, reply, sha256

FILE = f"/files/{NAME}"
PAGE = "/simple/demo/"


class Shop:
    """A project of one pin whose sdist and repository are at `web`."""

    def __init__(
        self, at: Path, web: Web, patched: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.at = at
        self.web = web
        self.patched = patched
        self.capsys = capsys
        self.point(web.url)
        series = at / "series" / "v1.0"
        series.mkdir(parents=True)
        (series / "series").write_text("")
        web.routes[PAGE] = index_page
        web.routes[FILE] = SDIST

    def point(self, git: str) -> None:
        """Say where the repository is."""
        self.at.mkdir(exist_ok=True)
        (self.at / "pins.toml").write_text(
            f'[upstreams.demo]\nkind = "plain"\npypi = "demo"\npackage = "demo"\n'
            f'git = "{git}/demo.git"\n[pins."v1.0"]\nupstream = "demo"\ncommit = "{"1" * 40}"\n'
            f'[pins."v1.0".files]\n"{NAME}" = "sha256:{sha256(SDIST)}"\n'
        )

    def run(self, *args: str) -> tuple[int, dict[str, Any]]:
        """Exit code and JSON of a command."""
        self.patched.setattr(sys, "argv", ["patchkit", *args, "--json"])
        self.patched.chdir(self.at)
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.capsys.readouterr()
        assert err == ""
        said: dict[str, Any] = json.loads(out)
        assert isinstance(ended.value.code, int)
        assert said["exit"] == ended.value.code
        return ended.value.code, said

    def fails(self, *args: str, exit: int = 3) -> dict[str, Any]:
        """The one finding of a command that the network makes fail."""
        before = {p: p.read_bytes() for p in self.at.rglob("*") if p.is_file()}
        code, said = self.run(*args)
        assert code == exit, said
        assert {p: p.read_bytes() for p in self.at.rglob("*") if p.is_file()} == before
        kept = Path(os.environ["PATCHKIT_CACHE"]) / "downloads"
        assert [p for p in kept.rglob("*") if p.is_file() and p.suffix != ".lock"] == []
        (found,) = (f for f in said["findings"] if not f["note"])
        assert found["name"] in (("network", "git") if exit == 3 else ("bad-pins",))
        assert found["message"]
        return dict(found)


@pytest.fixture
def shop(
    tmp_path: Path, pip: Web, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shop:
    monkeypatch.setattr(application.app, "registered_commands", Once())
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "0.3")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setattr(fetch, "SLOW_FOR", 0.2)
    return Shop(tmp_path / "p", pip, monkeypatch, capsys)


def cut(handler: BaseHTTPRequestHandler) -> None:
    reply(handler, SDIST[:100], length=len(SDIST))


def still(handler: BaseHTTPRequestHandler) -> None:
    reply(handler, SDIST[:100], length=len(SDIST))
    time.sleep(0.6)


def slow(handler: BaseHTTPRequestHandler) -> None:
    reply(handler, b"", length=len(SDIST))
    for byte in SDIST[:10]:
        handler.wfile.write(bytes([byte]))
        time.sleep(0.05)


def html(handler: BaseHTTPRequestHandler) -> None:
    reply(handler, b"<!DOCTYPE html><title>Sign in\x1b[2J</title>", "text/html")


def other(handler: BaseHTTPRequestHandler) -> None:
    reply(handler, SDIST[:-1] + b"\1")


def looping(handler: BaseHTTPRequestHandler) -> None:
    reply(handler, b"", code=302, Location=handler.path)


def refusing(code: int) -> Answer:
    return lambda handler: reply(handler, b"no \x1b]0;x\x07", "text/plain", code)


def no_number(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "many")
    handler.end_headers()
    handler.wfile.write(SDIST[:100])


def long_number(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "9" * 5000)
    handler.end_headers()
    handler.wfile.write(SDIST[:100])


def negative(handler: BaseHTTPRequestHandler) -> None:
    reply(handler, SDIST[:100], length=-5)


def no_http(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"\x1b[2J\0\0 garbage\r\n\r\n" * 3)


def many_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    for number in range(300):
        handler.send_header(f"X-{number}", "x" * 100)
    handler.end_headers()


BAD: dict[str, tuple[Answer, str]] = {
    "cut": (cut, "cut short"),
    "still": (still, "no data for"),
    "slow": (slow, "too slowly"),
    "html": (html, "web page"),
    "other-digest": (other, "digest"),
    "redirect-loop": (looping, "302"),
    "403": (refusing(403), "403"),
    "404": (refusing(404), "404"),
    "500": (refusing(500), "500"),
    "no-number": (no_number, ""),
    "long-number": (long_number, ""),
    "negative": (negative, ""),
    "no-http": (no_http, ""),
    "many-headers": (many_headers, ""),
}


@pytest.mark.parametrize("what", BAD)
def test_a_download_that_goes_wrong_is_named_and_the_next_one_holds(shop: Shop, what: str) -> None:
    answer, words = BAD[what]
    shop.web.routes[FILE] = answer
    found = shop.fails("fetch", "--pin", "v1.0")
    assert words in json.dumps(found)
    shop.web.routes[FILE] = SDIST
    assert shop.run("lock", "--pin", "v1.0")[0] in (0, 1)  # the pin's commit is not the demo's


@pytest.mark.parametrize("what", sorted(set(BAD) - {"other-digest", "slow"}))
def test_an_index_that_goes_wrong_is_named(shop: Shop, what: str) -> None:
    shop.web.routes[PAGE] = BAD[what][0]
    shop.fails("fetch", "--pin", "v1.0")
    assert shop.web.asked(FILE) == 0


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1:1/x", "x:y", "//["])
def test_an_index_cannot_send_the_download_out_of_the_web(shop: Shop, address: str) -> None:
    files = [{"filename": NAME, "url": address, "hashes": {"sha256": sha256(SDIST)}}]
    page = json.dumps({"files": files}).encode()
    kind = "application/vnd.pypi.simple.v1+json"
    shop.web.routes[PAGE] = lambda handler: reply(handler, page, kind)
    shop.fails("fetch", "--pin", "v1.0")


@pytest.mark.parametrize(
    "host", ["http://127.0.0.1:1", "http://no-such-host.invalid", "http://[::1", "http://a b"]
)
def test_no_server_and_no_dns(shop: Shop, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{host}/simple")
    shop.fails("fetch", "--pin", "v1.0")


GIT: dict[str, Callable[[Shop], None]] = {
    "html": lambda shop: shop.web.routes.update({"/demo.git/info/refs": html}),
    "nothing": lambda shop: None,
    "refused": lambda shop: shop.point("http://127.0.0.1:1"),
    "no-dns": lambda shop: shop.point("http://no-such-host.invalid"),
}


@pytest.mark.parametrize("what", GIT)
def test_a_git_server_that_goes_wrong_is_named(shop: Shop, what: str) -> None:
    GIT[what](shop)
    shop.fails("fetch", "--pin", "v1.0", "--source", "git")


@pytest.mark.parametrize("address", ["bogus://x", "--upload-pack=touch x", "ext::sh -c touch% x"])
def test_what_is_no_address_is_refused_before_it_is_asked(shop: Shop, address: str) -> None:
    shop.point(address)
    shop.fails("fetch", "--pin", "v1.0", "--source", "git", exit=1)
    assert not (shop.at / "x").exists()


@pytest.mark.parametrize("code", [403, 500])
def test_a_git_server_that_refuses_is_named_by_its_code(shop: Shop, code: int) -> None:
    shop.web.routes["/demo.git/info/refs?service=git-upload-pack"] = refusing(code)
    found = shop.fails("fetch", "--pin", "v1.0", "--source", "git")
    assert str(code) in json.dumps(found)
