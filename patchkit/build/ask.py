"""What is asked of a build, as the command line says it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields

from patchkit.errors import UsageFault

HOWS = ("overlay", "empty", "cuda", "cpu")
OVERLAY, EMPTY, CUDA, CPU = HOWS
_ARCHS = re.compile(r"\d{1,2}\.\d[af]?( \d{1,2}\.\d[af]?){0,15}")


_OPTIONS = {"archs": "cuda-archs"}


@dataclass(frozen=True)
class Asked:
    """Each None where it was not said."""

    pin: str | None = None
    stack: str | None = None
    how: str | None = None
    base_wheel: str | None = None
    sha256: str | None = None
    arch: str | None = None
    source: str | None = None
    python: str | None = None
    configure: bool = False
    use: tuple[str, ...] = ()
    archs: str | None = None

    def __post_init__(self) -> None:
        """Raise UsageFault for an option with nothing behind it: a variable of a script that is not
        set must not build the default."""
        for field in fields(self):
            if getattr(self, field.name) == "":
                option = _OPTIONS.get(field.name, field.name).replace("_", "-")
                raise UsageFault.because(f"--{option} is given, and empty")

    @property
    def interpreter(self) -> str | None:
        """The interpreter that builds, as any folder can call it."""
        if self.python is None or os.sep not in self.python:
            return self.python
        return os.path.abspath(self.python)

    def checked(self) -> str:
        """Which build is meant. Raises UsageFault for what cannot be meant."""
        how = self.how or OVERLAY
        if how not in HOWS:
            raise UsageFault.because(f"--how takes {', '.join(HOWS)}; not {how}")
        if how != OVERLAY and (self.base_wheel or self.sha256):
            raise UsageFault.because("--base-wheel and --sha256 go with --how overlay")
        if self.arch is not None and how == EMPTY:
            raise UsageFault.because("--arch does not go with --how empty: it is for this machine")
        if self.python and how not in (CUDA, CPU):
            raise UsageFault.because("--python goes with --how cuda or cpu")
        if (self.configure or self.use) and how not in (CUDA, CPU):
            option = "--configure-only" if self.configure else "--use"
            raise UsageFault.because(f"{option} goes with --how cuda or cpu")
        if self.archs is not None and (how != CUDA or not _ARCHS.fullmatch(self.archs)):
            raise UsageFault.because(
                "--cuda-archs takes capabilities such as 8.9 or '8.0 9.0', with --how cuda"
            )
        if self.sha256 and not self.base_wheel:
            raise UsageFault.because("--sha256 goes with --base-wheel")
        return how
