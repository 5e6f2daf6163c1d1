"""The tree while patches are put on it: nothing below is written, lines are kept as lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from patchkit.engine.content import Text, TextFile
from patchkit.engine.model import SYMLINK, File, Tree
from patchkit.engine.paths import folded


class Work:
    """A tree and the changes of the patches that hold so far."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.changes: dict[str, File | None] = {}
        self._folders: set[str] = set()  # of changed files; some may be gone again
        self._read: dict[str, File | None] = {}
        self._texts: dict[str, tuple[File, Text]] = {}
        self.links: dict[str, str] = {}  # folded -> path of a link that was made; it may be gone

    def again(self) -> Work:
        """The tree without any of the changes; what was read of it is not read or held twice."""
        other = Work(self.tree)
        other._read, other._texts = self._read, self._texts
        return other

    def get(self, path: str) -> File | None:
        """The file as it stands now."""
        if path in self.changes:
            return self.changes[path]
        if path not in self._read:
            self._read[path] = self.tree.get(path)
        return self._read[path]

    def text(self, path: str, file: File) -> Text:
        """The lines of `file`, which stands at `path`; split once."""
        if isinstance(file, TextFile):
            return file.text
        known = self._texts.get(path)
        if known is None or known[0] is not file:
            known = self._texts[path] = (file, Text.of(file.data))
        return known[1]

    def take(self, changes: Mapping[str, File | None]) -> None:
        """Make the changes of a patch that holds."""
        self.changes.update(changes)
        for path, file in changes.items():
            if file is not None and file.mode == SYMLINK:
                self.links[folded(path)] = path
            at = path.rfind("/") if file is not None else -1
            while at > 0 and path[:at] not in self._folders:
                self._folders.add(path[:at])
                at = path.rfind("/", 0, at)

    def is_folder(self, path: str) -> bool:
        """Whether a file stands below `path` now."""
        prefix = path + "/"
        if path in self._folders and any(
            f is not None and p.startswith(prefix) for p, f in self.changes.items()
        ):
            return True
        if not self.tree.is_folder(path):
            return False
        below = self.under(path)
        return below is None or any(self.get(p) is not None for p in below)

    def under(self, path: str) -> set[str] | None:
        """Every path that is or was below `path`; None where the tree cannot list them."""
        listing = getattr(self.tree, "under", None)
        found: Iterable[str] | None = None if listing is None else listing(path)
        if found is None:
            return None
        return {*found, *(p for p in self.changes if p.startswith(path + "/"))}

    def named(self, name: str) -> list[str]:
        """Paths whose last part is `name`, as they stand now."""
        found = {p for p in self.tree.named(name) if self.get(p) is not None}
        found |= {
            p for p, f in self.changes.items() if f is not None and p.rpartition("/")[2] == name
        }
        return sorted(found)


class Draft:
    """What one patch makes of the tree, while it is not known whether all of it holds."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.written: dict[str, File] = {}
        self.removed: set[str] = set()
        self._links: dict[str, str] = {}
        self._edited: set[str] = set()
        self._before: tuple[dict[str, File], set[str]] = ({}, set())

    def begin(self) -> None:
        """A new mail of the same patch begins: what stands now is what it starts from."""
        if not self.written and not self.removed:
            return
        self._before = (dict(self.written), set(self.removed))
        self._edited = set()

    def get(self, path: str) -> File | None:
        """The file after the sections so far."""
        if path in self.written:
            return self.written[path]
        return None if path in self.removed else self.work.get(path)

    def before(self, path: str) -> File | None:
        """The file before the mail: what renames and copies read, since git writes their
        sections in the order of names and not in that of the changes. A file that the same mail
        edited in place is read as edited; git never writes that for a rename.
        """
        written, removed = self._before
        if path in written:
            return written[path]
        return None if path in removed else self.work.get(path)

    def edited(self, path: str) -> bool:
        """Whether this mail changed the file in place."""
        return path in self._edited

    def write(self, path: str, file: File, *, edit: bool = False) -> None:
        self.written[path] = file
        if file.mode == SYMLINK:
            self._links[folded(path)] = path
        if edit:
            self._edited.add(path)

    def remove(self, path: str, *, renamed: bool = False) -> None:
        """Take a file away. renamed: a file that took its name in this mail already stays (two
        files that change names with each other).
        """
        taken = path in self.written and path not in self._before[0] and path not in self._edited
        if not (renamed and taken):
            self.written.pop(path, None)
        self.removed.add(path)

    def changes(self) -> dict[str, File | None]:
        """path -> what it becomes, None where it goes."""
        gone = [p for p in self.removed if p not in self.written and self.work.get(p) is not None]
        return {**dict.fromkeys(sorted(gone)), **self.written}

    def keeps_folder(self, path: str) -> bool:
        """Whether a file that was below `path` before the patch is there after it."""
        if not self.work.is_folder(path):
            return False
        below = self.work.under(path)
        return below is None or any(self.get(p) is not None for p in below)

    def blocked(self, path: str) -> tuple[str, File] | None:
        """The first folder of `path` that is no folder but a file or a link."""
        at = path.find("/")
        while at > 0:
            file = self.get(path[:at])
            if file is not None:
                return path[:at], file
            at = path.find("/", at + 1)
        return None

    def link_twin(self, path: str) -> str | None:
        """A link of this patch or an earlier one that is a folder of `path` where case is ignored,
        though not here; for a link, a changed file of which it is one so.
        """
        if self._links or self.work.links:
            at = path.find("/")
            while at > 0:
                name = folded(path[:at])
                twin = self._links.get(name) or self.work.links.get(name)
                if twin is not None and twin != path[:at] and self._is_link(twin):
                    return twin
                at = path.find("/", at + 1)
        if not self._is_link(path):
            return None
        above, literal = folded(path) + "/", path + "/"
        return next(
            (
                other
                for other in {**self.work.changes, **self.written}
                if folded(other).startswith(above)
                and not other.startswith(literal)
                and self.get(other) is not None
            ),
            None,
        )

    def _is_link(self, path: str) -> bool:
        file = self.get(path)
        return file is not None and file.mode == SYMLINK
