"""Wheels of a patched release: made again byte by byte from the same inputs.

    overlay   the official wheel with the changed files in place of its own
    empty     upstream's build without compiled parts, in a throw-away copy

Beside each wheel stand a provenance (in-toto, SLSA v1) and an SBOM (SPDX 2.3), without a clock.
"""
