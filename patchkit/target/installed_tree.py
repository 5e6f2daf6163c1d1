"""An installed package as a tree: only its own files, under the paths that patches name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchkit.engine.model import File
from patchkit.files.root import Root
from patchkit.target.dist_info import Dist


class InstalledTree:
    """The engine's Tree over one distribution's files.

    lead: folder of the upstream's tree that holds the package ("src"), "" for its top. modes: git
    modes by tree path that hold whatever the disk says: installers do not keep them.
    """

    def __init__(
        self, root: Root, dist: Dist, lead: str = "", modes: Mapping[str, int] | None = None
    ) -> None:
        self.root, self.dist = root, dist
        self.lead = f"{lead}/" if lead else ""
        self.modes = modes or {}

    def site_path(self, path: str) -> str | None:
        """The path below the site folder; None where it is none of this distribution."""
        if not path.startswith(self.lead):
            return None
        inner = path[len(self.lead) :]
        return inner if inner.partition("/")[0] in self.dist.tops else None

    def get(self, path: str) -> File | None:
        inner = self.site_path(path)
        file = self.root.get(inner) if inner is not None else None
        if file is not None and path in self.modes:
            return File(file.data, self.modes[path])
        return file

    def is_folder(self, path: str) -> bool:
        if path == "" or self.lead.startswith(f"{path}/"):
            return True
        inner = self.site_path(path)
        return inner is not None and self.root.is_folder(inner)

    def named(self, name: str) -> list[str]:
        found = (row.path for row in self.dist.record.rows if row.path.endswith(name))
        return sorted(
            {
                self.lead + path
                for path in found
                if path.rpartition("/")[2] == name and self.site_path(self.lead + path) is not None
            }
        )

    def under(self, path: str) -> list[str]:
        """Every file below the folder `path`; what Python compiled does not count."""
        inner = self.site_path(path)
        if inner is None or not self.root.is_folder(inner):
            return []
        return [self.lead + p for p in self.root.walk(inner) if "/__pycache__/" not in f"/{p}"]


class JoinedTrees:
    """Several packages of one site folder as one tree."""

    def __init__(self, trees: Sequence[InstalledTree]) -> None:
        self.trees = tuple(trees)

    def get(self, path: str) -> File | None:
        return next((f for f in (t.get(path) for t in self.trees) if f is not None), None)

    def is_folder(self, path: str) -> bool:
        return any(tree.is_folder(path) for tree in self.trees)

    def named(self, name: str) -> list[str]:
        return sorted({path for tree in self.trees for path in tree.named(name)})

    def under(self, path: str) -> list[str]:
        return sorted({p for tree in self.trees for p in tree.under(path)})
