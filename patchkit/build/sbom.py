"""A bill of materials in SPDX 2.3 JSON: the wheel, what it came from, its patches, its needs.

https://spdx.github.io/spdx-spec/v2.3/. The standard wants a time of creation; it is that of the
base, so that the same inputs give the same bytes. Requirements are ranges, not chosen releases:
they are listed as METADATA has them, with a version only where it is exact.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from patchkit import __version__
from patchkit.build.built import Built
from patchkit.build.inputs import Inputs
from patchkit.store.address import public

ENDING = ".spdx.json"
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXACT = re.compile(r"==\s*([A-Za-z0-9.!+_]+)\s*(?:[;)]|$)")
_NOT = "NOASSERTION"
_DOCUMENT = "SPDXRef-DOCUMENT"
_WHEEL = "SPDXRef-Wheel"
_BASE = "SPDXRef-Base"


def document(inputs: Inputs, built: Built) -> dict[str, Any]:
    """The document, as JSON has it."""
    year, month, day, hour, minute, second = built.stamp
    created = f"{year:04}-{max(month, 1):02}-{max(day, 1):02}T{hour:02}:{minute:02}:{second:02}Z"
    packages = [_wheel(built), _base(inputs, built)]
    relations = [
        (_DOCUMENT, "DESCRIBES", _WHEEL),
        (_WHEEL, "GENERATED_FROM", _BASE),
    ]
    files = []
    digests = dict(inputs.lock.patches)
    data = {patch.name: patch.data for patch in inputs.project.series(inputs.pin.name).patches}
    for number, name in enumerate(inputs.chain.patches, 1):
        sha1 = hashlib.sha1(data[name], usedforsecurity=False).hexdigest()
        ident = f"SPDXRef-Patch-{number}"
        files.append(
            {
                "SPDXID": ident,
                "fileName": f"./series/{inputs.pin.name}/{name}",
                "fileTypes": ["TEXT"],
                "checksums": [_sum("SHA1", sha1), _sum("SHA256", digests[name])],
                "copyrightText": _NOT,
                "licenseConcluded": _NOT,
            }
        )
        relations.append((ident, "PATCH_FOR", _BASE))
        relations.append((ident, "PATCH_APPLIED", _WHEEL))
    for number, text in enumerate(built.requires, 1):
        found = _REQUIREMENT.match(text)
        if found is None:
            continue
        ident = f"SPDXRef-Requirement-{number}"
        exact = _EXACT.search(text)
        packages.append(
            {
                "SPDXID": ident,
                "name": found[1],
                "downloadLocation": _NOT,
                "filesAnalyzed": False,
                "comment": text,
                **({"versionInfo": exact[1]} if exact else {}),
            }
        )
        optional = "OPTIONAL_DEPENDENCY_OF" if "extra ==" in text else "RUNTIME_DEPENDENCY_OF"
        relations.append((ident, optional, _WHEEL))
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": _DOCUMENT,
        "name": built.file_name,
        "documentNamespace": f"urn:patchkit:spdx:{built.sha256}",
        "creationInfo": {
            "created": created,
            "creators": [f"Tool: patchkit-{__version__}"],
            "comment": "created is the time of the base, not of the build",
        },
        "packages": packages,
        "files": files,
        "relationships": [
            {"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
            for a, kind, b in relations
        ],
    }


def _wheel(built: Built) -> dict[str, Any]:
    return {
        "SPDXID": _WHEEL,
        "name": built.dist,
        "versionInfo": built.version,
        "packageFileName": built.file_name,
        "downloadLocation": _NOT,
        "filesAnalyzed": False,
        "checksums": [_sum("SHA256", built.sha256)],
        "licenseDeclared": built.license or _NOT,
        "licenseConcluded": _NOT,
        "copyrightText": _NOT,
        "primaryPackagePurpose": "LIBRARY",
        "comment": f"content digest sha256:{built.content}",
    }


def _base(inputs: Inputs, built: Built) -> dict[str, Any]:
    wheel = next((row for row in built.inputs if row.kind == "base-wheel"), None)
    version = built.version.partition("+")[0]
    out: dict[str, Any] = {
        "SPDXID": _BASE,
        "name": built.dist,
        "versionInfo": version,
        "downloadLocation": _git(inputs),
        "filesAnalyzed": False,
        "licenseDeclared": built.license or _NOT,
        "licenseConcluded": _NOT,
        "copyrightText": _NOT,
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": f"pkg:pypi/{built.dist}@{version}",
            }
        ],
    }
    name, sha256 = inputs.prepared.base.name, inputs.prepared.base.sha256
    if wheel is not None:
        name, sha256 = wheel.name, dict(wheel.digests)["sha256"]
    if sha256:
        out["packageFileName"] = name
        out["checksums"] = [_sum("SHA256", sha256)]
    return out


def _git(inputs: Inputs) -> str:
    address = public(inputs.upstream.git)
    if not address.startswith("https://") or not inputs.pin.commit:
        return _NOT
    return f"git+{address}@{inputs.pin.commit}"


def _sum(algorithm: str, value: str) -> dict[str, str]:
    return {"algorithm": algorithm, "checksumValue": value}
