"""What a wheel holds, whatever its zip looks like: each member read, and one digest of them all.

The content digest is a sha256 over the sorted lines `PATH NUL x|- NUL SHA256 LF`. Two wheels with
equal content digests install the same files; their own sha256 may differ where another program or
another zlib packed them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchkit.build.wheelfile import Wheel
from patchkit.errors import Finding, Refused, Where
from patchkit.source.base import Progress, silent
from patchkit.target.record_csv import NAME

_SIGNATURES = ("RECORD.jws", "RECORD.p7s")
SHOWN = 20


@dataclass(frozen=True)
class Content:
    """One member, read: sha256 (64 hex digits), git blob id, and whether it is executable."""

    sha256: str
    oid: str
    executable: bool


def read_all(wheel: Wheel, progress: Progress = silent) -> dict[str, Content]:
    """Every member of the wheel, expanded in blocks and hashed. Raises Refused(verify-failed)."""
    out = {}
    done, total = 0, sum(m.size for m in wheel.members.values())
    for name, member in wheel.members.items():
        whole = hashlib.sha256()
        blob = hashlib.sha1(b"blob %d\0" % member.size, usedforsecurity=False)
        for block in wheel.blocks(member):
            whole.update(block)
            blob.update(block)
        done += member.size
        progress(f"read {wheel.file_name}", done, total)
        out[name] = Content(whole.hexdigest(), blob.hexdigest(), member.executable)
    return out


def content_digest(rows: Iterable[tuple[str, bool, str]]) -> str:
    """The content digest of (path, executable, sha256) rows."""
    total = hashlib.sha256()
    for path, executable, sha256 in sorted(rows):
        line = f"{path}\0{'x' if executable else '-'}\0{sha256}\n"
        total.update(line.encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def digest_of_wheel(contents: Mapping[str, Content]) -> str:
    """The content digest of a wheel that was read."""
    return content_digest((n, c.executable, c.sha256) for n, c in contents.items())


def check_record(wheel: Wheel, contents: Mapping[str, Content]) -> None:
    """Refused(verify-failed) where the wheel's RECORD is not what its members are.

    Installers trust RECORD; a wheel that is built on must deserve it.
    """
    own = f"{wheel.dist_info}/{NAME}"
    rows = wheel.record.by_path
    wrong = sorted(rows.keys() - contents.keys())
    for name, content in contents.items():
        if name == own or name in (f"{wheel.dist_info}/{s}" for s in _SIGNATURES):
            continue
        row = rows.get(name)
        if row is None or row.digest != as_record(content.sha256):
            wrong.append(name)
    if wrong:
        raise Refused(
            Finding(
                "verify-failed",
                f"the RECORD of {wheel.file_name} is not that of its members",
                Where(file=wrong[0]),
                expected="a row with its sha256 for each member",
                found=f"{len(wrong)} rows are missing or differ",
                next="give the wheel as the project published it",
                details=tuple(wrong[:SHOWN]),
            )
        )


def as_record(sha256: str) -> str:
    """64 hex digits as RECORD writes them."""
    raw = base64.urlsafe_b64encode(bytes.fromhex(sha256)).rstrip(b"=")
    return f"sha256={raw.decode('ascii')}"
