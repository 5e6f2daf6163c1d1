"""What the tool knows of each upstream: one small module a project, chosen by `kind`.

Nothing outside this package names an upstream.
"""

from patchkit.upstreams.base import Known, known, usual
from patchkit.upstreams.proving import Proving, proving

__all__ = ["Known", "Proving", "known", "proving", "usual"]
