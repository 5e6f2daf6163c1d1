"""What is in the way of an action besides its hunks: findings about files, links and names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patchkit.engine.actions import Action
from patchkit.engine.model import SYMLINK, File, Hunk, path_text
from patchkit.engine.quote import show_path
from patchkit.engine.rule import Rule
from patchkit.engine.work import Draft
from patchkit.errors import Finding, Where

Starts = Callable[[str, Sequence[Hunk]], Sequence[int]]
"""Where the hunks of a path are stated: a chain subtracts the lines of what it left out."""


@dataclass(frozen=True)
class Setting:
    """How a patch is performed. detect: tell results that are there already apart (not for -R).
    modes: a file must have exactly the mode that the action changes or takes away.
    """

    patch: str
    rule: Rule
    starts: Starts
    detect: bool = True
    modes: bool = False


def wrong_type(action: Action, path: str, file: File, setting: Setting) -> Finding | None:
    """A link where the patch has a file, a file where it has a link, or another mode."""
    link, wants = file.mode == SYMLINK, action.old_mode == SYMLINK
    if link and not wants and (action.hunks or action.old_mode is not None):
        return Finding(
            "symlink-in-path",
            f"{show_path(path)} is a symbolic link; the patch edits a file, "
            "and nothing is written through a link",
            where(setting, action, path),
            expected="a regular file",
            found=f"a symbolic link to {show_path(path_text(file.data))}",
            next="patch the file that the link names",
        )
    if wants and not link:
        return Finding(
            "conflict",
            f"{show_path(path)} is no symbolic link, and the patch has one there",
            where(setting, action, path),
            expected="a symbolic link",
            found=f"a file, mode {file.mode:o}",
            next=refresh(setting),
        )
    changes_mode = action.new_mode is not None and action.new_mode != action.old_mode
    matters = setting.modes and (changes_mode or action.kind == "delete")
    if matters and action.old_mode is not None and file.mode != action.old_mode:
        return Finding(
            "conflict",
            f"{show_path(path)} has mode {file.mode:o}",
            where(setting, action, path),
            expected=f"mode {action.old_mode:o}",
            found=f"mode {file.mode:o}",
            next=refresh(setting),
        )
    return None


def missing(action: Action, path: str, draft: Draft, setting: Setting) -> Finding:
    blocked = draft.blocked(path)
    if blocked is not None and blocked[1].mode == SYMLINK:
        return through_link(action, path, blocked[0], setting)
    verb = {"delete": "delete", "uncopy": "delete", "rename": "rename", "copy": "copy"}
    what = verb.get(action.kind, "edit")
    others = [p for p in draft.work.named(path.rpartition("/")[2]) if draft.get(p) is not None]
    details = []
    if len(others) == 1:
        details.append(f"one file of that name is elsewhere: {show_path(others[0])}")
    elif others:
        shown = ", ".join(show_path(p) for p in others[:5])
        details.append(f"{len(others)} files of that name are elsewhere: {shown}")
    if "\\" in path:
        details.append(
            f"the name has a backslash, which is part of it here: {show_path(path)} "
            "(was the patch made on Windows?)"
        )
    if blocked is not None:
        details.append(f"{show_path(blocked[0])} is a file, not a folder")
    return Finding(
        "missing-target",
        f"{show_path(path)}, which the patch would {what}, is not in the tree",
        where(setting, action, path),
        expected=show_path(path),
        found="; ".join(details) if details else "no file of that name anywhere",
        details=tuple(details[1:]),
        next=refresh(setting),
    )


def exists(
    action: Action, path: str, setting: Setting, found: str = "a file", mode: str = ""
) -> Finding:
    what = {"rename": "rename a file to", "copy": "copy a file to"}.get(action.kind, "create")
    with_mode = f" with mode {mode}" if mode else ""
    return Finding(
        "target-exists",
        f"{show_path(path)} exists, and the patch would {what} it: nothing is overwritten",
        where(setting, action, path),
        expected=f"no file there, or this very content{with_mode}",
        found=found,
        next=refresh(setting),
    )


def through_link(action: Action, path: str, link: str, setting: Setting) -> Finding:
    """The finding for a path that leads through a link."""
    return Finding(
        "symlink-in-path",
        f"{show_path(path)} lies behind {show_path(link)}, which is a symbolic link: "
        "nothing is written through a link",
        where(setting, action, path),
        expected=f"{show_path(link)} as a folder",
        found="a symbolic link",
        next="do not use this patch before you know where the link leads",
    )


def link_by_case(action: Action, path: str, twin: str, setting: Setting) -> Finding:
    """The finding for a path and a link that are one where case is ignored."""
    return Finding(
        "symlink-in-path",
        f"{show_path(path)} and {show_path(twin)} differ by case only, and one is a symbolic link: "
        "on macOS and Windows the file lies behind it",
        where(setting, action, path),
        expected="names that are different on every file system",
        found=show_path(twin),
        next="do not use this patch before you know where the link leads",
    )


def in_the_way(action: Action, draft: Draft, setting: Setting) -> Finding | None:
    """What keeps a new path from being in the tree after the patch: a file or a link where it
    needs a folder, a folder where it needs a name.
    """
    path = action.new
    if path is None or path not in draft.written or draft.work.get(path) is not None:
        return None
    twin = draft.link_twin(path)
    if twin is not None:
        return link_by_case(action, path, twin, setting)
    blocked = draft.blocked(path)
    if blocked is not None:
        if blocked[1].mode == SYMLINK:
            return through_link(action, path, blocked[0], setting)
        return exists(action, blocked[0], setting, f"a file where {show_path(path)} needs a folder")
    if draft.keeps_folder(path):
        return exists(action, path, setting, "a folder")
    return None


def where(setting: Setting, action: Action, path: str) -> Where:
    return Where(setting.patch, path, None, None, action.patch_line or None)


def refresh(setting: Setting) -> str:
    return f"patchkit refresh {show_path(setting.patch)}"
