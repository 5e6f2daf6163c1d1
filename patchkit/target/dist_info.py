"""Installed distributions as their metadata states them: found without importing anything."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from patchkit.engine.model import path_bytes, path_text
from patchkit.errors import Finding, PatchkitError, Refused, Where
from patchkit.files.atomic import read_file
from patchkit.target.record_csv import MAX_BYTES, NAME, RecordFile, parse_record

STATE = "patchkit.json"
"""Our state, in the dist-info folder."""
JOURNAL = "patchkit-journal"
"""Folder in the dist-info folder, there only while files are being changed."""
_FIELD = re.compile(rb"^(Name|Version):[ \t]*(\S+)[ \t]*\r?$", re.M)
_EDITABLE = re.compile(rb"^\"?(__editable__[^,\"\r\n]*)", re.M)
"""What setuptools and others put beside an editable install: a .pth file and a finder."""
_SMALL = 16 << 20


@dataclass(frozen=True)
class Dist:
    """One installed distribution. site: its folder of packages, links resolved. folder: name of
    its dist-info folder."""

    name: str
    version: str
    site: str
    folder: str

    def path(self, name: str) -> str:
        """Path below the site folder of a file of the dist-info."""
        return f"{self.folder}/{name}"

    def at(self, name: str) -> str:
        """The same on disk."""
        return on_disk(self.site, self.path(name))

    @cached_property
    def record(self) -> RecordFile:
        """Its RECORD, read once. Raises Refused(unsupported) where there is none."""
        if not os.path.isfile(self.at(NAME)):
            raise Refused(_no_record(self))
        return parse_record(read_file(self.at(NAME), MAX_BYTES), self.path(NAME))

    @property
    def reinstall(self) -> str:
        """The command that puts the wheel of this release there again, over what is there."""
        return self.install(self.version)

    def install(self, version: str) -> str:
        """The command that installs the wheel of a release into this site folder."""
        wanted = f"{self.name}=={version.partition('+')[0]}"
        exe = shlex.quote(self._python())
        installer = _installer(self)
        if installer == "uv":
            return f"uv pip install --python {exe} --link-mode=copy --reinstall --no-deps {wanted}"
        if installer == "conda":
            return f"conda install --force-reinstall --no-deps {wanted.replace('==', '=')}"
        # Without a RECORD pip cannot uninstall, and --force-reinstall stops there.
        over = "--force-reinstall" if os.path.isfile(self.at(NAME)) else "--ignore-installed"
        return f"{exe} -m pip install {over} --no-deps {wanted}"

    def _python(self) -> str:
        """The interpreter that the site folder belongs to: PREFIX/bin of PREFIX/lib/python3.x/…."""
        prefix = os.path.dirname(os.path.dirname(os.path.dirname(self.site)))
        for name in ("python3", "python"):
            if os.path.isfile(os.path.join(prefix, "bin", name)):
                return os.path.join(prefix, "bin", name)
        return "python3"

    @property
    def record_lost(self) -> bool:
        """Whether RECORD lists our state, and it is not there: patched in place, and no longer
        known how. A wheel that was built with its patches has no base to go back to anyway."""
        if "+pk" in self.version or os.path.lexists(self.at(STATE)):
            return False
        return self.path(STATE) in self.record.by_path

    @cached_property
    def tops(self) -> frozenset[str]:
        """First parts of the paths that are its own: package folders and single modules."""
        out = set()
        for row in self.record.rows:
            first, slash, _ = row.path.partition("/")
            if first in ("", ".", "..") or first.endswith((".dist-info", ".data")):
                continue
            if slash or first.endswith(".py"):
                out.add(first)
        return frozenset(out)


def on_disk(site: str, path: str) -> str:
    """Where a path below a site folder is, as the system's calls take it in any locale."""
    return os.path.join(site, os.fsdecode(path_bytes(path)))


