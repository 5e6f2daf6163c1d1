"""The pages in a real browser: contrast as it is painted, nothing wider than the window, and the
picture itself. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import zlib
from html import unescape
from pathlib import Path

import pytest

from tests.unit.report.test_contrast import AA, colours

CHROMIUM = next((w for n in ("chromium", "chromium-browser") if (w := shutil.which(n))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: pages are not looked at"),
]

LOOK = """
const lum = c => { const f = c.map(v => { v /= 255;
  return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
  return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
const nums = s => s.match(/[\\d.]+/g).map(Number);
const below = e => { for (; e; e = e.parentElement) {
  const c = nums(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
let texts = 0; const poor = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const e = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || e.closest('svg')) continue;
  const a = lum(nums(getComputedStyle(e).color).slice(0, 3)), b = lum(below(e));
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  texts++; if (ratio < LIMIT) poor.push(e.outerHTML.slice(0, 90) + ' ' + ratio.toFixed(2));
}
document.title = JSON.stringify({texts, poor, wide: document.documentElement.scrollWidth,
  window: innerWidth, dark: matchMedia('(prefers-color-scheme: dark)').matches});
"""


def browse(tmp_path: Path, *args: str) -> str:
    assert CHROMIUM is not None
    line = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    line += ["--no-first-run", f"--user-data-dir={tmp_path / 'profile'}", *args]
    done = subprocess.run(line, capture_output=True, check=True, timeout=120)
    return done.stdout.decode("utf-8", "replace")


def look(site: Path, tmp_path: Path, name: str, *args: str) -> dict[str, object]:
    """What a script in a copy of the page sees (the pages themselves allow none)."""
    copy = tmp_path / "copy"
    shutil.copytree(site, copy, dirs_exist_ok=True)
    page = copy / name
    text = re.sub(r"<meta http-equiv=.*?>", "", page.read_text())
    script = LOOK.replace("LIMIT", str(AA))
    page.write_text(text.replace("</body>", f"<script>{script}</script></body>"))
    dom = browse(tmp_path, *args, "--dump-dom", page.as_uri())
    found = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert found, dom[:500]
    seen: dict[str, object] = json.loads(unescape(found[1]))
    return seen


def first_pixel(png: bytes) -> str:
    """The colour of the top left corner."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    depth, kind = png[24], png[25]
    assert (depth, kind) in ((8, 2), (8, 6))
    at, data = 8, b""
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += 12 + size
    row = zlib.decompressobj().decompress(data, 8)
    return "#" + row[1:4].hex()  # no filter changes the first pixel


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index.html", "v1.0/deeper.html"])
def test_what_is_painted_can_be_read_and_is_not_too_wide(
    site: Path, tmp_path: Path, page: str, scheme: str
) -> None:
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    for width in (1300, 500):
        seen = look(site, tmp_path, page, f"--window-size={width},900", *dark)
        assert seen["poor"] == []
        assert seen["dark"] is (scheme == "dark")
        assert int(str(seen["texts"])) > 40
        assert int(str(seen["wide"])) <= int(str(seen["window"]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screenshot_has_the_colours_of_the_scheme(
    site: Path, tmp_path: Path, scheme: str
) -> None:
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    shot = tmp_path / "shot.png"
    where = (site / "index.html").as_uri()
    browse(tmp_path, "--window-size=900,700", f"--screenshot={shot}", *dark, where)
    assert first_pixel(shot.read_bytes()) == colours(scheme)["paper"]


def test_it_prints(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.pdf"
    browse(tmp_path, f"--print-to-pdf={out}", (site / "v1.0" / "deeper.html").as_uri())
    assert out.read_bytes().startswith(b"%PDF")
