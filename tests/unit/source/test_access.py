"""The whole way of a fetch as pip is set up: certificates, proxy, second index; and that a
password is printed nowhere and stored nowhere."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from .conftest import COMMIT, NAME, SDIST, Web, index_page, reply, serve, sha256


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose one pin is the demo's sdist."""
    at = tmp_path / "project"
    at.mkdir()
    (at / "pins.toml").write_text(
        '[upstreams.demo]\nkind = "plain"\npypi = "demo"\npackage = "demo"\n'
        f'[pins."v1.0"]\nupstream = "demo"\ncommit = "{COMMIT}"\n'
        f'[pins."v1.0".files]\n"{NAME}" = "sha256:{sha256(SDIST)}"\n'
    )
    return at


def fetched(project: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """`patchkit fetch` in a process of its own: with pip's configuration file, or these variables,
    and nothing else."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PIP_") and not name.lower().endswith("_proxy")
    }
    return subprocess.run(
        [sys.executable, "-m", "patchkit", "-C", str(project), "fetch", "--pin", "v1.0"],
        env=clean | {"HOME": str(project.parent), "PIP_RETRIES": "0", "PIP_TIMEOUT": "5"} | env,
        capture_output=True,
        text=True,
        check=False,
    )


def served(web: Web) -> None:
    web.routes["/simple/demo/"] = index_page
    web.routes[f"/files/{NAME}"] = SDIST


def holding(secret: str, *folders: Path) -> list[Path]:
    """Files in which `secret` stands."""
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[Web, Path]]:
    """The server behind TLS with a certificate that nobody knows, and the certificate."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    web, server = serve()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    web.url = web.url.replace("http:", "https:")
    served(web)
    yield web, cert
    server.shutdown()
    server.server_close()


def test_a_certificate_that_nobody_knows_is_named_and_pips_is_believed(
    tls: tuple[Web, Path], project: Path
) -> None:
    web, cert = tls
    index = {"PIP_INDEX_URL": f"{web.url}/simple"}
    done = fetched(project, **index)
    assert done.returncode == 3
    assert "its certificate is not trusted" in done.stderr
    assert "PIP_CERT=FILE" in done.stderr
    assert web.seen == []
    assert fetched(project, **index, PIP_CERT=str(cert)).returncode == 0
    assert web.asked(f"/files/{NAME}") == 1


@pytest.mark.parametrize("port", [True, False])
def test_a_host_that_pip_trusts_needs_no_certificate(
    tls: tuple[Web, Path], project: Path, port: bool
) -> None:
    web, _ = tls
    host = web.url.partition("//")[2]
    trusted = host if port else host.partition(":")[0]
    done = fetched(project, PIP_INDEX_URL=f"{web.url}/simple", PIP_TRUSTED_HOST=trusted)
    assert done.returncode == 0, done.stderr


def test_pips_own_file_says_where_the_index_is_and_whom_to_trust(
    tls: tuple[Web, Path], project: Path
) -> None:
    web, cert = tls
    conf = project.parent / ".config" / "pip" / "pip.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(f"[global]\nindex-url = {web.url}/simple\ncert = {cert}\n")
    done = fetched(project)
    assert done.returncode == 0, done.stderr


def test_what_the_first_index_lacks_comes_from_the_second(web: Web, project: Path) -> None:
    served(web)
    done = fetched(
        project, PIP_INDEX_URL=f"{web.url}/none", PIP_EXTRA_INDEX_URL=f"{web.url}/simple"
    )
    assert done.returncode == 0, done.stderr
    assert web.asked("/none/demo/") == 1


@pytest.mark.parametrize("variable", ["PIP_PROXY", "http_proxy"])
def test_a_proxy_is_asked_for_all_of_it(web: Web, project: Path, variable: str) -> None:
    web.routes["http://index.example/simple/demo/"] = index_page
    web.routes[f"http://index.example/files/{NAME}"] = SDIST
    env = {variable: web.url, "PIP_INDEX_URL": "http://index.example/simple"}
    done = fetched(project, **env)
    assert done.returncode == 0, done.stderr
    assert len(web.seen) == 2


def guarded(handler: BaseHTTPRequestHandler) -> bool:
    """Whether the request has the password; answers it where not."""
    if handler.headers.get("Authorization") == "Basic bWU6czNjcmV0":
        return True
    reply(handler, b"who are you", "text/plain", 401)
    return False


@pytest.mark.parametrize("fault", ["", "file 500", "file html", "file cut", "digest", "no file"])
def test_a_password_is_sent_and_neither_printed_nor_stored(
    web: Web, project: Path, fault: str
) -> None:
    private = web.url.replace("//", "//me:s3cret@")
    listed = {"filename": NAME, "url": f"{private}/files/{NAME}?token=s3cret"}
    page = json.dumps({"files": [] if fault == "no file" else [listed]}).encode()

    def index(handler: BaseHTTPRequestHandler) -> None:
        if guarded(handler):
            reply(handler, page, "application/json")

    def file(handler: BaseHTTPRequestHandler) -> None:
        if not guarded(handler):
            return
        if fault == "file 500":
            reply(handler, b"s3cret", code=500)
        elif fault == "file html":
            reply(handler, b"<html>s3cret", "text/html")
        elif fault == "file cut":
            reply(handler, SDIST[:99], length=len(SDIST))
        else:
            reply(handler, SDIST + (b"!" if fault == "digest" else b""))

    web.routes["/simple/demo/"] = index
    web.routes[f"/files/{NAME}?token=s3cret"] = file
    done = fetched(project, PIP_INDEX_URL=f"{private}/simple", PATCHKIT_DEBUG="")
    assert done.returncode == (3 if fault else 0), done.stderr
    assert "s3cret" not in done.stdout + done.stderr
    assert holding("s3cret", project, project.parent / "the-cache") == []
    assert not list((project.parent / "the-cache").rglob("*.part"))
    assert (project.parent / "the-cache" / "downloads" / NAME).exists() is not bool(fault)
