"""WCAG AA (4.5 : 1) of every pair of colours, computed from the stylesheet, light and dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import patchkit

STYLE = (Path(patchkit.__file__).parent / "report" / "templates" / "style.css").read_text()
AA = 4.5
PART = 3.0
"""What is no text: bars and lines of a drawing."""


def colours(scheme: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    if scheme == "dark":
        found.update(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark))
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    bright, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def pairs(have: dict[str, str]) -> list[tuple[str, str]]:
    states = [name.removesuffix("-paper") for name in have if name.endswith("-paper")]
    out = [(f"{s}-ink", f"{s}-paper") for s in states]
    out += [(ink, paper) for ink in ("ink", "dim", "link") for paper in ("paper", "card", "well")]
    code = [name for name in have if name == "code" or name.startswith("code-")]
    out += [(ink, paper) for ink in [*code, "dim"] for paper in ("well", "new-paper", "old-paper")]
    out += [("new-ink", p) for p in ("card", "new-mark", "paper", "well")]
    out += [("old-ink", p) for p in ("card", "old-mark", "paper", "well")]
    return out


def test_black_on_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(scheme: str) -> None:
    have = colours(scheme)
    found = {(a, b): round(contrast(have[a], have[b]), 2) for a, b in pairs(have)}
    assert {pair: ratio for pair, ratio in found.items() if ratio < AA} == {}
    assert len(found) > 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_bars_can_be_seen(scheme: str) -> None:
    have = colours(scheme)
    assert contrast(have["strong"], have["card"]) >= PART


def test_both_schemes_name_the_same_colours_and_rules_use_no_others() -> None:
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]
    names = re.findall(r"--([\w-]+):", light)
    assert names == re.findall(r"--([\w-]+):", dark)
    rules = STYLE[: STYLE.index(":root")] + STYLE[STYLE.index("* { box-sizing") :]
    print_only = rules[rules.index("@media print") :]
    rules = rules.replace(print_only, "")
    assert re.findall(r"#[0-9a-f]{3,8}\b|rgba?\(|hsla?\(", rules) == []
    assert set(re.findall(r"var\(--([\w-]+)\)", STYLE)) == set(names)
