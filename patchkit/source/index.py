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
from patchkit.source.http import (
    Transient,
    open_url,
    origin,
    shown,
    split_user,
    stated_length,
    unreachable,
)
from patchkit.source.pipconf import PipSettings

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_LIMIT = 64 << 20
_BLOCK = 1 << 16
_ARCHIVES = (".tar.gz", ".whl", ".zip")
_PATIENCE = 300.0
"""Seconds after which a page that still comes is given up."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class IndexFile:
    """One file of a project. url: with the index's credentials where it is on the same server.
    sha256: "" where the index does not say; size: 0 likewise. yanked: why it was taken back (PEP
    592), None where it was not.
    """

    name: str
    url: str
    sha256: str = ""
    size: int = 0
    yanked: str | None = None


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
    name = normal_name(project)
    places = [
        *((_linked, _address(place)) for place in settings.find_links),
        *((_page, f"{_address(index).rstrip('/')}/{name}/") for index in settings.indexes),
    ]
    for look, place in places:
        try:
            found += look(place, settings)
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


def _address(place: str) -> str:
    """An address; that of a path, where there is something at it."""
    path = os.path.expanduser(place)
    if not os.path.exists(path):
        return place
    return "file://" + urllib.parse.quote(os.path.abspath(path))


def _linked(place: str, settings: PipSettings) -> list[IndexFile]:
    """What one of pip's find-links has: a folder, a file, or a page of links."""
    if not place.startswith("file:"):
        return _read_page(place, settings, lists=False) if "://" in place else []
    path = _on_disk(place)
    if os.path.isdir(path):
        return [
            IndexFile(name, "file://" + urllib.parse.quote(os.path.join(path, name)))
            for name in sorted(os.listdir(path))
        ]
    if path.endswith(_ARCHIVES):
        return [IndexFile(os.path.basename(path), place)] if os.path.isfile(path) else []
    return _read_page(place, settings, lists=False) if os.path.isfile(path) else []


def _on_disk(url: str) -> str:
    return urllib.parse.unquote(urllib.parse.urlsplit(url).path)


def _page(url: str, settings: PipSettings) -> list[IndexFile]:
    """The files of a project's page of a simple API."""
    if url.startswith("file:"):
        url += "index.html"  # a folder has no listing of its own
        if not os.path.exists(_on_disk(url)):
            return []
    return _read_page(url, settings)


def _read_page(url: str, settings: PipSettings, *, lists: bool = True) -> list[IndexFile]:
    """The files that a page links to. lists: it must be an index's page, not any page."""

    def ask() -> tuple[str, str, bytes]:
        with open_url(url, settings, _ACCEPT) as answer:
            kind = answer.headers.get("Content-Type") or ""
            return answer.url or url, kind, _whole(answer, url, settings)

    base, kind, data = with_retries(ask, settings.retries)
    if len(data) > _LIMIT:
        raise EnvironmentFault(_odd(url, f"more than {_LIMIT} bytes"))
    if "json" in kind or data[:1] == b"{":
        found = _from_json(data, base, url)
    else:
        found = _from_html(data, base, url, lists)
    return _with_login(found, url)


def _with_login(files: list[IndexFile], url: str) -> list[IndexFile]:
    """The files, with the credentials of the page's address where they are on its server: so does
    pip, and an index that wants a password for its pages wants it for its files."""
    user = urllib.parse.urlsplit(url).netloc.rpartition("@")[0]
    if not user:
        return files
    mine = origin(url)
    return [
        replace(file, url=file.url.replace("://", f"://{user}@", 1))
        if _server(file.url) == mine
        else file
        for file in files
    ]


def _server(url: str) -> tuple[str, str, int | None] | None:
    """Where a file is that states no credentials of its own; None for others."""
    try:
        return None if split_user(url)[1] else origin(url)
    except ValueError:
        return None  # asking for it will say what is wrong


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
    stated = stated_length(answer)
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
                _digest(str((f.get("hashes") or {}).get("sha256", ""))),
                int(f.get("size") or 0),
                _yanked(f.get("yanked") or None),
            )
            for f in files
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EnvironmentFault(
            _odd(url, f"JSON without a list of files ({unreadable(error)})")
        ) from None


def _digest(text: str) -> str:
    """64 hex digits in lower case; "" for what is none."""
    return text.lower() if _SHA256.fullmatch(text.lower()) else ""


def _yanked(stated: object) -> str | None:
    """Why a file was taken back, as the index says it: true, or the reason. None: it was not."""
    return None if stated is None else (stated if isinstance(stated, str) else "")


class _Links(HTMLParser):
    """Collects the links of a PEP 503 page. base: what they are relative to, where it says so.
    links: address, and why it was taken back."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.links: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        href = said.get("href")
        if tag == "a" and href:
            yanked = (said["data-yanked"] or "") if "data-yanked" in said else None
            self.links.append((href, yanked))
        elif tag == "base" and href and not self.base:
            self.base = href


def _from_html(data: bytes, base: str, url: str, lists: bool) -> list[IndexFile]:
    parser = _Links()
    parser.feed(data.decode("utf-8", "replace"))
    found: list[IndexFile] = []
    try:
        base = urllib.parse.urljoin(base, parser.base)
        for link, yanked in parser.links:
            parts = urllib.parse.urlsplit(urllib.parse.urljoin(base, link))
            name = urllib.parse.unquote(parts.path.rpartition("/")[2])
            digest = dict(urllib.parse.parse_qsl(parts.fragment)).get("sha256", "")
            if name.endswith(_ARCHIVES):
                clean = urllib.parse.urlunsplit(parts._replace(fragment=""))
                found.append(IndexFile(name, clean, _digest(digest), 0, yanked))
    except ValueError:
        raise EnvironmentFault(_odd(url, "a link that is no address")) from None
    empty = lists and not found
    if empty and b"simple" not in data.lower() and b"links for" not in data.lower():
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
