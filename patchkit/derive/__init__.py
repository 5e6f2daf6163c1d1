"""From a project to trees: find it, read a pin's series, select a stack, apply in memory.

Every verb that needs a patched tree goes through here, so that apply, check, rebase and build
cannot disagree.
"""
