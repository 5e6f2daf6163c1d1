"""What the tool knows of each upstream: one small module a project, chosen by `kind`.

Nothing outside this package names an upstream.
"""

from patchkit.upstreams.base import Known, known, usual

__all__ = ["Known", "known", "usual"]
