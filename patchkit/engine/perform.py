"""One action on one file: its checks, its hunks, its result in the draft."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from patchkit.engine.actions import Action
from patchkit.engine.chunks import Lines
from patchkit.engine.content import Edit, Text, TextFile
from patchkit.engine.model import REGULAR, File, Hunk
from patchkit.engine.obstacles import (
    Setting,
    exists,
    in_the_way,
    missing,
    refresh,
    where,
    wrong_type,
)
from patchkit.engine.place import (
    FAILS,
    HOLDS,
    THERE,
    Place,
    Spot,
    Stated,
    holds,
    place_hunks,
    splice,
    splice_at,
    stated,
)
from patchkit.engine.quote import show_line, show_path
from patchkit.engine.rule import Rule
from patchkit.engine.work import Draft, Work
from patchkit.errors import Finding


@dataclass
class Result:
    """What became of one action.

    held: it is in the draft. there: "there" (its result stands already), "gone" (a file to
    delete is absent) or "mode" (only the mode, and the file has it). spots, text and mode: of
    the file that was read, for explaining what fails. starts: the index of each hunk that was
    placed, for the record of who changed what. left: of a copy that is taken back, what its
    source should be when the whole patch is. findings: what is wrong besides hunks.
    """

    action: Action
    held: bool = False
    there: str = ""
    spots: list[Spot] = field(default_factory=list)
    text: Text | None = None
    mode: int | None = None
    hunks: Sequence[Hunk] = ()
    starts: Sequence[int] = ()
    left: list[bytes] | None = None
    places: Sequence[Place] = ()
    findings: list[Finding] = field(default_factory=list)

    def fail(self, finding: Finding) -> Result:
        """The same result, with one more reason why it does not hold."""
        self.findings.append(finding)
        self.held = False
        return self


def perform_all(
    work: Work, actions: Sequence[Action], setting: Setting
) -> tuple[list[Result], Draft]:
    """Perform a patch's actions one after the other, whether they hold or not."""
    draft = Draft(work)
    results: list[Result] = []
    leaving: dict[int, set[str]] = {}
    for action in actions:
        if action.old is not None and action.kind in ("delete", "rename", "uncopy"):
            leaving.setdefault(action.mail, set()).add(action.old)
    mail = None
    for action in actions:
        if action.mail != mail:
            mail = action.mail
            draft.begin()
        results.append(perform(action, draft, leaving.get(action.mail, set()), setting))
    for result in results:
        if result.held and result.left is not None and not _is_copy(result, draft):
            result.fail(_left_over(result.action, result.left, setting))
        obstacle = in_the_way(result.action, draft, setting) if result.held else None
        if obstacle is not None:
            result.fail(obstacle)
    return results, draft


def stated_starts(path: str, hunks: Sequence[Hunk]) -> Sequence[int]:
    """The index that each hunk's own header states."""
    return [stated(hunk) for hunk in hunks]


def perform(action: Action, draft: Draft, leaving: set[str], setting: Setting) -> Result:
    """Put one action into the draft, or say why not. leaving: paths that this mail takes away."""
    result = Result(action)
    if action.kind == "create":
        return _create(action, draft, leaving, setting, result)
    source = action.old
    assert source is not None
    moved = action.kind in ("rename", "copy")
    if action.kind == "copy" or (moved and not draft.edited(source)):
        file = draft.before(source)
    else:
        file = draft.get(source)
    if file is None:
        if action.kind == "modify" and _may_create(action) and not draft.blocked(source):
            made = replace(action, kind="create", old=None, new=source)
            return _create(made, draft, leaving, setting, result)
        if action.kind in ("delete", "uncopy"):
            result.there = "gone"
        elif moved and action.new is not None:
            _moved_already(action, draft, setting, result)
        return result.fail(missing(action, source, draft, setting))
    wrong = wrong_type(action, source, file, setting)
    if wrong is not None:
        return result.fail(wrong)
    text = result.text = draft.work.text(source, file)
    result.mode = file.mode
    lines = _placed(action, source, text, setting, result)
    if lines is None:
        if moved and setting.detect:
            _moved_already(action, draft, setting, result)
        return result
    if action.kind in ("delete", "uncopy"):
        return _delete(action, source, file, lines, draft, setting, result)
    new = action.new
    assert new is not None
    mode = action.new_mode if action.new_mode is not None else file.mode
    if moved and _taken(new, source, draft, leaving):
        if action.kind == "copy":
            there = draft.get(new)
            same = there is not None and there.mode == mode and _same(draft, new, there, lines)
            result.there = "there" if same else ""
        return result.fail(exists(action, new, setting))
    if action.kind == "modify" and not action.hunks and file.mode == mode:
        result.there = "mode"
    if lines is text.lines:
        made_file = _with_mode(file, mode)
    else:
        made_file = TextFile(Text(lines), mode, text, Replaced(result.hunks, result.starts))
    if action.kind == "rename":
        draft.remove(source, renamed=True)
    draft.write(new, made_file, edit=action.kind == "modify")
    result.held = True
    return result


@dataclass(frozen=True, slots=True)
class Replaced:
    """What hunks that are placed at `starts` replace: context too, of which no byte changes."""

    hunks: Sequence[Hunk]
    starts: Sequence[int]

    def __iter__(self) -> Iterator[Edit]:
        for hunk, at in zip(self.hunks, self.starts, strict=True):
            yield at, hunk.old_count, hunk.new_count


