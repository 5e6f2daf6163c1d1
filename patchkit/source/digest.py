"""The sha256 of a file."""

from __future__ import annotations

import errno
import hashlib
import os
import stat

from patchkit.files.root import disk_fault


def digest_of(path: str) -> str:
    """64 hex digits. Raises EnvironmentFault(disk) where the file cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            # Opening a FIFO would wait for somebody to write into it.
            raise OSError(errno.EINVAL, "it is no file", path)
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise disk_fault(error, path, "read") from error
