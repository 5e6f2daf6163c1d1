"""The header lines of one file section: what happens to which file.

A git section opens with `diff --git` and has extended headers; a plain one is `--- ` and
`+++ ` above the first hunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from patchkit.engine.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, path_bytes
from patchkit.engine.parse_names import (
    bare_name,
    git_line_names,
    git_name,
    is_dev_null,
    is_epoch,
    plain_name,
)
from patchkit.engine.quote import show_line, show_path

_INDEX = re.compile(rb"([0-9a-f]{1,64})\.\.([0-9a-f]{1,64})(?: ([0-7]+))?\s*\Z")
_MODE = re.compile(rb"([0-7]{1,7})\s*\Z")
_KINDS = {REGULAR >> 12, SYMLINK >> 12, GITLINK >> 12}


@dataclass
class Head:
    """What the header lines say, while they are read. `faults` are (line index, reason)."""

    git: bool
    old: str | None = None
    new: str | None = None
    bare_old: str | None = None
    bare_new: str | None = None
    has_old: bool = False
    has_new: bool = False
    words: set[str] = field(default_factory=set)
    old_mode: int | None = None
    new_mode: int | None = None
    old_id: str = ""
    new_id: str = ""
    empty_old: bool = False
    faults: list[tuple[int, str]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """create, delete, rename, copy or modify."""
        for word in ("create", "delete", "rename", "copy"):
            if word in self.words:
                return word
        return "modify"


def read_plain_head(lines: Sequence[bytes], at: int) -> Head:
    """The two lines of a plain section at `lines[at]`."""
    old, new = lines[at][4:], lines[at + 1][4:]
    head = Head(False, plain_name(old), plain_name(new), has_old=True, has_new=True)
    if is_dev_null(old) and is_dev_null(new):
        head.faults.append((at, "both sides are /dev/null"))
    elif is_dev_null(old):
        head.words.add("create")
    elif is_dev_null(new):
        head.words.add("delete")
    elif is_epoch(old):
        # Only "no file" where the hunk has no old lines either: a file may really be as old
        # as that, in a container whose builder sets every time to 0.
        head.empty_old = True
    elif is_epoch(new):
        head.words.add("delete")
        head.new = None
    if head.old == "" or head.new == "":
        head.faults.append((at, "a file name is empty"))
    return head


def read_git_head(lines: Sequence[bytes], at: int) -> tuple[Head, int]:
    """The header lines from `diff --git` at `lines[at]`, and the index after the last one."""
    head = Head(True)
    i, end = at + 1, len(lines)
    while i < end:
        line = lines[i]
        for word, take in _BY_START.get(line[:3], ()):
            if line.startswith(word):
                if line[-1:] != b"\n":
                    return _finish(head, lines, at), i
                take(head, line[len(word) :], i)
                i += 1
                break
        else:
            break
    return _finish(head, lines, at), i


def _finish(head: Head, lines: Sequence[bytes], at: int) -> Head:
    """Names that no `---` or `+++` line gave, and whether all lines agree."""
    if len(head.words) > 1:
        words = " and ".join(sorted(head.words))
        head.faults.append((at, f"its header lines contradict each other: {words}"))
    kind = head.kind
    if kind in ("rename", "copy"):
        if head.bare_old is None or head.bare_new is None:
            head.faults.append((at, f'it has only one of "{kind} from" and "{kind} to"'))
            return head
        for dashed, bare in ((head.old, head.bare_old), (head.new, head.bare_new)):
            if dashed is not None and bare not in (dashed, dashed.partition("/")[2]):
                shown = f"{show_path(dashed)} and {show_path(bare)}"
                head.faults.append((at, f"its header lines name one side twice: {shown}"))
        head.old, head.new = head.bare_old, head.bare_new
        return head
    if not head.has_old and not head.has_new:
        names = git_line_names(lines[at][11:])
        if names is None or not all(names):
            shown = show_line(lines[at])
            head.faults.append((at, f"no line names the file, and this one is unclear: {shown}"))
            return head
        head.old, head.new = names
    elif head.has_old != head.has_new:
        side = "+++" if head.has_old else "---"
        head.faults.append((at, f'the "{side}" line is missing'))
    elif head.old is None and head.new is None:
        head.faults.append((at, "both sides are /dev/null"))
    elif kind == "modify":
        # `--- /dev/null` without "new file mode": a hand-made header whose meaning is plain
        if head.old is None:
            head.words.add("create")
        elif head.new is None:
            head.words.add("delete")
    elif (kind == "create") != (head.old is None) or (kind == "delete") != (head.new is None):
        head.faults.append((at, f"its header lines contradict each other: {kind}, and both names"))
    elif kind == "create" or kind == "delete":
        named = head.new if kind == "create" else head.old
        if named is not None and not _on_git_line(lines[at][11:], named, kind == "create"):
            head.faults.append((at, f"its first line names another file than {show_path(named)}"))
    kind = head.kind
    if kind == "create":
        head.old = None
    elif kind == "delete":
        head.new = None
    if head.old == "" or head.new == "":
        head.faults.append((at, "a file name is empty"))
    if head.old_mode and head.new_mode and head.old_mode >> 12 != head.new_mode >> 12:
        head.faults.append((at, "a file cannot become a link by a mode change alone"))
    return head


def _on_git_line(rest: bytes, name: str, new: bool) -> bool:
    """Whether the `diff --git` line names this file too; True where it cannot be told.

    git checks that for new and deleted files only: a mode line makes it take the name there.
    """
    names = git_line_names(rest)
    if names is None or names[new] == name:
        return True
    raw = path_bytes(name)
    text = rest.rstrip(b"\r\n")
    return text.endswith(b" " + raw) if new else text.startswith(raw + b" ")


def _old(head: Head, rest: bytes, at: int) -> None:
    name = git_name(rest)
    if head.has_old and head.old != name:
        head.faults.append((at, 'a second "---" line names another file'))
    head.has_old, head.old = True, name


def _new(head: Head, rest: bytes, at: int) -> None:
    name = git_name(rest)
    if head.has_new and head.new != name:
        head.faults.append((at, 'a second "+++" line names another file'))
    head.has_new, head.new = True, name


def _index(head: Head, rest: bytes, at: int) -> None:
    found = _INDEX.match(rest)
    if found:
        head.old_id, head.new_id = found[1].decode(), found[2].decode()
        if found[3] and head.old_mode is None:
            head.old_mode = _mode(head, found[3], at)


def _mode(head: Head, rest: bytes, at: int) -> int | None:
    found = _MODE.match(rest)
    mode = int(found[1], 8) if found else 0
    if mode >> 12 not in _KINDS:
        head.faults.append((at, f"no such file mode: {show_line(rest, 20)}"))
        return None
    if mode >> 12 == REGULAR >> 12:
        return EXECUTABLE if mode & 0o100 else REGULAR
    return SYMLINK if mode >> 12 == SYMLINK >> 12 else GITLINK


def _old_mode(head: Head, rest: bytes, at: int) -> None:
    head.old_mode = _mode(head, rest, at)


def _new_mode(head: Head, rest: bytes, at: int) -> None:
    head.new_mode = _mode(head, rest, at)


def _created(head: Head, rest: bytes, at: int) -> None:
    head.words.add("create")
    head.new_mode = _mode(head, rest, at)


def _deleted(head: Head, rest: bytes, at: int) -> None:
    head.words.add("delete")
    head.old_mode = _mode(head, rest, at)


def _from(word: str) -> Callable[[Head, bytes, int], None]:
    def take(head: Head, rest: bytes, at: int) -> None:
        head.words.add(word)
        head.bare_old = bare_name(rest)

    return take


def _to(word: str) -> Callable[[Head, bytes, int], None]:
    def take(head: Head, rest: bytes, at: int) -> None:
        head.words.add(word)
        head.bare_new = bare_name(rest)

    return take


def _ignore(head: Head, rest: bytes, at: int) -> None:
    pass


_TAKE: tuple[tuple[bytes, Callable[[Head, bytes, int], None]], ...] = (
    (b"index ", _index),
    (b"--- ", _old),
    (b"+++ ", _new),
    (b"new file mode ", _created),
    (b"deleted file mode ", _deleted),
    (b"old mode ", _old_mode),
    (b"new mode ", _new_mode),
    (b"similarity index ", _ignore),
    (b"dissimilarity index ", _ignore),
    (b"rename from ", _from("rename")),
    (b"rename to ", _to("rename")),
    (b"rename old ", _from("rename")),
    (b"rename new ", _to("rename")),
    (b"copy from ", _from("copy")),
    (b"copy to ", _to("copy")),
)
_BY_START = {
    start: tuple((word, take) for word, take in _TAKE if word.startswith(start))
    for start in {word[:3] for word, _ in _TAKE}
}
"""The same by their first three bytes, for speed."""
