"""Installed packages patched in place and taken back: all or nothing, over several packages.

    apply_pins    a pin's locked series, one packet a package
    apply_loose   patch files, for whatever packages they name
    revert        what either did, byte for byte

Each is: lock the site folder, undo what an interrupted command left, plan in memory, write one
transaction, read it back. State stands in the dist-info (`installed_state`), and RECORD lists it,
so that uninstalling a patched package leaves nothing.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from patchkit.engine.chain import Step
from patchkit.engine.rule import Rule
from patchkit.errors import Finding, PatchkitError, Refused, Where
from patchkit.files.lock import folder_locked
from patchkit.files.root import ANOTHER, Root
from patchkit.files.transaction import Recovered
from patchkit.target.dist_info import (
    STATE,
    Dist,
    find_dist,
    patched,
    pending_journal,
    record_lost,
)
from patchkit.target.installed_base import edited_since, journal_finding, record_disagrees
from patchkit.target.installed_packet import Packet
from patchkit.target.installed_parts import lost_record
from patchkit.target.installed_pin import plan_pin
from patchkit.target.installed_plan import APPLIED, REFUSED, Plan, base_files, patchable
from patchkit.target.installed_state import State
from patchkit.target.installed_tree import InstalledTree
from patchkit.target.installed_words import Words
from patchkit.target.installed_write import Part, commit, needs_writing, roll_back, seal
from patchkit.target.record_csv import NAME, restored

WAIT = 60.0
"""Seconds to wait for another patchkit that writes to the same site folder."""


@dataclass(frozen=True)
class Done:
    """What was done, or would be.

    plans: one a package. changed: site paths that were (or would be) written or removed, RECORD
    and state among them. bytecode: compiled files that went with them. recovered: an earlier
    interrupted command that was undone first. written: whether anything was written.
    """

    plans: tuple[Plan, ...]
    findings: tuple[Finding, ...] = ()
    changed: tuple[str, ...] = ()
    bytecode: tuple[str, ...] = ()
    recovered: Recovered | None = None
    written: bool = False
    site: str = field(default="", compare=False)

    @property
    def ok(self) -> bool:
        """Whether only notes were found."""
        return all(f.note for f in self.findings)


def apply_pins(
    sites: Sequence[str],
    packets: Sequence[Packet],
    words: Words = Words(),  # noqa: B008  (frozen)
    *,
    dry: bool = False,
    wait: float = WAIT,
) -> Done:
    """Apply locked series to the packages that they are for, all in one transaction.

    sites: folders of packages in sys.path's order, links resolved. dry: only say what would
    happen. Raises Refused where a package is not there or cannot be patched in place,
    EnvironmentFault(disk); nothing is written then.
    """
    dists = [find_dist(sites, packet.dist, packet.package) for packet in packets]
    site = one_site(dists)

    def plans() -> list[Plan]:
        # Found again: before the lock was held another command may have changed them.
        found = [find_dist(sites, packet.dist, packet.package) for packet in packets]
        return [plan_pin(d, p, words) for d, p in zip(found, packets)]  # noqa: B905  (3.10)

    return _run(site, plans, "apply", words, dry, wait)


def apply_loose(
    sites: Sequence[str],
    steps: Sequence[Step],
    rule: Rule,
    words: Words = Words(),  # noqa: B008  (frozen)
    *,
    exclude: Sequence[str] = (),
    dry: bool = False,
    wait: float = WAIT,
) -> Done:
    """Apply loose patches to whatever packages of `sites` they name. As `apply_pins`."""
    # A bundle applies no loose patches, and does not pack these.
    from patchkit.target.installed_loose import plan_loose
    from patchkit.target.installed_owner import find_owners

    found = find_owners(sites, steps, rule)
    site = one_site([tree.dist for tree in found.trees])
    return _run(
        site, lambda: plan_loose(sites, steps, rule, words, exclude), "apply", words, dry, wait
    )


def revert(
    sites: Sequence[str],
    names: Sequence[str] = (),
    words: Words = Words(),  # noqa: B008  (frozen)
    *,
    dry: bool = False,
    wait: float = WAIT,
    discard: bool = False,
    packets: Callable[[], Sequence[Packet]] = tuple,
) -> Done:
    """Take back what was applied in place, byte for byte, RECORD and modes too.

    names: distributions; without any, every one that is patched. discard: files that were edited
    by hand since go back to what they were before patching, too. packets: what a package whose
    record is lost may be patched with; asked for only then. Raises Refused: no-op where nothing
    is patched, unsupported where a wheel was built with its patches.
    """

    def dists() -> list[Dist]:
        if names:
            return [find_dist(sites, name) for name in names]
        return [*patched(sites), *record_lost(sites)]

    def plans() -> list[Plan]:
        found = [(dist, patchable(dist, words)) for dist in dists()]
        made = [
            plan_revert(dist, state, words, discard=discard)
            if state is not None
            else _plan_lost(dist, packets(), words)
            for dist, state in found
            if state is not None or dist.record_lost
        ]
        if not made:
            raise Refused(_nothing(sites, words, [dist for dist, _ in found]))
        return made

    chosen = dists()
    # An interrupted command may have left a journal and no state.
    broken = [d for d in map(pending_journal, () if chosen else sites) if d is not None]
    if not chosen and not broken:
        raise Refused(_nothing(sites, words))
    return _run(one_site(chosen or broken), plans, "revert", words, dry, wait)


def plan_revert(dist: Dist, state: State, words: Words, *, discard: bool = False) -> Plan:
    """Work out what taking the patches of `state` out of `dist` writes."""
    root = Root(dist.site)
    edited = edited_since(dist, state, root, words)
    if edited and discard and state.kept:
        # A link is refused all the same: it leads to a file of somebody else's.
        edited = [_discarded(f) if f.name == "foreign-edit" else f for f in edited]
    if any(not finding.note for finding in edited):
        return Plan(dist, REFUSED, findings=tuple(edited), state=state)
    modes = {p: b.mode for p in state.chain.paths if (b := state.chain.after(p)) is not None}
    base = base_files(InstalledTree(root, dist, state.root, modes), state)
    files = {state.site_path(path): file for path, file in base.items()}
    rows = restored(dist.record, state.record).by_path
    wrong = [
        finding
        for path, file in files.items()
        if file is not None
        and path in rows
        and (finding := record_disagrees(dist, path, file, rows[path])) is not None
    ]
    if wrong:
        return Plan(dist, REFUSED, findings=tuple(wrong), state=state)
    part = Part(dist, state, None, files, files)
    return Plan(dist, APPLIED, part, (), (), tuple(edited), tuple(sorted(files)), state)


def _discarded(finding: Finding) -> Finding:
    return replace(finding, message=f"{finding.message}: the edit is discarded", next="", note=True)


def _plan_lost(dist: Dist, packets: Sequence[Packet], words: Words) -> Plan:
    """As `plan_revert`, where the record is lost: by content, or refused."""
    from patchkit.target.installed_lost import recognised

    found = recognised(dist, packets)
    if found is None:
        return Plan(dist, REFUSED, findings=(lost_record(dist),))
    packet, state = found
    plan = plan_revert(dist, state, words)
    note = lost_record(dist, packet.title, "nothing: the patches are taken out of the files")
    return replace(plan, findings=(note, *plan.findings))


def one_site(dists: Sequence[Dist]) -> str:
    """The one folder that all stand in. Raises Refused(unsupported) where there are several."""
    sites = sorted({dist.site for dist in dists})
    if len(sites) == 1:
        return sites[0]
    each = " and ".join(f"--site {shlex.quote(site)}" for site in sites)
    raise Refused(
        Finding(
            "unsupported",
            "the packages stand in different site folders: one transaction cannot hold them all",
            expected="one site folder",
            found="; ".join(f"{dist.name} in {dist.site}" for dist in dists),
            next=f"a command for each folder: {each}",
        )
    )


# -- one run ---------------------------------------------------------------------------------
def _run(
    site: str, plans: Callable[[], list[Plan]], what: str, words: Words, dry: bool, wait: float
) -> Done:
    with _held(site, dry, wait):
        recovered = None
        if dry:
            stopped = journal_finding(site, words)
            if stopped is not None:
                return Done((), (stopped,), site=site)
        else:
            recovered = roll_back(site)
        try:
            made = plans()
        except Refused as refusal:
            if recovered is None:
                raise
            # What was undone is said whatever comes after it. Undoing an apply is what a revert
            # was to do: then nothing is left to be taken back.
            over = what == "revert" and {f.name for f in refusal.findings} == {"no-op"}
            findings = () if over else refusal.findings
            return Done((), findings, recovered=recovered, site=site)
        findings = tuple(f for plan in made for f in plan.findings)
        parts = [plan.part for plan in made if plan.part is not None]
        if any(not f.note for f in findings) or not parts:
            return Done(tuple(made), findings, recovered=recovered, site=site)
        sealed = [seal(part) for part in parts]
        findings += tuple(_record_note(each.dist) for each in sealed if each.record_edited)
        changed = tuple(needs_writing(sealed))
        if dry or not changed:
            return Done(tuple(made), findings, changed, (), recovered, False, site)
        try:
            gone = commit(sealed, what)
        except PatchkitError as fault:
            undone = (_undone(recovered, site),) if recovered is not None else ()
            raise type(fault)(*undone, *(_of_site(f, site) for f in fault.findings)) from fault
        return Done(tuple(made), findings, changed, tuple(gone), recovered, True, site)


@contextmanager
def _held(site: str, dry: bool, wait: float) -> Iterator[None]:
    """The site folder's lock; nothing at all when only looking."""
    if dry:
        yield
        return
    with folder_locked(site, wait=wait):
        yield


def _of_site(finding: Finding, site: str) -> Finding:
    """A fault of the disk: nothing was changed, and no other folder would do."""
    if not finding.next.endswith(ANOTHER):
        return finding
    return replace(
        finding,
        next=f"run as the owner of {site}, where it is writable (in an image: USER root)",
    )


def _undone(recovered: Recovered, site: str) -> Finding:
    return Finding("journal", recovered.words, Where(file=site), note=True)


def _nothing(sites: Sequence[str], words: Words, dists: Sequence[Dist] = ()) -> Finding:
    named = " and ".join(f"{dist.name} {dist.version}" for dist in dists)
    return Finding(
        "no-op",
        "there is nothing to take back: "
        + (f"{named} is not patched" if named else "no package there is patched"),
        expected=f"a {STATE} in a dist-info folder",
        found="none in " + (", ".join(sites) or "no folder at all"),
        next=words.check,
    )


def _record_note(dist: Dist) -> Finding:
    return Finding(
        "foreign-edit",
        f"RECORD of {dist.name} was changed by another program since it was patched; only the "
        "rows of patched files are put back",
        Where(file=os.path.join(dist.site, dist.path(NAME))),
        expected="RECORD as patchkit left it",
        found="other rows",
        note=True,
    )
