"""The figures of the EXL3 page and of the patches' headers are those of the recorded run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERIES = ROOT / "series"
PAGE = (ROOT / "docs" / "stacks" / "2x170hx-exl3.md").read_text("utf-8")
RECORD = json.loads(
    (SERIES / "v0.30.0/proofs/results/exl3-exllamav3-backend.json").read_text("utf-8")
)
MEASURED = RECORD["green"]["measured"]
PINS = sorted(path.parent.name for path in SERIES.glob("*/exl3-decode-gemv.patch"))

pytestmark = pytest.mark.real


def lines(name: str) -> list[dict[str, str]]:
    """A CSV of the record."""
    head, *rows = (line.split(",") for line in MEASURED[name])
    return [dict(zip(head, row, strict=True)) for row in rows]


def linear(size: str, columns: str, rows: str, bits: str, codebook: str) -> list[float]:
    """Ours, exllamav3's, dense and the bytes' microseconds."""
    wanted = {"size": size, "columns": columns, "rows": rows, "bits": bits, "codebook": codebook}
    (found,) = [row for row in lines("linear layers, us") if wanted.items() <= row.items()]
    return [float(found[name]) for name in ("ours", "exllamav3", "dense", "bytes")]


def experts(tokens: str) -> list[float]:
    """Ours, vLLM's fused kernel's and, where it was timed, exllamav3's."""
    found = MEASURED["experts, 10 of 512, 2560/640, 5 bits mcg: us"][f"{tokens} tokens"]
    names = ("ours", "fused bf16, its best tile", "exllamav3, exl3_moe_coop")
    return [found[name] for name in names if name in found]


def agree(said: list[str], measured: list[float]) -> None:
    """Each figure is what was measured, rounded to its own places."""
    assert len(said) == len(measured)
    for figure, value in zip(said, measured, strict=True):
        places = len(figure.partition(".")[2])
        assert abs(float(figure) - value) <= 0.5 * 10**-places + 1e-9, (said, measured)


def header(pin: str, name: str) -> str:
    return (SERIES / pin / name).read_text("utf-8").partition("\ndiff --git")[0]


def test_the_machine_is_named() -> None:
    assert RECORD["gpu"] == "NVIDIA H200"
    machine = f"NVIDIA H200 (driver {RECORD['driver']}, torch {RECORD['torch']}"
    for text in (PAGE, *(header(pin, "exl3-decode-gemv.patch") for pin in PINS)):
        assert machine in text


def test_linear_layers_of_the_page() -> None:
    row = re.compile(
        r"^\| (\d+) x (\d+), (one|\d+) rows?, (\d) bits (\w+) \| (.+) \|$", re.MULTILINE
    )
    found = row.findall(PAGE)
    many = [f for f in found if f[2] == "2048"]
    assert (len(found), len(many)) == (8, 1)
    for size, columns, rows, bits, codebook, figures in found:
        said = [part.strip() for part in figures.split("|") if part.strip()]
        if rows == "2048":
            wanted = {"size": size, "columns": columns, "rows": rows}
            (line,) = [
                r
                for r in lines("linear layers of many rows, 5 bits mcg, us")
                if wanted.items() <= r.items()
            ]
            agree(said, [float(line["ours"]), float(line["dense"])])
        else:
            agree(said, linear(size, columns, rows.replace("one", "1"), bits, codebook))


def test_experts_of_the_page() -> None:
    for label, tokens in (("one token", "1"), ("four tokens", "4"), ("16 tokens", "16")):
        (figures,) = re.findall(
            rf"^\| experts of {label}(?: \([^|]*)? \| (.+) \|$", PAGE, re.MULTILINE
        )
        ours, package, dense = (part.strip() for part in figures.split("|")[:3])
        agree([f for f in (ours, dense, package) if f], experts(tokens))


def test_the_aims() -> None:
    ratios = [
        ours / package
        for bits in ("4", "5")
        for codebook in ("3inst", "mcg")
        for ours, package in [linear("5120", "17408", "1", bits, codebook)[:2]]
    ]
    ours, dense, package = experts("1")
    assert f"{min(ratios):.2f} to {max(ratios):.2f} of its time | held" in PAGE
    assert f"kernel | {ours / dense:.2f} of its time | held" in PAGE
    assert f"fused path | {ours / package:.2f} of its time | held" in PAGE
    assert max(*ratios, ours / dense, ours / package) <= 1
    worst = MEASURED["parity: worst relative norm, and where"]
    norms = MEASURED["experts, 10 of 512, 2560/640, 5 bits mcg: relative norm"]
    for kind, linear_said, experts_said, limit in (
        ("torch.bfloat16", 1.86e-3, 1.72e-3, 2e-3),
        ("torch.float16", 3.2e-4, 4.3e-4, 5e-4),
    ):
        assert worst[kind][0] <= linear_said <= limit
        assert max(v for k, v in norms.items() if k.endswith(kind)) <= experts_said <= limit
    assert "linear 1.86e-3, 3.2e-4; experts 1.72e-3, 4.3e-4" in PAGE
    assert f"{MEASURED['parity: products compared']:,} products" in PAGE


@pytest.mark.parametrize("pin", PINS)
def test_headers(pin: str) -> None:
    row = re.compile(
        r"^  (\d+) x (\d+), (\d) bits (\w+) +([\d.]+) +([\d.]+) +([\d.]+)$", re.MULTILINE
    )
    found = row.findall(header(pin, "exl3-decode-gemv.patch"))
    assert len(found) == 8
    for size, columns, bits, codebook, *said in found:
        agree(said, linear(size, columns, "1", bits, codebook)[:3])
    text = header(pin, "exl3-moe-decode.patch")
    for tokens, numbers in re.findall(r"^  (\d+) tokens? +(.+)$", text, re.MULTILINE):
        said = re.findall(r"\d+\.\d", numbers)
        agree(said, experts(tokens))
    head = MEASURED["output head 2560 x 248320, 6 bits mcg, us"]
    text = " ".join(header(pin, "exl3-lm-head.patch").split())
    for rows, label in (("1", "one row {} us (dense bf16 {})"), ("32", "32 rows {} ({})")):
        took = head[f"{rows} rows"]
        assert label.format(round(took["ours"]), round(took["dense"])) in text
    for measured in re.findall(r"[\w./-]*results/[\w.-]+\.json", text):
        assert (ROOT / measured).is_file()


def test_no_header_quotes_a_file_that_is_not_there() -> None:
    for path in sorted(SERIES.glob("*/*.patch")):
        text = path.read_text("utf-8", "replace").partition("\ndiff --git")[0]
        for name in re.findall(r"[\w./-]*proofs/results/[\w.-]+\w", text):
            near = path.parent / name if name.startswith("proofs/") else ROOT / name
            base = SERIES / "v0.30.0" / name
            assert near.exists() or base.exists(), f"{path.name}: {name}"
