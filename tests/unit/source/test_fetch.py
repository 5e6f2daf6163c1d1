"""What a network can do to a download, and that none of it is ever taken for the file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from patchkit.errors import EnvironmentFault, Finding
from patchkit.source import fetch
from patchkit.source.fetch import download
from patchkit.source.pipconf import PipSettings

from .conftest import NAME, SDIST, Answer, Web, reply, serve, sha256

SETTINGS = PipSettings(timeout=0.4, retries=1)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PAUSE", 0.01)


def got(web: Web, tmp_path: Path, digest: str = sha256(SDIST), size: int = 0) -> str:
    return download(f"{web.url}/f", str(tmp_path / "d"), NAME, digest, SETTINGS, size=size)


def fault(web: Web, tmp_path: Path, digest: str = sha256(SDIST), size: int = 0) -> Finding:
    """The one finding of a download that must fail and leave nothing behind."""
    with pytest.raises(EnvironmentFault) as caught:
        got(web, tmp_path, digest, size)
    left = [n for n in os.listdir(tmp_path / "d") if not n.endswith(".lock")]
    assert left == []
    (finding,) = caught.value.findings
    assert finding.name == "network"
    assert caught.value.exit_code == 3
    return finding


def test_the_file_comes_whole_and_is_not_fetched_again(web: Web, tmp_path: Path) -> None:
    web.routes["/f"] = SDIST
    seen: list[tuple[str, int, int]] = []
    path = download(
        f"{web.url}/f",
        str(tmp_path),
        NAME,
        sha256(SDIST),
        SETTINGS,
        lambda label, done, total=0: seen.append((label, done, total)),
    )
    assert Path(path).read_bytes() == SDIST
    assert seen[-1] == (f"fetch {NAME}", len(SDIST), len(SDIST))
    download(f"{web.url}/f", str(tmp_path), NAME, sha256(SDIST), SETTINGS)
    assert web.asked("/f") == 1


def test_a_file_with_another_digest_in_the_cache_is_fetched_anew(web: Web, tmp_path: Path) -> None:
    web.routes["/f"] = SDIST
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / NAME).write_bytes(b"tampered")
    assert Path(got(web, tmp_path)).read_bytes() == SDIST


def test_a_cut_download_is_named_and_tried_again(web: Web, tmp_path: Path) -> None:
    def cut(handler: BaseHTTPRequestHandler) -> None:
        reply(handler, SDIST[:100], length=len(SDIST))

    web.routes["/f"] = cut
    finding = fault(web, tmp_path)
    assert "cut short" in finding.message
    assert finding.found == f"100 of {len(SDIST)} bytes"
    assert finding.details[-1] == "tried 2 times"
    assert web.asked("/f") == 2


def test_a_cut_without_a_stated_length_is_seen_by_the_indexs_size(web: Web, tmp_path: Path) -> None:
    def cut(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(SDIST[:100])

    web.routes["/f"] = cut
    assert "cut short" in fault(web, tmp_path, size=len(SDIST)).message
    assert "digest" in fault(web, tmp_path).message


def test_the_next_try_may_hold(web: Web, tmp_path: Path) -> None:
    def once(handler: BaseHTTPRequestHandler) -> None:
        if web.asked("/f") == 1:
            reply(handler, b"busy", "text/plain", 503)
        else:
            reply(handler, SDIST)

    web.routes["/f"] = once
    assert Path(got(web, tmp_path)).read_bytes() == SDIST


def test_a_server_that_stands_still_is_named(web: Web, tmp_path: Path) -> None:
    def stall(handler: BaseHTTPRequestHandler) -> None:
        reply(handler, SDIST[:100], length=len(SDIST))
        time.sleep(1.0)

    def never(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(1.0)

    web.routes["/f"] = stall
    assert "no data for 0.4 s" in fault(web, tmp_path).message
    web.routes["/f"] = never
    assert "no data for 0.4 s" in fault(web, tmp_path).message


def test_a_trickle_is_as_good_as_standing_still(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "SLOW_FOR", 0.3)

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        reply(handler, b"", length=len(SDIST))
        for byte in SDIST[:40]:
            handler.wfile.write(bytes([byte]))
            time.sleep(0.05)

    web.routes["/f"] = trickle
    assert "too slowly" in fault(web, tmp_path).message


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/octet-stream"])
def test_a_sign_in_page_is_named_as_one(web: Web, tmp_path: Path, kind: str) -> None:
    page = b"\n <!DOCTYPE html><html><title>Welcome to Hotel WiFi</title>" + b" " * 9000
    web.routes["/f"] = lambda handler: reply(handler, page, kind)
    finding = fault(web, tmp_path)
    assert "web page" in finding.message
    assert "sign-in" in finding.next


def test_another_file_is_named_with_both_digests(web: Web, tmp_path: Path) -> None:
    web.routes["/f"] = SDIST + b"!"
    finding = fault(web, tmp_path)
    assert (finding.expected, finding.found) == (sha256(SDIST), sha256(SDIST + b"!"))


@pytest.mark.parametrize(("code", "tries"), [(404, 1), (403, 1), (401, 1), (429, 2), (500, 2)])
def test_a_refusal_is_tried_again_only_where_that_may_help(
    web: Web, tmp_path: Path, code: int, tries: int
) -> None:
    web.routes["/f"] = lambda handler: reply(handler, b"", code=code)
    assert str(code) in fault(web, tmp_path).found
    assert web.asked("/f") == tries


def test_no_server_at_all_is_named(tmp_path: Path) -> None:
    web, server = serve()
    server.shutdown()
    server.server_close()
    finding = fault(web, tmp_path)
    assert "refused" in finding.message
    assert "check the network" in finding.next


def test_a_host_without_address_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EnvironmentFault) as caught:
        download("http://nowhere.invalid/f", str(tmp_path), NAME, "0" * 64, SETTINGS)
    assert "nowhere.invalid" in caught.value.findings[0].message


def test_what_is_stated_too_large_is_not_begun(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "LIMIT", 1000)
    web.routes["/f"] = lambda handler: reply(handler, b"x" * 2000)
    assert "larger" in fault(web, tmp_path).message
    web.routes["/f"] = endless
    assert "does not end" in fault(web, tmp_path).message


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b"x" * 1000)


def test_a_redirect_is_followed_but_carries_no_password_to_another_host(
    web: Web, tmp_path: Path
) -> None:
    other, server = serve()
    try:
        other.routes["/g"] = SDIST
        elsewhere = other.url.replace("127.0.0.1", "localhost")
        web.routes["/f"] = lambda h: reply(h, b"", code=302, Location=f"{elsewhere}/g")
        url = web.url.replace("//", "//user:secret@") + "/f"
        path = download(url, str(tmp_path), NAME, sha256(SDIST), SETTINGS)
        assert Path(path).read_bytes() == SDIST
        assert "Authorization" in web.seen[0][1]
        assert "Authorization" not in other.seen[0][1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_a_redirect_out_of_the_web_is_not_followed(web: Web, tmp_path: Path, target: str) -> None:
    web.routes["/f"] = lambda handler: reply(handler, b"", code=302, Location=target)
    assert "not followed" in fault(web, tmp_path).message


def test_no_password_stands_in_a_message(web: Web, tmp_path: Path) -> None:
    for answer in (
        lambda handler: reply(handler, b"", code=403),
        lambda handler: reply(handler, b"x"),
        lambda handler: reply(handler, b"<html>", "text/html"),
    ):
        web.routes["/f?token=secret"] = answer
        url = web.url.replace("//", "//user:secret@") + "/f?token=secret"
        with pytest.raises(EnvironmentFault) as caught:
            download(url, str(tmp_path), NAME, "0" * 64, SETTINGS)
        assert "secret" not in str(caught.value.findings)


def test_netrc_gives_the_password_of_its_host(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password pw\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    web.routes["/f"] = SDIST
    got(web, tmp_path)
    assert web.seen[0][1]["Authorization"] == "Basic bWU6cHc="


def test_a_proxy_of_pip_is_used(web: Web, tmp_path: Path) -> None:
    web.routes["http://files.example/f"] = SDIST  # a proxy is asked with the whole address
    settings = PipSettings(proxy=web.url, timeout=1, retries=0)
    path = download("http://files.example/f", str(tmp_path), NAME, sha256(SDIST), settings)
    assert Path(path).read_bytes() == SDIST


def test_eight_that_want_the_same_file_fetch_it_once(web: Web, tmp_path: Path) -> None:
    def slowly(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.2)
        reply(handler, SDIST)

    web.routes["/f"] = slowly
    threads = [threading.Thread(target=got, args=(web, tmp_path)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert web.asked("/f") == 1
    assert Path(tmp_path, "d", NAME).read_bytes() == SDIST


def test_a_download_that_was_killed_is_begun_anew(web: Web, tmp_path: Path) -> None:
    started = threading.Event()

    def half(handler: BaseHTTPRequestHandler) -> None:
        reply(handler, SDIST[:200], length=len(SDIST))
        handler.wfile.flush()
        started.set()
        time.sleep(5)

    web.routes["/f"] = half
    code = (
        "import sys\nfrom patchkit.source.fetch import download\n"
        "from patchkit.source.pipconf import PipSettings\n"
        "download(*sys.argv[1:5], PipSettings(timeout=9, retries=0))"
    )
    folder = str(tmp_path / "d")
    process = subprocess.Popen(
        [sys.executable, "-c", code, f"{web.url}/f", folder, NAME, sha256(SDIST)]
    )
    assert started.wait(10)
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert any(n.endswith(".part") for n in os.listdir(folder))
    web.routes["/f"] = SDIST
    assert Path(got(web, tmp_path)).read_bytes() == SDIST
    assert not any(n.endswith(".part") for n in os.listdir(folder))


def said(body: bytes, code: int = 200, **headers: str) -> Answer:
    """An answer with exactly these headers."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@pytest.mark.parametrize("length", ["abc", "-5", "", "9" * 30, "9" * 5000])
