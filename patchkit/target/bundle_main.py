"""What a bundle does when it is run: apply, check or revert, as the `patchkit` command does.

Standard library only: the bundle packs this module.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace

from patchkit.errors import ENVIRONMENT, OK, REFUSED, Finding, PatchkitError
from patchkit.target.bundle_pack import Read, unpacked
from patchkit.target.bundle_text import say, tell
from patchkit.target.dist_info import find_dist
from patchkit.target.installed_packet import Packet
from patchkit.target.installed_sites import own_sites, sites_of_folder
from patchkit.target.installed_words import DISCARD, Words


def main(argv: Sequence[str], read: Read) -> int:
    """Run a bundle. argv: as sys.argv. read: gives the bundle's members. The exit code is
    returned: 0 fine, 1 drift or refusal, 2 wrong command line, 3 environment."""
    given = _parser(os.path.basename(argv[0]) or "bundle").parse_args(argv[1:])
    run = {"apply": _apply, "check": _check, "revert": _revert}[given.verb]
    try:
        sites = sites_of_folder(given.site) if given.site else own_sites()
        packets = unpacked(read, patches=given.verb == "apply")
        words = _words(argv[0], given.site)
        if given.verb == "revert" and given.discard_edits:
            return _revert(sites, packets, words, dry=given.check, discard=True)
        return run(sites, packets, words, dry=getattr(given, "check", False))
    except PatchkitError as error:
        tell(map(_of_bundle, error.findings))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("PATCHKIT_DEBUG"):
            raise
        say(f"error: a fault of patchkit itself: {type(error).__name__}: {error}")
        say("  next:     run it again with PATCHKIT_DEBUG=1 and report the traceback")
        return ENVIRONMENT


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=name, description="Patch an installed package in place, check it, take it back."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="apply|check|revert")
    rows = [
        ("apply", "Apply the patches, all or nothing; a second time is a no-op."),
        ("check", "Exit 1 unless the package is patched exactly so."),
        ("revert", "Take the patches back, byte for byte."),
    ]
    for verb, words in rows:
        command = verbs.add_parser(verb, help=words, description=words)
        command.add_argument(
            "--site",
            metavar="DIR",
            help="the site-packages folder; without it that of the Python this is run with",
        )
        if verb != "check":
            command.add_argument(
                "--check", action="store_true", help="write nothing; say what would happen"
            )
        if verb == "revert":
            command.add_argument(
                DISCARD, action="store_true", help="files edited by hand since go back, too"
            )
    return parser


def _of_bundle(finding: Finding) -> Finding:
    """A bundle has no --python: it looks where the interpreter that runs it looks."""
    if "--python" not in finding.next:
        return finding
    return replace(
        finding,
        next="run this file with the interpreter that has the package, or name its folder of "
        "packages with --site",
    )


def _words(program: str, site: str | None) -> Words:
    where = f" --site {shlex.quote(site)}" if site else ""
    run = f"{shlex.quote(sys.executable or 'python3')} {shlex.quote(program)}"
    return Words(*(f"{run} {verb}{where}" for verb in ("apply", "check", "revert")))


def _apply(sites: Sequence[str], packets: Sequence[Packet], words: Words, *, dry: bool) -> int:
    from patchkit.engine.said import state_shown
    from patchkit.target.installed import apply_pins
    from patchkit.target.installed_cut import left_out_notes
    from patchkit.target.installed_hints import caches_of, cuda_note
    from patchkit.target.installed_said import clear_caches

    done = apply_pins(sites, packets, words, dry=dry)
    if done.recovered is not None:
        say(done.recovered.words)
    tell(done.findings)
    left = sorted({path for plan in done.plans for path in plan.left_out})
    tell(left_out_notes(left, [pattern for packet in packets for pattern in packet.exclude]))
    for plan, packet in zip(done.plans, packets):  # noqa: B905  (3.10; one a packet)
        say(f"{plan.dist.name} {plan.dist.version}: {packet.title}, series {packet.digest[:12]}")
        for outcome in plan.outcomes:
            tell(outcome.notes)
            state = state_shown(outcome.state, ok=done.ok, written=done.ok and not dry)
            say(f"  {state:16} {outcome.patch.name}")
    if not done.ok:
        say("nothing was written")
        return REFUSED
    tell(note for note in (cuda_note(plan.dist) for plan in done.plans) if note is not None)
    if dry:
        say(f"{len(done.changed)} file(s) would be written in {done.site} (--check)")
    elif not done.written:
        say(f"already applied in {done.site}, nothing written")
    else:
        say(f"{len(done.changed)} file(s) written in {done.site}")
    for line in clear_caches(cache for plan in done.plans for cache in caches_of(plan)):
        say(line)
    return OK


def _check(sites: Sequence[str], packets: Sequence[Packet], words: Words, *, dry: bool) -> int:
    from patchkit.target.installed_check import status

    code = OK
    for packet in packets:
        found = status(find_dist(sites, packet.dist, packet.package), packet, words)
        tell(found.findings)
        say(f"{found.dist.name} {found.dist.version} in {found.dist.site}: {found.words}")
        say(f"  compared with this bundle: {found.against}")
        code = code if found.ok else REFUSED
    return code


def _revert(
    sites: Sequence[str],
    packets: Sequence[Packet],
    words: Words,
    *,
    dry: bool,
    discard: bool = False,
) -> int:
    from patchkit.target.installed import revert
    from patchkit.target.installed_said import taken_back

    done = revert(sites, [packet.dist for packet in packets], words, dry=dry, discard=discard)
    if done.recovered is not None:
        say(done.recovered.words)
    tell(done.findings)
    if not done.ok:
        say("nothing was written")
        return REFUSED
    for line in taken_back(done, dry):
        say(line)
    return OK
