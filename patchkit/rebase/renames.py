"""The new name of a file that is gone, whatever it is called now: the most alike of the new files.

`moves` asks the names first and is quick; this reads every new file of the same kind.
"""

from __future__ import annotations

from patchkit.rebase.moves import ENOUGH, LEAD, likeness
from patchkit.store.tree import StoreTree


def renamed(before: StoreTree, after: StoreTree, path: str) -> str | None:
    """The file of `after`, new in it, that has most lines of `before`'s file at `path`.

    None where no new file shares half of the lines (git's own measure for renames), or two are
    about as alike.
    """
    file = before.get(path)
    if file is None or after.listed(path) is not None:
        return None
    kind = _kind(path)
    new = [listed for listed in after.added(before) if _kind(listed.path) == kind]
    after.prefetch([listed.path for listed in new])
    scored = sorted(
        (likeness(file, other), listed.path)
        for listed in new
        if (other := after.get(listed.path)) is not None
    )
    if not scored or scored[-1][0] < ENOUGH:
        return None
    if len(scored) > 1 and scored[-1][0] - scored[-2][0] < LEAD:
        return None
    return scored[-1][1]


def _kind(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :] if "." in name else ""
