"""Write docs/reference.md from what every verb says with --help.

`python ci/reference.py` says whether the page is up to date and exits 1 where it is not;
`--write` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference.md"
WIDTH = 100
sys.path.insert(0, str(ROOT))

TOP = """\
# Reference

Every verb and option, as `patchkit VERB --help` says it. Written by
`python ci/reference.py --write`; a test holds it against the command.

Exit codes: 0 fine, 1 drift or refusal, 2 wrong command line, 3 environment (network, git, disk).

"""


def page() -> str:
    """The page's text."""
    import click
    import typer

    from patchkit.cli.app import app
    from patchkit.cli.verbs import register

    register(app, [])
    command = typer.main.get_command(app)
    top = click.Context(command, info_name="patchkit", terminal_width=WIDTH)  # type: ignore[arg-type]
    names = command.list_commands(top)  # type: ignore[attr-defined]
    links = " · ".join(f"[{name}](#{name})" for name in names)
    parts = [TOP, links, "\n\n## patchkit\n\n", _block(command.get_help(top))]
    for name in names:
        verb = command.get_command(top, name)  # type: ignore[attr-defined]
        inner = click.Context(verb, info_name=name, parent=top, terminal_width=WIDTH)
        parts += [f"\n## {name}\n\n", _block(verb.get_help(inner))]
    return "".join(parts)


def _block(text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))
    return f"```text\n{lines}\n```\n"


def main() -> int:
    """Compare or write; the exit code is returned."""
    new = page()
    if "--write" in sys.argv:
        PAGE.write_text(new)
        print(f"{PAGE.relative_to(ROOT)}: written")
        return 0
    if PAGE.is_file() and PAGE.read_text() == new:
        print(f"{PAGE.relative_to(ROOT)}: up to date")
        return 0
    print(f"{PAGE.relative_to(ROOT)}: not what --help says; next: python ci/reference.py --write")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
