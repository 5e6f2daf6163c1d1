"""The version of a patched wheel, and where a wheel states its version.

`0.30.0+pk<12 hex digits of the patched tree>`; a variant of the base stays before it:
`0.30.0+cu129.pk…`. Letters and digits in one part, so that no installer reads a number and drops
its zeros (PEP 440).
"""

from __future__ import annotations

import re

from patchkit.errors import Finding, Refused, Where

DIGITS = 12
_FIELD = re.compile(rb"^Version:[ \t]*(\S+)[ \t]*(?=\r?$)", re.M)
_VERSION = re.compile(rb"""^((?:__version__ = )?version = )(['"])([^'"\n]*)\2(?=\r?$)""", re.M)
_TUPLE = re.compile(rb"^((?:__version_tuple__ = )?version_tuple = )\([^()\n]*\)(?=\r?$)", re.M)


def public(version: str) -> str:
    """A version without its local label."""
    return version.partition("+")[0]


def label(version: str, tree: str) -> str:
    """The version of a wheel patched to `tree` (40 hex digits), from its base's version."""
    base, plus, local = version.partition("+")
    return f"{base}+{local}.pk{tree[:DIGITS]}" if plus else f"{base}+pk{tree[:DIGITS]}"


def variant_of(file_name: str) -> str:
    """The variant of the base in the name of a patched wheel (cu129), "" for none."""
    local = file_name.partition("-")[2].partition("-")[0].partition("+")[2]
    return local.rpartition(".pk")[0]


def version_of(metadata: bytes, where: str) -> str:
    """The version that METADATA states. Raises Refused(unsupported)."""
    head, _, _ = _split(metadata)
    found = _FIELD.findall(head)
    if len(found) != 1:
        raise Refused(
            Finding(
                "unsupported",
                f"METADATA states {len(found)} versions",
                Where(file=where),
                expected="one line Version: …",
            )
        )
    return str(found[0].decode("utf-8", "replace"))


def relabel_metadata(metadata: bytes, version: str) -> bytes:
    """METADATA with another version; every other byte stays."""
    head, gap, body = _split(metadata)
    return _FIELD.sub(b"Version: " + version.encode("ascii"), head, count=1) + gap + body


def relabel_module(data: bytes, version: str) -> bytes:
    """A version file of setuptools-scm with another version; the commit id stays."""
    base, _, local = version.partition("+")
    parts = [p if p.isdecimal() else repr(p) for p in base.split(".")]
    text = "(" + ", ".join([*parts, *([repr(local)] if local else [])]) + ")"

    def stated(found: re.Match[bytes]) -> bytes:
        return found[1] + found[2] + version.encode("ascii") + found[2]

    return _TUPLE.sub(lambda m: m[1] + text.encode("ascii"), _VERSION.sub(stated, data))


def wheel_file(data: bytes, generator: str, tags: list[str]) -> bytes:
    """WHEEL with our name as its maker, and the tags that the file name has."""
    lines = [
        line
        for line in data.decode("utf-8", "replace").splitlines()
        if line.strip() and not line.startswith(("Generator:", "Tag:"))
    ]
    lines[1:1] = [f"Generator: {generator}"]
    return "\n".join([*lines, *(f"Tag: {tag}" for tag in tags)]).encode() + b"\n"


def _split(metadata: bytes) -> tuple[bytes, bytes, bytes]:
    found = re.search(rb"\r?\n\r?\n", metadata)
    if found is None:
        return metadata, b"", b""
    return metadata[: found.start()], found[0], metadata[found.end() :]