def _placed(
    action: Action, path: str, text: Text, setting: Setting, result: Result
) -> Lines | None:
    """The lines after the action's hunks; None where one of them fails. Fills `result`."""
    hunks: Sequence[Hunk] = action.hunks
    result.hunks = hunks
    if not hunks:
        return text.lines
    starts = setting.starts(path, hunks)
    if not holds(text.lines, hunks, starts):
        if setting.rule.allow.line_endings == "target":
            hunks = result.hunks = _with_line_ends(hunks, text.lines)
        spots = place_hunks(text, path, hunks, starts, setting.rule, detect=setting.detect)
        result.spots = spots
        result.starts = [spot.index for spot in spots]
        result.places = [
            Place(path, i, spot.index + 1, spot.offset, spot.trim.fuzz if spot.trim else 0)
            for i, spot in enumerate(spots, 1)
            if spot.status == HOLDS
        ]
        if any(spot.status != HOLDS for spot in spots):
            mode_too = action.new_mode is None or action.new_mode == result.mode
            if mode_too and all(spot.status == THERE for spot in spots):
                result.there = "there"
            return None
        return splice(text.lines, hunks, spots)
    result.starts = starts
    result.places = Stated(path, starts)
    return splice_at(text.lines, hunks, starts)


def _with_line_ends(hunks: Sequence[Hunk], lines: Sequence[bytes]) -> Sequence[Hunk]:
    """The hunks with the file's own line ends, where all of its lines have the same."""
    ended = [line for line in lines if line.endswith(b"\n")]
    crlf = sum(1 for line in ended if line.endswith(b"\r\n"))
    if crlf not in (0, len(ended)):
        return hunks
    end = b"\r\n" if crlf else b"\n"
    return [
        replace(
            hunk,
            contents=tuple(
                line[:-1].removesuffix(b"\r") + end if line.endswith(b"\n") else line
                for line in hunk.contents
            ),
        )
        for hunk in hunks
    ]


def _create(
    action: Action, draft: Draft, leaving: set[str], setting: Setting, result: Result
) -> Result:
    path = action.new
    assert path is not None
    lines = [line for hunk in action.hunks for line in hunk.new]
    mode = action.new_mode if action.new_mode is not None else REGULAR
    if any(hunk.old_count for hunk in action.hunks):
        return result.fail(
            Finding(
                "conflict",
                f"{show_path(path)} is to be a new file, and its hunk has old lines",
                where(setting, action, path),
                expected="no old lines",
                next=refresh(setting),
            )
        )
    if _taken(path, None, draft, leaving):
        old = draft.get(path)
        if old is None:
            return result.fail(exists(action, path, setting))
        if _same(draft, path, old, lines):
            if old.mode == mode:
                result.there = "there"
            found = f"this content with mode {old.mode:o}"
        else:
            found = f"a file of {len(draft.work.text(path, old).lines)} lines, mode {old.mode:o}"
        return result.fail(exists(action, path, setting, found, f"{mode:o}"))
    result.hunks = action.hunks
    result.starts = [0] * len(action.hunks)
    result.places = [Place(path, i, 1) for i in range(1, len(action.hunks) + 1)]
    draft.write(path, TextFile(Text(lines), mode))
    result.held = True
    return result


def _delete(
    action: Action,
    path: str,
    file: File,
    lines: Sequence[bytes],
    draft: Draft,
    setting: Setting,
    result: Result,
) -> Result:
    if action.kind == "uncopy":
        result.left = list(lines)
    elif lines:
        return result.fail(_left_over(action, lines, setting))
    draft.remove(path)
    result.held = True
    return result


def _is_copy(result: Result, draft: Draft) -> bool:
    """Whether a copy that was taken back is what its source is now that all is taken back."""
    path = result.action.new
    source = draft.get(path) if path is not None else None
    if source is None or path is None or result.left is None:
        return True
    return _same(draft, path, source, result.left)


def _left_over(action: Action, lines: Sequence[bytes], setting: Setting) -> Finding:
    path = action.old or action.path
    return Finding(
        "conflict",
        f"{show_path(path)} is not the file that the patch would delete: "
        f"{len(lines)} lines are left over after the patch's lines are removed",
        where(setting, action, path),
        expected="an empty file after that" if action.new is None else show_path(action.new),
        found=f"left over: {show_line(lines[0]) if lines else 'nothing'}",
        next=refresh(setting),
    )


def _taken(path: str, source: str | None, draft: Draft, leaving: set[str]) -> bool:
    """Whether a new name is taken by a file that this patch does not take away."""
    if path == source:
        return False
    if path in draft.written:
        return True
    return path not in leaving and draft.get(path) is not None


def _same(draft: Draft, path: str, file: File, lines: Sequence[bytes]) -> bool:
    return list(draft.work.text(path, file).lines) == list(lines)


def _with_mode(file: File, mode: int) -> File:
    if file.mode == mode:
        return file
    return TextFile(file.text, mode) if isinstance(file, TextFile) else File(file.data, mode)


def _may_create(action: Action) -> bool:
    """A plain diff with an empty old side names a new file where none exists, as git reads it."""
    return (
        not action.git
        and len(action.hunks) == 1
        and not action.hunks[0].old
        and action.hunks[0].old_start == 0
    )


def _moved_already(action: Action, draft: Draft, setting: Setting, result: Result) -> None:
    """Whether a rename or a copy was done before: the new file is what it makes."""
    new, old = action.new, action.old
    file = draft.get(new) if new is not None else None
    if file is None or new is None or old is None or not setting.detect:
        return
    if action.kind == "copy" and not action.hunks:
        source = draft.before(old)
        if source is None or source.data != file.data:
            return
    text = draft.work.text(new, file)
    turned = [hunk.reversed() for hunk in action.hunks]
    starts = [stated(hunk) for hunk in turned]
    spots = place_hunks(text, new, turned, starts, Rule(), detect=False)
    if all(spot.status != FAILS for spot in spots):
        result.there = "there"
