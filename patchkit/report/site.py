"""The pages as bytes: the same values give the same bytes, and nothing raw comes out of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from patchkit.engine.plain import plain
from patchkit.rebase.plan import CLEAN, CONFLICT, DROPPED, GOOD, MERGED, MOVED, UPSTREAMED
from patchkit.report.gather import PatchPage, PinPage, Release
from patchkit.report.graph_svg import draw
from patchkit.report.overview import lives
from patchkit.report.prose import blocks, linked
from patchkit.series.header import Header

TEMPLATES = Path(__file__).parent / "templates"
STYLE = "style.css"
INDEX = "index.html"
STATES = (CLEAN, MERGED, MOVED, CONFLICT, UPSTREAMED, DROPPED)
LEGEND = (
    (CLEAN, "only line numbers change"),
    (MERGED, "merges; its context changes"),
    (MOVED, "a file has another name there"),
    (CONFLICT, "both changed the same lines"),
    (UPSTREAMED, "the release has all of it"),
    (DROPPED, "a release before has it"),
)


@dataclass(frozen=True)
class Tally:
    """A release in numbers. carried: patches that are on it. states: (state, patches, patches
    in the states before)."""

    release: Release
    carried: int
    states: tuple[tuple[str, int, int], ...]


def site(pages: Sequence[PinPage]) -> dict[str, bytes]:
    """Path below the site's folder -> bytes."""
    paths = paths_of(pages)
    out = {STYLE: (TEMPLATES / STYLE).read_bytes()}
    title = "patchkit: " + ", ".join(f"{p.pin.upstream} {p.pin.name}" for p in pages)
    many = len(pages) > 1
    settled_of = {page.pin.name: settled(pages, page) for page in pages}
    for page in pages:
        where = pin_path(page.pin.name) if many else INDEX
        out[where] = _rendered(
            "pin.html",
            paths,
            "../" if many else "",
            title=f"{page.pin.upstream} {page.pin.name}",
            page=page,
            many=many,
            legend=LEGEND,
            drawing_of=draw(page.graph),
            tallies=tallies(page),
            settled=settled_of[page.pin.name],
        )
    if many:
        oldest_first = tuple(reversed(pages))
        out[INDEX] = _rendered(
            INDEX,
            paths,
            "",
            title=title,
            pages=oldest_first,
            upstreams=sorted({page.pin.upstream for page in pages}),
            lives=lives(oldest_first),
        )
    for page in pages:
        last = len(page.patches) - 1
        for at, patch in enumerate(page.patches):
            out[paths[page.pin.name, patch.name]] = _rendered(
                "patch.html",
                paths,
                "../",
                page=page,
                many=many,
                p=patch,
                number=at + 1,
                before=page.patches[at - 1] if at else None,
                after=page.patches[at + 1] if at < last else None,
                text=blocks(patch.header.long),
                settled=settled_of[page.pin.name],
                history=_history(pages, patch),
            )
    return out


@dataclass(frozen=True)
class Settled:
    """What has become of a patch in the series of a release: the patch there, or why there is
    none."""

    pin: str
    patch: str = ""
    why: str = ""


def settled(pages: Sequence[PinPage], page: PinPage) -> dict[tuple[str, str], Settled]:
    """By (patch, release): for releases that have a series of their own here."""
    out: dict[tuple[str, str], Settled] = {}
    for other in pages:
        if other.pin.name == page.pin.name:
            continue
        for there in other.patches:
            for pin, name in there.history[:-1]:
                if pin == page.pin.name:
                    out[name, other.pin.name] = Settled(other.pin.name, there.name)
        for name, (_, why) in other.gone.items():
            out.setdefault((name, other.pin.name), Settled(other.pin.name, "", why))
    return out


def pin_path(pin: str) -> str:
    """Path of the page of a pin that is one of several."""
    return f"{_plain_name(pin)}/{INDEX}"


def paths_of(pages: Sequence[PinPage]) -> dict[tuple[str, str], str]:
    """(pin, patch) -> the path of its page: letters that need no escape in an address."""
    out: dict[tuple[str, str], str] = {}
    for page in pages:
        folder = _plain_name(page.pin.name)
        for patch in page.patches:
            stem = _plain_name(_stem(patch.name))
            path, number = f"{folder}/{stem}.html", 2
            while path in out.values() or path == f"{folder}/{INDEX}":
                path, number = f"{folder}/{stem}-{number}.html", number + 1
            out[page.pin.name, patch.name] = path
    return out


def tallies(page: PinPage) -> tuple[Tally, ...]:
    """Each release in numbers."""
    out = []
    for column, release in enumerate(page.releases):
        texts = [patch.cells[column].text for patch in page.patches]
        counted = [(state, texts.count(state)) for state in STATES if state in texts]
        before = [0, *accumulate(number for _, number in counted)]
        out.append(
            Tally(
                release,
                sum(text in GOOD for text in texts),
                tuple((s, n, at) for (s, n), at in zip(counted, before, strict=False)),
            )
        )
    return tuple(out)


def _history(pages: Sequence[PinPage], patch: PatchPage) -> tuple[tuple[str, str], ...]:
    """What the patch came from and what has come of it, in the order of time."""
    own = (patch.pin, patch.name)
    later = [
        there
        for page in pages
        for other in page.patches
        if own in other.history[:-1]
        for there in other.history[other.history.index(own) + 1 :]
    ]
    return (*patch.history, *dict.fromkeys(later))


def _rendered(template: str, paths: Mapping[tuple[str, str], str], up: str, **values: Any) -> bytes:
    text = (
        _environment()
        .get_template(template)
        .render(
            **values,
            url=lambda pin, patch: up + paths[pin, patch],
            has=lambda pin, patch: (pin, patch) in paths,
            pin_url=lambda pin: up + pin_path(pin),
            up=up,
        )
    )
    return text.encode("utf-8", "replace")


@cache
def _environment() -> Environment:
    """The templates, read and compiled once."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(
        stem=_stem,
        linked=linked,
        fields=_fields,
        switches=_switches,
        flow=_flow,
        short=_short,
        sentence=_sentence,
    )
    return env


def _shown(value: Any) -> Any:
    """What a template prints: control characters as octal escapes; jinja2 then escapes it."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else plain(value)


def _fields(header: Header) -> list[tuple[str, str]]:
    """The header's fields for a page, From and Date first."""
    rows = [("From", header.author), ("Date", header.date)]
    rows += [(field.name, " ".join(field.value.split())) for field in header.fields]
    return [(name, value) for name, value in rows if value]


def _switches(patch: PatchPage) -> list[tuple[PatchPage, Any]]:
    return [(patch, switch) for switch in patch.header.switches()]


def _flow(text: str) -> Markup:
    return linked(" ".join(text.split()))


def _short(text: str) -> str:
    """The first clause: `upstreamed in other words` of `upstreamed in other words: PR 55557`."""
    return re.split(r"[:;(]", text, maxsplit=1)[0].strip()


def _sentence(test: str) -> str:
    words = test.removeprefix("test_").replace("_", " ")
    return words[:1].upper() + words[1:]


def _stem(name: str) -> str:
    return name.removesuffix(".patch")


def _plain_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]", "-", text).strip(".") or "patch"
