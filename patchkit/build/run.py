"""Builds as a whole: from what is asked to a wheel with its papers, and the check of one."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from patchkit.build import overlay
from patchkit.build.ask import CPU, CUDA, EMPTY, OVERLAY, Asked
from patchkit.build.basewheel import choose, machine
from patchkit.build.beside import base_in, check_folder, papers_of, write_beside
from patchkit.build.built import Built
from patchkit.build.changes import refuse
from patchkit.build.inputs import Inputs, gather
from patchkit.build.label import variant_of
from patchkit.build.scratch import scratch
from patchkit.build.verify import claim_of, compare
from patchkit.derive.base import Bases
from patchkit.derive.project import Project
from patchkit.derive.selection import Selection
from patchkit.engine.quote import show_path
from patchkit.errors import Finding, Refused, UsageFault, Where
from patchkit.files.growing import remove_empty_folder
from patchkit.series.pins import Pin
from patchkit.source.base import Progress, silent

if TYPE_CHECKING:
    from patchkit.build.configure import Configured
    from patchkit.build.native import Plan


def build(
    project: Project, bases: Bases, asked: Asked, out: str, progress: Progress = silent
) -> tuple[Built, tuple[str, str]]:
    """Build into the folder `out`; the wheel, and the paths of its provenance and SBOM.

    Raises UsageFault, Refused and EnvironmentFault; nothing is written then.
    """
    how = asked.checked()
    check_folder(out)
    there = os.path.isdir(out)
    before = frozenset(os.listdir(out)) if there else frozenset()
    inputs = _inputs(project, bases, asked)
    try:
        built = _build(inputs, bases, asked, how, out, progress)
        return built, write_beside(inputs, built, before)
    except BaseException:
        if not there:
            remove_empty_folder(out)
        raise


def check(
    project: Project, bases: Bases, asked: Asked, wheel: str, progress: Progress = silent
) -> tuple[Built, list[Finding]]:
    """Build again what `wheel` says it is, compare, and keep nothing."""
    claim = claim_of(wheel)
    how = asked.how or claim.how
    asked = replace(
        asked,
        pin=asked.pin or claim.state.lock.pin.name,
        stack=asked.stack or claim.state.stack,
        how=how,
        arch=asked.arch or (_arch_of(wheel) if how != EMPTY else None),
    )
    asked.checked()
    inputs = _inputs(project, bases, asked)
    if how == OVERLAY and asked.base_wheel is None:
        _refuse_other_base(wheel, inputs.pin)
    with scratch(bases.store.root, "verify") as folder:
        built = _build(inputs, bases, asked, how, folder, progress)
        return built, compare(wheel, built.path)


def _refuse_other_base(wheel: str, pin: Pin) -> None:
    """Where the pin's own wheel is not what `wheel` was built on, as its label or the provenance
    beside it says, a comparison with it would say nothing. Raises UsageFault."""
    given = base_in(papers_of(wheel)[0])
    if given is not None and given[1] in pin.files.values():
        return
    variant = variant_of(os.path.basename(wheel))
    if given is None and not variant:
        return
    base, sha256 = given or ("FILE", "DIGEST")
    raise UsageFault(
        Finding(
            "usage",
            f"{os.path.basename(wheel)} was built on another wheel than the one of {pin.name}",
            Where(file=wheel),
            expected=f"a wheel that pin {pin.name} states, or --base-wheel",
            found=base if given is not None else f"the label of a +{variant} wheel",
            next=f"patchkit build --verify {shlex.quote(wheel)} --base-wheel {base} "
            f"--sha256 {sha256}",
        )
    )


def _inputs(project: Project, bases: Bases, asked: Asked) -> Inputs:
    stack = project.stack(asked.stack or "default")
    return gather(project, project.one_pin(asked.pin), Selection(stack), bases, asked.source)


def _build(
    inputs: Inputs, bases: Bases, asked: Asked, how: str, out: str, progress: Progress
) -> Built:
    if how == OVERLAY:
        _refuse_native(inputs)
        given = choose(
            inputs.upstream,
            inputs.pin,
            arch=asked.arch or machine(),
            given=asked.base_wheel,
            sha256=asked.sha256,
            root=bases.store.root,
            offline=bases.offline,
            progress=progress,
        )
        return overlay.build(inputs, given, out, progress)
    if how == EMPTY:
        from patchkit.build import empty

        _refuse_compiled(inputs)
        return empty.build(inputs, out, progress)
    from patchkit.build import native
    from patchkit.build.sources import used

    ready = _plan(inputs, asked, how)
    folders = used(asked.use, ready.fetched)
    return native.build(
        inputs, ready, out, folders=folders, offline=bases.offline, progress=progress
    )


def plan(project: Project, bases: Bases, asked: Asked) -> Plan:
    """What a compiled build would take, and what is missing; nothing is compiled, and nothing of
    it fetched: what is not in the cache yet is said in a note."""
    from patchkit.build.native import unmade
    from patchkit.build.sources import absent, used

    how = asked.checked()
    if how not in (CUDA, CPU):
        raise UsageFault.because(f"--build takes {CUDA} or {CPU}; not {how}")
    inputs = _inputs(project, bases, asked)
    made = _plan(inputs, asked, how)
    there = used(asked.use, made.fetched)
    more = absent(bases.store, inputs.pin, made.fetched, there)
    return replace(made, missing=(*made.missing, *more, *unmade(made)))


def configure(
    project: Project, bases: Bases, asked: Asked, progress: Progress = silent
) -> Configured:
    """A compiled build up to where it compiles: the sources, the environment, CMake."""
    from patchkit.build import native
    from patchkit.build.sources import used

    how = asked.checked()
    inputs = _inputs(project, bases, asked)
    ready = _plan(inputs, asked, how)
    folders = used(asked.use, ready.fetched)
    return native.only_configure(
        inputs, ready, folders=folders, offline=bases.offline, progress=progress
    )


def _plan(inputs: Inputs, asked: Asked, how: str) -> Plan:
    from patchkit.build import native
    from patchkit.build.machine import look
    from patchkit.upstreams.building import recipe

    found = look(recipe(inputs.known.kind).at, asked.interpreter)
    return native.plan(inputs, how, asked.arch or machine(), found, asked)


def _refuse_native(inputs: Inputs) -> None:
    """Before 300 MB are fetched: what no base wheel could make up for."""
    way_out = f"patchkit build --pin {inputs.pin.name} --stack {inputs.selection.name} --how cuda"
    members = {path for path in inputs.differing if path in inputs.base}
    changes = inputs.always_native()
    found = refuse(inputs.known, changes, inputs.base, members, inputs.title, way_out)
    if found:
        raise Refused(*found)


def _refuse_compiled(inputs: Inputs) -> None:
    """A wheel without compiled parts would carry the name of a stack whose kernels it lacks."""
    compiled = [path for path in inputs.always_native().native if inputs.known.native(path)]
    if compiled:
        raise Refused(
            Finding(
                "needs-build",
                f"{inputs.title} changes compiled sources, and an empty wheel compiles none",
                Where(file=compiled[0]),
                expected="changes of Python and data",
                found=f"{len(compiled)} compiled sources or build files",
                next=f"patchkit build --pin {inputs.pin.name} --stack {inputs.selection.name} "
                "--how cuda",
                details=tuple(show_path(path) for path in compiled),
            )
        )


def _arch_of(wheel: str) -> str | None:
    name = os.path.basename(wheel).removesuffix(".whl")
    return next((arch for arch in ("x86_64", "aarch64") if name.endswith(f"_{arch}")), None)
