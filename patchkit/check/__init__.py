"""Drift: what is found against what the lock says, by name, all of it in one run."""
