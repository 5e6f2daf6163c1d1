"""The canonical writer: one form for a patch, whatever made it.

The header as `header_out` writes it, then git's diff: full index ids, a/ and b/, three lines of
context, no signature, no version, files in path order, hunk headings by the rule of `heading`,
names quoted as git quotes them.

A rename is written as a delete and a create: quilt writes it so on refresh, every reader agrees on
it, and each path has its ids in the patch. A caller that takes back a patch which had a rename
names it in `renames`; GNU patch 2.7 and so quilt apply that form too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from patchkit.engine.diff import make_hunks
from patchkit.engine.merge import is_binary
from patchkit.engine.model import EXECUTABLE, REGULAR, SYMLINK, File, Hunk, Tree, path_bytes
from patchkit.engine.quote import c_quote
from patchkit.engine.text import split_lines
from patchkit.errors import Finding, Refused, Where
from patchkit.series.header import Header
from patchkit.series.header_out import dump_header
from patchkit.series.heading import heading_of

CONTEXT = 3
NO_ID = "0" * 40
NO_NEWLINE = b"\\ No newline at end of file\n"
_MODES = (REGULAR, EXECUTABLE, SYMLINK)


def write_patch(
    header: Header,
    base: Tree,
    changes: Mapping[str, File | None],
    *,
    renames: Mapping[str, str] | None = None,
    text: Collection[str] = (),
) -> bytes:
    """A whole patch file: what turns `base` into `base` with `changes` (None deletes).

    renames: new path -> old path, for renames to be written as such; both are in `changes`.
    text: paths to be written as text although they hold a NUL near their start.
    Raises Refused: no-op where nothing changes, binary-unsupported, unsupported (a submodule),
    bad-header.
    """
    diff = write_diff(base, changes, renames=renames, text=text)
    if not diff:
        raise Refused(
            Finding(
                "no-op",
                "the patch would change nothing",
                expected="at least one file that differs from the tree before the patch",
                found=f"{len(changes)} file(s), none of which differs",
            )
        )
    return dump_header(header) + diff


def write_diff(
    base: Tree,
    changes: Mapping[str, File | None],
    *,
    renames: Mapping[str, str] | None = None,
    text: Collection[str] = (),
) -> bytes:
    """The diff alone; empty where nothing differs. Raises as `write_patch` does."""
    moved = _renames(base, changes, renames or {})
    sources = set(moved.values())
    out: list[bytes] = []
    findings: list[Finding] = []
    for path in sorted(changes, key=path_bytes):
        old, new = base.get(path), changes[path]
        if path in moved:
            old_path = moved[path]
            old = base.get(old_path)
        elif path in sources:
            continue
        else:
            old_path = path
        if old_path == path and _same(old, new):
            continue
        fault = _unsupported(path, old, new, path in text)
        if fault is not None:
            findings.append(fault)
        elif old is not None and new is not None and _is_link(old) != _is_link(new):
            # A file that becomes a link, or a link that becomes a file: git writes two sections.
            out += [_section(path, path, old, None), _section(path, path, None, new)]
        else:
            out.append(_section(old_path, path, old, new))
    if findings:
        raise Refused(*findings)
    return b"".join(out)


def _renames(
    base: Tree, changes: Mapping[str, File | None], renames: Mapping[str, str]
) -> dict[str, str]:
    """The renames that can be written as such: the old file goes, the new one comes."""
    out: dict[str, str] = {}
    for new_path, old_path in sorted(renames.items()):
        old, new = base.get(old_path), changes.get(new_path)
        gone = old_path in changes and changes[old_path] is None
        fresh = base.get(new_path) is None and old_path not in out.values()
        if old and new and gone and fresh and _is_link(old) == _is_link(new):
            out[new_path] = old_path
    return out


def _section(old_path: str, new_path: str, old: File | None, new: File | None) -> bytes:
    """One `diff --git` section. A side that is None does not exist."""
    name_a, name_b = _name(b"a/", old_path), _name(b"b/", new_path)
    out = [b"diff --git %s %s\n" % (name_a, name_b)]
    mode = ""
    if old is None and new is not None:
        out.append(b"new file mode %06o\n" % new.mode)
    elif new is None and old is not None:
        out.append(b"deleted file mode %06o\n" % old.mode)
    elif old is not None and new is not None:
        if old.mode != new.mode:
            out.append(b"old mode %06o\nnew mode %06o\n" % (old.mode, new.mode))
        else:
            mode = f" {old.mode:06o}"
        if old_path != new_path:
            out.append(b"rename from %s\n" % _name(b"", old_path))
            out.append(b"rename to %s\n" % _name(b"", new_path))
    ids = (old.oid if old else NO_ID), (new.oid if new else NO_ID)
    if ids[0] == ids[1]:
        return b"".join(out)
    out.append(f"index {ids[0]}..{ids[1]}{mode}\n".encode())
    old_lines = split_lines(old.data) if old else []
    new_lines = split_lines(new.data) if new else []
    hunks = make_hunks(old_lines, new_lines, CONTEXT, heading_of(old_path))
    if hunks:
        out.append(b"--- %s\n" % (_after(name_a) if old else b"/dev/null"))
        out.append(b"+++ %s\n" % (_after(name_b) if new else b"/dev/null"))
        out.extend(map(hunk_text, hunks))
    return b"".join(out)


def hunk_text(hunk: Hunk) -> bytes:
    """A hunk as it stands in a patch."""
    old = range_text(hunk.old_start, hunk.old_count)
    out = [b"@@ -%s +%s @@" % (old, range_text(hunk.new_start, hunk.new_count))]
    out.append(b" " + hunk.heading + b"\n" if hunk.heading else b"\n")
    for tag, line in hunk.lines:
        out.append(tag + line)
        if not line.endswith(b"\n"):
            out.append(b"\n" + NO_NEWLINE)
    return b"".join(out)


def range_text(start: int, count: int) -> bytes:
    """One side of an @@ line: a count of one is left out."""
    return b"%d" % start if count == 1 else b"%d,%d" % (start, count)


def _name(prefix: bytes, path: str) -> bytes:
    return c_quote(prefix + path_bytes(path))


def _after(name: bytes) -> bytes:
    """A name in a ---/+++ line: with a blank in it a tab must follow, or readers cut it there."""
    return name + b"\t" if b" " in name else name


def _is_link(file: File) -> bool:
    return file.mode == SYMLINK


def _same(old: File | None, new: File | None) -> bool:
    if old is None or new is None:
        return old is new
    return old.mode == new.mode and old.data == new.data


def _unsupported(path: str, old: File | None, new: File | None, as_text: bool) -> Finding | None:
    for file in (old, new):
        if file is None:
            continue
        if file.mode not in _MODES:
            return Finding(
                "unsupported",
                f"{path} has mode {file.mode:06o}: submodules are not patched",
                Where(file=path),
                expected="a file or a symbolic link",
            )
        if is_binary(file.data) and not as_text and not _is_link(file):
            return Finding(
                "binary-unsupported",
                f"{path} is binary: quilt and GNU patch cannot apply a binary change",
                Where(file=path),
                expected="text (no NUL in the first 8000 bytes)",
                next="leave the file out of the patch",
            )
    return None
