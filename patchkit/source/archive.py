"""Reads a .tar.gz as a stream of files, trusting nothing in it and writing nothing to disk.

The archive is somebody else's: names are judged by `engine.paths`, links are never followed, and
what it may expand to is limited before memory is taken.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, path_bytes
from patchkit.engine.paths import is_git_folder, unsafe
from patchkit.errors import Finding, Refused, Where
from patchkit.files.root import disk_fault


@dataclass(frozen=True)
class Limits:
    """How large an archive may be: members, bytes of one file, bytes in all."""

    members: int = 200_000
    file: int = 512 << 20
    total: int = 4 << 30


_HEADERS = 4 << 20
"""Bytes that the headers of one member may take (long names come as members of their own)."""

_SLACK = 64 << 10
"""The tar reader asks for whole records, ahead of what it needs."""


def read_sdist(path: str, limits: Limits | None = None) -> Iterator[tuple[str, int, bytes]]:
    """Path below the archive's one folder, git mode and bytes of each file, in its order.

    Raises Refused: path-escape (a name that leaves, or a link that does), too-large, unsupported
    (a device, a file beside the folder, no tar at all); EnvironmentFault(disk).
    """
    bounds = limits or Limits()
    name = path.rpartition("/")[2]
    try:
        with open(path, "rb") as raw, gzip.GzipFile(fileobj=raw) as unzipped:
            stream = _Rationed(cast("IO[bytes]", unzipped), bounds, name)
            with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as tar:
                yield from _files(tar, stream, bounds, name)
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise Refused(
            Finding(
                "unsupported",
                f"{name} is not a whole gzip-compressed tar archive",
                Where(file=name),
                expected="a sdist, .tar.gz",
                found=str(error) or type(error).__name__,
            )
        ) from error
    except OSError as error:
        raise disk_fault(error, path, "read") from error


class _Rationed:
    """A reader that gives no more than was granted: a header that lies cannot take memory.

    content_end: how many bytes were read up to the last one that is not zero.
    """

    def __init__(self, stream: IO[bytes], limits: Limits, name: str) -> None:
        self._stream = stream
        self._left = _HEADERS
        self._limit = limits.total + limits.members * 1024
        self._name = name
        self.done = 0
        self.content_end = 0

    def grant(self, size: int) -> None:
        self._left = size + _SLACK

    def read(self, size: int) -> bytes:
        if size > self._left or self.done + size > self._limit:
            raise Refused(_too_large(self._name, "", "more than its headers may take"))
        data = self._stream.read(size)
        self._left -= len(data)
        content = data.rstrip(b"\0")
        if content:
            self.content_end = self.done + len(content)
        self.done += len(data)
        return data

    def drain(self) -> None:
        """Read to the end: that also checks what gzip keeps there, a checksum and a length."""
        self.grant(_HEADERS)
        while self.read(_SLACK):
            pass


def _files(
    tar: tarfile.TarFile, stream: _Rationed, limits: Limits, name: str
) -> Iterator[tuple[str, int, bytes]]:
    top = ""
    members = total = 0
    while True:
        stream.grant(_HEADERS)
        member = tar.next()
        if member is None:
            # The reader takes a damaged header for the end. The end is a block of zeros, and
            # nothing else follows it.
            stream.drain()
            if stream.content_end > tar.offset or stream.done < tar.offset + tarfile.BLOCKSIZE:
                raise EOFError(f"damaged or cut at byte {tar.offset}")
            return
        # The list is for seeking back, and would grow with the archive.
        tar.members = []  # type: ignore[attr-defined]
        members += 1
        if members > limits.members:
            raise Refused(_too_large(name, "", f"more than {limits.members} members"))
        folder, _, path = member.name.partition("/")
        top = top or folder
        _check_name(member, folder, path, top, name)
        if member.isdir():
            continue
        if member.isreg() and not member.issparse():
            total += member.size
            if member.size > limits.file or total > limits.total:
                raise Refused(_too_large(name, member.name, f"{member.size} bytes"))
            stream.grant(member.size)
            body = tar.extractfile(member)
            assert body is not None
            data = body.read()
            if len(data) != member.size:
                raise EOFError(f"cut inside {member.name}")
            yield path, EXECUTABLE if member.mode & 0o100 else REGULAR, data
        elif member.issym():
            yield path, SYMLINK, _link_target(member, path, name)
        else:
            raise Refused(
                Finding(
                    "unsupported",
                    f"{name} holds something that is neither file, folder nor symbolic link",
                    Where(file=member.name),
                    found=f"tar member type {member.type!r}",
                )
            )


def _check_name(member: tarfile.TarInfo, folder: str, path: str, top: str, name: str) -> None:
    reason = unsafe(member.name)
    if reason is None and folder != top:
        reason = f"it stands beside the archive's folder {top}"
    if reason is None and not path and not member.isdir():
        reason = "it stands outside the archive's folder"
    if reason is not None:
        raise Refused(
            Finding(
                "path-escape",
                f"{name} holds a name that may not be used: {reason}",
                Where(file=member.name),
                found=member.name,
            )
        )


def _link_target(member: tarfile.TarInfo, path: str, name: str) -> bytes:
    """The target of a link that stays inside the tree, and out of git's folder."""
    target = member.linkname
    at = path.split("/")[:-1]
    inside = bool(target) and not target.startswith("/") and "\0" not in target
    for part in target.split("/"):
        if part == "..":
            inside = inside and bool(at)
            del at[-1:]
        elif part not in ("", "."):
            # Where a file system ignores case, a name below such a link is one of git's own.
            inside = inside and not is_git_folder(part)
            at.append(part)
    if not inside:
        raise Refused(
            Finding(
                "path-escape",
                f"{name} holds a symbolic link that leaves the tree",
                Where(file=member.name),
                found=target,
            )
        )
    return path_bytes(target)


def _too_large(name: str, member: str, found: str) -> Finding:
    return Finding(
        "too-large",
        f"{name} expands to more than patchkit takes",
        Where(file=member or name),
        found=found,
    )