def test_a_length_that_is_none_is_as_good_as_unsaid(web: Web, tmp_path: Path, length: str) -> None:
    web.routes["/f"] = said(SDIST, Content_Length=length)
    assert Path(got(web, tmp_path)).read_bytes() == SDIST


def test_a_redirect_to_what_is_no_address_is_named(web: Web, tmp_path: Path) -> None:
    for target in ("http://[::1/x", "http://127.0.0.1:x/y"):
        web.routes["/f"] = said(b"", 302, Location=target)
        assert "redirect" in fault(web, tmp_path).message


def test_a_redirect_on_the_same_server_keeps_the_password(web: Web, tmp_path: Path) -> None:
    web.routes["/g"] = SDIST
    web.routes["/f"] = said(b"", 302, Location="/g")
    url = web.url.replace("//", "//me:pw@") + "/f"
    download(url, str(tmp_path), NAME, sha256(SDIST), SETTINGS)
    assert [seen["Authorization"] for _, seen in web.seen] == ["Basic bWU6cHc="] * 2


def test_a_redirect_that_states_a_password_is_followed_with_it(web: Web, tmp_path: Path) -> None:
    web.routes["/g"] = SDIST
    web.routes["/f"] = said(b"", 302, Location=web.url.replace("//", "//me:pw@") + "/g")
    got(web, tmp_path)
    assert web.seen[1][1]["Authorization"] == "Basic bWU6cHc="


