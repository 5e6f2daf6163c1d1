"""What the fuzzing runs left is read again, and a bit beyond it: seconds, no atheris needed."""

from __future__ import annotations

import random

import pytest

from tests.fuzz import corpus
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS, run

CHANGES = 2
"""Changed copies of each input that are fed besides it."""


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_the_corpus_is_read_or_refused_and_what_is_read_keeps_its_promises(target: str) -> None:
    inputs = [*corpus.read(target), *seeds(target)]
    assert corpus.read(target), "a target without a corpus was never fuzzed"
    dice = random.Random(target)
    for data in inputs:
        run(target, data)
        for _ in range(CHANGES):
            run(target, changed(data, dice))


def changed(data: bytes, dice: random.Random) -> bytes:
    """`data` with a run of bytes dropped, doubled or overwritten."""
    if not data:
        return b"\n"
    start = dice.randrange(len(data))
    end = min(len(data), start + dice.choice((1, 2, 8, 40)))
    middle = dice.choice((b"", data[start:end] * 2, dice.randbytes(end - start)))
    return data[:start] + middle + data[end:]
