"""What a run starts from: real inputs of each kind, as this repository has them."""

from __future__ import annotations

from pathlib import Path

from patchkit.series.lockfile import Blob, Lock, LockedPin, chain_of
from patchkit.series.lockjson import dumps

ROOT = Path(__file__).resolve().parents[2]
SMALL = 1 << 14
"""Bytes of the largest seed: libFuzzer is slow on larger ones."""


def seeds(target: str) -> list[bytes]:
    """Seeds of a target, each at most `SMALL` bytes."""
    found = {
        "patch": [*ROOT.glob("tests/cases/data/*/*.patch"), *ROOT.glob("series/v0.30.0/*.patch")],
        "header": [*ROOT.glob("series/v0.30.0/*.patch"), *ROOT.glob("tests/cases/data/*/*.patch")],
        "series": [*ROOT.glob("series/v0.30.0/series"), *ROOT.glob("tests/cases/data/*/series")],
        "pins": [ROOT / "pins.toml"],
        "lock": [],
        "record": [],
    }[target]
    kept = [data for path in sorted(found) if len(data := path.read_bytes()) <= SMALL]
    return kept + MADE.get(target, [])


_ID = "a" * 40
_BLOBS = [Blob(0o100644, "b" * 40), Blob(0o100755, "c" * 40), None]
_CHAIN = chain_of(
    ("a.patch", "b.patch"),
    {"sdist": (_ID, "d" * 40, "e" * 40), "git": (_ID, _ID, _ID)},
    {"f.py": _BLOBS[0], "g/h i.py": None},
    [{"f.py": _BLOBS[1]}, {"f.py": None, "g/h i.py": _BLOBS[0]}],
)
_LOCK = Lock(
    LockedPin("v1", "x", commit=_ID, files={"x-1.tar.gz": "2" * 64}),
    "0" * 64,
    (("a.patch", "1" * 64), ("b.patch", "2" * 64)),
    {"proofs/test_a.py": "3" * 64},
    _CHAIN,
    {"default": _CHAIN},
)
MADE = {
    "series": [b"a.patch\nb.patch -p0 #+native\n# note\nc.patch -R\n"],
    "record": [
        b"a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\r\nx-1.dist-info/RECORD,,\r\n",
        b'"a,b.py",sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\nRECORD,,\n',
    ],
    "lock": [dumps(_LOCK)],
}
