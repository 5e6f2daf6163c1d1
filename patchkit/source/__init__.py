"""Where a base tree comes from: a sdist, a folder, a git commit. Fetched once and verified.

`open_source` gives the source that a command line names.
"""

from patchkit.source.base import Base, Progress, Source, silent
from patchkit.source.choose import open_source

__all__ = ["Base", "Progress", "Source", "open_source", "silent"]