def test_a_netrc_that_cannot_be_read_is_as_good_as_none(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_bytes(b"machine 127.0.0.1 login me password \xff\xfe\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    web.routes["/f"] = SDIST
    got(web, tmp_path)


@pytest.mark.parametrize("option", ["cert", "client_cert"])
@pytest.mark.parametrize("content", [None, "no certificate\n"])
def test_certificates_that_cannot_be_used_are_named_and_not_tried_again(
    tmp_path: Path, option: str, content: str | None
) -> None:
    path = tmp_path / "my.pem"
    if content is not None:
        path.write_text(content)
    settings = PipSettings(timeout=1, retries=3, **{option: str(path)})  # type: ignore[arg-type]
    with pytest.raises(EnvironmentFault) as caught:
        download("https://127.0.0.1:1/f", str(tmp_path), NAME, "0" * 64, settings)
    (finding,) = caught.value.findings
    assert finding.message.startswith(f"pip's {option.replace('_', '-')} cannot be used: {path}")
    assert finding.details == ()


def test_certificates_say_nothing_of_a_server_without_one(web: Web, tmp_path: Path) -> None:
    web.routes["/f"] = SDIST
    settings = PipSettings(timeout=1, retries=0, cert="/nowhere", client_cert="/nowhere")
    download(f"{web.url}/f", str(tmp_path), NAME, sha256(SDIST), settings)
