"""A package index: which files a project has, their addresses and digests.

The simple API in its JSON form (PEP 691); where an index knows only HTML (PEP 503), that.
"""

from __future__ import annotations

import json
import os
import re
import time
import urllib.parse
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from http.client import HTTPException, HTTPResponse

from patchkit.errors import EnvironmentFault, Finding, unreadable
from patchkit.source.fetch import with_retries
from patchkit.source.http import Transient, open_url, shown, unreachable
from patchkit.source.pipconf import PipSettings

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_LIMIT = 64 << 20
_BLOCK = 1 << 16
_PATIENCE = 300.0
"""Seconds after which a page that still comes is given up."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class IndexFile:
    """One file of a project. sha256: "" where the index does not say; size: 0 likewise."""

    name: str
    url: str
    sha256: str = ""
    size: int = 0


def normal_name(project: str) -> str:
    """A project's name as indexes spell it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", project).lower()


def project_files(project: str, settings: PipSettings) -> list[IndexFile]:
    """All files of `project` at pip's indexes and find-links, in pip's order.

    Raises EnvironmentFault(network) where no index answers.
    """
    found, faults = _asked(project, settings)
    if not found and faults:
        raise EnvironmentFault(*faults)
    return found


def _asked(project: str, settings: PipSettings) -> tuple[list[IndexFile], list[Finding]]:
    """The files of `project`, and what is wrong with the indexes that gave none."""
    found: list[IndexFile] = []
    faults: list[Finding] = []
    for place in settings.find_links:
        found += _in_folder(place)
    for index in settings.indexes:
        try:
            found += _page(f"{index.rstrip('/')}/{normal_name(project)}/", settings)
        except EnvironmentFault as error:
            faults += error.findings
    return found, faults


def find_file(project: str, name: str, sha256: str, settings: PipSettings) -> IndexFile:
    """The file `name` of `project`; one of the stated digest is preferred.

    Raises EnvironmentFault(network) where no index has it.
    """
    files, faults = _asked(project, settings)
    named = [f for f in files if f.name == name]
    for file in sorted(named, key=lambda f: f.sha256 != sha256):
        return file
    if faults and not files:
        raise EnvironmentFault(*faults)
    places = ", ".join(shown(i) for i in settings.indexes) or "none (pip's no-index is set)"
    raise EnvironmentFault(
        Finding(
            "network",
            f"no package index has {name}",
            expected=name,
            found=f"indexes asked: {places}",
            next="check pip's index-url, or give the file's folder: PIP_FIND_LINKS=DIR",
            # it may be at an index that gave no answer
            details=tuple(fault.message for fault in faults),
        )
    )


def _in_folder(place: str) -> list[IndexFile]:
    path = _on_disk(place) if place.startswith("file:") else place
    if not os.path.isdir(path):
        return []
    return [
        IndexFile(name, "file://" + urllib.parse.quote(os.path.join(os.path.abspath(path), name)))
        for name in sorted(os.listdir(path))
    ]


def _on_disk(url: str) -> str:
    return urllib.parse.unquote(urllib.parse.urlsplit(url).path)


def _page(url: str, settings: PipSettings) -> list[IndexFile]:
    if url.startswith("file:"):
        url += "index.html"  # a folder has no listing of its own
        if not os.path.exists(_on_disk(url)):
            return []

    def ask() -> tuple[str, str, bytes]:
        with open_url(url, settings, _ACCEPT) as answer:
            kind = answer.headers.get("Content-Type") or ""
            return answer.url or url, kind, _whole(answer, url, settings)

    base, kind, data = with_retries(ask, settings.retries)
    if len(data) > _LIMIT:
        raise EnvironmentFault(_odd(url, f"more than {_LIMIT} bytes"))
    if "json" in kind or data[:1] == b"{":
        return _from_json(data, base, url)
    return _from_html(data, base, url)


def _whole(answer: HTTPResponse, url: str, settings: PipSettings) -> bytes:
    """The page's bytes. Raises Transient where they stop before their end."""
    data = bytearray()
    until = time.monotonic() + _PATIENCE
    try:
        # Piece by piece: only so is a page that comes byte by byte given up.
        while len(data) <= _LIMIT and (block := answer.read1(_BLOCK)):
            data += block
            if time.monotonic() > until:
                raise EnvironmentFault(
                    replace(_cut(url, len(data), 0), message=f"{shown(url)} comes too slowly")
                )
    except (OSError, HTTPException) as error:
        raise Transient(unreachable(url, error, settings.timeout)) from None
    stated = int(answer.headers.get("Content-Length") or 0)
    if len(data) < stated:
        raise Transient(_cut(url, len(data), stated))
    return bytes(data)


def _from_json(data: bytes, base: str, url: str) -> list[IndexFile]:
    try:
        files = json.loads(data)["files"]
        return [
            IndexFile(
                str(f["filename"]),
                urllib.parse.urljoin(base, str(f["url"])),
                str((f.get("hashes") or {}).get("sha256", "")),
                int(f.get("size") or 0),
            )
            for f in files
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EnvironmentFault(
            _odd(url, f"JSON without a list of files ({unreadable(error)})")
        ) from None


class _Links(HTMLParser):
    """Collects the links of a PEP 503 page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.links.append(href)


def _from_html(data: bytes, base: str, url: str) -> list[IndexFile]:
    parser = _Links()
    parser.feed(data.decode("utf-8", "replace"))
    found: list[IndexFile] = []
    for link in parser.links:
        whole = urllib.parse.urljoin(base, link)
        parts = urllib.parse.urlsplit(whole)
        name = urllib.parse.unquote(parts.path.rpartition("/")[2])
        digest = dict(urllib.parse.parse_qsl(parts.fragment)).get("sha256", "")
        if name.endswith((".tar.gz", ".whl", ".zip")):
            clean = urllib.parse.urlunsplit(parts._replace(fragment=""))
            found.append(IndexFile(name, clean, digest if _SHA256.fullmatch(digest) else ""))
    if not found and b"simple" not in data.lower() and b"links for" not in data.lower():
        raise EnvironmentFault(_odd(url, "a web page that lists no files"))
    return found


def _cut(url: str, found: int, stated: int) -> Finding:
    return Finding(
        "network",
        f"{shown(url)} was cut short",
        expected=f"{stated} bytes" if stated else "the whole page",
        found=f"{found} bytes",
        next="check the network and the proxy, and run the command again",
    )


def _odd(url: str, found: str) -> Finding:
    return Finding(
        "network",
        f"{shown(url)} did not answer as a package index does",
        expected="the simple API, in JSON or HTML",
        found=found,
        next="check pip's index-url, and that no sign-in page stands between",
    )
