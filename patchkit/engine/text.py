"""Bytes as lines: only b"\\n" ends a line; form feeds, lone returns and U+2028 are content."""

from __future__ import annotations

import io


def split_lines(data: bytes) -> list[bytes]:
    """The lines of `data`, each with its line end; the last one may lack it."""
    return io.BytesIO(data).readlines()