def normal(name: str) -> str:
    """A distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def release(version: str) -> str:
    """A version without its local label and without zeros at its end: enough to compare two
    releases of one project."""
    public = version.strip().lower().removeprefix("v").partition("+")[0]
    return re.sub(r"(?:\.0+)+$", "", public)


def real_sites(folders: Iterable[str]) -> tuple[str, ...]:
    """The folders that exist, links resolved, each once: lib and its twin lib64 are one."""
    out: dict[str, None] = {}
    for folder in folders:
        if folder and os.path.isdir(folder):
            out[os.path.realpath(folder)] = None
    return tuple(out)


def distributions(site: str) -> list[Dist]:
    """Every distribution with a dist-info in `site`, by folder name."""
    try:
        names = sorted(n for n in os.listdir(site) if n.endswith(".dist-info"))
    except OSError:
        return []
    return [_dist(site, path_text(os.fsencode(name))) for name in names]


def find_dist(sites: Sequence[str], name: str, package: str = "") -> Dist:
    """The one distribution `name` that Python would import from `sites` (in sys.path's order).

    package: its import name, to see a folder that hides it. Raises Refused: missing-target where
    it is nowhere, ambiguous where two copies are, unsupported where it is an editable install or
    one without a RECORD.
    """
    wanted = normal(name)
    found: list[Dist] = []
    for site in sites:
        for entry in sorted(_list(site)):
            stem, dot, end = entry.rpartition(".")
            if not dot or end not in ("dist-info", "egg-info", "egg-link"):
                continue
            own = stem.rpartition("-")[0] if end == "dist-info" else stem.partition("-")[0]
            if normal(own or stem) != wanted:
                continue
            if end != "dist-info":
                raise Refused(_legacy(site, entry))
            found.append(_dist(site, entry))
    if not found:
        raise Refused(_nowhere(name, sites))
    if len(found) > 1:
        raise Refused(_copies(name, found))
    dist = found[0]
    _refuse_editable(dist)
    hidden = _hidden_by(dist, sites, package)
    if hidden:
        raise Refused(_shadowed(name, package, hidden, dist))
    if not os.path.isfile(dist.at(NAME)):
        raise Refused(_no_record(dist))
    return dist


def patched(sites: Sequence[str]) -> list[Dist]:
    """Every distribution of `sites` that holds our state."""
    return [
        dist for site in sites for dist in distributions(site) if os.path.lexists(dist.at(STATE))
    ]


def record_lost(sites: Sequence[str]) -> list[Dist]:
    """Every distribution of `sites` whose RECORD lists our state though it is gone."""
    word = STATE.encode("ascii")
    found = []
    for dist in (dist for site in sites for dist in distributions(site)):
        try:
            if word in read_file(dist.at(NAME), MAX_BYTES) and dist.record_lost:
                found.append(dist)
        except PatchkitError:
            continue
    return found


def pending_journal(site: str) -> Dist | None:
    """The distribution in which an interrupted command left its journal."""
    for name in sorted(_list(site)):
        if name.endswith(".dist-info") and os.path.isdir(os.path.join(site, name, JOURNAL)):
            return _dist(site, name)
    return None


def _list(site: str) -> list[str]:
    try:
        return os.listdir(site)
    except OSError:
        return []


def _dist(site: str, folder: str) -> Dist:
    name, _, version = folder.removesuffix(".dist-info").rpartition("-")
    try:
        head = read_file(on_disk(site, f"{folder}/METADATA"), _SMALL)
        fields = dict(reversed(_FIELD.findall(re.split(rb"\r?\n\r?\n", head, maxsplit=1)[0])))
        name = fields.get(b"Name", name.encode()).decode("utf-8", "replace")
        version = fields.get(b"Version", version.encode()).decode("utf-8", "replace")
    except PatchkitError:
        pass  # no METADATA: its folder's name is all there is to know
    return Dist(name, version, site, folder)


def _refuse_editable(dist: Dist) -> None:
    where = ""
    if os.path.isfile(dist.at("direct_url.json")):
        try:
            body = json.loads(read_file(dist.at("direct_url.json"), _SMALL))
            if body.get("dir_info", {}).get("editable") is True:
                where = str(body.get("url", "a folder"))
        except (ValueError, AttributeError, RecursionError):
            pass
    if not where and os.path.isfile(dist.at(NAME)):
        found = _EDITABLE.search(read_file(dist.at(NAME), MAX_BYTES))
        where = path_text(found[1]) if found else ""
    if where:
        tree = shlex.quote(where.removeprefix("file://"))
        raise Refused(
            Finding(
                "unsupported",
                f"{dist.name} {dist.version} is an editable install: its files are those of a tree",
                Where(file=dist.at("direct_url.json")),
                expected="a package whose files are in the site folder",
                found=f"an editable install of {where}",
                next=f"patch the tree instead: patch files, with --to {tree}",
            )
        )


def _hidden_by(dist: Dist, sites: Sequence[str], package: str) -> str:
    """A folder or module earlier on the path that Python would import instead."""
    top = package.partition(".")[0]
    for site in sites:
        if not top or site == dist.site:
            return ""
        for name in (os.path.join(top, "__init__.py"), f"{top}.py"):
            if os.path.isfile(os.path.join(site, name)):
                return os.path.join(site, name)
    return ""


def _no_record(dist: Dist) -> Finding:
    return Finding(
        "unsupported",
        f"{dist.name} {dist.version} has no RECORD: nothing says which files are its own, "
        "or what they were",
        Where(file=dist.at(NAME)),
        expected="a RECORD, as pip, uv and conda write it",
        found=f"none (installed by {_installer(dist)})",
        next=dist.reinstall,
    )


def _installer(dist: Dist) -> str:
    try:
        return read_file(dist.at("INSTALLER"), 1000).decode("utf-8", "replace").strip()
    except PatchkitError:
        return "an unknown program"


def _legacy(site: str, entry: str) -> Finding:
    link = entry.endswith(".egg-link")
    return Finding(
        "unsupported",
        f"{entry} is a "
        + ("development install: its files are those of a tree" if link else "package of old")
        + ", and has no RECORD",
        Where(file=os.path.join(site, entry)),
        expected="a dist-info folder with a RECORD",
        found=entry,
        next=f"patch the tree instead: --to {shlex.quote(_linked(site, entry))}"
        if link
        else "install it from a wheel, with pip",
    )


def _linked(site: str, entry: str) -> str:
    """The tree that an egg-link leads to: its first line."""
    try:
        text = path_text(read_file(on_disk(site, entry), _SMALL))
    except PatchkitError:
        text = ""
    return text.partition("\n")[0].strip() or site


def _nowhere(name: str, sites: Sequence[str]) -> Finding:
    return Finding(
        "missing-target",
        f"{name} is not installed there",
        expected=f"a folder {normal(name).replace('-', '_')}-….dist-info",
        found="none in " + (", ".join(sites) or "no folder at all"),
        next="name the interpreter that has it with --python, or its folder with --site",
    )


def _copies(name: str, found: Sequence[Dist]) -> Finding:
    same = len({dist.site for dist in found}) == 1
    return Finding(
        "ambiguous",
        f"{len(found)} copies of {name} are installed",
        Where(file=os.path.join(found[0].site, found[0].folder)),
        expected="one copy",
        found="; ".join(f"{d.version} in {os.path.join(d.site, d.folder)}" for d in found),
        next="remove the folders that a failed install left behind"
        if same
        else f"uninstall one, or name its folder: --site {found[0].site} (Python imports that one)",
    )


def _shadowed(name: str, package: str, hidden: str, dist: Dist) -> Finding:
    return Finding(
        "ambiguous",
        f"Python imports {package} from another folder than the one {name} is installed in",
        Where(file=hidden),
        expected=f"{package} from {dist.site}",
        found=hidden,
        next=f"take that folder off sys.path, or name the one that is meant: --site {dist.site}",
    )
