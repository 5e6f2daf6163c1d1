"""What a bundle prints where nobody reads it, or where it does not fit."""

from __future__ import annotations

import os
import sys

import pytest

from patchkit.errors import EnvironmentFault, Finding
from patchkit.target.bundle_text import say, tell


def test_a_reader_that_has_gone_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, print_it in (("stdout", lambda: say("x")), ("stderr", lambda: tell([DISK]))):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as stream:
            monkeypatch.setattr(sys, name, stream)
            print_it()
            print_it()


def test_a_full_standard_output_is_the_environment_and_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open("/dev/full", "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(EnvironmentFault, match="cannot write standard output"):
            say("x")
        say("nobody hears this")
    with open("/dev/full", "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        tell([DISK])


DISK = Finding("disk", "x")
