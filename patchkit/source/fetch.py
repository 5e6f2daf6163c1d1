"""Brings one file of a known digest: whole and verified, or not at all.

A download grows under a temporary name and is renamed when its sha256 holds; a part of one is
never used, and never resumed (what is half there cannot be judged).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from typing import TypeVar

from patchkit.errors import EnvironmentFault, Finding, Where
from patchkit.files.atomic import make_folder
from patchkit.files.growing import Growing, remove_file
from patchkit.files.lock import locked
from patchkit.source.base import Progress, silent
from patchkit.source.digest import digest_of
from patchkit.source.http import Transient, open_url, shown, stated_length, unreachable
from patchkit.source.pipconf import PipSettings

LIMIT = 8 << 30
"""Bytes of the largest file taken: a wheel with CUDA has 0.3 GB."""
SLOW = 1024
"""Bytes a second, over `SLOW_FOR` seconds: slower than this is as good as standing still."""
SLOW_FOR = 30.0
PAUSE = 0.5
"""Seconds before the second try; each further pause is twice as long, up to 8 s."""
_BLOCK = 1 << 16
_PART = ".part"
_WAIT = 3600.0

T = TypeVar("T")


def with_retries(work: Callable[[], T], retries: int) -> T:
    """`work()`, tried again where it raises Transient, with growing pauses.

    Raises EnvironmentFault with the last fault when no try holds.
    """
    pause = PAUSE
    for left in range(retries, -1, -1):
        try:
            return work()
        except Transient as fault:
            if left == 0:
                from dataclasses import replace

                finding = fault.finding
                tries = f"tried {retries + 1} times" if retries else "tried once"
                raise EnvironmentFault(
                    replace(finding, details=(*finding.details, tries))
                ) from None
            time.sleep(pause)
            pause = min(pause * 2, 8.0)
    raise AssertionError("unreachable")


def download(
    url: str,
    folder: str,
    name: str,
    sha256: str,
    settings: PipSettings,
    progress: Progress = silent,
    size: int = 0,
) -> str:
    """The path of the file `name` in `folder`, fetched from `url` unless it is there already.

    sha256: what it must have. size: bytes, where the index says. One process fetches, others wait
    for it. Raises EnvironmentFault(network, disk), with the cause named: cut, slow, a web page
    instead of the file, another digest.
    """
    path = os.path.join(folder, name)
    make_folder(folder)
    with locked(path + ".lock", wait=_WAIT):
        if os.path.exists(path) and digest_of(path) == sha256:
            return path
        for left in os.listdir(folder):
            if left.startswith(name + ".") and left.endswith(_PART):
                remove_file(os.path.join(folder, left))  # of a process that was killed
        job = _Download(url, path, sha256, settings, progress, size)
        with_retries(job.run, settings.retries)
    return path


class _Download:
    """One download; `run` is one try."""

    def __init__(
        self,
        url: str,
        path: str,
        sha256: str,
        settings: PipSettings,
        progress: Progress,
        size: int,
    ) -> None:
        self.url = url
        self.path = path
        self.name = os.path.basename(path)
        self.sha256 = sha256
        self.settings = settings
        self.progress = progress
        self.size = size

    def run(self) -> None:
        temporary = f"{self.path}.{os.getpid()}{_PART}"
        with open_url(self.url, self.settings) as answer, Growing(temporary) as file:
            self._refuse_page(answer)
            stated = stated_length(answer) or self.size
            if stated > LIMIT:
                raise EnvironmentFault(
                    self._fault("is larger than patchkit takes", f"{stated} bytes")
                )
            digest = self._copy(answer, file, stated)
            if digest != self.sha256:
                raise Transient(self._fault("does not have the stated digest", digest, self.sha256))
            file.keep(self.path)

    def _copy(self, answer: HTTPResponse, file: Growing, stated: int) -> str:
        digest = hashlib.sha256()
        done, mark, since = 0, 0, time.monotonic()
        while True:
            try:
                block = answer.read1(_BLOCK) if hasattr(answer, "read1") else answer.read(_BLOCK)
            except (OSError, HTTPException) as error:
                raise Transient(unreachable(self.url, error, self.settings.timeout)) from None
            if not block:
                break
            if done == 0 and block[:512].lstrip().lower().startswith((b"<!doctype", b"<html")):
                raise Transient(self._page("a page of HTML"))
            digest.update(block)
            file.write((block,))
            done += len(block)
            if done > LIMIT:
                raise EnvironmentFault(self._fault("does not end", f"more than {LIMIT} bytes"))
            self.progress(f"fetch {self.name}", done, stated)
            now = time.monotonic()
            if now - since >= SLOW_FOR:
                if done - mark < SLOW * SLOW_FOR:
                    raise Transient(
                        self._fault(
                            "comes too slowly", f"{done - mark} bytes in {now - since:.0f} s"
                        )
                    )
                mark, since = done, now
        if stated and done < stated:
            raise Transient(
                self._fault("was cut short", f"{done} of {stated} bytes", f"{stated} bytes")
            )
        return digest.hexdigest()

    def _refuse_page(self, answer: HTTPResponse) -> None:
        kind = (answer.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if kind in ("text/html", "application/xhtml+xml") and not self.name.endswith(".html"):
            raise Transient(self._page(f"content of type {kind}"))

    def _page(self, found: str) -> Finding:
        return self._fault(
            "came as a web page, not as the file",
            found,
            "the file's own bytes",
            next="a proxy or a sign-in page stands between: check the network, then run it again",
        )

    def _fault(
        self, what: str, found: str, expected: str = "", next: str = "run the command again"
    ) -> Finding:
        return Finding(
            "network",
            f"{self.name} {what}",
            Where(file=self.name),
            expected=expected,
            found=found,
            next=next,
            details=(f"from {shown(self.url)}",),
        )
