"""`import --run`: what a script makes of a copy of the tree, as a patch.

Such scripts exit 0 whatever they matched, so the copy is looked at, not the exit status: a file
that was written and is as it was, and a call of `sed -i` that changed nothing, are edits that match
nothing. A second run on the result shows what would be done twice.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patchkit.authoring.names import from_file, patch_name, subject_from
from patchkit.bring.carried import Piece
from patchkit.bring.copied import Found, age, lay_out, looked_at
from patchkit.bring.leaving import without
from patchkit.build.scratch import scratch
from patchkit.engine.model import Overlay, Tree
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.files.atomic import make_folder, read_file, write_file
from patchkit.prove.children import none_outlives_us, run_child
from patchkit.series.header import Field, Header
from patchkit.store.repo import Store
from patchkit.store.tree import StoreTree

TREE = "{tree}"
SECONDS = 900
SHOWN = 12
_INSIDE = Path(__file__).parent / "inside"
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Script:
    """A command line. line: its words, with `TREE` where the copy's path goes; cwd: None for the
    copy itself. text: as it was typed."""

    line: tuple[str, ...]
    cwd: str | None
    text: str


@dataclass(frozen=True)
class _Seen:
    """One run, and what it left."""

    code: int
    output: str
    found: Found


def script_of(text: str) -> Script:
    """The words of `--run`. Without {tree} it runs inside the copy, and words that name files
    of the current folder are made absolute. Raises UsageFault."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageFault.because(f"--run {text}: {error}") from None
    if not words:
        raise UsageFault.because("--run needs a command", next="--run './patch_vllm.py {tree}'")
    found = shutil.which(words[0])
    if found is None:
        raise UsageFault.because(
            f"--run: there is no program {words[0]}",
            next="--run 'python3 patch_vllm.py {tree}'; a script of your own needs ./ and chmod +x",
        )
    words[0] = os.path.abspath(found)
    inside = not any(TREE in word for word in words)
    if inside:
        words[1:] = [os.path.abspath(w) if os.path.exists(w) else w for w in words[1:]]
    return Script(tuple(words), None if inside else os.getcwd(), text)


def scripted(
    store: Store,
    tree: StoreTree,
    script: Script,
    exclude: Sequence[str],
    name: str | None,
    *,
    allow_no_op: bool = False,
) -> tuple[Piece, tuple[Finding, ...]]:
    """What the script makes of `tree`, and notes. Raises Refused: script-failed, no-op."""
    with scratch(store.root, "run") as at:
        copy = os.path.join(at, "tree")
        lay_out(tree, copy)
        log = _put_sed(at)
        first = _run(script, at, copy, tree)
        wrong = _wrong(script, first, _idle_seds(log, copy))
        serious = [f for f in wrong if f.name != "no-op" or not first.found.changes]
        if wrong and (serious or not allow_no_op):
            raise Refused(*wrong)
        second = _run(script, at, copy, Overlay(tree, first.found.changes))
    notes = [f.as_note() for f in wrong]
    if second.code == 0 and second.found.changes:
        notes.append(_twice(script, second))
    notes += [_left(path) for path in first.found.junk]
    changes, gone = without(first.found.changes, exclude, f"what {script.line[0]} changed")
    made = patch_name(name) if name is not None else from_file(_named(script))
    header = Header(
        "", "", subject_from(made), (Field("Origin", "vendor"),), f"Made by: {script.text}"
    )
    said = (f"run: {len(changes)} file(s) changed", *(f"left out: {path}" for path in gone))
    return Piece(made, header, tree, changes, script.text, said, fixed=name is not None), tuple(
        notes
    )


def _put_sed(at: str) -> str:
    """Our sed in a folder of its own; the file that it writes to."""
    make_folder(os.path.join(at, "bin"))
    text = read_file(_INSIDE / "sed.py")
    write_file(
        os.path.join(at, "bin", "sed"), f"#!{sys.executable} -IS\n".encode() + text, mode=0o755
    )
    return os.path.join(at, "idle-seds")


def _run(script: Script, at: str, copy: str, before: Tree) -> _Seen:
    age(copy)
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env["PATCHKIT_SED"] = shutil.which("sed") or "sed"
    env["PATCHKIT_SED_LOG"] = os.path.join(at, "idle-seds")
    env["PATH"] = os.path.join(at, "bin") + os.pathsep + env.get("PATH", os.defpath)
    env.update(PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0", GIT_CEILING_DIRECTORIES=at)
    line = [word.replace(TREE, copy) for word in script.line]
    with none_outlives_us():
        code, output = run_child(line, env, script.cwd or copy, SECONDS)
    return _Seen(code, output.decode("utf-8", "replace"), looked_at(copy, before))


def _idle_seds(log: str, copy: str) -> list[str]:
    if not os.path.exists(log):
        return []
    rows = [json.loads(line) for line in read_file(log).decode().splitlines()]
    return [shlex.join(["sed", *row["args"]]).replace(f"{copy}/", "") for row in rows]


def _wrong(script: Script, seen: _Seen, seds: Sequence[str]) -> list[Finding]:
    if seen.code != 0:
        tail = seen.output.strip().splitlines()[-SHOWN:]
        return [
            Finding(
                "script-failed",
                f"{script.text}: "
                + (
                    f"exit status {seen.code}"
                    if seen.code > 0
                    else "it was killed or took too long"
                ),
                expected="exit status 0",
                found=f"{len(seen.found.changes)} file(s) changed before that",
                details=tuple(tail),
                next="mend the script",
            )
        ]
    rejected = [path for path in seen.found.changes if path.endswith(".rej")]
    found = [_idle(f"`{sed}`", "") for sed in seds]
    quiet = [path for path in seen.found.idle if not any(path in sed for sed in seds)]
    found += [_idle(f"{show_path(p)} was written and is as it was", p) for p in quiet]
    found += [
        Finding(
            "script-failed",
            f"the script left {show_path(path)}: a part of its patch was rejected",
            Where(file=path),
            expected="every hunk applied",
            found="a .rej file, exit status 0",
            next="patchkit import with the patch file itself",
        )
        for path in rejected
    ]
    if not seen.found.changes and not found:
        nothing = _idle(f"{script.text} changed no file at all", "")
        if TREE not in script.text:
            named = f"{nothing.next}; does it name a folder of its own? then hand it {TREE}"
            nothing = replace(nothing, next=named)
        found.append(nothing)
    return found


def _idle(what: str, path: str) -> Finding:
    return Finding(
        "no-op",
        f"an edit matched nothing: {what}",
        Where(file=path or None),
        expected="text that the edit finds",
        found="no change, exit status 0",
        next="mend the script; or take what it did change: --allow-no-op",
    )


def _twice(script: Script, second: _Seen) -> Finding:
    return Finding(
        "not-idempotent",
        f"a second run of {script.text} changes its own result",
        Where(file=next(iter(second.found.changes))),
        expected="nothing left to change",
        found=f"{len(second.found.changes)} file(s): "
        + ", ".join(show_path(p) for p in list(second.found.changes)[:SHOWN]),
        next="the patch holds what one run makes; do not run the script beside it",
        note=True,
    )


def _left(path: str) -> Finding:
    return Finding(
        "unused", f"{show_path(path)}, which the script left, is no part of it", note=True
    )


def _named(script: Script) -> str:
    """The word that names the patch: the script, not its interpreter."""
    words = [w for w in script.line if os.path.isfile(w) and not w.startswith(sys.prefix)]
    return os.path.splitext(os.path.basename((words or [script.line[0]])[-1]))[0]
