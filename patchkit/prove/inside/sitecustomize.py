"""Found by every Python that a proof starts: it is watched as the proof is."""

import pk_watch  # noqa: F401
