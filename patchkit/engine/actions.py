"""A patch's sections as actions on paths of a tree: names stripped and judged, -R turned round."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace

from patchkit.engine.model import GITLINK, Hunk, Patch, Section
from patchkit.engine.paths import unsafe
from patchkit.engine.quote import show_path
from patchkit.engine.strip import Root, target_paths
from patchkit.errors import Finding, Where

_MAIL = re.compile(rb"^From [0-9a-f]{40,64} ", re.MULTILINE)


@dataclass(frozen=True)
class Action:
    """One section, said of paths.

    kind: as Section.kind, or "uncopy" (a copy taken back: `old` goes, if it is what the copy
    made of `new`). old: the path that is read, None for a new file; new: the path that is
    written, None for a deleted one. mail: number of the mail it stands in; sections of one mail
    are one change, in which renames and copies read what was before it.
    """

    kind: str
    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...]
    old_mode: int | None
    new_mode: int | None
    patch_line: int
    mail: int = 0
    git: bool = False

    @property
    def path(self) -> str:
        """The path to speak of."""
        return self.new or self.old or "?"


def resolve(patch: Patch, root: Root, reverse: bool) -> tuple[list[Action], list[Finding]]:
    """The actions of a patch in the order to take them, and what forbids some of them."""
    actions: list[Action] = []
    findings: list[Finding] = []
    mails = _mails(patch)
    for section in patch.sections:
        refused = _unsupported(section)
        if refused is not None:
            findings.append(refused.in_patch(patch.name))
            continue
        try:
            old, new = target_paths(section, root)
        except ValueError as error:
            findings.append(_no_target(section, root, str(error)).in_patch(patch.name))
            continue
        reason = None
        for path in {old, new} - {None}:
            reason = unsafe(path) if path is not None else None
            if reason is not None and path is not None:
                findings.append(_escape(section, path, reason).in_patch(patch.name))
                break
        if reason is None and section.kind == "copy" and old is not None and old == new:
            reason = "onto itself"
            findings.append(_onto_itself(section, old).in_patch(patch.name))
        if reason is None:
            actions.append(
                Action(
                    section.kind,
                    old,
                    new,
                    section.hunks,
                    section.old_mode,
                    section.new_mode,
                    section.patch_line,
                    bisect_right(mails, section.patch_line) if mails else 0,
                    section.git,
                )
            )
    if reverse:
        actions = [_turned(action) for action in reversed(actions)]
    return actions, findings


def _turned(action: Action) -> Action:
    kinds = {"create": "delete", "delete": "create", "copy": "uncopy"}
    return replace(
        action,
        kind=kinds.get(action.kind, action.kind),
        old=action.new,
        new=action.old,
        hunks=tuple(hunk.reversed() for hunk in action.hunks),
        # A mode stated on one side only (the index line) says what the file has, not a change.
        old_mode=action.new_mode if action.new_mode is not None else action.old_mode,
        new_mode=action.old_mode
        if action.new_mode is not None or action.kind == "delete"
        else None,
        mail=-action.mail,
    )


def _mails(patch: Patch) -> list[int]:
    """Patch lines at which a mail begins, where there is more than one."""
    if len(patch.sections) < 2 or b"\nFrom " not in patch.data:
        return []
    lines: list[int] = []
    line, at = 1, 0
    for found in _MAIL.finditer(patch.data):
        line += patch.data.count(b"\n", at, found.start())
        at = found.start()
        lines.append(line)
    return lines


def _unsupported(section: Section) -> Finding | None:
    """The parser refuses these; a Patch that was made otherwise must not slip through."""
    where = Where(file=section.path, patch_line=section.patch_line)
    if section.binary:
        return Finding("binary-unsupported", "binary content is not supported", where)
    if GITLINK in (section.old_mode, section.new_mode):
        return Finding("unsupported", "it changes a submodule, which only git can", where)
    return None


def _no_target(section: Section, root: Root, reason: str) -> Finding:
    names = [n for n in dict.fromkeys((section.old_path, section.new_path)) if n is not None]
    shown = " and ".join(show_path(name) for name in names)
    details = []
    if any("\\" in name for name in names):
        details.append(
            "a backslash is part of the name here: was the patch made on Windows? " + shown
        )
    return Finding(
        "missing-target",
        f"no file is meant by {shown}: {reason}",
        Where(file=section.path, patch_line=section.patch_line),
        expected=f"names that fit at -p{root.strip}, the same file on both sides",
        found=shown,
        details=tuple(details),
        next="patchkit refresh (or apply with another -p), or make the diff anew",
    )


def _onto_itself(section: Section, path: str) -> Finding:
    return Finding(
        "target-exists",
        f"the patch would copy {show_path(path)} onto itself",
        Where(file=path, patch_line=section.patch_line),
        expected="a new name for the copy",
        found=show_path(path),
        next="make the diff anew; a change of the file alone needs no copy",
    )


def _escape(section: Section, path: str, reason: str) -> Finding:
    return Finding(
        "path-escape",
        f"the path {show_path(path)} is refused: {reason}",
        Where(file=path, patch_line=section.patch_line),
        expected="a path inside the tree",
        found=show_path(path),
        next="do not use this patch before you know why it names such a file",
    )
