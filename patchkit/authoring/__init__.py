"""Writing and keeping patches: what changes series/ or pins.toml, each time with the lock.

Every verb here works in the same way: the series as it stands (`standing`), a new one built in
memory patch by patch (`builder`), and all of its files with the lock written as one (`sealing`).
"""
