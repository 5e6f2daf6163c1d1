"""`patchkit build`: a wheel of a patched release, the same bytes from the same inputs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.options import Json, Offline, Pin, Source, Stack

if TYPE_CHECKING:
    from patchkit.build.built import Built
    from patchkit.build.configure import Configured
    from patchkit.cli.out import Out

EXAMPLES = (
    "Examples:  patchkit build --pin v0.30.0    patchkit build --pin v0.30.0 --how empty    "
    "patchkit build --verify dist/vllm-….whl"
)


def run(
    context: typer.Context,
    pin: Pin = None,
    stack: Stack = None,
    how: Annotated[
        str | None,
        typer.Option(
            "--how",
            metavar="overlay|empty|cuda|cpu",
            help="overlay (default): the official wheel with the changed files. empty: upstream's "
            "build without compiled parts. cuda, cpu: compiled, where nothing is missing.",
        ),
    ] = None,
    base_wheel: Annotated[
        str | None,
        typer.Option("--base-wheel", metavar="FILE|URL", help="Another base; needs --sha256."),
    ] = None,
    sha256: Annotated[
        str | None, typer.Option("--sha256", metavar="DIGEST", help="Of the --base-wheel.")
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option("--arch", metavar="ARCH", help="x86_64 or aarch64. Default: this machine's."),
    ] = None,
    out_folder: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where to. Default: build/wheels."),
    ] = None,
    verify: Annotated[
        str | None,
        typer.Option("--verify", metavar="WHEEL", help="Build it again and compare; keep nothing."),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            "--python",
            metavar="EXE",
            help="With --how cuda or cpu: the interpreter that builds, in place of the one that is "
            "made of packages by their hashes.",
        ),
    ] = None,
    use: Annotated[
        list[str] | None,
        typer.Option(
            "--use",
            metavar="NAME=DIR",
            help="With --how cuda or cpu: a folder in place of a source that would be fetched.",
        ),
    ] = None,
    cuda_archs: Annotated[
        str | None,
        typer.Option(
            "--cuda-archs",
            metavar="LIST",
            help="With --how cuda: '8.9', say, for one machine. Default: those of the official "
            "wheel.",
        ),
    ] = None,
    configure_only: bool = typer.Option(
        False,
        "--configure-only",
        help="With --how cuda or cpu: fetch everything, run CMake offline, compile nothing.",
    ),
    source: Source = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Build a wheel of a pin with a stack's patches, its provenance and its SBOM beside it."""
    from patchkit.build.ask import Asked
    from patchkit.build.run import build, check, configure
    from patchkit.cli.out import Out
    from patchkit.cli.progress import progress
    from patchkit.derive.base import open_bases
    from patchkit.derive.outputs import output_folder
    from patchkit.derive.project import find
    from patchkit.errors import UsageFault

    out = Out("build", as_json=as_json)
    project = find(context.obj)
    given = (pin, stack, how, base_wheel, sha256, arch, source, python)
    asked = Asked(*given, configure_only, tuple(use or ()), cuda_archs)
    with (
        progress(quiet=as_json) as bar,
        open_bases(project, offline=offline, progress=bar) as bases,
    ):
        if configure_only:
            if verify is not None or out_folder is not None:
                raise UsageFault.because("--configure-only makes no wheel: no --verify, no --out")
            made = configure(project, bases, asked, bar)
            out.find(made.findings)
            _configured(out, made)
        elif verify is not None:
            if out_folder is not None:
                raise UsageFault.because("--verify keeps nothing: no --out")
            if verify == "":
                raise UsageFault.because("--verify takes the name of a wheel")
            again, findings = check(project, bases, asked, verify, bar)
            out.find(findings)
            out.put(wheel=os.path.abspath(verify), again=_facts(again), same=out.ok())
            _show(out, again)
            out.line("the same" if not out.findings else "the same files" if out.ok() else "")
        else:
            if out_folder == "":
                raise UsageFault.because("--out takes the name of a folder")
            at = out_folder or output_folder(project, "wheels")
            built, beside = build(project, bases, asked, os.path.abspath(at), bar)
            out.find(built.notes)
            out.put(**_facts(built), path=built.path, provenance=beside[0], sbom=beside[1])
            _show(out, built)
            for path in (built.path, *beside):
                out.line(os.path.relpath(path))
    raise typer.Exit(out.close())


def _configured(out: Out, made: Configured) -> None:
    out.put(at=made.at, said=made.said, commands=made.commands, count=made.count)
    out.line(made.said)
    out.line(f"{made.count} compile commands: {made.commands}")
    out.line(f"in {made.at}: CMake took {made.seconds:.1f} s, and nothing was compiled")


def _facts(built: Built) -> dict[str, object]:
    return {
        "file": built.file_name,
        "version": built.version,
        "how": built.how,
        "sha256": built.sha256,
        "content": built.content,
        "bytes": built.size,
        "changed": list(built.changed),
        "removed": list(built.gone),
        "left_out": list(built.left_out),
    }


def _show(out: Out, built: Built) -> None:
    rows = [
        ("version", built.version),
        ("sha256", built.sha256),
        ("content", built.content),
        ("size", f"{built.size} bytes"),
        ("changed", f"{len(built.changed)} files, {len(built.gone)} removed"),
    ]
    if built.left_out:
        rows.append(("left out", ", ".join(built.left_out)))
    for name, text in rows:
        out.line(f"{name + ':':10} {text}")
