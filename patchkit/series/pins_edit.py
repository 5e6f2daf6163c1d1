"""Edits of pins.toml: lines come or change, every other byte stays.

Each edit reads its result again and compares it with what was meant, so a layout that it does not
know (inline tables, dotted keys) is refused with the text to add by hand, never spoilt. A TOML
library was tried: it moves the comment above a table to the end of the table before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from patchkit.errors import Finding, Refused, Where
from patchkit.series.pins import FILE, Pin, Pins, Stack, Upstream, load_pins
from patchkit.series.toml_lines import line_of, table_spans

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PREFIX_LINE = re.compile(r"""(\s*)commit-prefix(\s*)=(\s*)(?:"[0-9a-f]+"|'[0-9a-f]+')""")


def add_upstream(data: bytes, upstream: Upstream) -> bytes:
    """pins.toml with another upstream. Raises Refused(bad-pins) where the name is taken."""
    keys = ("kind", "git", "pypi", "package", "root", "source")
    values = {key: getattr(upstream, key) for key in keys if getattr(upstream, key)}
    pins = load_pins(data)
    _free("upstream", upstream.name, pins.upstreams)
    meant = replace(pins, upstreams={**pins.upstreams, upstream.name: upstream})
    return _insert(data, "upstreams", _table(("upstreams", upstream.name), values), meant)


def add_pin(data: bytes, pin: Pin) -> bytes:
    """pins.toml with another pin. Raises Refused(bad-pins) where the name is taken."""
    values = {"upstream": pin.upstream, "commit": pin.commit, "commit-prefix": pin.commit_prefix}
    rows = _table(("pins", pin.name), {k: v for k, v in values.items() if v})
    if pin.files:
        rows += _table(("pins", pin.name, "files"), _digests(pin.files))
    pins = load_pins(data)
    _free("pin", pin.name, pins.pins)
    return _insert(data, "pins", rows, replace(pins, pins={**pins.pins, pin.name: pin}))


def add_stack(data: bytes, stack: Stack) -> bytes:
    """pins.toml with another stack. Raises Refused(bad-pins) where the name is taken."""
    pins = load_pins(data)
    _free("stack", stack.name, pins.stacks)
    rows = [f"[stacks.{_key(stack.name)}]", f"guards = [{', '.join(map(_string, stack.guards))}]"]
    return _insert(data, "stacks", rows, replace(pins, stacks={**pins.stacks, stack.name: stack}))


def complete_pin(data: bytes, name: str, commit: str) -> bytes:
    """pins.toml with the whole commit id of a pin in place of its prefix.

    Raises Refused(pin-mismatch) where `commit` does not begin with the prefix, or another commit
    stands there.
    """
    pins = load_pins(data)
    pin = pins.pin(name)
    if pin.commit == commit:
        return data
    if pin.commit or (pin.commit_prefix and not commit.startswith(pin.commit_prefix)):
        raise Refused(
            Finding(
                "pin-mismatch",
                f"the pin {name} has another commit",
                Where(file=FILE),
                expected=pin.commit or f"{pin.commit_prefix}…",
                found=commit,
            )
        )
    lines = data.decode("utf-8").split("\n")
    key = "commit-prefix" if pin.commit_prefix else "upstream"
    at = (line_of(data, ("pins", name, key)) or 1) - 1
    if pin.commit_prefix:
        lines[at] = _PREFIX_LINE.sub(rf'\g<1>commit\g<2>=\g<3>"{commit}"', lines[at], count=1)
    else:
        lines.insert(at + 1, f'commit = "{commit}"')
    meant = replace(pins, pins={**pins.pins, name: replace(pin, commit=commit, commit_prefix="")})
    return _checked(lines, meant, f'commit = "{commit}"')


def set_files(data: bytes, name: str, files: Mapping[str, str]) -> bytes:
    """pins.toml with these digests (file name -> 64 hex digits) added to a pin's.

    Raises Refused(pin-mismatch) where a file already has another digest: that is never an edit.
    """
    pins = load_pins(data)
    pin = pins.pin(name)
    for file in sorted(files.keys() & pin.files.keys()):
        if pin.files[file] != files[file]:
            raise Refused(
                Finding(
                    "pin-mismatch",
                    f"the pin {name} has another digest for {file}",
                    Where(file=FILE, line=line_of(data, ("pins", name, "files", file))),
                    expected=pin.files[file],
                    found=files[file],
                )
            )
    new = {file: digest for file, digest in sorted(files.items()) if file not in pin.files}
    if not new:
        return data
    key = ("pins", name, "files")
    table = _table(key, _digests(new))
    lines = data.decode("utf-8").split("\n")
    spans = dict(table_spans(lines))
    if key in spans:
        lines[spans[key] : spans[key]] = table[1:]
    elif key[:2] in spans:
        lines[spans[key[:2]] : spans[key[:2]]] = table
    meant = replace(pins, pins={**pins.pins, name: replace(pin, files={**pin.files, **new})})
    return _checked(lines, meant, "\n".join(table))


def _insert(data: bytes, kind: str, rows: list[str], meant: Pins) -> bytes:
    """The tables `rows` behind the last table of their kind, else at the end."""
    lines = data.decode("utf-8").rstrip("\n").split("\n") if data.strip() else []
    ends = [end for key, end in table_spans(lines) if key[0] == kind]
    at = max(ends, default=len(lines))
    gap = [""] if at and any(lines[:at]) else []
    lines[at:at] = [*gap, *rows]
    return _checked([*lines, ""], meant, "\n".join(rows))


def _checked(lines: list[str], meant: Pins, text: str) -> bytes:
    data = "\n".join(lines).encode("utf-8")
    try:
        found = load_pins(data)
    except Refused as refusal:
        found = None
        reasons = tuple(f.message for f in refusal.findings)
    else:
        reasons = ()
    if found is not None and found == meant:
        return data
    raise Refused(
        Finding(
            "bad-pins",
            f"{FILE} cannot be edited as it stands",
            Where(file=FILE),
            expected="tables with a [header] of their own",
            next="add it by hand",
            details=(*reasons, *text.split("\n")),
        )
    )


def _free(kind: str, name: str, known: Mapping[str, object]) -> None:
    # `default` always exists, but may have no table yet; adding it is then harmless.
    if name in known:
        raise Refused(
            Finding(
                "bad-pins",
                f"{FILE} already has the {kind} {name!r}",
                Where(file=FILE),
                next="choose another name, or edit the table by hand",
            )
        )


def _table(key: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    return [
        f"[{'.'.join(map(_key, key))}]",
        *(f"{_key(name)} = {_string(value)}" for name, value in values.items()),
    ]


def _digests(files: Mapping[str, str]) -> dict[str, str]:
    return {name: f"sha256:{digest}" for name, digest in sorted(files.items())}


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    """A TOML basic string. Values were checked by load_pins or are by the reading-back."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
