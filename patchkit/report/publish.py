"""The site's files in their folder."""

from __future__ import annotations

import os
from collections.abc import Mapping

from patchkit.engine.model import File
from patchkit.errors import Finding, Refused, Where
from patchkit.files.atomic import make_folder
from patchkit.files.root import Root

MARK = ".patchkit-report"
"""A file that says that the folder is ours: its list of files, so that old pages can go."""


def publish(to: str, files: Mapping[str, bytes]) -> int:
    """Write the site; pages of an earlier report go. How many files there are.

    Raises Refused(target-exists) where the folder holds something and no report.
    """
    make_folder(to)
    root = Root(to)
    root.sweep(MARK)  # of a run that was killed while it wrote the first file
    mark = root.get(MARK)
    if mark is None and os.listdir(to):
        raise Refused(
            Finding(
                "target-exists",
                f"{to} holds files, and no report of patchkit",
                Where(file=to),
                expected="an empty folder, a new one, or an earlier report",
                found=", ".join(sorted(os.listdir(to))[:4]),
                next="patchkit report -o build/report",
            )
        )
    old = mark.data.decode("utf-8", "replace").splitlines() if mark is not None else []
    listed = "".join(f"{path}\n" for path in sorted(files))
    # First the list of both: whatever is killed in between, the next report knows all pages.
    both = "".join(f"{path}\n" for path in sorted({*files, *old}))
    root.put(MARK, File(both.encode()))
    for path, data in sorted(files.items()):
        root.put(path, File(data), sync=False)
    for path in old:
        if path not in files and root.stat(path) is not None:
            root.remove(path)
    root.put(MARK, File(listed.encode()))
    return len(files)
